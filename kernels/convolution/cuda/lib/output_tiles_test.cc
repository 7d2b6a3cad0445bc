#include "kernels/convolution/cuda/lib/output_tiles.h"

#include <vector>

#include "gtest/gtest.h"

namespace convlab::cuda {
namespace {

// How many tiles have each output of an image as their own; all are within it.
std::vector<int> TilesOfOutputs(const OutputTiles& tiles, int64_t image) {
  std::vector<int> count(tiles.height * tiles.width);
  for (int tile = 0; tile < tiles.of_image; ++tile) {
    const TileArea area = tiles.At(image * tiles.of_image + tile);
    EXPECT_EQ(area.image, image);
    EXPECT_GT(area.rows, 0);
    EXPECT_GT(area.columns, 0);
    for (int h = area.row; h < area.row + area.rows; ++h) {
      for (int w = area.column; w < area.column + area.columns; ++w) {
        count.at(h * tiles.width + w) +=
            area.Has(h - area.row, w - area.column);
      }
    }
  }
  return count;
}

TEST(OutputTiles, RowsCoverAnImageOnce) {
  for (const int rows : {1, 4, 7, 10, 24}) {
    for (const int count : TilesOfOutputs(TilesOfRows(10, 3, rows), 5)) {
      EXPECT_EQ(count, 1) << rows;
    }
  }
}

TEST(OutputTiles, TilesOfSomeColumnsCoverAnImageOnce) {
  const OutputTiles tiles = {
      /*height=*/13,     /*width=*/11,     /*of_image=*/9,
      /*across=*/3,      /*columns=*/4,
      /*units=*/1,       /*band_units=*/1, /*rows=*/5,
      /*unit_columns=*/4};
  for (const int count : TilesOfOutputs(tiles, 1 << 30)) EXPECT_EQ(count, 1);
}

// Tiles of 64 units, where a band of 3 rows has 14.
TEST(OutputTiles, TilesThatBeginWithinABandShareIt) {
  const OutputTiles tiles = {
      /*height=*/27,     /*width=*/27,      /*of_image=*/2,
      /*across=*/1,      /*columns=*/27,
      /*units=*/64,      /*band_units=*/14, /*rows=*/3,
      /*unit_columns=*/2};
  EXPECT_EQ(tiles.At(0).rows, 15);
  EXPECT_EQ(tiles.At(1).row, 12);
  EXPECT_EQ(tiles.At(1).rows, 15);
  for (const int count : TilesOfOutputs(tiles, 0)) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace convlab::cuda
