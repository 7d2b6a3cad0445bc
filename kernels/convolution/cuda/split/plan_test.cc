#include "kernels/convolution/cuda/split/plan.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

std::string Describe(const Problem& p, const SplitPlan& plan) {
  return DescribeProblem(p) + "shape: " + Text({plan.shape}) +
         "plane channels, shifts: " + Text({plan.plane_channels, plan.shifts}) +
         "tile: " + Text({plan.tile_rows, plan.tile_columns}) +
         "warps, teams: " + Text({plan.warps, plan.teams});
}

// That the kernels stay in their memory and compute every output.
void CheckPlan(const Problem& problem, const SplitPlan& plan,
               const DeviceLimits& limits) {
  SCOPED_TRACE(Describe(problem, plan));
  const SplitShape& shape = kSplitShapes[plan.shape];
  const int K = plan.K;
  EXPECT_TRUE(shape.kernel_size == kAnySize || shape.kernel_size == K);
  EXPECT_LE(plan.shared_bytes, limits.shared_per_block);
  EXPECT_EQ(plan.shared_bytes, SplitSharedBytes(plan, plan.teams));
  EXPECT_GE(plan.teams, 1);
  EXPECT_LE(plan.teams, kSplitMostTeams);
  EXPECT_GE(plan.warps, 1);
  EXPECT_LE(plan.warps, kSplitMostWarps);
  EXPECT_LE(32 * plan.warps * plan.teams, shape.threads);

  // Tiles and items cover the output.
  EXPECT_GE(int64_t{plan.tiles_y} * plan.tile_rows, plan.H_out);
  EXPECT_LT(int64_t{plan.tiles_y - 1} * plan.tile_rows, plan.H_out);
  EXPECT_GE(int64_t{plan.tiles_x} * plan.tile_columns, plan.W_out);
  EXPECT_LT(int64_t{plan.tiles_x - 1} * plan.tile_columns, plan.W_out);
  EXPECT_GE(plan.bands * shape.rows, plan.tile_rows);
  EXPECT_GE(plan.units * plan.shifts, plan.tile_columns);
  EXPECT_GE(int64_t{plan.filter_groups} * shape.tiles_n * 8,
            int64_t{plan.M} * plan.shifts);
  EXPECT_EQ(plan.shifts, 1 << plan.shift_log);
  // A group of filters begins and ends with a filter.
  EXPECT_EQ(shape.tiles_n * 8 % plan.shifts, 0);

  // The depth holds a filter row of all channels with every shift.
  EXPECT_GE(plan.planes * plan.plane_channels, plan.C);
  EXPECT_GE(plan.chunks_per_plane * 8,
            (K + plan.shifts - 1) * plan.plane_channels);
  EXPECT_EQ(plan.chunks, plan.planes * plan.chunks_per_plane);
  if (shape.row_pairs) {
    EXPECT_EQ(plan.chunks, 1);
  } else {
    EXPECT_EQ(plan.chunks_per_plane % 2, 0);
  }

  // The copied inputs fit, and so does the last word that an item reads.
  EXPECT_GE(plan.pitch * 2, plan.input_columns * plan.plane_channels);
  EXPECT_LE(plan.input_rows * plan.pitch, plan.plane_words);
  EXPECT_LE(plan.planes * plan.plane_words, plan.image_words);
  EXPECT_EQ(plan.shifts * plan.plane_channels % 2, 0);
  const int filter_rows = shape.row_pairs ? (K + 1) / 2 * 2 : K;
  const int last_row = plan.bands * shape.rows + filter_rows - 2;
  const int last_word =
      (plan.planes - 1) * plan.plane_words + last_row * plan.pitch +
      (plan.units - 1) * plan.shifts * plan.plane_channels / 2 +
      plan.chunks_per_plane * 4 - 1;
  EXPECT_LT(last_word, plan.image_words);
  // Loads and stores of 8 and 16 bytes.
  EXPECT_EQ(plan.filter_bytes() % 16, 0);
  EXPECT_EQ(plan.team_words() % 4, 0);
  if (plan.plane_channels % 4 == 0) {
    EXPECT_EQ(plan.plane_words % (plan.plane_channels / 2), 0);
  }

  // The stage takes the sums of a phase.
  EXPECT_GE(plan.stage_pitch,
            plan.phase_bands * shape.rows * plan.tile_columns);
  EXPECT_GE(plan.stage_floats, plan.stage_pitch * plan.phase_filter_groups *
                                   shape.tiles_n * 8 / plan.shifts);
  EXPECT_EQ(plan.stage_pitch % 2, 0);

  CheckDivision(plan.phase_bands * plan.units, plan.units, plan.units_magic);
  CheckDivision(plan.input_rows * plan.copy_columns, plan.copy_columns,
                plan.copy_columns_magic);
}

SplitPlan PlanOf(const Problem& problem) {
  SplitPlan plan;
  EXPECT_TRUE(MakeSplitPlan(problem, kH200, &plan));
  CheckPlan(problem, plan, kH200);
  return plan;
}

// What was fastest among the cuts that were tried by hand on an H200.
TEST(SplitPlan, TheCoursesLayersAreCutAsMeasurementsSay) {
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    const SplitPlan plan = PlanOf(layer.At(10000));
    const SplitShape& shape = kSplitShapes[plan.shape];
    EXPECT_EQ(shape.kernel_size, layer.kernel_size);
    EXPECT_TRUE(shape.filters_shared);
    EXPECT_EQ(shape.row_pairs, layer.channels == 1);
    EXPECT_EQ(plan.tiles_x, 1);
    EXPECT_GE(plan.warps * plan.teams, 8);
    if (layer.channels > 1) {
      EXPECT_EQ(plan.tiles_y, 1);
      EXPECT_EQ(plan.plane_channels, std::min<int64_t>(layer.channels, 6));
      EXPECT_EQ(plan.shifts, 1);
      EXPECT_EQ(8 * shape.tiles_n, layer.filters);
    }
  }
}

TEST(SplitPlan, FewImagesAreCutIntoMoreTiles) {
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    const SplitPlan one = PlanOf(layer.At(1));
    EXPECT_GE(one.tiles(), 4);
    EXPECT_LE(PlanOf(layer.At(100000)).tiles() / 100000, one.tiles());
  }
}

TEST(SplitPlan, EveryProblemOfTheInterfaceHasOne) {
  for (const DeviceLimits& device : kDevices) {
    for (const int64_t channels : {1, 2, 3, 5, 12, 17, 64}) {
      for (const int64_t filters : {1, 6, 50, 128}) {
        for (int64_t K = 1; K <= kSplitMostKernelSize; ++K) {
          for (const int64_t height : {K, K + 17, int64_t{500}}) {
            for (const int64_t width : {K, K + 20, int64_t{3001}}) {
              const Problem problem = {7, channels, height, width, filters, K};
              SplitPlan plan;
              ASSERT_TRUE(MakeSplitPlan(problem, device, &plan))
                  << device.compute_capability << ": " << Describe(problem, {});
              CheckPlan(problem, plan, device);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(SplitPlan, WhatDoesNotFitHasNone) {
  SplitPlan plan;
  // Filters larger than any that the kernels take.
  EXPECT_FALSE(MakeSplitPlan({1, 1, 40, 40, 3, 12}, kH200, &plan));
  // 1500 channels of 6 rows and 3 columns of outputs.
  EXPECT_FALSE(MakeSplitPlan({1, 1500, 8, 9, 2, 7}, kH200, &plan));
  // Filters for global memory.
  EXPECT_TRUE(MakeSplitPlan({3, 1, 5, 5, 70000, 3}, kH200, &plan));
}

// Zeros around the images in memory: whole rows of several channels are copied
// as one row in memory, and fit amid the zeros of a tile's rows.
TEST(SplitPlan, InsetsAreCopiedAsOneRowIfTheirRowsAreWhole) {
  int one_tile = 0, several_tiles = 0;
  for (const int64_t channels : {1, 2, 5, 12}) {
    for (const int K : {1, 3, 7}) {
      for (const int padding : {1, 2, 40}) {
        for (const int height : {20, 90}) {
          for (const int width : {1, 26, 27, 90}) {
            const Inset inset = {padding, padding, height, width};
            const Problem problem = {
                2000, channels, height + 2 * padding, width + 2 * padding,
                16,   K};
            if (problem.output_width() < 1) continue;
            SplitPlan plan = PlanOf(problem);
            UseSplitInset(inset, &plan);
            SCOPED_TRACE(Describe(problem, plan));
            ASSERT_TRUE(plan.padded());
            ASSERT_EQ(plan.linear,
                      plan.tiles_x == 1 && plan.plane_channels > 1);
            CheckDivision(plan.input_rows * plan.copy_columns,
                          plan.copy_columns, plan.copy_columns_magic);
            if (!plan.linear) continue;
            EXPECT_EQ(plan.copy_columns, width);
            EXPECT_LE((padding + width) * plan.plane_channels, 2 * plan.pitch);
            ++(plan.tiles_y == 1 ? one_tile : several_tiles);
          }
        }
      }
    }
  }
  // Rows above and below are cleared for each of several tiles.
  EXPECT_GT(one_tile, 5);
  EXPECT_GT(several_tiles, 5);
}

TEST(SplitEstimate, GrowsWithTheBatch) {
  CheckEstimateOfCourseLayers(EstimateSplitNs);
}

TEST(SplitEstimate, IsNegativeForWhatHasNoPlan) {
  EXPECT_LT(EstimateSplitNs({1, 1, 40, 40, 3, 12}, kH200), 0);
}

// A block of threads arranges one filter, so that the arrangement takes as long
// for more filters; if it grew with all weights they would cost 3.3 times as
// much.
TEST(SplitEstimate, MoreFiltersAreArrangedAtOnce) {
  const double some = EstimateSplitNs({1, 16, 86, 86, 16, 11}, kH200);
  const double many = EstimateSplitNs({1, 16, 86, 86, 64, 11}, kH200);
  EXPECT_LT(many, 3 * some);
}

// Other choices than the heuristic's are right too, if they fit.
TEST(SplitPlan, AnyChoiceThatFitsIsRight) {
  std::mt19937 generator(20261121);
  const auto from = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(generator);
  };
  constexpr int kPlaneChannels[] = {1, 2, 4, 6, 8};
  int checked = 0;
  for (int i = 0; i < 200000; ++i) {
    const int64_t K = from(1, kSplitMostKernelSize);
    const Problem problem = {from(1, 9),      from(1, 20), K + from(0, 60),
                             K + from(0, 90), from(1, 60), K};
    SplitPlan plan;
    if (!SetSplitProduct(problem, from(0, kSplitShapeCount - 1),
                         kPlaneChannels[from(0, 4)], 1 << from(0, 3), &plan) ||
        !SetSplitTiles(from(1, 12), plan.shifts * from(1, 40), &plan)) {
      continue;
    }
    SetSplitPhases(from(1, 5), from(1, 5), &plan);
    plan.warps = from(1, kSplitMostWarps);
    plan.teams = from(1, kSplitMostTeams);
    const int64_t bytes = SplitSharedBytes(plan, plan.teams);
    if (bytes > kH200.shared_per_block ||
        32 * plan.warps * plan.teams > kSplitShapes[plan.shape].threads) {
      continue;
    }
    plan.shared_bytes = bytes;
    CheckPlan(problem, plan, kH200);
    if (HasFailure()) return;
    ++checked;
  }
  EXPECT_GT(checked, 1000);
}

}  // namespace
}  // namespace convlab::cuda
