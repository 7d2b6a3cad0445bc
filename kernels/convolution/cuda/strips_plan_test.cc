#include "kernels/convolution/cuda/strips_plan.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

constexpr int kH200Multiprocessors = 132;
constexpr int kH200Shared = 227 << 10;
// What a block may have on the H200, the A100 and on GPUs of capability 8.6.
constexpr int kSharedLimits[] = {kH200Shared, 163 << 10, 99 << 10};

std::string Describe(const Problem& p, const StripsPlan& plan) {
  const auto text = [](int64_t value) { return std::to_string(value) + " "; };
  return "B H W M K: " + text(p.batch) + text(p.height) + text(p.width) +
         text(p.filters) + text(p.kernel_size) +
         "shape, blocks, parts, warps: " + text(plan.shape) +
         text(plan.blocks) + text(plan.parts) + text(plan.warps);
}

// n / d as the kernels compute it.
int Divide(uint32_t n, uint32_t magic) {
  return magic == 0 ? n : (uint64_t{n} * magic) >> 32;
}

// That the kernels stay in their memory and compute every output.
void CheckPlan(const Problem& problem, const StripsPlan& plan,
               int shared_limit) {
  SCOPED_TRACE(Describe(problem, plan));
  const StripsShape& shape = kStripsShapes[plan.shape];
  EXPECT_LE(plan.shared_bytes, shared_limit);
  EXPECT_EQ(plan.shared_bytes,
            4 * (plan.filter_words() + plan.warps * plan.warp_words() + 1));
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
  EXPECT_LE(plan.thread_blocks, kH200Multiprocessors);
  EXPECT_GE(plan.thread_blocks * plan.block_items, plan.items());
  EXPECT_LT((plan.thread_blocks - 1) * plan.block_items, plan.items());

  // The depth holds the filter with every shift.
  EXPECT_GE(2 * shape.steps, plan.K);
  EXPECT_LE(plan.K + shape.shifts - 1, 8);

  // A strip's inputs fit, and so does the last word that an octet reads.
  EXPECT_GE(2 * plan.pitch, plan.W);
  EXPECT_LE((plan.strip_rows() + plan.K - 1) * plan.pitch, plan.image_words);
  const int last_row = plan.strip_rows() + 2 * shape.steps - 2;
  const int last_word =
      last_row * plan.pitch + (plan.units - 1) * shape.shifts / 2 + 3;
  EXPECT_LT(last_word, plan.image_words);

  // The stage takes a group's outputs, and filters begin at 32 bytes.
  EXPECT_GE(plan.stage_pitch, plan.strip_rows() * plan.W_out + 7);
  EXPECT_EQ(plan.stage_pitch % 8, 0);
  EXPECT_EQ(plan.stage_words, plan.stage_pitch * shape.filters());
  EXPECT_EQ(plan.warp_words() % 8, 0);
  EXPECT_EQ(plan.filter_words() % 32, 0);

  const int units = plan.blocks * plan.units;
  for (const int n : {0, 1, plan.units - 1, plan.units, units - 1}) {
    EXPECT_EQ(Divide(n, plan.units_magic), n / plan.units);
  }
  const int words = (plan.strip_rows() + plan.K - 1) * plan.pitch;
  for (const int n :
       {plan.pitch - 1, plan.pitch, words - plan.pitch, words - 1}) {
    EXPECT_EQ(Divide(n, plan.pitch_magic), n / plan.pitch);
  }
}

struct Layer {
  const char* name;
  int64_t size, filters, kernel_size;

  Problem At(int64_t batch) const {
    return {batch, 1, size, size, filters, kernel_size};
  }
};
constexpr Layer kLayers[] = {
    {"fa17", 28, 50, 5},    {"fa18-L1", 72, 12, 7}, {"sp19-L1", 48, 6, 5},
    {"fa19-L1", 70, 12, 5}, {"fa20-L1", 86, 4, 7},
};

StripsPlan PlanOf(const Problem& problem) {
  StripsPlan plan;
  EXPECT_TRUE(
      MakeStripsPlan(problem, kH200Multiprocessors, kH200Shared, &plan));
  CheckPlan(problem, plan, kH200Shared);
  return plan;
}

TEST(StripsPlan, TheCoursesLayersFillTheMultiprocessors) {
  for (const Layer& layer : kLayers) {
    SCOPED_TRACE(layer.name);
    const StripsPlan plan = PlanOf(layer.At(10000));
    EXPECT_EQ(plan.warps, kStripsMostWarps);
    EXPECT_EQ(plan.parts, 1);
  }
}

// Rows of six units fill no octet.
TEST(StripsPlan, Fa17sImagesAreWholeStrips) {
  EXPECT_EQ(PlanOf(kLayers[0].At(10000)).strips, 1);
}

TEST(StripsPlan, FewImagesAreCutIntoMoreItems) {
  for (const Layer& layer : kLayers) {
    SCOPED_TRACE(layer.name);
    EXPECT_GE(PlanOf(layer.At(1)).items(), 8);
    const StripsPlan plan = PlanOf(layer.At(100));
    EXPECT_GE(plan.items(), 2 * kH200Multiprocessors);
    EXPECT_LE(plan.items(), int64_t{plan.warps} * kH200Multiprocessors * 2);
  }
}

TEST(StripsPlan, ImagesOfAnySizeHaveOneUnlessTheyAreTooWide) {
  for (const int limit : kSharedLimits) {
    for (const int64_t batch : {1, 70000}) {
      for (const int64_t filters : {1, 6, 50, 128}) {
        for (int64_t K = kStripsLeastKernelSize; K <= kStripsMostKernelSize;
             ++K) {
          for (const int64_t height : {K, K + 17, int64_t{5000}}) {
            for (const int64_t width :
                 {K, K + 1, K + 20, int64_t{61}, int64_t{120}}) {
              const Problem problem = {batch, 1, height, width, filters, K};
              StripsPlan plan;
              if (!MakeStripsPlan(problem, kH200Multiprocessors, limit,
                                  &plan)) {
                // Many filters leave little of a little.
                ASSERT_TRUE(limit < kH200Shared && filters >= 50)
                    << limit << " bytes: " << Describe(problem, {});
                continue;
              }
              CheckPlan(problem, plan, limit);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(StripsPlan, WhatDoesNotFitHasNone) {
  const Problem problems[] = {
      {1, 2, 40, 40, 3, 5},       // two channels
      {1, 1, 40, 40, 3, 2},       // filters smaller and larger than any that
      {1, 1, 40, 40, 3, 8},       // the kernels take
      {1, 1, 40, 5000, 3, 5},     // rows too wide
      {1, 1, 40, 1 << 20, 3, 5},  //
      {3, 1, 5, 5, 70000, 3},     // too many filters
  };
  for (const Problem& problem : problems) {
    StripsPlan plan;
    EXPECT_FALSE(
        MakeStripsPlan(problem, kH200Multiprocessors, kH200Shared, &plan))
        << Describe(problem, {});
  }
}

// Other choices than the heuristic's are right too, if they fit.
TEST(StripsPlan, AnyChoiceThatFitsIsRight) {
  int checked = 0;
  for (const int64_t size : {7, 8, 28, 35, 72}) {
    for (int64_t K = kStripsLeastKernelSize; K <= kStripsMostKernelSize; ++K) {
      for (const int64_t filters : {1, 5, 24}) {
        const Problem problem = {3, 1, size, size + 2, filters, K};
        for (int shape = 0; shape < kStripsShapeCount; ++shape) {
          for (int blocks = 1; blocks < 9; ++blocks) {
            for (int parts = 1; parts < 5; ++parts) {
              StripsPlan plan;
              if (!SetStripsPlan(problem, shape, blocks, parts,
                                 kH200Multiprocessors, kH200Shared, &plan)) {
                continue;
              }
              CheckPlan(problem, plan, kH200Shared);
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

}  // namespace
}  // namespace convlab::cuda
