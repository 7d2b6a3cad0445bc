#include "kernels/layers/cuda/matrix_plan.h"

#include <set>
#include <tuple>
#include <vector>

#include "common/math/rounding.h"
#include "gtest/gtest.h"
#include "kernels/layers/cuda/finish_plan.h"

namespace convlab::cuda {
namespace {

constexpr int kMultiprocessors = 132;
constexpr int kShared = 227 << 10;
constexpr int64_t kRoom = INT64_MAX;

MatrixShape ShapeOf(int64_t inputs, int64_t outputs) {
  MatrixShape shape;
  EXPECT_TRUE(MakeMatrixShape(inputs, outputs, &shape));
  return shape;
}

MatrixLaunch LaunchOf(const MatrixShape& shape, int64_t rows,
                      int64_t scratch = kRoom, int shared = kShared,
                      bool warpgroups = false) {
  MatrixLaunch launch;
  EXPECT_TRUE(MakeMatrixLaunch(shape, rows, kMultiprocessors, shared, scratch,
                               warpgroups, &launch));
  return launch;
}

// Of every launch: each partial sum is computed once, and the chunks of each
// are those that the sum of their group expects.
void ExpectComplete(const MatrixLaunch& launch) {
  const MatrixShape& shape = launch.shape;
  EXPECT_GE(shape.chunks * kMatrixChunk, shape.inputs);
  EXPECT_GE(shape.columns(), shape.outputs);
  const int rows = launch.kernel == MatrixKernel::kFew ? kFewRows : kManyRows;
  EXPECT_GE(launch.row_blocks * rows, launch.rows);
  EXPECT_LT((launch.row_blocks - 1) * rows, launch.rows);
  EXPECT_GE(launch.column_blocks * launch.block_tiles, shape.tiles);
  EXPECT_LT((launch.column_blocks - 1) * launch.block_tiles, shape.tiles);
  EXPECT_GE(launch.units * launch.unit_chunks, shape.chunks);
  EXPECT_LT((launch.units - 1) * launch.unit_chunks, shape.chunks);
  EXPECT_LE(launch.column_blocks, 65535);
  EXPECT_LE(launch.units, 65535);
  EXPECT_EQ(kMatrixGroup % launch.unit_chunks, 0);
  EXPECT_EQ(CeilDivide(launch.units, launch.units_per_group()), shape.groups());
}

TEST(MatrixPlan, EverySumIsComputedOnce) {
  for (const int64_t inputs : {1, 63, 64, 65, 400, 1024, 1025, 13068, 20184}) {
    for (const int64_t outputs : {1, 8, 10, 32, 84, 140, 160, 161, 500, 3000}) {
      const MatrixShape shape = ShapeOf(inputs, outputs);
      for (const int64_t rows : {1, 48, 49, 128, 129, 1000, 10000, 1000000}) {
        SCOPED_TRACE(::testing::Message()
                     << rows << " x " << inputs << " x " << outputs);
        ExpectComplete(LaunchOf(shape, rows));
        ExpectComplete(LaunchOf(shape, rows, kRoom, 48 << 10));
        ExpectComplete(LaunchOf(shape, rows, kRoom, kShared, true));
        const int64_t least = rows * shape.groups() * shape.columns();
        const MatrixLaunch small = LaunchOf(shape, rows, least);
        ExpectComplete(small);
        EXPECT_LE(small.partial_floats(), least);
        EXPECT_EQ(MostMatrixRows(shape, kShared, least), rows);
      }
    }
  }
}

// The lanes of mma.m16n8k16 (PTX ISA) hold, of the weights, the depths
// 2 (lane % 4) and the next one, and 8 behind them, for column lane / 4.
TEST(MatrixPlan, PackedWordsCoverTheMatrix) {
  const MatrixShape shape = ShapeOf(100, 20);
  EXPECT_EQ(shape.chunks, 2);
  EXPECT_EQ(shape.tiles, 3);
  EXPECT_EQ(shape.words(), 8 * 3 * 128);
  // Of each weight the high part and the low part.
  std::set<std::tuple<int64_t, int64_t, int64_t>> covered;
  for (int64_t word = 0; word < shape.words(); ++word) {
    const int64_t lane = word % 32, half = word / 32 % 2, part = word / 64 % 2;
    const int64_t tile = word / kTileWords % shape.tiles;
    const int64_t step = word / kTileWords / shape.tiles;
    for (const int64_t depth : {0, 1}) {
      const int64_t input =
          kMatrixStep * step + 8 * half + 2 * (lane % 4) + depth;
      EXPECT_TRUE(
          covered.insert({kMatrixTile * tile + lane / 4, input, part}).second);
    }
  }
  EXPECT_EQ(static_cast<int64_t>(covered.size()),
            2 * shape.columns() * shape.chunks * kMatrixChunk);
}

TEST(MatrixPlan, ManyImagesGoByGroupsAndFewByChunks) {
  const MatrixShape fa19 = ShapeOf(13068, 160);
  EXPECT_EQ(fa19.chunks, 205);
  EXPECT_EQ(fa19.groups(), 13);
  const MatrixLaunch one = LaunchOf(fa19, 1);
  EXPECT_EQ(one.kernel, MatrixKernel::kFew);
  EXPECT_EQ(one.units, 205);
  const MatrixLaunch hundred = LaunchOf(fa19, 100);
  EXPECT_EQ(hundred.kernel, MatrixKernel::kMany);
  EXPECT_EQ(hundred.units, 205);
  const MatrixLaunch many = LaunchOf(fa19, 10000);
  EXPECT_EQ(many.units, 13);
  EXPECT_EQ(many.block_tiles, 20);
  EXPECT_EQ(many.column_blocks, 1);
  EXPECT_EQ(LaunchOf(ShapeOf(2904, 140), 10000).block_tiles, 18);
  EXPECT_EQ(LaunchOf(ShapeOf(7200, 500), 10000).block_tiles, 16);
}

TEST(MatrixPlan, WarpgroupsTakeManyImages) {
  const auto launch_of = [](int64_t outputs, int64_t rows, int shared) {
    return LaunchOf(ShapeOf(13068, outputs), rows, kRoom, shared, true);
  };
  EXPECT_EQ(launch_of(160, 48, kShared).kernel, MatrixKernel::kFew);
  EXPECT_EQ(launch_of(160, 49, kShared).kernel, MatrixKernel::kWarpgroups);
  EXPECT_EQ(launch_of(160, 49, kShared).block_tiles, 20);
  EXPECT_EQ(launch_of(120, 49, kShared).block_tiles, 16);
  EXPECT_EQ(launch_of(84, 49, kShared).block_tiles, 12);
  EXPECT_EQ(launch_of(32, 49, kShared).block_tiles, 4);
  EXPECT_EQ(launch_of(160, 49, 163 << 10).kernel, MatrixKernel::kMany);
  for (const int tiles : kWarpgroupTiles) {
    // Its barriers are there, too.
    EXPECT_LE(WarpgroupSharedBytes(tiles) + 1024, kShared) << tiles;
  }
}

TEST(MatrixPlan, PaddingMayNotTakeMostOfTheMemory) {
  MatrixShape shape;
  EXPECT_TRUE(MakeMatrixShape(1, 1, &shape));
  EXPECT_FALSE(MakeMatrixShape(1, 1 << 30, &shape));
  EXPECT_FALSE(MakeMatrixShape(1 << 30, 1, &shape));
}

TEST(MatrixPlan, SharedMemoryFitsOnAnA100) {
  for (const int tiles : kManyTiles) {
    EXPECT_LE(ManySharedBytes(kManyWarpsWide * tiles), 163 << 10) << tiles;
  }
}

TEST(FinishPlan, FitsIntoSharedMemory) {
  ConnectedLayers layers;
  layers.layers[0].outputs = 84;
  layers.layers[1].outputs = 20;
  for (int count = 0; count < 3; ++count) {
    layers.count = count;
    for (const int64_t inputs : {1, 400, 13068, 200000}) {
      for (const int64_t outputs : {1, 10, 160, 500}) {
        EXPECT_TRUE(CanFollow(outputs, layers));
        for (const int64_t rows : {1, 100, 10000}) {
          const MatrixLaunch product = LaunchOf(ShapeOf(inputs, outputs), rows);
          FinishLaunch finish;
          if (!MakeFinishLaunch(product, layers, kMultiprocessors, &finish)) {
            // Only where the groups of one image do not fit.
            EXPECT_GT(count * product.shape.groups() * outputs, 12000 - 2000);
            continue;
          }
          EXPECT_LE(finish.shared_bytes(), 48 << 10);
          EXPECT_GE(finish.image_blocks() * finish.images, rows);
          EXPECT_GE(finish.output_blocks() * finish.width, outputs);
          EXPECT_EQ(finish.groups, product.shape.groups());
          EXPECT_TRUE(count == 0 || finish.output_blocks() == 1);
        }
      }
    }
  }
}

TEST(FinishPlan, OnlySmallLayersFollow) {
  ConnectedLayers layers;
  layers.count = 1;
  layers.layers[0].outputs = 10;
  EXPECT_TRUE(CanFollow(1024, layers));
  EXPECT_FALSE(CanFollow(1025, layers));
  layers.layers[0].outputs = 1025;
  EXPECT_FALSE(CanFollow(10, layers));
  layers.layers[0].outputs = 1000;
  EXPECT_FALSE(CanFollow(100, layers));
}

}  // namespace
}  // namespace convlab::cuda
