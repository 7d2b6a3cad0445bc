// How a kernel numbers the tiles that it scales each by a power of two, for the
// kernel that mends their outputs (mend.cuh). Free of CUDA.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_OUTPUT_TILES_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_OUTPUT_TILES_H_

#include <cstdint>

namespace convlab::cuda {

// Sums of a tile: these rows and columns of an image, of all filters.
struct TileArea {
  int64_t image;
  int row, rows, column, columns;
};

// An image's tiles stand in rows of `across` tiles, each `columns` columns
// wide. A row of tiles is `units` units high, of which `band_units` make a band
// of `rows` rows. A tile that has only some units of a band counts as having
// all of it; so tiles may overlap.
struct OutputTiles {
  int height, width;  // of the image
  int of_image;       // tiles
  int across, columns;
  int units, band_units, rows;

  constexpr TileArea At(int64_t index) const {
    TileArea area = {};
    area.image = index / of_image;
    const int place = static_cast<int>(index - area.image * of_image);
    const int64_t first = int64_t{place / across} * units;
    const int64_t last = first + units - 1;
    area.row = static_cast<int>(first / band_units) * rows;
    const int64_t end = (last / band_units + 1) * rows;
    area.rows = static_cast<int>(end < height ? end : height) - area.row;
    area.column = place % across * columns;
    area.columns =
        columns < width - area.column ? columns : width - area.column;
    return area;
  }
};

// Tiles of whole rows, `rows` at a time.
constexpr OutputTiles TilesOfRows(int height, int width, int rows) {
  const int tiles = (height + rows - 1) / rows;
  return {height, width, tiles, /*across=*/1, width, 1, 1, rows};
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_OUTPUT_TILES_H_
