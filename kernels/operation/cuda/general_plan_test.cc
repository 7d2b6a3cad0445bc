// Tests the general kernel's plans: that tiles cover the outputs, and that
// chunks cover the taps and fit into shared memory. What it computes,
// prepared_test.cc compares with the definition.
#include "kernels/operation/cuda/general_plan.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/operation/operation.h"

namespace convlab::cuda {
namespace {

Operation MakeOperation(int64_t batch, int64_t channels, int64_t size,
                        int64_t filters, int64_t kernel_size, int64_t stride) {
  Operation o;
  o.batch = batch, o.channels = channels, o.height = o.width = size;
  o.filters = filters, o.kernel_height = o.kernel_width = kernel_size;
  o.stride_y = o.stride_x = stride;
  return o;
}

const Operation kOperations[] = {
    MakeOperation(1, 1, 1, 1, 1, 1),      MakeOperation(256, 1, 28, 6, 5, 1),
    MakeOperation(16, 3, 224, 64, 7, 2),  MakeOperation(16, 3, 227, 96, 11, 4),
    MakeOperation(64, 32, 20, 64, 4, 2),  MakeOperation(7, 3000, 9, 130, 3, 3),
    MakeOperation(2, 2, 900, 20, 800, 1), MakeOperation(1, 1, 9010, 3, 9000, 4),
    MakeOperation(1, 1, 20000, 1, 1, 4),
};

TEST(GeneralPlan, CoversTheOperationAndFits) {
  for (const DeviceLimits& device : kDevices) {
    for (const Operation& o : kOperations) {
      SCOPED_TRACE(ToString(o));
      GeneralPlan p;
      ASSERT_TRUE(MakeGeneralPlan(o, device, &p));
      const GeneralShape shape = kGeneralShapes[p.shape];
      EXPECT_GE(int64_t{p.filters} * p.filter_groups, o.filters);
      EXPECT_EQ(p.filters, p.filter_warps * shape.filters);
      EXPECT_GE(p.rows * p.tiles_y, p.OH);
      EXPECT_GE(p.columns * p.tiles_x, p.OW);
      EXPECT_LE(
          p.images * p.rows * p.columns,
          (p.warps >> p.shares_log) / p.filter_warps * 32 * shape.positions);
      if (p.images > 1) {
        EXPECT_EQ(p.tiles_y * p.tiles_x, 1);
      }
      EXPECT_EQ(p.blocks, (o.batch + p.images - 1) / p.images * p.tiles_y *
                              p.tiles_x * p.filter_groups);
      EXPECT_LE(p.shared_bytes, device.shared_per_block);
      // Several channels only of whole filters, several rows only of whole
      // rows: the taps of a chunk follow each other.
      if (p.chunk_channels > 1) {
        EXPECT_EQ(p.chunk_rows, p.KH);
      }
      if (p.chunk_rows > 1) {
        EXPECT_EQ(p.chunk_columns, p.KW);
      }
      EXPECT_GE(p.chunk_rows * p.row_chunks, p.KH);
      EXPECT_GE(p.chunk_columns * p.column_chunks, p.KW);
      EXPECT_EQ(p.stages, p.chunks > 1 ? 2 : 1);
      // The table, and in each stage the inputs and then the weights.
      EXPECT_GE(p.chunk_taps,
                p.chunk_channels * p.chunk_rows * p.chunk_columns);
      EXPECT_GE(p.input_floats, p.chunk_channels * p.channel_pitch);
      EXPECT_GE(
          p.stage_floats - p.input_floats,
          p.chunk_channels * p.chunk_rows * p.chunk_columns * p.weight_pitch);
      EXPECT_GE(p.shared_bytes, 4 * (p.chunk_taps + p.stages * p.stage_floats));
      EXPECT_LE(p.in_columns + (p.vectors ? 3 : 0), p.row_pitch);
      EXPECT_LE(p.warps * 32, kGeneralMostThreads);
      EXPECT_EQ(p.warps % (p.filter_warps << p.shares_log), 0);
      // Wherever a row of the tile begins in a vector.
      EXPECT_GE(4 * p.row_vectors - 3, p.in_columns);
      // Every row of shared memory begins with a vector, and its first
      // columns are those of all chunks.
      if (p.vectors) {
        EXPECT_EQ(p.column_chunks, 1);
        EXPECT_EQ(p.W % 4, 0);
        EXPECT_EQ(p.phases, 1);
        EXPECT_GE(p.row_pitch, 4 * p.row_vectors);
        for (const int pitch : {p.row_pitch, p.image_pitch, p.channel_pitch,
                                p.stage_floats, p.chunk_taps}) {
          EXPECT_EQ(pitch % 4, 0);
        }
      }
      EXPECT_GT(EstimateGeneralNs(p, device), 0);
    }
  }
}

// A tile's images are found by 32-bit offsets, so that one with images of 2^31
// elements has a single one.
TEST(GeneralPlan, ImagesThatLieFarApartHaveTilesOfTheirOwn) {
  GeneralPlan p;
  ASSERT_TRUE(MakeGeneralPlan(MakeOperation(2000, 64, 3, 4, 1, 1), kH200, &p));
  EXPECT_GT(p.images, 1);
  ASSERT_TRUE(
      MakeGeneralPlan(MakeOperation(8, 1 << 28, 3, 4, 1, 1), kH200, &p));
  EXPECT_GT(p.in.b, std::numeric_limits<int>::max());
  EXPECT_EQ(p.images, 1);
}

// Rows of halves come in vectors, too, where they are multiples of four
// columns.
TEST(GeneralPlan, HalvesComeInVectors) {
  for (const int64_t size : {224, 223}) {
    Operation o = MakeOperation(16, 3, size, 64, 3, 2);
    o.halves = true;
    GeneralPlan p;
    ASSERT_TRUE(MakeGeneralPlan(o, kH200, &p));
    EXPECT_TRUE(p.halves_x && p.halves_in && p.halves_out);
    EXPECT_EQ(p.vectors, size % 4 == 0);
    o.channels_last = true;
    ASSERT_TRUE(MakeGeneralPlan(o, kH200, &p));
    EXPECT_FALSE(p.vectors);
  }
}

// More images never take less time, by far: plans differ.
TEST(GeneralPlan, EstimateGrowsWithTheBatch) {
  double before = 0;
  for (const int64_t batch : {1, 10, 100, 1000, 10000}) {
    GeneralPlan p;
    ASSERT_TRUE(
        MakeGeneralPlan(MakeOperation(batch, 3, 64, 32, 5, 2), kH200, &p));
    const double ns = EstimateGeneralNs(p, kH200);
    EXPECT_GT(ns, before);
    before = ns;
  }
}

// With a place left on multiprocessors, blocks of the next kernel would come to
// some of them by twos.
TEST(GeneralPlan, BlocksAreDealtOutEvenly) {
  int limited = 0;
  for (int64_t batch = 1; batch < 2000; batch += batch / 8 + 1) {
    Operation o = MakeOperation(batch, 2, 64, 8, 3, 1);
    o.top = o.bottom = o.left = o.right = 1;
    GeneralPlan p;
    ASSERT_TRUE(MakeGeneralPlan(o, kH200, &p));
    const int64_t needed =
        (p.blocks + kH200.multiprocessors - 1) / kH200.multiprocessors;
    const int64_t by_registers =
        kGeneralShapes[p.shape].threads / (32 * p.warps);
    const int64_t places =
        std::min<int64_t>(by_registers, kH200.shared_per_multiprocessor /
                                            (p.shared_bytes + 1024));
    EXPECT_TRUE(needed >= places || places >= 2 * needed) << ToString(o);
    EXPECT_LE(p.shared_bytes, kH200.shared_per_block);
    if (needed == places && needed < by_registers) ++limited;
  }
  EXPECT_GT(limited, 0);
}

TEST(GeneralPlan, RefusesMoreBlocksThanThereCanBe) {
  Operation o = MakeOperation(int64_t{1} << 31, 1, 2000, 1, 1, 1);
  --o.batch;
  GeneralPlan p;
  EXPECT_FALSE(MakeGeneralPlan(o, kH200, &p));
}

}  // namespace
}  // namespace convlab::cuda
