#include "kernels/layers/cuda/matrix_plan.h"

#include <algorithm>

#include "common/math/rounding.h"

namespace convlab::cuda {
namespace {

// The largest grid in y and z.
constexpr int64_t kMostBlocks = 65535;

// A round of blocks, one on each multiprocessor, takes as long as its chunks
// and as much again as this many: it loads the first, and stores its sums.
constexpr int64_t kRoundChunks = 1;
// Floats of partial sums that are written and read again in the time of a
// chunk.
constexpr int64_t kFloatsOfChunk = 400000;

// The width of a block, among `widths` times `warps`, that wastes the fewest
// columns; the widest of several, for which the images are read the fewest
// times.
template <typename Widths>
int BlockTiles(int64_t tiles, const Widths& widths, int warps) {
  int best = 0;
  int64_t least = INT64_MAX;
  for (const int width : widths) {
    const int64_t padded = RoundUp(tiles, width * warps);
    if (padded > least) continue;
    best = width * warps;
    least = padded;
  }
  return best;
}

int ManyBlockTiles(const MatrixShape& shape) {
  return BlockTiles(shape.tiles, kManyTiles, kManyWarpsWide);
}

bool FitsShared(const MatrixShape& shape, int shared_per_block) {
  return ManySharedBytes(ManyBlockTiles(shape)) <= shared_per_block;
}

}  // namespace

bool MakeMatrixShape(int64_t inputs, int64_t outputs, MatrixShape* shape) {
  shape->inputs = inputs;
  shape->outputs = outputs;
  shape->chunks = CeilDivide(inputs, kMatrixChunk);
  shape->tiles = CeilDivide(outputs, kMatrixTile);
  constexpr int64_t kSmall = int64_t{1} << 22;
  return shape->packed_floats() <= std::max(2 * inputs * outputs, kSmall) &&
         shape->chunks <= kMostBlocks &&
         CeilDivide(shape->tiles, kManyTiles[0] * kManyWarpsWide) <=
             kMostBlocks;
}

bool MakeMatrixLaunch(const MatrixShape& shape, int64_t rows,
                      int multiprocessors, int shared_per_block,
                      int64_t scratch_floats, bool warpgroups,
                      MatrixLaunch* launch) {
  const auto fits_scratch = [&](int64_t units) {
    return units * rows * shape.columns() <= scratch_floats;
  };
  launch->shape = shape;
  launch->rows = rows;
  launch->pitch = shape.inputs;
  const int wide = BlockTiles(shape.tiles, kWarpgroupTiles, 1);
  if (!FitsShared(shape, shared_per_block) ||
      (rows <= kFewestRows && fits_scratch(shape.chunks))) {
    launch->kernel = MatrixKernel::kFew;
    launch->block_tiles = kFewTiles * kFewWarpsWide;
  } else if (warpgroups && WarpgroupSharedBytes(wide) <= shared_per_block) {
    launch->kernel = MatrixKernel::kWarpgroups;
    launch->block_tiles = wide;
  } else {
    launch->kernel = MatrixKernel::kMany;
    launch->block_tiles = ManyBlockTiles(shape);
  }
  const bool few = launch->kernel == MatrixKernel::kFew;
  launch->row_blocks = CeilDivide(rows, few ? kFewRows : kManyRows);
  launch->column_blocks = CeilDivide(shape.tiles, launch->block_tiles);
  const int64_t groups = shape.groups();
  const auto time = [&](int64_t units, int64_t chunks) {
    const int64_t blocks = launch->row_blocks * launch->column_blocks * units;
    return CeilDivide(blocks, multiprocessors) * (chunks + kRoundChunks) +
           units * rows * shape.columns() / kFloatsOfChunk;
  };
  const bool by_group =
      !few && (!fits_scratch(shape.chunks) ||
               time(groups, std::min<int64_t>(shape.chunks, kMatrixGroup)) <=
                   time(shape.chunks, 1));
  launch->unit_chunks = by_group ? kMatrixGroup : 1;
  launch->units = by_group ? groups : shape.chunks;
  return fits_scratch(launch->units);
}

int64_t MostMatrixRows(const MatrixShape& shape, int shared_per_block,
                       int64_t scratch_floats) {
  const int64_t units =
      FitsShared(shape, shared_per_block) ? shape.groups() : shape.chunks;
  return scratch_floats / (units * shape.columns());
}

}  // namespace convlab::cuda
