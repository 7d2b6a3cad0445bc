#include "kernels/convolution/cuda/few_images/line_plan.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "common/math/rounding.h"
#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

// That the kernels stay in their memory and compute every output.
void CheckPlan(const Problem& problem, const LinePlan& plan,
               const DeviceLimits& limits) {
  SCOPED_TRACE(DescribeProblem(problem) + "rows, threads, items: " +
               Text({plan.groups_y, plan.threads, plan.block_items}));
  EXPECT_LE(plan.threads, kLineMostThreads);
  EXPECT_EQ(plan.threads % 32, 0);
  EXPECT_EQ(plan.block_items % plan.threads, 0);
  EXPECT_LE(plan.shared_bytes(), limits.shared_per_block);

  // Items cover the output, and blocks the items.
  EXPECT_GE(plan.groups_x * kFewColumns, plan.W_out);
  EXPECT_GE(plan.groups * kFewFilters, plan.M);
  EXPECT_GE(int64_t{plan.tiles_y} * plan.groups_y, plan.H_out);
  EXPECT_LT(int64_t{plan.tiles_y - 1} * plan.groups_y, plan.H_out);
  EXPECT_EQ(plan.positions, plan.groups_x * plan.groups_y);
  EXPECT_EQ(plan.items, problem.batch * plan.tiles_y * plan.tile_items());
  EXPECT_GE(int64_t{plan.blocks()} * plan.block_items, plan.items);
  EXPECT_LT(int64_t{plan.blocks() - 1} * plan.block_items, plan.items);

  // Every block has room for what it meets.
  const int tile = plan.tile_items();
  for (int64_t block = 0; block < plan.blocks();
       block += 1 + plan.blocks() / 100) {
    const int64_t first = block * plan.block_items;
    const int64_t last =
        std::min<int64_t>(first + plan.block_items, plan.items) - 1;
    EXPECT_LE(last / tile - first / tile + 1, plan.block_tiles);
    EXPECT_LE(
        std::min<int64_t>(last / plan.positions - first / plan.positions + 1,
                          plan.groups),
        plan.block_groups);
  }
  EXPECT_EQ(plan.input_rows, plan.groups_y + plan.K - 1);
  EXPECT_EQ(plan.pitch % 4, 0);
  EXPECT_GE(plan.pitch, plan.W);
  const int last_vector = plan.block_tiles * plan.plane() - plan.pitch +
                          (plan.groups_x - 1) * kFewColumns +
                          RoundUp(plan.K, 4);
  EXPECT_LE(last_vector + 4, plan.input_floats());
  EXPECT_EQ(plan.filter_floats() % 4, 0);
  EXPECT_EQ(plan.copy_columns * plan.copy_floats, plan.W);
  EXPECT_EQ(plan.W_out % plan.store_floats, 0);

  const int most = tile + plan.block_items;
  CheckDivision(most, plan.positions, plan.positions_magic);
  CheckDivision(most, tile, plan.tile_items_magic);
  CheckDivision(plan.positions, plan.groups_x, plan.groups_x_magic);
  CheckDivision(plan.tiles_y + plan.block_tiles, plan.tiles_y,
                plan.tiles_y_magic);
  const int rows = plan.block_tiles * plan.input_rows;
  CheckDivision(rows, plan.input_rows, plan.input_rows_magic);
  CheckDivision(rows * plan.copy_columns, plan.copy_columns,
                plan.copy_columns_magic);
}

TEST(LinePlan, ManyImagesOfOneChannelHaveOne) {
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    LinePlan plan;
    EXPECT_FALSE(MakeLinePlan(layer.At(1), kH200, &plan));
    ASSERT_EQ(MakeLinePlan(layer.At(100), kH200, &plan), layer.channels == 1);
    if (layer.channels > 1) continue;
    CheckPlan(layer.At(100), plan, kH200);
    EXPECT_GE(plan.blocks() * plan.threads, 120 * 256);
    // Filters without a kernel.
    Problem other = layer.At(100);
    other.kernel_size = 4;
    EXPECT_FALSE(MakeLinePlan(other, kH200, &plan));
  }
}

TEST(LinePlan, AnyCutThatFitsIsRight) {
  int checked = 0;
  for (const Problem& problem :
       {Problem{3, 1, 28, 28, 50, 5}, Problem{9, 1, 33, 39, 7, 7},
        Problem{70000, 1, 5, 5, 1, 3}, Problem{1, 1, 300, 3001, 128, 3},
        Problem{2, 1, 32000, 9, 70, 3}}) {
    for (int rows = 1; rows <= 40; rows += 1 + rows / 5) {
      for (int threads = 32; threads <= kLineMostThreads; threads += 96) {
        for (int rounds = 1; rounds <= 40; rounds += 1 + rounds / 3) {
          LinePlan plan;
          if (!SetLinePlan(problem, {rows, threads, rounds}, kH200, &plan)) {
            continue;
          }
          CheckPlan(problem, plan, kH200);
          if (HasFailure()) return;
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 500);
}

TEST(LinePlan, ImagesAmidZerosComeByFewFloats) {
  const Problem problem = {1000, 1, 32, 36, 16, 5};
  LinePlan plan;
  ASSERT_TRUE(MakeLinePlan(problem, kH200, &plan));
  EXPECT_EQ(plan.copy_floats, 4);
  SetLineInset({2, 3, 28, 31}, &plan);
  EXPECT_TRUE(plan.padded);
  EXPECT_EQ(plan.copy_floats, 1);
  CheckPlan(problem, plan, kH200);
  SetLineInset({2, 2, 28, 32}, &plan);
  EXPECT_EQ(plan.copy_floats, 2);
  CheckPlan(problem, plan, kH200);
  float x[2];
  SetLineVectors(x + (reinterpret_cast<uintptr_t>(x) % 8 == 0), nullptr, &plan);
  EXPECT_EQ(plan.copy_floats, 1);
  SetLineInset({0, 0, 32, 36}, &plan);
  EXPECT_FALSE(plan.padded);
  EXPECT_EQ(plan.copy_floats, 4);
}

TEST(LinePlan, WhatDoesNotFitHasNone) {
  const Problem problems[] = {
      {100, 1, 40, 60000, 4, 3},       // longer rows than a plan has
      {1 << 30, 1, 28, 28, 50, 5},     // more items than can be counted
      {100, 1, 4000, 4000, 30000, 7},  // a tile with too many
      {100, 1, 40, 20000, 4, 7},       // rows larger than a block's memory
  };
  for (const Problem& problem : problems) {
    LinePlan plan;
    for (const int rows : {1, 16}) {
      EXPECT_FALSE(SetLinePlan(problem, {rows, 128, 2}, kH200, &plan))
          << DescribeProblem(problem) << rows;
    }
  }
}

}  // namespace
}  // namespace convlab::cuda
