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
  // The first `top_rows` rows begin with columns of the tile before, up to
  // `begin`. From row `bottom` on, columns from `end` on are the next tile's.
  int top_rows, begin, bottom, end;

  // Whether the tile's own sums include that at row h and column w of it.
  constexpr bool Has(int h, int w) const {
    return (h >= top_rows || w >= begin) && (h < bottom || w < end);
  }
};

// An image's tiles stand in rows of `across` tiles, each `columns` columns
// wide. A row of tiles has `units` units, of which `band_units` side by side
// make a band of `rows` rows; a unit is `unit_columns` columns wide. A tile
// that has only some units of a band covers all of it, so that tiles may
// overlap; TileArea::Has tells which sums are its own.
struct OutputTiles {
  int height, width;  // of the image
  int of_image;       // tiles
  int across, columns;
  int units, band_units, rows;
  int unit_columns;

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
    area.top_rows = rows;
    area.begin = static_cast<int>(first % band_units) * unit_columns;
    area.bottom = static_cast<int>(last / band_units) * rows - area.row;
    area.end = static_cast<int>(last % band_units + 1) * unit_columns;
    return area;
  }
};

// Tiles of whole rows, `rows` at a time.
constexpr OutputTiles TilesOfRows(int height, int width, int rows) {
  const int tiles = (height + rows - 1) / rows;
  return {height, width, tiles, /*across=*/1, width, 1, 1, rows, width};
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_OUTPUT_TILES_H_
