// The kernel of a fully connected layer for many images by the products of
// warpgroups; matrix.cu tells the idea. For compute capability 9.0; in code for
// any other GPU its body is empty.
#ifndef KERNELS_LAYERS_CUDA_MATRIX_WARPGROUPS_CUH_
#define KERNELS_LAYERS_CUDA_MATRIX_WARPGROUPS_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/split.cuh"
#include "kernels/layers/cuda/matrix_plan.h"
#include "kernels/layers/cuda/matrix_product.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// A block computes 128 rows x kTiles tiles. The last of its three warpgroups
// loads chunks ahead; each of the others multiplies 64 rows. These do not wait
// for each other, so that one scales and splits its inputs while the other
// keeps the tensor cores busy.
template <int kTiles>
class WarpgroupProduct {
 public:
  // `barriers`: 2 kWarpgroupStages of them in shared memory.
  __device__ WarpgroupProduct(char* shared, uint64_t* barriers, const float* in,
                              const uint32_t* words, const MatrixLaunch& launch)
      : inputs_(reinterpret_cast<float*>(shared)),
        columns_(SharedAddress(inputs_ + kWarpgroupStages * kInputs)),
        full_(SharedAddress(barriers)),
        empty_(full_ + 8 * kWarpgroupStages),
        in_(in),
        words_(words),
        launch_(launch) {}

  __device__ void Run(float* partial) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < kWarpgroupStages; ++i) {
        // The loaders' copies, and those of the steps' weights.
        InitBarrier(full_ + 8 * i, kGroupThreads + kChunkSteps);
        InitBarrier(empty_ + 8 * i, kMultipliers * kGroupThreads);
      }
      FenceAsyncProxy();
    }
    __syncthreads();
    if (threadIdx.x >= kGroupThreads * kMultipliers) {
      GiveRegisters<40>();
      Load();
    } else {
      TakeRegisters<232>();
      Multiply(partial + blockIdx.z * launch_.rows * launch_.shape.columns());
    }
  }

 private:
  static constexpr int kGroupThreads = 128, kMultipliers = 2;
  static constexpr int kInputs = kManyRows * kMatrixChunk;  // of a stage
  static constexpr int kTileBytes = 4 * kTileWords;

  __device__ int first_chunk() const {
    return blockIdx.z * launch_.unit_chunks;
  }
  __device__ int chunks() const {
    return min(launch_.unit_chunks,
               static_cast<int>(launch_.shape.chunks) - first_chunk());
  }
  __device__ int64_t first_row() const {
    return int64_t{blockIdx.x} * kManyRows;
  }
  __device__ int64_t first_tile() const { return int64_t{blockIdx.y} * kTiles; }

  // A row's vectors of 4 inputs are exchanged so that lanes that read 8 bytes
  // of 4 rows each find them in different banks.
  static __device__ __forceinline__ int Exchanged(int row) {
    return 2 * (row % 4);
  }

  // Rows beyond the last repeat it: their results are dropped. Inputs beyond
  // the last are zeros. Tiles beyond the last stay what they are.
  __device__ void Load() {
    constexpr int kPerRow = kMatrixChunk / 4;
    const int own = threadIdx.x % kGroupThreads;
    const int row = own / kPerRow, vector = own % kPerRow;
    const int64_t inputs = launch_.shape.inputs, pitch = launch_.pitch;
    const int64_t tiles = launch_.shape.tiles;
    const int64_t last = launch_.rows - 1;
    const int width =
        static_cast<int>(min(int64_t{kTiles}, tiles - first_tile()));
    float* const to =
        inputs_ + row * kMatrixChunk + (vector ^ Exchanged(row)) * 4;
    const int count = chunks();
    int stage = 0, parity = 1;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const int64_t chunk = first_chunk() + i;
      WaitFor(empty_ + 8 * stage, parity);
      if (own == 0) {
#pragma unroll
        for (int s = 0; s < kChunkSteps; ++s) {
          const uint32_t* const from =
              words_ +
              ((chunk * kChunkSteps + s) * tiles + first_tile()) * kTileWords;
          StartLoad(
              columns_ + stage * ChunkBytes(kTiles) + s * kTiles * kTileBytes,
              reinterpret_cast<const float*>(from), width * kTileBytes,
              full_ + 8 * stage);
        }
      }
      const int64_t input = chunk * kMatrixChunk + 4 * vector;
      const bool exists = input < inputs;
      const float* const from = in_ + (exists ? input : 0);
#pragma unroll 4
      for (int r = 0; r < kManyRows; r += kGroupThreads / kPerRow) {
        StartCopy<16>(to + stage * kInputs + r * kMatrixChunk,
                      from + min(first_row() + row + r, last) * pitch, exists);
      }
      ArriveWhenCopied(full_ + 8 * stage);
      Advance(&stage, &parity);
    }
    // The copies' threads may not end before them.
    WaitForCopies<0>();
  }

  __device__ void Multiply(float* unit) {
    const int lane = threadIdx.x % 32;
    const int row = threadIdx.x / 32 * 16 + lane / 4;
    // Of the inputs 2 (lane % 4) and the next.
    const int vector = lane % 4 / 2 ^ Exchanged(row);
    const float* const from = inputs_ + row * kMatrixChunk + lane % 2 * 2;
    float totals[4 * kTiles] = {};
    const int count = chunks();
    int stage = 0, parity = 0;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      WaitFor(full_ + 8 * stage, parity);
      float2 values[kChunkSteps][4];
      uint32_t most[2] = {};  // of two rows
#pragma unroll
      for (int s = 0; s < kChunkSteps; ++s) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {  // row + 8 (j % 2), input + 8 (j / 2)
          const float2 v = *reinterpret_cast<const float2*>(
              from + stage * kInputs + j % 2 * 8 * kMatrixChunk +
              (vector ^ (4 * s + j / 2 * 2)) * 4);
          values[s][j] = v;
          most[j % 2] = LargerMagnitude(LargerMagnitude(most[j % 2], v.x), v.y);
        }
      }
      const RowScale scales[2] = {ScaleOfFourLanes(most[0]),
                                  ScaleOfFourLanes(most[1])};
      uint32_t high[kChunkSteps][4], low[kChunkSteps][4];
#pragma unroll
      for (int s = 0; s < kChunkSteps; ++s) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float scale = scales[j % 2].scale;
          const SplitPair split =
              SplitHalves(values[s][j].x * scale, values[s][j].y * scale);
          high[s][j] = split.high, low[s][j] = split.low;
        }
      }
      float sums[4 * kTiles];
      const uint32_t columns = columns_ + stage * ChunkBytes(kTiles);
      FenceProducts();
#pragma unroll
      for (int s = 0; s < kChunkSteps; ++s) {
        const uint32_t step = columns + s * kTiles * kTileBytes;
        const uint64_t highs = ColumnsAt<kTileBytes>(step);
        const uint64_t lows = ColumnsAt<kTileBytes>(step + kTileBytes / 2);
        StartProduct(sums, low[s], highs, s > 0);
        StartProduct(sums, high[s], lows);
        StartProduct(sums, high[s], highs);
      }
      CommitProducts();
      WaitForProducts<0>();
      Arrive(empty_ + 8 * stage);
      // Out of the tensor cores, which cut off what they add.
#pragma unroll
      for (int j = 0; j < 4 * kTiles; ++j) {
        totals[j] += sums[j] * scales[j / 2 % 2].factor;
      }
      Advance(&stage, &parity);
    }
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      StoreSums(
          reinterpret_cast<const float(&)[4]>(totals[4 * j]), first_row() + row,
          (first_tile() + j) * kMatrixTile + 2 * (lane % 4), launch_, unit);
    }
  }

  static __device__ __forceinline__ void Advance(int* stage, int* parity) {
    if (++*stage == kWarpgroupStages) *stage = 0, *parity ^= 1;
  }

  float* const inputs_;     // [stage][row][input]
  const uint32_t columns_;  // [stage][step][tile][word]
  const uint32_t full_, empty_;
  const float* const in_;
  const uint32_t* const words_;
  const MatrixLaunch& launch_;
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

// Rows of `in` begin at multiples of 16 bytes.
template <int kTiles>
__global__ void __launch_bounds__(kWarpgroupThreads, 1)
    WarpgroupRowsKernel(const float* in, const uint32_t* words, float* partial,
                        const __grid_constant__ MatrixLaunch launch) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  // Beside the barriers, rounded up, of what compute capability 9.0 gives.
  static_assert(WarpgroupSharedBytes(kTiles) + 128 <= 227 << 10);
  // The instructions need 16 only. But at such an address each 128 bytes that
  // the copy engine writes, or that a product reads, are parts of two rows of
  // banks: fa19's matrix took 198 us for 5,000 images instead of 138 (H200).
  extern __shared__ __align__(128) char warpgroup_shared[];
  __shared__ uint64_t barriers[2 * kWarpgroupStages];
  WarpgroupProduct<kTiles>(warpgroup_shared, barriers, in, words, launch)
      .Run(partial);
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_MATRIX_WARPGROUPS_CUH_
