#include "kernels/convolution/cuda/few_images/plan.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

constexpr FewImagesLimits kH200 = {132, 227 << 10, 228 << 10};
// And the A100, and a GPU of capability 8.6.
constexpr FewImagesLimits kDevices[] = {
    kH200, {108, 163 << 10, 164 << 10}, {28, 99 << 10, 100 << 10}};

std::string Describe(const Problem& p, const FewImagesPlan& plan) {
  return DescribeProblem(p) + "rows, groups x y m, rounds, slices: " +
         Text({plan.rows, plan.groups_x, plan.groups_y, plan.groups_m,
               plan.rounds, plan.slices});
}

void CheckDivision(int most, int d, uint32_t magic) {
  for (const int n : {0, 1, d - 1, d, most / 2, most - 1}) {
    EXPECT_EQ(Divide(n, magic), n / d) << n << " / " << d;
  }
}

// That the kernels stay in their memory and compute every output.
void CheckPlan(const Problem& problem, const FewImagesPlan& plan,
               const FewImagesLimits& limits) {
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
                          plan.tile_columns - kFewColumns +
                          SplitParts(plan.K, 4) * 4;
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

// The same for pieces of a line.
void CheckPlan(const Problem& problem, const LinePlan& plan,
               const FewImagesLimits& limits) {
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
                          SplitParts(plan.K, 4) * 4;
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

FewImagesPlan PlanOf(const Problem& problem) {
  FewImagesPlan plan;
  EXPECT_TRUE(MakeFewImagesPlan(problem, kH200, &plan));
  CheckPlan(problem, plan, kH200);
  return plan;
}

TEST(FewImagesPlan, OneImageIsCutIntoManyBlocksAndChannelsIntoSlices) {
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    const FewImagesPlan plan = PlanOf(layer.At(1));
    EXPECT_GE(plan.blocks(), 12);
    EXPECT_LE(plan.blocks(), kH200.multiprocessors);
    EXPECT_EQ(plan.slices > 1, layer.channels > 1);
    EXPECT_EQ(plan.scope, layer.channels > 1 ? FewScope::kAllChannels
                                             : FewScope::kOneChannel);
  }
}

TEST(FewImagesPlan, AHundredImagesFillTheMultiprocessors) {
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    const FewImagesPlan plan = PlanOf(layer.At(100));
    EXPECT_EQ(plan.slices, 1);
    EXPECT_GE(plan.blocks() * plan.threads, 132 * 256);
  }
}

TEST(FewImagesPlan, MoreProductsCostMore) {
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    double before = 0;
    for (const int64_t batch : {1, 4, 16, 64, 256, 1024}) {
      const double cost = FewImagesCost(PlanOf(layer.At(batch)), kH200);
      EXPECT_GE(cost, before);
      before = cost;
    }
  }
}

TEST(FewImagesPlan, AnyProblemOfTheInterfaceHasOne) {
  for (const FewImagesLimits& device : kDevices) {
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
              FewImagesPlan plan;
              ASSERT_TRUE(MakeFewImagesPlan(problem, device, &plan))
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

TEST(FewImagesPlan, WhatDoesNotFitHasNone) {
  const Problem problems[] = {
      {1, 1, 200, 200, 4, 180},     // filters larger than a block's memory
      {1, 1, 1 << 25, 9, 1, 3},     // more tiles than a grid has
      {1, 1, 5, 5, 2000000000, 5},  // more filters
  };
  for (const Problem& problem : problems) {
    FewImagesPlan plan;
    EXPECT_FALSE(MakeFewImagesPlan(problem, kH200, &plan))
        << Describe(problem, {});
  }
}

// Filters of other sizes, and channels in parts, have a kernel for anything.
TEST(FewImagesPlan, TheScopeIsTheNarrowestThatHolds) {
  EXPECT_EQ(PlanOf({1, 1, 40, 40, 8, 4}).scope, FewScope::kAnything);
  const FewImagesPlan parts = PlanOf({1, 1500, 8, 9, 2, 7});
  EXPECT_LT(parts.channels, 1500);
  EXPECT_EQ(parts.scope, FewScope::kAnything);
}

TEST(FewImagesPlan, VectorsAreWhatAddressesAndRowsAllow) {
  FewImagesPlan plan = PlanOf({1, 1, 40, 46, 8, 5});  // rows of 46 and 42
  EXPECT_EQ(plan.copy_floats, 2);
  EXPECT_EQ(plan.store_floats, 2);
  const auto at = [](uintptr_t address) {
    return reinterpret_cast<const void*>(address);
  };
  SetFewImagesVectors(at(4), at(8), &plan);
  EXPECT_EQ(plan.copy_floats, 1);
  EXPECT_EQ(plan.store_floats, 2);
  plan = PlanOf({1, 1, 28, 28, 8, 5});
  SetFewImagesVectors(at(32), at(12), &plan);
  EXPECT_EQ(plan.copy_floats, 4);
  EXPECT_EQ(plan.store_floats, 1);
}

// Other choices than the heuristic's are right too, if they fit.
TEST(FewImagesPlan, AnyCutThatFitsIsRight) {
  int checked = 0;
  for (const Problem& problem :
       {Problem{3, 1, 28, 28, 50, 5}, Problem{3, 12, 33, 35, 24, 7},
        Problem{1, 2, 13, 190, 9, 4}, Problem{2, 64, 11, 11, 30, 11}}) {
    for (int rows = 1; rows <= kFewMostRows; ++rows) {
      for (int y = 1; y <= 30; y += 1 + y / 5) {
        for (int m = 1; m <= 13; ++m) {
          for (int rounds = 1; rounds <= 13; rounds += 2) {
            for (int slices = 1; slices <= 90; slices += 1 + slices / 2) {
              FewImagesPlan plan;
              if (!SetFewImagesPlan(problem, {rows, y, m, rounds, slices},
                                    kH200, &plan)) {
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
