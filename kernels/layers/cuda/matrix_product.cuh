// The kernels of a fully connected layer on tensor cores; matrix.cu tells the
// idea. Needs compute capability 8.0; below it their bodies are empty.
#ifndef KERNELS_LAYERS_CUDA_MATRIX_PRODUCT_CUH_
#define KERNELS_LAYERS_CUDA_MATRIX_PRODUCT_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/split.cuh"
#include "kernels/layers/cuda/matrix_plan.h"

namespace convlab::cuda {

// The scale of a row that four neighbouring lanes share, each of which has the
// largest of its own part.
__device__ __forceinline__ RowScale ScaleOfFourLanes(uint32_t most) {
  most = max(most, __shfl_xor_sync(0xffffffff, most, 1));
  most = max(most, __shfl_xor_sync(0xffffffff, most, 2));
  return ScaleOf(most);
}

// A lane's words of a tile's weights in one step.
__device__ __forceinline__ uint4 LoadTile(const uint32_t* tile) {
  return make_uint4(tile[0], tile[32], tile[64], tile[96]);
}

// Adds one step's product to the sums of kTiles tiles: the small products
// first. `rows` are 16 x 16 inputs, `columns` the lane's words.
template <int kTiles>
__device__ __forceinline__ void MultiplyStep(const SplitPair (&rows)[4],
                                             const uint4 (&columns)[kTiles],
                                             float (&sums)[kTiles][4]) {
  const uint32_t high[4] = {rows[0].high, rows[1].high, rows[2].high,
                            rows[3].high};
  const uint32_t low[4] = {rows[0].low, rows[1].low, rows[2].low, rows[3].low};
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
    MultiplyAdd(low, columns[j].x, columns[j].y, sums[j]);
  }
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
    MultiplyAdd(high, columns[j].z, columns[j].w, sums[j]);
  }
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
    MultiplyAdd(high, columns[j].x, columns[j].y, sums[j]);
  }
}

// Stores a lane's sums of two neighbouring columns, in two rows 8 apart.
__device__ __forceinline__ void StoreSums(const float (&sums)[4], int64_t row,
                                          int64_t column,
                                          const MatrixLaunch& launch,
                                          float* unit) {
  const int64_t columns = launch.shape.columns();
  if (column >= columns) return;
  float* const to = unit + row * columns + column;
  if (row < launch.rows) {
    *reinterpret_cast<float2*>(to) = make_float2(sums[0], sums[1]);
  }
  if (row + 8 < launch.rows) {
    *reinterpret_cast<float2*>(to + 8 * columns) =
        make_float2(sums[2], sums[3]);
  }
}

// For many images. A block computes 128 rows x 2 kTiles tiles, a warp 32 rows x
// kTiles. `vector`: rows of `in` begin at multiples of 16 bytes.
template <int kTiles>
class ManyRowsProduct {
 public:
  __device__ ManyRowsProduct(char* shared, const float* in,
                             const uint32_t* words, bool vector,
                             const MatrixLaunch& launch)
      : inputs_(reinterpret_cast<float*>(shared)),
        columns_(reinterpret_cast<uint32_t*>(inputs_ + 2 * kInputs)),
        scales_(reinterpret_cast<RowScale*>(columns_ + 2 * kColumns)),
        in_(in),
        words_(words),
        vector_(vector),
        launch_(launch) {}

  __device__ void Run(float* partial) {
    const int first = blockIdx.z * launch_.unit_chunks;
    const int end = min(first + launch_.unit_chunks,
                        static_cast<int>(launch_.shape.chunks));
    Load(first, 0);
    for (int chunk = first; chunk < end; ++chunk) {
      const int buffer = (chunk - first) % 2;
      WaitForCopies<0>();
      __syncthreads();
      // The other buffer was last read before that barrier.
      if (chunk + 1 < end) Load(chunk + 1, 1 - buffer);
      FindScales(buffer);
      __syncthreads();
      Multiply(buffer);
    }
    Store(partial + blockIdx.z * launch_.rows * launch_.shape.columns());
  }

 private:
  static constexpr int kBlockTiles = kManyWarpsWide * kTiles;
  static constexpr int kInputs = kManyRows * kMatrixPitch;  // of a buffer
  static constexpr int kColumns = kChunkSteps * kBlockTiles * kTileWords;
  static constexpr int kRowTiles = 2;  // of 16 rows, that a warp computes
  // Tiles whose products are under way together; their vectors are in
  // registers.
  static constexpr int kAtOnce = kTiles % 5 == 0   ? 5
                                 : kTiles % 4 == 0 ? 4
                                 : kTiles % 3 == 0 ? 3
                                                   : 2;

  __device__ int64_t first_row() const {
    return int64_t{blockIdx.x} * kManyRows;
  }
  __device__ int64_t first_tile() const {
    return int64_t{blockIdx.y} * kBlockTiles;
  }

  __device__ void Load(int chunk, int buffer) {
    float* const inputs = inputs_ + buffer * kInputs;
    if (vector_) {
      LoadInputs<4>(chunk, inputs);
    } else {
      LoadInputs<1>(chunk, inputs);
    }
    uint32_t* const columns = columns_ + buffer * kColumns;
    constexpr int kOfTile = kTileWords / 4;  // vectors of 16 bytes
    constexpr int kOfStep = kBlockTiles * kOfTile;
    const int64_t tiles = launch_.shape.tiles;
    const int own = threadIdx.x;
#pragma unroll 5
    for (int i = own; i < kColumns / 4; i += kManyThreads) {
      const int64_t tile = first_tile() + i % kOfStep / kOfTile;
      const int64_t step = int64_t{chunk} * kChunkSteps + i / kOfStep;
      const bool exists = tile < tiles;
      StartCopy<16>(columns + 4 * i,
                    words_ + (step * tiles + (exists ? tile : 0)) * kTileWords +
                        i % kOfTile * 4,
                    exists);
    }
    CommitCopies();
  }

  // Copies of kFloats floats. Rows beyond the last repeat it: their results are
  // dropped. Inputs beyond the last are zeros.
  template <int kFloats>
  __device__ void LoadInputs(int chunk, float* inputs) {
    constexpr int kPerRow = kMatrixChunk / kFloats;
    const int64_t count = launch_.shape.inputs, pitch = launch_.pitch;
    const int column = threadIdx.x % kPerRow * kFloats;
    const int64_t input = int64_t{chunk} * kMatrixChunk + column;
    const bool exists = input < count;
    const float* const from = in_ + (exists ? input : 0);
#pragma unroll 4
    for (int row = threadIdx.x / kPerRow; row < kManyRows;
         row += kManyThreads / kPerRow) {
      const int64_t read = min(first_row() + row, launch_.rows - 1);
      StartCopy<4 * kFloats>(inputs + row * kMatrixPitch + column,
                             from + read * pitch, exists);
    }
  }

  // Two neighbouring threads read a row.
  __device__ void FindScales(int buffer) {
    const int row = threadIdx.x / 2, side = threadIdx.x % 2;
    const float* const from =
        inputs_ + buffer * kInputs + row * kMatrixPitch + 4 * side;
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < kMatrixChunk; i += 8) {
      const float4 v = *reinterpret_cast<const float4*>(from + i);
      most = LargerMagnitude(LargerMagnitude(most, v.x), v.y);
      most = LargerMagnitude(LargerMagnitude(most, v.z), v.w);
    }
    most = max(most, __shfl_xor_sync(0xffffffff, most, 1));
    if (side == 0) scales_[row] = ScaleOf(most);
  }

  __device__ void Multiply(int buffer) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp / kManyWarpsWide * 16 * kRowTiles + lane / 4;
    const float* const from =
        inputs_ + buffer * kInputs + row * kMatrixPitch + 2 * (lane % 4);
    const uint32_t* const columns =
        columns_ + buffer * kColumns +
        warp % kManyWarpsWide * kTiles * kTileWords + lane;
    float scales[kRowTiles][2];
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      scales[r][0] = scales_[row + 16 * r].scale;
      scales[r][1] = scales_[row + 16 * r + 8].scale;
    }
    float sums[kRowTiles][kTiles][4] = {};
#pragma unroll 1
    for (int step = 0; step < kChunkSteps; ++step) {
      SplitPair rows[kRowTiles][4];
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // row + 8 (i % 2), column + 8 (i / 2)
          const float2 v = *reinterpret_cast<const float2*>(
              from + (16 * r + i % 2 * 8) * kMatrixPitch + step * kMatrixStep +
              i / 2 * 8);
          rows[r][i] =
              SplitHalves(v.x * scales[r][i % 2], v.y * scales[r][i % 2]);
        }
      }
#pragma unroll
      for (int j = 0; j < kTiles; j += kAtOnce) {
        uint4 own[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          own[i] =
              LoadTile(columns + (step * kBlockTiles + j + i) * kTileWords);
        }
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          MultiplyStep(rows[r], own,
                       reinterpret_cast<float(&)[kAtOnce][4]>(sums[r][j]));
        }
      }
    }
    // Out of the tensor cores, which cut off what they add.
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      const float top = scales_[row + 16 * r].factor;
      const float bottom = scales_[row + 16 * r + 8].factor;
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          totals_[r][j][i] += sums[r][j][i] * (i < 2 ? top : bottom);
        }
      }
    }
  }

  __device__ void Store(float* unit) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t row =
        first_row() + warp / kManyWarpsWide * 16 * kRowTiles + lane / 4;
    const int64_t tile = first_tile() + warp % kManyWarpsWide * kTiles;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        StoreSums(totals_[r][j], row + 16 * r,
                  (tile + j) * kMatrixTile + 2 * (lane % 4), launch_, unit);
      }
    }
  }

  float* const inputs_;      // [buffer][row][input], by kMatrixPitch
  uint32_t* const columns_;  // [buffer][step][tile][word]
  RowScale* const scales_;   // [row]
  const float* const in_;
  const uint32_t* const words_;
  const bool vector_;
  const MatrixLaunch& launch_;
  float totals_[kRowTiles][kTiles][4] = {};
};

template <int kTiles>
__global__ void __launch_bounds__(kManyThreads, 1)
    ManyRowsKernel(const float* in, const uint32_t* words, bool vector,
                   float* partial,
                   const __grid_constant__ MatrixLaunch launch) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(16) char shared[];
  ManyRowsProduct<kTiles>(shared, in, words, vector, launch).Run(partial);
#endif
}

// For few images. A block computes 16 rows x 4 kFewTiles tiles of one chunk, a
// warp kFewTiles of them. What a warp needs is in its registers before it
// begins, so that it waits for memory once, and the weights come while the
// kernel before this one computes the images. The same products in the same
// order as above.
__global__ void __launch_bounds__(kFewThreads)
    FewRowsKernel(const float* in, const uint32_t* words, bool pairs,
                  float* partial, const __grid_constant__ MatrixLaunch launch) {
#if __CUDA_ARCH__ >= 800
  LetNextKernelStart();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // [unit][column block][row block]
  const int row_blocks = launch.row_blocks;
  const int column_blocks = launch.column_blocks;
  const int row_block = blockIdx.x % row_blocks;
  const int column_block = blockIdx.x / row_blocks % column_blocks;
  const int chunk = blockIdx.x / row_blocks / column_blocks;
  const int64_t tile =
      int64_t{column_block} * kFewTiles * kFewWarpsWide + warp * kFewTiles;
  if (tile >= launch.shape.tiles) return;
  const int64_t row = int64_t{row_block} * kFewRows + lane / 4;
  const int64_t inputs = launch.shape.inputs;
  const int64_t step = int64_t{chunk} * kChunkSteps;

  uint4 columns[kChunkSteps][kFewTiles];
#pragma unroll
  for (int s = 0; s < kChunkSteps; ++s) {
#pragma unroll
    for (int j = 0; j < kFewTiles; ++j) {
      // Tiles beyond the last repeat it.
      const int64_t own = min(tile + j, launch.shape.tiles - 1);
      columns[s][j] = LoadTile(
          words + ((step + s) * launch.shape.tiles + own) * kTileWords + lane);
    }
  }
  WaitForKernelBefore();
  float2 values[kChunkSteps][4];
  uint32_t most[2] = {};  // of two rows
#pragma unroll
  for (int s = 0; s < kChunkSteps; ++s) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t input =
          (step + s) * kMatrixStep + i / 2 * 8 + 2 * (lane % 4);
      const float* const from =
          in + min(row + i % 2 * 8, launch.rows - 1) * launch.pitch + input;
      float2 v = make_float2(0, 0);
      if (pairs) {
        if (input < inputs) v = *reinterpret_cast<const float2*>(from);
      } else {
        if (input < inputs) v.x = from[0];
        if (input + 1 < inputs) v.y = from[1];
      }
      values[s][i] = v;
      most[i % 2] = LargerMagnitude(LargerMagnitude(most[i % 2], v.x), v.y);
    }
  }
  const RowScale scales[2] = {ScaleOfFourLanes(most[0]),
                              ScaleOfFourLanes(most[1])};
  float sums[kFewTiles][4] = {};
#pragma unroll
  for (int s = 0; s < kChunkSteps; ++s) {
    SplitPair rows[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      rows[i] = SplitHalves(values[s][i].x * scales[i % 2].scale,
                            values[s][i].y * scales[i % 2].scale);
    }
    MultiplyStep(rows, columns[s], sums);
  }
  float* const unit = partial + chunk * launch.rows * launch.shape.columns();
#pragma unroll
  for (int j = 0; j < kFewTiles; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[j][i] *= scales[i / 2].factor;
    StoreSums(sums[j], row, (tile + j) * kMatrixTile + 2 * (lane % 4), launch,
              unit);
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_MATRIX_PRODUCT_CUH_
