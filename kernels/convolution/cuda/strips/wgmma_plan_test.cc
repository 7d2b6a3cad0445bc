#include "kernels/convolution/cuda/strips/wgmma_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "common/network/layer.h"
#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

constexpr int kStaticShared =
    512;  // more than the kernel's static shared memory

std::string Describe(const Problem& p, const WgmmaStripsPlan& plan) {
  return DescribeProblem(p) + "shape, rows, parts, warpgroups: " +
         Text({plan.shape, plan.strip_rows, plan.parts, plan.warpgroups});
}

// Checks that the kernels stay in their memory and compute every output.
void CheckPlan(const Problem& problem, const WgmmaStripsPlan& plan) {
  SCOPED_TRACE(Describe(problem, plan));
  const WgmmaStripsShape& shape = kWgmmaStripsShapes[plan.shape];
  EXPECT_LE(plan.shared_bytes + kStaticShared, kH200.shared_per_block);
  EXPECT_EQ(plan.shared_bytes,
            plan.filter_bytes() + 4 * plan.exponent_words +
                4 * plan.warpgroups * plan.warpgroup_words());
  EXPECT_GE(plan.warpgroups, 1);
  EXPECT_LE(plan.warpgroups, shape.warpgroups);

  // Strips, units and parts cover the output, and none is empty.
  EXPECT_EQ(plan.strip_rows % shape.rows, 0);
  EXPECT_GE(int64_t{plan.strips} * plan.strip_rows, plan.H_out);
  EXPECT_LT(int64_t{plan.strips - 1} * plan.strip_rows, plan.H_out);
  EXPECT_GE(plan.units * shape.shifts, plan.W_out);
  EXPECT_GE(plan.filter_groups * shape.filters(), plan.M);
  EXPECT_GE(plan.parts * plan.part_groups, plan.filter_groups);
  EXPECT_LT((plan.parts - 1) * plan.part_groups, plan.filter_groups);
  EXPECT_EQ(plan.items(), problem.batch * plan.strips * plan.parts);

  // Every warpgroup that items are dealt to is there, and few are idle.
  EXPECT_GE(plan.workers, 1);
  EXPECT_LE(plan.workers, kH200.multiprocessors * plan.warpgroups);
  EXPECT_LE(plan.workers, plan.items());
  if (plan.workers < plan.items() && plan.H_out % plan.strip_rows != 0) {
    EXPECT_EQ(std::gcd(plan.workers, plan.strips * plan.parts), 1);
  }

  // The depth holds the filter with every shift, down and to the right, and no
  // more rows than it has to.
  const int depth_rows = plan.slices * shape.slice_rows();
  EXPECT_EQ(plan.C, problem.channels);
  EXPECT_GE(depth_rows, plan.K + shape.rows - 1);
  EXPECT_LT(depth_rows - (shape.wide ? shape.steps : 2),
            plan.K + shape.rows - 1);
  EXPECT_LE(plan.K + shape.shifts - 1, shape.wide ? 16 : 8);
  EXPECT_EQ(plan.group_bytes,
            plan.C * depth_rows / (shape.wide ? 1 : 2) * shape.octets * 256);

  // A strip's inputs fit, and so does the last word that a tile reads. Planes
  // as they came begin at 16 bytes.
  EXPECT_GE(2 * plan.pitch, plan.W);
  EXPECT_GE(plan.raw_plane, (plan.strip_rows + plan.K - 1) * plan.W + 3);
  EXPECT_EQ(plan.raw_plane % 4, 0);
  EXPECT_GE(plan.raw_words, plan.C * plan.raw_plane);
  EXPECT_GE(plan.plane_words, (plan.strip_rows + plan.K - 1) * plan.pitch);
  EXPECT_LE(plan.C * plan.plane_words, plan.slab_words);
  const int last_row = plan.strip_rows - shape.rows + depth_rows - 1;
  const int last_word =
      (plan.C - 1) * plan.plane_words + last_row * plan.pitch +
      (plan.units - 1) * shape.shifts / 2 + (shape.wide ? 7 : 3);
  EXPECT_LT(last_word, plan.slab_words);

  // The stage takes a group's outputs, and filters begin at 32 bytes; products
  // want 16 bytes, and addresses below 2^18.
  const int pool = plan.epilogue.empty() ? 1 : 2;
  EXPECT_EQ(shape.rows % pool, 0);
  EXPECT_GE(plan.stage_pitch, plan.strip_rows / pool * (plan.W_out / pool) + 7);
  EXPECT_EQ(plan.stage_pitch % 8, 0);
  EXPECT_GE(plan.stage_words, plan.stage_pitch * shape.filters());
  EXPECT_EQ(plan.stage_words % 32, 0);
  EXPECT_EQ(plan.raw_words % 32, 0);
  EXPECT_EQ(plan.warpgroup_words() % 32, 0);
  EXPECT_EQ(plan.filter_bytes() % 128, 0);
  EXPECT_EQ(plan.exponent_words % 32, 0);
  EXPECT_GE(plan.exponent_words, plan.filter_groups * shape.filters());
  EXPECT_LT(plan.shared_bytes, 1 << 18);

  const int units = plan.strip_rows / shape.rows * plan.units;
  for (const int n : {0, 1, plan.units - 1, plan.units, units - 1}) {
    EXPECT_EQ(Divide(n, plan.units_magic), n / plan.units);
  }
  const int words = (plan.strip_rows + plan.K - 1) * plan.pitch;
  for (const int n :
       {plan.pitch - 1, plan.pitch, words - plan.pitch, words - 1}) {
    EXPECT_EQ(Divide(n, plan.pitch_magic), n / plan.pitch);
  }
}

WgmmaStripsPlan PlanOf(const Problem& problem) {
  WgmmaStripsPlan plan;
  EXPECT_TRUE(MakeWgmmaStripsPlan(problem, kH200, &plan));
  CheckPlan(problem, plan);
  return plan;
}

TEST(WgmmaStripsPlan, TheCoursesLayersFillTheMultiprocessors) {
  for (const Layer& layer : kFirstLayers) {
    SCOPED_TRACE(layer.name);
    const WgmmaStripsPlan plan = PlanOf(layer.At(10000));
    EXPECT_GE(plan.warpgroups, 3);
    EXPECT_EQ(plan.parts, 1);
  }
}

TEST(WgmmaStripsPlan, MoreChannelsAndTapsFillTheMultiprocessorsToo) {
  for (Layer layer : kFirstLayers) {
    const int most = WgmmaStripsMostChannels(layer.kernel_size);
    for (layer.channels = 2; layer.channels <= std::min(most, 3);
         ++layer.channels) {
      SCOPED_TRACE(layer.name);
      EXPECT_GE(PlanOf(layer.At(10000)).warpgroups, 3);
    }
  }
  EXPECT_GE(PlanOf({10000, 1, 72, 72, 12, 9}).warpgroups, 3);
}

// Units of the wide shape have one row, and so no windows.
TEST(WgmmaStripsPlan, PoolingTakesUnitsOfPairsOfRows) {
  const Epilogue epilogue = {nullptr, Activation::kTanh, {2, 2, false}};
  for (int64_t K = kWgmmaStripsLeastKernelSize; K <= kWgmmaStripsMostKernelSize;
       ++K) {
    for (const int64_t width : {K + 1, int64_t{40}, int64_t{73}}) {
      const Problem problem = {10000, 1, 41, width, 12, K};
      WgmmaStripsPlan plan;
      ASSERT_EQ(MakeWgmmaStripsPlan(problem, kH200, &plan, epilogue), K <= 7);
      if (K <= 7) CheckPlan(problem, plan);
    }
  }
}

TEST(WgmmaStripsPlan, FewImagesAreCutIntoMoreItems) {
  for (const Layer& layer : kFirstLayers) {
    SCOPED_TRACE(layer.name);
    EXPECT_GE(PlanOf(layer.At(1)).items(), 8);
    EXPECT_GE(PlanOf(layer.At(100)).items(), 2 * kH200.multiprocessors);
  }
}

TEST(WgmmaStripsPlan, ImagesOfAnySizeHaveAPlanUnlessTheyAreTooWide) {
  for (const int64_t batch : {1, 70000}) {
    for (int64_t K = kWgmmaStripsLeastKernelSize;
         K <= kWgmmaStripsMostKernelSize; ++K) {
      for (int64_t channels = 1;
           channels <= std::min(WgmmaStripsMostChannels(K), 4); ++channels) {
        // The more depth, the fewer filters fit.
        const int64_t most_filters = K > 7 ? 12 : 100 / channels;
        for (const int64_t filters : {int64_t{1}, int64_t{6}, most_filters}) {
          for (const int64_t height : {K, K + 17, int64_t{5000}}) {
            for (const int64_t width :
                 {K, K + 1, K + 20, int64_t{61}, 120 / channels}) {
              const Problem problem = {batch, channels, height,
                                       width, filters,  K};
              WgmmaStripsPlan plan;
              ASSERT_TRUE(MakeWgmmaStripsPlan(problem, kH200, &plan))
                  << Describe(problem, {});
              CheckPlan(problem, plan);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

// As the kernel's refusal says.
static_assert(WgmmaStripsMostChannels(2) == 4);
static_assert(WgmmaStripsMostChannels(3) == 4);
static_assert(WgmmaStripsMostChannels(5) == 3);
static_assert(WgmmaStripsMostChannels(7) == 2);
static_assert(WgmmaStripsMostChannels(8) == 1);
static_assert(WgmmaStripsMostChannels(9) == 1);

TEST(WgmmaStripsPlan, ProblemsThatDoNotFitHaveNoPlan) {
  const Problem problems[] = {
      {1, 6, 40, 40, 3, 5},       // too many channels for the filter's size
      {1, 2, 40, 40, 3, 9},       //
      {3, 8, 21, 23, 7, 2},       // of one sign: 17 * 2^-24 of 32 terms
      {1, 1, 40, 40, 3, 1},       // filters smaller and larger than any that
      {1, 1, 40, 40, 3, 10},      // the kernels take
      {1, 1, 40, 9000, 3, 5},     // rows too wide
      {1, 1, 40, 1 << 20, 3, 5},  //
      {3, 1, 5, 5, 70000, 3},     // too many filters
  };
  for (const Problem& problem : problems) {
    WgmmaStripsPlan plan;
    EXPECT_FALSE(MakeWgmmaStripsPlan(problem, kH200, &plan))
        << Describe(problem, {});
  }
}

// Plans that the model would not choose are right too, if they fit.
TEST(WgmmaStripsPlan, EveryPlanThatFitsIsRight) {
  int checked = 0;
  for (const int64_t size : {9, 10, 28, 35, 72}) {
    for (int64_t K = kWgmmaStripsLeastKernelSize;
         K <= kWgmmaStripsMostKernelSize; ++K) {
      for (const int64_t filters : {1, 5, 24}) {
        for (const int64_t channels : {1, 2, 3}) {
          const Problem problem = {300, channels, size, size + 2, filters, K};
          for (int shape = 0; shape < kWgmmaStripsShapeCount; ++shape) {
            for (int rows = 2; rows < 40; rows += 2) {
              for (int parts = 1; parts < 5; ++parts) {
                WgmmaStripsPlan plan;
                if (!SetWgmmaStripsPlan(problem, shape, rows, parts, kH200,
                                        &plan)) {
                  continue;
                }
                CheckPlan(problem, plan);
                if (HasFailure()) return;
                ++checked;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 1000);
}

TEST(WgmmaStripsPlan, EstimatesGrowWithTheBatch) {
  for (const Layer& layer : kFirstLayers) {
    SCOPED_TRACE(layer.name);
    double before = 0;
    // One image has fewer threads that copy the filters, which takes longer.
    for (const int64_t batch : {100, 1000, 10000}) {
      const double ns = EstimateWgmmaStripsNs(layer.At(batch), kH200);
      EXPECT_TRUE(std::isfinite(ns));
      EXPECT_GT(ns, before);
      before = ns;
    }
  }
}

TEST(WgmmaStripsPlan, ProblemsWithoutAPlanHaveNoEstimate) {
  EXPECT_LT(EstimateWgmmaStripsNs({1, 6, 40, 40, 3, 5}, kH200), 0);
}

}  // namespace
}  // namespace convlab::cuda
