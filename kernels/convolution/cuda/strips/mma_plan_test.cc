#include "kernels/convolution/cuda/strips/mma_plan.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "common/network/layer.h"
#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

std::string Describe(const Problem& p, const StripsPlan& plan) {
  return DescribeProblem(p) + "shape, bands, parts, warps: " +
         Text({plan.shape, plan.bands, plan.parts, plan.warps});
}

// Lanes ask for so many words beyond the last before they see that.
constexpr int kMostAhead = 32 * 64;

// Checks that the kernels stay in their memory and compute every output.
void CheckPlan(const Problem& problem, const StripsPlan& plan,
               const DeviceLimits& device) {
  SCOPED_TRACE(Describe(problem, plan));
  const StripsShape& shape = kStripsShapes[plan.shape];
  EXPECT_LE(plan.shared_bytes, device.shared_per_block);
  EXPECT_EQ(plan.shared_bytes,
            4 * (plan.filter_words() + plan.warps * plan.warp_words() +
                 plan.block_words()));
  EXPECT_GE(plan.warps, 1);
  EXPECT_LE(plan.warps, kStripsMostWarps);

  // Strips, units and parts cover the output, and none is empty.
  EXPECT_GE(int64_t{plan.strips} * plan.strip_rows(), plan.H_out);
  EXPECT_LT(int64_t{plan.strips - 1} * plan.strip_rows(), plan.H_out);
  EXPECT_GE(plan.units * shape.shifts, plan.W_out);
  EXPECT_GE(plan.filter_groups * shape.filters(), plan.M);
  EXPECT_GE(plan.parts * plan.part_groups, plan.filter_groups);
  EXPECT_LT((plan.parts - 1) * plan.part_groups, plan.filter_groups);
  EXPECT_EQ(plan.items(), problem.batch * plan.strips * plan.parts);
  EXPECT_LE(plan.thread_blocks, device.multiprocessors);
  EXPECT_GE(plan.thread_blocks * plan.block_items, plan.items());
  EXPECT_LT((plan.thread_blocks - 1) * plan.block_items, plan.items());

  // The depth holds the filter with every shift.
  const int filter_rows = shape.wide ? shape.steps : 2 * shape.steps;
  EXPECT_GE(filter_rows, plan.K);
  EXPECT_LE(plan.K + shape.shifts - 1, shape.wide ? 16 : 8);
  EXPECT_TRUE(plan.C == 1 || !shape.one_channel);
  EXPECT_EQ(plan.filter_vectors, plan.C * shape.steps * shape.tiles_n * 32);

  // A strip's inputs fit, and so does the last word that an octet reads.
  EXPECT_GE(2 * plan.pitch, plan.W);
  EXPECT_GE(plan.plane_words, (plan.strip_rows() + plan.K - 1) * plan.pitch);
  EXPECT_LE(plan.C * plan.plane_words, plan.slab_words);
  const int last_row = plan.strip_rows() + filter_rows - 2;
  const int last_word =
      (plan.C - 1) * plan.plane_words + last_row * plan.pitch +
      (plan.units - 1) * shape.shifts / 2 + (shape.wide ? 7 : 3);
  EXPECT_LT(last_word, plan.slab_words);

  // The stage takes a group's outputs, and filters begin at 32 bytes.
  const int pool = plan.epilogue.empty() ? 1 : 2;
  EXPECT_EQ(shape.rows % pool, 0);
  EXPECT_GE(plan.stage_pitch,
            plan.strip_rows() / pool * (plan.W_out / pool) + 7);
  EXPECT_EQ(plan.stage_pitch % 8, 0);
  EXPECT_EQ(plan.stage_words, plan.stage_pitch * shape.filters());
  EXPECT_EQ(plan.warp_words() % 8, 0);
  EXPECT_EQ(plan.filter_words() % 32, 0);

  const int units = plan.bands * plan.units;
  for (const int n : {0, 1, plan.units - 1, plan.units, units - 1}) {
    EXPECT_EQ(Divide(n, plan.units_magic), n / plan.units);
  }
  const int words = (plan.strip_rows() + plan.K - 1) * plan.pitch;
  for (const int n :
       {plan.pitch - 1, plan.pitch, words - plan.pitch, words - 1}) {
    EXPECT_EQ(Divide(n, plan.pitch_magic), n / plan.pitch);
  }
  for (int c = 1; c <= plan.C; ++c) {
    const int n = c * plan.plane_words;
    EXPECT_EQ(DivideDoubled(2 * n - 2, plan.plane_magic), c - 1);
    EXPECT_EQ(DivideDoubled(2 * n, plan.plane_magic), c);
  }
  const int beyond = plan.C * plan.plane_words + kMostAhead;
  EXPECT_EQ(DivideDoubled(2 * beyond, plan.plane_magic),
            beyond / plan.plane_words);
}

StripsPlan PlanOf(const Problem& problem) {
  StripsPlan plan;
  EXPECT_TRUE(MakeStripsPlan(problem, kH200, &plan));
  CheckPlan(problem, plan, kH200);
  return plan;
}

TEST(StripsPlan, TheCoursesLayersFillTheMultiprocessors) {
  for (const Layer& layer : kFirstLayers) {
    SCOPED_TRACE(layer.name);
    const StripsPlan plan = PlanOf(layer.At(10000));
    EXPECT_EQ(plan.warps, kStripsMostWarps);
    EXPECT_EQ(plan.parts, 1);
  }
}

// Rows of six units fill no octet.
TEST(StripsPlan, Fa17sImagesAreWholeStrips) {
  EXPECT_EQ(PlanOf(kFirstLayers[0].At(10000)).strips, 1);
}

TEST(StripsPlan, PoolingTakesOneChannel) {
  const Epilogue epilogue = {nullptr, Activation::kTanh, {2, 2, false}};
  for (int64_t K = kStripsLeastKernelSize; K <= kStripsMostKernelSize; ++K) {
    for (const int64_t channels : {1, 2}) {
      const Problem problem = {10000, channels, 41, 73, 12, K};
      const bool pools = K <= 7 && channels == 1;
      StripsPlan plan;
      ASSERT_EQ(MakeStripsPlan(problem, kH200, &plan, epilogue), pools);
      if (pools) CheckPlan(problem, plan, kH200);
    }
  }
}

TEST(StripsPlan, FewImagesAreCutIntoMoreItems) {
  for (const Layer& layer : kFirstLayers) {
    SCOPED_TRACE(layer.name);
    EXPECT_GE(PlanOf(layer.At(1)).items(), 8);
    const StripsPlan plan = PlanOf(layer.At(100));
    EXPECT_GE(plan.items(), 2 * kH200.multiprocessors);
    EXPECT_LE(plan.items(), int64_t{plan.warps} * kH200.multiprocessors * 2);
  }
}

// Neighbours of the course's layers, and similar problems.
TEST(StripsPlan, SeveralChannelsAndLargeFiltersFillTheMultiprocessors) {
  const Problem problems[] = {
      {10000, 2, 28, 28, 50, 5}, {10000, 2, 72, 72, 12, 7},
      {10000, 2, 48, 48, 6, 5},  {10000, 2, 70, 70, 12, 5},
      {10000, 2, 86, 86, 4, 7},  {10000, 1, 72, 72, 12, 9},
      {10000, 1, 86, 86, 4, 9},  {10000, 3, 70, 70, 12, 5},
      {10000, 4, 48, 48, 6, 5},  {10000, 1, 70, 70, 12, 11},
  };
  for (const Problem& problem : problems) {
    EXPECT_GE(PlanOf(problem).warps, 10) << Describe(problem, {});
  }
}

TEST(StripsPlan, ImagesOfAnySizeHaveAPlanUnlessTheyAreTooWide) {
  for (const DeviceLimits& device : kDevices) {
    for (const int64_t channels : {1, 2, 3}) {
      for (const int64_t filters : {1, 6, 50, 128}) {
        for (int64_t K = kStripsLeastKernelSize; K <= kStripsMostKernelSize;
             ++K) {
          for (const int64_t height : {K, K + 17, int64_t{5000}}) {
            for (const int64_t width :
                 {K, K + 1, K + 20, int64_t{61}, int64_t{120}}) {
              const int64_t batch = height == 5000 ? 1 : 70000;
              const Problem problem = {batch, channels, height,
                                       width, filters,  K};
              StripsPlan plan;
              if (!MakeStripsPlan(problem, device, &plan)) {
                // Many filters leave little of a little, and several channels
                // or large filters want more.
                const bool little =
                    device.shared_per_block < kH200.shared_per_block;
                const bool much = channels > 1 || K > 7;
                ASSERT_TRUE((little || much) && (filters >= 50 || much))
                    << device.shared_per_block
                    << " bytes: " << Describe(problem, {});
                ASSERT_TRUE(little || filters >= 50 ||
                            channels * K * width > 1500 ||
                            channels * StripsSteps(K) > kStripsMostSteps)
                    << device.shared_per_block
                    << " bytes: " << Describe(problem, {});
                continue;
              }
              CheckPlan(problem, plan, device);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(StripsPlan, ProblemsThatDoNotFitHaveNoPlan) {
  const Problem problems[] = {
      {1, 1, 40, 40, 3, 2},       // filters smaller and larger than any that
      {1, 1, 40, 40, 3, 12},      // the kernels take
      {1, 9, 40, 40, 3, 7},       // too many channels for a sum
      {1, 1 << 30, 9, 9, 3, 7},   //
      {1, 1, 40, 5000, 3, 5},     // rows too wide
      {1, 1, 40, 1 << 20, 3, 5},  //
      {3, 1, 5, 5, 70000, 3},     // too many filters
  };
  for (const Problem& problem : problems) {
    StripsPlan plan;
    EXPECT_FALSE(MakeStripsPlan(problem, kH200, &plan))
        << Describe(problem, {});
  }
}

// The words of inputs in memory: they fit into a slab's row, and each one's row
// and channel are found.
void CheckInset(const StripsPlan& plan) {
  const Inset& inset = plan.inset;
  SCOPED_TRACE(Text({inset.top, inset.left, inset.height, inset.width}));
  EXPECT_GE(2 * plan.inset_pitch, inset.width);
  EXPECT_LE(2 * plan.inset_pitch, inset.width + 1);
  EXPECT_LE(inset.left / 2 + plan.inset_pitch, plan.pitch);
  EXPECT_LE(plan.inset_plane_words, plan.plane_words);
  const int words = plan.C * plan.inset_plane_words;
  for (const int n : {1, plan.inset_pitch, plan.inset_plane_words, words,
                      words + kMostAhead}) {
    EXPECT_EQ(DivideDoubled(2 * (n - 1), plan.inset_pitch_magic),
              (n - 1) / plan.inset_pitch);
    EXPECT_EQ(DivideDoubled(2 * n - 2, plan.inset_plane_magic),
              (n - 1) / plan.inset_plane_words);
  }
}

TEST(StripsPlan, InsetsFitIntoTheSlab) {
  for (const int channels : {1, 3}) {
    for (const int K : {3, 5, 7, 9}) {
      if (channels * StripsSteps(K) > kStripsMostSteps) continue;
      for (const int top : {0, 1, 4, 90}) {
        for (const int left : {0, 1, 2, 3, 31}) {
          for (const int right : {0, 1, 2}) {
            for (const int width : {1, 2, 27, 28}) {
              const Inset inset = {top, left, 28, width};
              const Problem problem = {
                  10, channels, inset.height + 2 * top, left + width + right,
                  6,  K};
              if (problem.output_width() < 1) continue;
              StripsPlan plan;
              ASSERT_TRUE(MakeStripsPlan(problem, kH200, &plan))
                  << Describe(problem, {});
              EXPECT_EQ(plan.inset_pitch, plan.pitch);
              UseStripsInset(inset, &plan);
              SCOPED_TRACE(Describe(problem, plan));
              CheckInset(plan);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

// Plans that the model would not choose are right too, if they fit.
TEST(StripsPlan, EveryPlanThatFitsIsRight) {
  int checked = 0;
  for (const int64_t size : {11, 12, 28, 35, 72}) {
    for (int64_t K = kStripsLeastKernelSize; K <= kStripsMostKernelSize; ++K) {
      for (const int64_t filters : {1, 5, 24}) {
        for (int shape = 0; shape < kStripsShapeCount; ++shape) {
          for (int bands = 1; bands < 9; ++bands) {
            for (int parts = 1; parts < 5; ++parts) {
              const int channels = kStripsShapes[shape].one_channel ? 1 : 2;
              const Problem problem = {3, channels, size, size + 2, filters, K};
              StripsPlan plan;
              if (!SetStripsPlan(problem, shape, bands, parts, kH200, &plan)) {
                continue;
              }
              CheckPlan(problem, plan, kH200);
              if (HasFailure()) return;
              ++checked;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 1000);
}

TEST(StripsPlan, EstimatesGrowWithTheBatch) {
  for (const Layer& layer : kFirstLayers) {
    SCOPED_TRACE(layer.name);
    double before = 0;
    // One image has fewer threads that copy the filters, which takes longer.
    for (const int64_t batch : {100, 1000, 10000}) {
      const double ns = EstimateStripsNs(layer.At(batch), kH200);
      EXPECT_TRUE(std::isfinite(ns));
      EXPECT_GT(ns, before);
      before = ns;
    }
  }
}

TEST(StripsPlan, ProblemsWithoutAPlanHaveNoEstimate) {
  EXPECT_LT(EstimateStripsNs({1, 9, 40, 40, 3, 7}, kH200), 0);
}

}  // namespace
}  // namespace convlab::cuda
