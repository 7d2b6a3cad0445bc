#include "kernels/convolution/cuda/few_images/tile_plan.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/math/rounding.h"
#include "common/network/layer.h"
#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

std::string Describe(const Problem& p, const TilePlan& plan) {
  return DescribeProblem(p) + "rows, groups x y m, rounds, slices: " +
         Text({plan.rows, plan.groups_x, plan.groups_y, plan.groups_m,
               plan.rounds, plan.slices});
}

// That the kernels stay in their memory and compute every output.
void CheckPlan(const Problem& problem, const TilePlan& plan,
               const DeviceLimits& limits) {
  SCOPED_TRACE(Describe(problem, plan));
  EXPECT_EQ(plan.threads,
            plan.groups_x * plan.groups_y * plan.groups_m * plan.slices);
  EXPECT_GE(plan.block_threads, plan.threads);
  EXPECT_LE(plan.block_threads, kFewMostThreads[plan.rows - 1]);
  EXPECT_LE(plan.shared_bytes(), limits.shared_per_block);
  EXPECT_LE(int64_t{plan.tiles_x} * plan.tiles_y, 65535);
  EXPECT_LE(plan.blocks_m, 65535);

  // Tiles and filters cover the output, and no block or round is empty.
  EXPECT_EQ(plan.tile_rows, plan.rows * plan.groups_y);
  EXPECT_EQ(plan.tile_columns, kFewColumns * plan.groups_x);
  EXPECT_EQ(plan.block_filters, kFewFilters * plan.groups_m * plan.rounds);
  EXPECT_GE(int64_t{plan.tiles_y} * plan.tile_rows, plan.H_out);
  EXPECT_LT(int64_t{plan.tiles_y - 1} * plan.tile_rows, plan.H_out);
  EXPECT_GE(int64_t{plan.tiles_x} * plan.tile_columns, plan.W_out);
  EXPECT_LT(int64_t{plan.tiles_x - 1} * plan.tile_columns, plan.W_out);
  EXPECT_GE(int64_t{plan.blocks_m} * plan.block_filters, plan.M);
  EXPECT_LT(int64_t{plan.blocks_m - 1} * plan.block_filters, plan.M);
  EXPECT_LT((plan.rounds - 1) * plan.groups_m * kFewFilters, plan.M);
  EXPECT_TRUE(plan.rounds == 1 || plan.slices == 1);
  EXPECT_TRUE(plan.rounds == 1 || plan.channels == plan.C);

  // Slices share the filter rows of the channels, and none is empty.
  EXPECT_GE(plan.channels, 1);
  EXPECT_LE(plan.channels, plan.C);
  EXPECT_GE(plan.slices * plan.slice_rows, plan.channels * plan.K);
  EXPECT_LT((plan.slices - 1) * plan.slice_rows, plan.channels * plan.K);

  // The filters, the inputs with the last vector that a lane loads, and the
  // sums have room, and begin at 16 bytes.
  EXPECT_EQ(plan.filter_floats,
            plan.block_filters * plan.channels * plan.K * plan.K);
  EXPECT_EQ(plan.input_rows, plan.tile_rows + plan.K - 1);
  EXPECT_EQ(plan.pitch % 4, 0);
  EXPECT_GE(plan.pitch, plan.input_columns);
  EXPECT_GE(plan.input_columns,
            std::min(plan.tile_columns + plan.K - 1, plan.W));
  const int last_vector = plan.channels * plan.plane() - plan.pitch +
                          plan.tile_columns - kFewColumns + RoundUp(plan.K, 4);
  EXPECT_LE(last_vector + 4, plan.input_floats);
  EXPECT_EQ(plan.filter_floats % 4, 0);
  EXPECT_EQ(plan.input_floats % 4, 0);
  if (plan.slices > 1) {
    EXPECT_EQ(plan.stage_floats, plan.slices * plan.groups_m * kFewFilters *
                                     plan.tile_rows * plan.tile_columns);
  }

  // Copies cover a row, and end within it.
  EXPECT_GE(plan.copy_rows, 1);
  EXPECT_LE(plan.copy_rows * plan.copy_columns, plan.block_threads);
  EXPECT_LE(plan.input_columns, plan.block_threads);  // without vectors too
  EXPECT_GE(plan.copy_columns * plan.copy_floats, plan.input_columns);
  EXPECT_LE(plan.copy_columns * plan.copy_floats, plan.pitch);
  EXPECT_EQ(plan.W % plan.copy_floats, 0);
  EXPECT_EQ(plan.tile_columns % plan.copy_floats, 0);
  EXPECT_EQ(plan.W_out % plan.store_floats, 0);

  CheckDivision(plan.block_threads, plan.groups_x, plan.groups_x_magic);
  CheckDivision(plan.block_threads, plan.groups_y, plan.groups_y_magic);
  CheckDivision(plan.block_threads, plan.groups_m, plan.groups_m_magic);
  CheckDivision(plan.block_threads, plan.copy_columns, plan.copy_columns_magic);
  CheckDivision(plan.channels * plan.input_rows, plan.input_rows,
                plan.input_rows_magic);
  const int sums = plan.groups_m * kFewFilters * plan.tile_rows;
  CheckDivision(sums * plan.tile_columns, plan.tile_columns,
                plan.tile_columns_magic);
  CheckDivision(sums, plan.tile_rows, plan.tile_rows_magic);
}

TilePlan PlanOf(const Problem& problem) {
  TilePlan plan;
  EXPECT_TRUE(MakeTilePlan(problem, kH200, &plan));
  CheckPlan(problem, plan, kH200);
  return plan;
}

TEST(TilePlan, OneImageIsCutIntoManyBlocksAndChannelsIntoSlices) {
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    const TilePlan plan = PlanOf(layer.At(1));
    EXPECT_GE(plan.blocks(), 12);
    EXPECT_LE(plan.blocks(), kH200.multiprocessors);
    EXPECT_EQ(plan.slices > 1, layer.channels > 1);
    EXPECT_EQ(plan.scope, layer.channels > 1 ? FewScope::kAllChannels
                                             : FewScope::kOneChannel);
  }
}

TEST(TilePlan, AHundredImagesFillTheMultiprocessors) {
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    const TilePlan plan = PlanOf(layer.At(100));
    EXPECT_EQ(plan.slices, 1);
    EXPECT_GE(plan.blocks() * plan.threads, 132 * 256);
  }
}

TEST(TilePlan, MoreProductsCostMore) {
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    double before = 0;
    for (const int64_t batch : {1, 4, 16, 64, 256, 1024}) {
      const double cost = TileCost(PlanOf(layer.At(batch)), kH200);
      EXPECT_GE(cost, before);
      before = cost;
    }
  }
}

TEST(TilePlan, AnyProblemOfTheInterfaceHasOne) {
  for (const DeviceLimits& device : kDevices) {
    for (const int64_t batch : {1, 70000}) {
      for (const int64_t channels : {1, 3, 64, 1500}) {
        for (const int64_t filters : {1, 6, 128, 70000}) {
          for (const int64_t K : {1, 3, 4, 7, 11, 37}) {
            for (const auto& [height, width] :
                 {std::pair<int64_t, int64_t>{K, K},
                  {K + 1, K + 90},
                  {300, K + 28},
                  {3000, 3001}}) {
              const Problem problem = {batch, channels, height,
                                       width, filters,  K};
              TilePlan plan;
              ASSERT_TRUE(MakeTilePlan(problem, device, &plan))
                  << Describe(problem, {});
              CheckPlan(problem, plan, device);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(TilePlan, WhatDoesNotFitHasNone) {
  const Problem problems[] = {
      {1, 1, 200, 200, 4, 180},     // filters larger than a block's memory
      {1, 1, 1 << 25, 9, 1, 3},     // more tiles than a grid has
      {1, 1, 5, 5, 2000000000, 5},  // more filters
  };
  for (const Problem& problem : problems) {
    TilePlan plan;
    EXPECT_FALSE(MakeTilePlan(problem, kH200, &plan)) << Describe(problem, {});
  }
}

// Filters of other sizes, and channels in parts, have a kernel for anything.
TEST(TilePlan, TheScopeIsTheNarrowestThatHolds) {
  EXPECT_EQ(PlanOf({1, 1, 40, 40, 8, 4}).scope, FewScope::kAnything);
  const TilePlan parts = PlanOf({1, 1500, 8, 9, 2, 7});
  EXPECT_LT(parts.channels, 1500);
  EXPECT_EQ(parts.scope, FewScope::kAnything);
}

TEST(TilePlan, VectorsAreWhatAddressesAndRowsAllow) {
  TilePlan plan = PlanOf({1, 1, 40, 46, 8, 5});  // rows of 46 and 42
  EXPECT_EQ(plan.copy_floats, 2);
  EXPECT_EQ(plan.store_floats, 2);
  const auto at = [](uintptr_t address) {
    return reinterpret_cast<const void*>(address);
  };
  SetTileVectors(at(4), at(8), &plan);
  EXPECT_EQ(plan.copy_floats, 1);
  EXPECT_EQ(plan.store_floats, 2);
  plan = PlanOf({1, 1, 28, 28, 8, 5});
  SetTileVectors(at(32), at(12), &plan);
  EXPECT_EQ(plan.copy_floats, 4);
  EXPECT_EQ(plan.store_floats, 1);
}

// The windows of a tile lie within it or end with the image, and those of all
// tiles are the image's.
void CheckWindows(const TilePlan& plan, int tiles, int tile, int windows,
                  int out) {
  const MaxPool& window = plan.window;
  ASSERT_GE(windows, 1);
  EXPECT_GE(tiles * windows, window.Output(out));
  EXPECT_LE((tiles - 1) * windows, window.Output(out));
  EXPECT_TRUE(tiles == 1 || windows * window.stride == tile);
  const int last = (windows - 1) * window.stride + window.size;
  EXPECT_TRUE(last <= tile || (tiles == 1 && window.ceil)) << last;
}

TEST(TilePlan, ImagesAmidZerosComeByFewFloats) {
  TilePlan plan;
  ASSERT_TRUE(MakeTilePlan({8, 3, 32, 36, 16, 5}, kH200, &plan));
  EXPECT_EQ(plan.copy_floats, 4);
  SetTileInset({2, 3, 28, 31}, &plan);
  EXPECT_TRUE(plan.padded);
  EXPECT_EQ(plan.copy_floats, 1);
  EXPECT_EQ(plan.copy_columns, plan.input_columns);
  const int floats = plan.channels * plan.input_rows * plan.input_columns;
  for (int i = 0; i < floats; ++i) {
    ASSERT_EQ(Divide(i, plan.copy_columns_magic), i / plan.input_columns);
  }
  SetTileInset({0, 0, 32, 36}, &plan);
  EXPECT_FALSE(plan.padded);
  EXPECT_EQ(plan.copy_floats, 4);
  // A row's last copy ends within its pitch, and none begins in a column that
  // its image has only a part of.
  for (const int right : {0, 1, 2, 3}) {
    ASSERT_TRUE(MakeTilePlan({8, 3, 32, 34 + right, 16, 5}, kH200, &plan));
    SetTileInset({2, 2, 28, 32}, &plan);
    EXPECT_EQ(plan.copy_floats, 2);
    EXPECT_GE(2 * plan.copy_columns, plan.input_columns);
    EXPECT_LE(2 * plan.copy_columns, plan.pitch);
  }
}

TEST(TilePlan, AnEpiloguesWindowsLieWithinTiles) {
  const MaxPool pools[] = {{},           {2, 2, false},
                           {2, 2, true}, {3, 2, false},
                           {4, 4, true}, {1, 3, false}};
  std::vector<Problem> problems = {
      {2, 3, 13, 40, 6, 3}, {1, 1, 300, 301, 2, 5}, {2, 1, 41, 39, 7, 5}};
  for (const Layer& layer : CourseLayers()) {
    problems.push_back(layer.At(1));
    problems.push_back(layer.At(100));
  }
  int with_overlap = 0;
  for (const Problem& problem : problems) {
    for (const MaxPool& pool : pools) {
      const Epilogue epilogue = {nullptr, Activation::kTanh, pool};
      TilePlan plan;
      const bool found = MakeTilePlan(problem, kH200, &plan, epilogue);
      if (pool.size > pool.stride) {
        with_overlap += found;
      } else {
        ASSERT_TRUE(found);
      }
      if (!found) continue;
      CheckPlan(problem, plan, kH200);
      SCOPED_TRACE(Describe(problem, plan));
      // Without pooling, a slice's sums stay in their threads.
      EXPECT_EQ(plan.stages(), pool.size > 0 || plan.slices > 1);
      if (plan.stages()) {
        EXPECT_EQ(plan.rounds, 1);
      }
      EXPECT_EQ(plan.stage_floats,
                plan.stages() ? plan.slices * plan.groups_m * kFewFilters *
                                    plan.tile_rows * plan.tile_columns
                              : 0);
      EXPECT_EQ(plan.pooled_rows, pool.Output(plan.H_out));
      EXPECT_EQ(plan.pooled_columns, pool.Output(plan.W_out));
      CheckWindows(plan, plan.tiles_y, plan.tile_rows, plan.window_rows,
                   plan.H_out);
      CheckWindows(plan, plan.tiles_x, plan.tile_columns, plan.window_columns,
                   plan.W_out);
      const int windows = plan.groups_m * kFewFilters * plan.window_rows;
      CheckDivision(windows * plan.window_columns, plan.window_columns,
                    plan.window_columns_magic);
      CheckDivision(windows, plan.window_rows, plan.window_rows_magic);
    }
  }
  EXPECT_GT(with_overlap, 0);
}

// Other choices than the heuristic's are right too, if they fit.
TEST(TilePlan, AnyCutThatFitsIsRight) {
  int checked = 0;
  for (const Problem& problem :
       {Problem{3, 1, 28, 28, 50, 5}, Problem{3, 12, 33, 35, 24, 7},
        Problem{1, 2, 13, 190, 9, 4}, Problem{2, 64, 11, 11, 30, 11}}) {
    for (int rows = 1; rows <= kFewMostRows; ++rows) {
      for (int y = 1; y <= 30; y += 1 + y / 5) {
        for (int m = 1; m <= 13; ++m) {
          for (int rounds = 1; rounds <= 13; rounds += 2) {
            for (int slices = 1; slices <= 90; slices += 1 + slices / 2) {
              TilePlan plan;
              if (!SetTilePlan(problem, {rows, y, m, rounds, slices}, kH200,
                               &plan)) {
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

}  // namespace
}  // namespace convlab::cuda
