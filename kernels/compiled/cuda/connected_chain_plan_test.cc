#include "kernels/compiled/cuda/connected_chain_plan.h"

#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/known_devices.h"

namespace convlab::cuda {
namespace {

// The launch for layers of these widths: the inputs of the first, and the
// outputs of each.
ChainStream Make(const std::vector<int>& widths, int64_t images,
                 int parts = 2) {
  std::vector<MatrixShape> shapes(widths.size() - 1);
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    EXPECT_TRUE(MakeMatrixShape(widths[i], widths[i + 1], &shapes[i]));
  }
  ChainStream stream;
  EXPECT_TRUE(MakeChainStream(shapes.data(), static_cast<int>(shapes.size()),
                              parts, images, kH200, &stream));
  return stream;
}

// What a block has is inside its shared memory, each part where the copy engine
// and vectors may write, and what products read of a stage is inside it.
void ExpectFits(const ChainStream& stream, const std::vector<int>& widths) {
  constexpr int kSystemBytes = 1024, kBarrierBytes = 512;
  EXPECT_LE(stream.shared_bytes() + kBarrierBytes, kH200.shared_per_block);
  EXPECT_LE(stream.shared_bytes() + kBarrierBytes + kSystemBytes,
            kH200.shared_per_multiprocessor);
  EXPECT_GE(stream.stages, 2);
  EXPECT_LE(stream.stages, kStreamMostStages);
  EXPECT_EQ(ChainStream::ColumnsAt(stream.rows) % 16, 0);
  EXPECT_EQ(ChainStream::FactorsAt(stream.rows) % 8, 0);
  EXPECT_EQ(ChainStream::StagingAt(stream.rows) % 16, 0);
  EXPECT_EQ(ChainStream::StagesAt(stream.rows) % 128, 0);
  EXPECT_EQ(stream.stage_bytes() % 128, 0);
  EXPECT_EQ(ChainStream::HalvesBytes(stream.rows) % 128, 0);
  for (size_t i = 1; i < widths.size(); ++i) {
    EXPECT_LE(widths[i], stream.groups * kStreamOutputs);
    const int tiles = (widths[i] + kMatrixTile - 1) / kMatrixTile;
    const int read_tiles = widths[i] > kStreamOutputs ? 16 : 8;
    // The last step of a chunk.
    EXPECT_LE(((kChunkSteps - 1) * tiles + read_tiles) *
                  ChainStream::TileBytes(stream.parts),
              stream.weight_bytes);
  }
}

TEST(ConnectedChainPlan, FitsTheBlocksMemory) {
  for (const std::vector<int>& widths : {std::vector<int>{1, 1},
                                         {400, 120, 84, 10},
                                         {1296, 32, 10},
                                         {kMostChainInputs, 128, 128, 128, 128},
                                         {3, 65, 1},
                                         {4, 64}}) {
    for (const int64_t images : {1, 32, 33, 4096, 5000, 1 << 20}) {
      SCOPED_TRACE(images);
      for (const int parts : {1, 2}) {
        ExpectFits(Make(widths, images, parts), widths);
      }
    }
  }
}

TEST(ConnectedChainPlan, OnePartTakesHalfTheRoom) {
  const ChainStream two = Make({400, 120, 84, 10}, 4096, /*parts=*/2);
  const ChainStream one = Make({400, 120, 84, 10}, 4096, /*parts=*/1);
  EXPECT_EQ(two.parts, 2);
  EXPECT_EQ(one.parts, 1);
  EXPECT_EQ(2 * one.weight_bytes, two.weight_bytes);
  EXPECT_GT(one.stages, two.stages);
}

TEST(ConnectedChainPlan, TakesMoreImagesWhereThatSparesARoundOfBlocks) {
  // lenet5: 128 blocks at once; 40 images would be no quicker.
  EXPECT_EQ(Make({400, 120, 84, 10}, 4096).rows, 32);
  EXPECT_EQ(Make({400, 120, 84, 10}, 132 * 32).rows, 32);
  EXPECT_EQ(Make({400, 120, 84, 10}, 132 * 32 + 1).rows, 40);
  EXPECT_EQ(Make({1296, 32, 10}, 5000).rows, 40);
  EXPECT_EQ(Make({1296, 32, 10}, 132 * 40 + 1).rows, 32);
}

TEST(ConnectedChainPlan, WideLayersHaveTwoWarpgroups) {
  EXPECT_EQ(Make({1296, 32, 10}, 5000).groups, 1);
  EXPECT_EQ(Make({1296, 64, 10}, 5000).groups, 1);
  EXPECT_EQ(Make({1296, 65, 10}, 5000).groups, 2);
  EXPECT_EQ(Make({1296, 10, 128}, 5000).groups, 2);
}

TEST(ConnectedChainPlan, SaysWhereThereIsNoRoom) {
  MatrixShape shape;
  ASSERT_TRUE(MakeMatrixShape(400, 120, &shape));
  DeviceLimits small = kH200;
  small.shared_per_block = 100 << 10;
  ChainStream stream;
  EXPECT_FALSE(MakeChainStream(&shape, 1, /*parts=*/2, 4096, small, &stream));
}

}  // namespace
}  // namespace convlab::cuda
