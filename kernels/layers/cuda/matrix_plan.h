// How a fully connected layer is computed on tensor cores (matrix.cu): how its
// weights are packed, how the sums over the inputs are cut, and the launches.
// Free of CUDA, so that it can be tested without a GPU.
//
// The inputs come in chunks of 64, and chunks in groups of 16. An output is the
// sum of its groups, a group the sum of its chunks, both from the first to the
// last, in float32; a chunk is summed by the tensor cores. No launch changes
// that order: a block of threads computes either one chunk or a group, so an
// image's outputs do not depend on how many other images there are.
#ifndef KERNELS_LAYERS_CUDA_MATRIX_PLAN_H_
#define KERNELS_LAYERS_CUDA_MATRIX_PLAN_H_

#include <cstdint>

namespace convlab::cuda {

constexpr int kMatrixChunk = 64;  // inputs
constexpr int kMatrixGroup = 16;  // chunks
constexpr int kMatrixStep = 16;   // inputs of a product of the tensor cores
constexpr int kMatrixTile = 8;    // outputs of one

// The packed weights in device memory. In front are the factors, one float for
// each column; columns are the outputs, padded to whole tiles. The weights of a
// column are scaled by a power of two, which its factor undoes. Behind the
// factors are words of two halves, of neighbouring inputs,
//
//   [step][tile][high and low parts][first and last 8 inputs][lane],
//
// of the inputs 2 (lane % 4) and the next among the 8, for the output
// 8 tile + lane / 4. That is the order in which lanes need them for
// mma.m16n8k16, and wgmma reads them from shared memory as they are.
constexpr int kTileWords = 4 * 32;
struct MatrixShape {
  int64_t inputs, outputs;
  int64_t chunks;  // the last one is filled up with zeros
  int64_t tiles;

  constexpr int64_t groups() const {
    return (chunks + kMatrixGroup - 1) / kMatrixGroup;
  }
  constexpr int64_t columns() const { return tiles * kMatrixTile; }
  constexpr int64_t words() const {
    return chunks * (kMatrixChunk / kMatrixStep) * tiles * kTileWords;
  }
  constexpr int64_t packed_floats() const { return columns() + words(); }
};

// False if the product is not for tensor cores: the padding would take much
// more memory than the weights, or a grid has too few blocks in y or z.
bool MakeMatrixShape(int64_t inputs, int64_t outputs, MatrixShape* shape);

// The kernels of the product: for few images, for many by warps, and for many
// by warpgroups (compute capability 9.0).
enum class MatrixKernel { kFew, kMany, kWarpgroups };

// One launch of the product: its blocks of threads compute `row_blocks` x
// `column_blocks` x `units` tiles of partial sums [unit][row][column].
struct MatrixLaunch {
  MatrixShape shape;
  int64_t rows;   // images
  int64_t pitch;  // floats between the inputs of two images
  MatrixKernel kernel;
  int block_tiles;  // of 8 outputs, that a block computes
  int unit_chunks;  // 1, or a group's
  int64_t row_blocks, column_blocks, units;

  int64_t partial_floats() const { return units * rows * shape.columns(); }
  // Of each group.
  int units_per_group() const { return kMatrixGroup / unit_chunks; }
};

// By warps for many images: the tiles of a warp, of which two are side by side.
constexpr int kManyTiles[] = {2, 4, 8, 9, 10};
constexpr int kManyRows = 128, kManyThreads = 256, kManyWarpsWide = 2;
// By warpgroups: the tiles of a block, the chunks under way, and the threads,
// of which a third only loads.
constexpr int kWarpgroupTiles[] = {4, 10, 12, 16, 20};
constexpr int kWarpgroupStages = 3, kWarpgroupThreads = 384;
// For few images: four warps side by side.
constexpr int kFewTiles = 5;
constexpr int kFewRows = 16, kFewThreads = 128, kFewWarpsWide = 4;
// The most images for that kernel: it reads the weights for each 16 of them.
constexpr int64_t kFewestRows = 48;

// Floats between two rows of inputs in shared memory: 8 bytes of each lane of
// half a warp, which has 4 rows, fall into different banks.
constexpr int kMatrixPitch = kMatrixChunk + 8;

constexpr int kChunkSteps = kMatrixChunk / kMatrixStep;
// Bytes of weights of a chunk.
constexpr int ChunkBytes(int tiles) {
  return kChunkSteps * tiles * kTileWords * 4;
}

// Bytes of dynamic shared memory of the kernels for many images: the inputs and
// the weights of the chunks under way, and by warps a row's scale and factor.
constexpr int ManySharedBytes(int block_tiles) {
  return 2 * (kManyRows * kMatrixPitch * 4 + ChunkBytes(block_tiles)) +
         kManyRows * 8;
}
constexpr int WarpgroupSharedBytes(int block_tiles) {
  return kWarpgroupStages *
         (kManyRows * kMatrixChunk * 4 + ChunkBytes(block_tiles));
}

// The launch with the least estimated time whose partial sums fit into
// scratch_floats, for images whose inputs follow each other. False if there is
// none. `warpgroups`: their kernel may be taken.
bool MakeMatrixLaunch(const MatrixShape& shape, int64_t rows,
                      int multiprocessors, int shared_per_block,
                      int64_t scratch_floats, bool warpgroups,
                      MatrixLaunch* launch);

// The most rows for which there is one.
int64_t MostMatrixRows(const MatrixShape& shape, int shared_per_block,
                       int64_t scratch_floats);

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_MATRIX_PLAN_H_
