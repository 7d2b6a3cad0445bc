#include "kernels/convolution/cuda/implicit/plan.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

std::vector<Problem> Problems() {
  std::vector<Problem> problems = {
      {3, 1, 20, 23, 7, 5},    {2, 6, 13, 40, 50, 5},  {3, 1, 44, 44, 13, 7},
      {2, 5, 30, 19, 24, 7},   {2, 3, 12, 12, 5, 3},   {1, 1, 9, 2000, 3, 5},
      {600, 2, 9, 10, 20, 5},  {2, 70, 40, 40, 9, 5},  {1, 1, 1, 1, 1, 1},
      {5, 3, 17, 31, 200, 1},  {2, 2, 11, 11, 3, 11},  {4, 300, 16, 16, 33, 2},
      {1, 1, 5000, 6, 2, 5},   {1, 1, 700, 700, 3, 4}, {1, 17, 64, 64, 56, 6},
      {1, 1, 20, 40000, 3, 3},
  };
  for (const Layer& layer : CourseLayers()) problems.push_back(layer.At(100));
  return problems;
}

std::string Describe(const Problem& problem, const ImplicitPlan& plan) {
  return DescribeProblem(problem) + "tiles, filter blocks: " +
         Text({plan.tiles_x, plan.tiles_y, plan.filter_blocks}) +
         "rows, columns: " + Text({plan.rows, plan.columns}) +
         "planes, chunks: " + Text({plan.planes, plan.chunks}) +
         "pitch, plane: " + Text({plan.pitch, plan.plane_words});
}

// That the kernels stay in their memory and compute every output once.
void CheckPlan(const Problem& problem, const ImplicitShape& shape,
               int word_values, const DeviceLimits& limits,
               const ImplicitPlan& plan) {
  SCOPED_TRACE(Describe(problem, plan));
  EXPECT_LE(plan.shared_bytes, limits.shared_per_block);
  EXPECT_EQ(plan.shared_bytes, 4 * (int64_t{plan.input_words()} +
                                    plan.filter_words(shape.tiles_n) +
                                    int64_t{plan.steps} * kImplicitStepWords));
  // Filters are copied 16 bytes at a time.
  EXPECT_EQ(plan.input_words() % 4, 0);

  // Tiles and blocks of filters cover the outputs, and none is empty.
  EXPECT_GE(int64_t{plan.tiles_x} * plan.columns, plan.W_out);
  EXPECT_LT(int64_t{plan.tiles_x - 1} * plan.columns, plan.W_out);
  EXPECT_GE(int64_t{plan.tiles_y} * plan.rows, plan.H_out);
  EXPECT_LT(int64_t{plan.tiles_y - 1} * plan.rows, plan.H_out);
  EXPECT_GE(int64_t{plan.filter_blocks} * shape.filters(), plan.M);
  EXPECT_LT(int64_t{plan.filter_blocks - 1} * shape.filters(), plan.M);
  // With chunks, the sums of all positions live in registers.
  const int positions = plan.rows * plan.columns;
  if (plan.chunks > 1) {
    EXPECT_LE(positions, kImplicitWarps * shape.positions());
  }
  // The kernels' quotient in floats finds the row of each position.
  const float reciprocal = 1.0f / plan.columns;
  for (int i = 0; i < positions; ++i) {
    ASSERT_EQ(static_cast<int>((i + 0.5f) * reciprocal), i / plan.columns);
  }

  // Chunks hold all channels.
  EXPECT_EQ(plan.plane_channels * plan.word_columns, word_values);
  EXPECT_GE(int64_t{plan.chunks} * plan.planes * plan.plane_channels, plan.C);
  EXPECT_LT(int64_t{plan.chunks - 1} * plan.planes * plan.plane_channels,
            plan.C);
  EXPECT_GE(plan.steps * kImplicitStepWords, plan.taps());
  EXPECT_LT((plan.steps - 1) * kImplicitStepWords, plan.taps());

  // The depth has each tap of a plane once, with its inputs in the buffer.
  std::vector<int> uses(plan.planes * plan.K * plan.K);
  const int last_position = (plan.rows - 1) * plan.pitch + plan.columns - 1;
  for (int i = 0; i < plan.taps(); ++i) {
    const ImplicitTap tap(plan, i);
    for (int q = tap.q; q < std::min(tap.q + plan.word_columns, plan.K); ++q) {
      ++uses[(tap.plane * plan.K + tap.p) * plan.K + q];
    }
    ASSERT_LT(last_position + tap.Offset(plan), plan.input_words());
  }
  EXPECT_EQ(uses, std::vector<int>(uses.size(), 1));
  EXPECT_GE(plan.pitch, plan.input_columns());
  EXPECT_GE(plan.plane_words, plan.input_rows() * plan.pitch);

  // The walk over the inputs takes the words of each row.
  EXPECT_EQ(plan.copy.rows, plan.input_rows());
  EXPECT_EQ(plan.copy.columns, plan.input_columns());
}

TEST(ImplicitPlan, EveryShapeCoversTheOutputOnceAndFits) {
  for (const DeviceLimits& limits : kDevices) {
    SCOPED_TRACE(limits.compute_capability);
    for (const Problem& problem : Problems()) {
      for (const int word_values : {1, 2}) {
        for (const ImplicitShape& shape : kImplicitShapes) {
          ImplicitPlan plan = {};
          ASSERT_TRUE(
              MakeImplicitPlan(problem, word_values, shape, limits, &plan))
              << DescribeProblem(problem);
          CheckPlan(problem, shape, word_values, limits, plan);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(ImplicitPlan, TheChoicePadsFiltersLittle) {
  const DeviceLimits& limits = kH200;
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    for (const int word_values : {1, 2}) {
      ImplicitPlan plan = {};
      const int shape =
          ChooseImplicitShape(layer.At(100), word_values, limits, &plan);
      ASSERT_GE(shape, 0);
      EXPECT_LT(plan.filter_blocks * kImplicitShapes[shape].filters(),
                layer.filters + 8);
      EXPECT_EQ(plan.chunks, 1);
    }
  }
}

TEST(ImplicitPlan, PairsAreColumnsWhereChannelsPadMore) {
  const DeviceLimits& limits = kH200;
  ImplicitPlan plan = {};
  ASSERT_GE(ChooseImplicitShape({1, 1, 30, 30, 8, 5}, 2, limits, &plan), 0);
  EXPECT_EQ(plan.word_columns, 2);
  ASSERT_GE(ChooseImplicitShape({1, 12, 30, 30, 8, 5}, 2, limits, &plan), 0);
  EXPECT_EQ(plan.plane_channels, 2);
}

// The filters of one channel alone, 200 x 200 x 8, are too many.
TEST(ImplicitPlan, WhatDoesNotFitIsNotTaken) {
  ImplicitPlan plan = {};
  EXPECT_LT(ChooseImplicitShape({1, 1, 220, 220, 8, 200}, 1, kH200, &plan), 0);
}

}  // namespace
}  // namespace convlab::cuda
