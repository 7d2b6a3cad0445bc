// The kernel of fully connected layers one after another; connected_chain.cu
// tells the idea. Needs compute capability 8.0; below it its body is empty.
#ifndef KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_CUH_
#define KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_CUH_

#include <cstdint>

#include "kernels/compiled/cuda/connected_chain.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/split.cuh"

namespace convlab::cuda {

constexpr int kChainWarps = kChainThreads / 32;
constexpr int kChainWords = kMatrixChunk / 2, kChainPitch = kChainWords + 4;
// Bytes of shared memory for a block's images: two chunks of them as words of
// halves, high and low, rows so far apart that lanes' loads meet different
// banks; their factors; two layers' values; and all layers' factors and biases.
constexpr int ChainSharedBytes(int rows) {
  return 2 * rows * (kChainPitch * 8 + 4 + kChainValuePitch * 4) +
         kMostChainLayers * kMostChainOutputs * 8;
}

#if __CUDA_ARCH__ >= 800

// Stores the factors and biases of all layers' outputs, [layer][output], by the
// block's first kThreads threads: at its end each layer would wait for its own.
template <int kThreads>
__device__ __forceinline__ void StoreColumns(const Chain& chain, float2* to) {
  for (int i = threadIdx.x; i < chain.count * kMostChainOutputs;
       i += kThreads) {
    const ChainLayer& layer = chain.layers[i / kMostChainOutputs];
    const int output = i % kMostChainOutputs;
    float2 column = make_float2(0, 0);
    if (output < layer.shape.outputs) {
      column.x = layer.packed[output];
      if (layer.bias != nullptr) column.y = layer.bias[output];
    }
    to[i] = column;
  }
}

// kRowTiles: of 16 images, that a block computes; warps stand side by side on
// each. kTiles: of 8 outputs, that a warp computes of a layer, at most.
template <int kRowTiles, int kTiles>
class ChainBlock {
 public:
  __device__ ChainBlock(char* shared, const Chain& chain, int64_t images,
                        const float* in, float* out, bool vector)
      : chain_(chain),
        words_(reinterpret_cast<uint2*>(shared)),
        factors_(reinterpret_cast<float*>(words_ + 2 * kRows * kChainPitch)),
        values_(factors_ + 2 * kRows),
        outputs_(reinterpret_cast<float2*>(values_ + 2 * kBuffer)),
        first_(int64_t{blockIdx.x} * kRows),
        images_(images),
        in_(in),
        out_(out),
        vector_(vector) {}

  __device__ void Run() {
    Columns columns[2];
    // The weights come while the kernel before this one computes the images.
    LoadColumns(chain_.layers[0], 0, &columns[0]);
    StoreColumns<kChainThreads>(chain_, outputs_);
    WaitForKernelBefore();
    for (int i = 0; i < chain_.count; ++i) {
      if (i > 0) __syncthreads();
      Connect(i, columns);
    }
  }

 private:
  static constexpr int kRows = 16 * kRowTiles;
  static constexpr int kWarpsWide = kChainWarps / kRowTiles;
  // Of a row of a chunk that a thread splits, and the threads of a row.
  static constexpr int kOwn = kMatrixChunk * kRows / kChainThreads;
  static constexpr int kRowThreads = kChainThreads / kRows;

  // The weights of a chunk that a warp needs.
  struct Columns {
    uint4 words[kChunkSteps][kTiles];
  };

  static __device__ int warp_column() { return threadIdx.x / 32 / kRowTiles; }
  static __device__ int warp_row() { return threadIdx.x / 32 % kRowTiles * 16; }
  static __device__ int lane() { return threadIdx.x % 32; }
  // Of the thread's part of a chunk.
  static __device__ int own_row() { return threadIdx.x / kRowThreads; }
  static __device__ int own_input() { return threadIdx.x % kRowThreads * kOwn; }

  // The weights of the layer's first chunk are in columns[0], and those of the
  // next layer's will be.
  __device__ __forceinline__ void Connect(int number, Columns (&columns)[2]) {
    const ChainLayer& layer = chain_.layers[number];
    const int chunks = static_cast<int>(layer.shape.chunks);
    float totals[kTiles][4] = {};
    float values[2][kOwn];
    LoadValues(number, 0, values[0]);
    LoadValues(number, 1, values[1]);
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; chunk += 2) {
      Step(number, chunk, values[0], columns[0], &columns[1], totals);
      if (chunk + 1 == chunks) break;
      Step(number, chunk + 1, values[1], columns[1], &columns[0], totals);
    }
    if (number + 1 < chain_.count) {
      LoadColumns(chain_.layers[number + 1], 0, &columns[0]);
    }
    Finish(number, totals);
  }

  // Splits a chunk's values, in whose place it loads those of the chunk after
  // the next, and multiplies.
  __device__ __forceinline__ void Step(int number, int chunk,
                                       float (&values)[kOwn],
                                       const Columns& columns, Columns* next,
                                       float (&totals)[kTiles][4]) {
    const ChainLayer& layer = chain_.layers[number];
    uint2* const words = words_ + chunk % 2 * kRows * kChainPitch;
    float* const factors = factors_ + chunk % 2 * kRows;
    Split(values, words, factors);
    __syncthreads();
    if (chunk + 1 < layer.shape.chunks) {
      LoadColumns(layer, chunk + 1, next);
    }
    LoadValues(number, chunk + 2, values);
    Multiply(words, factors, columns, totals);
  }

  __device__ __forceinline__ void LoadColumns(const ChainLayer& layer,
                                              int chunk, Columns* to) const {
    const auto* const from = reinterpret_cast<const uint32_t*>(
                                 layer.packed + layer.shape.columns()) +
                             lane();
    const int tiles = static_cast<int>(layer.shape.tiles);
#pragma unroll
    for (int s = 0; s < kChunkSteps; ++s) {
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        // Tiles beyond the last repeat it: a branch would wait for the loads.
        const int own = min(warp_column() + j * kWarpsWide, tiles - 1);
        const uint32_t* const tile =
            from + ((chunk * kChunkSteps + s) * tiles + own) * kTileWords;
        to->words[s][j] = make_uint4(__ldg(tile), __ldg(tile + 32),
                                     __ldg(tile + 64), __ldg(tile + 96));
      }
    }
  }

  // The thread's part of a chunk, if there is such a chunk: of the images, or
  // of the layer before. Inputs beyond the last are zeros; rows beyond it
  // repeat it, and are dropped.
  __device__ __forceinline__ void LoadValues(int number, int chunk,
                                             float (&values)[kOwn]) const {
    const int inputs = static_cast<int>(chain_.layers[number].shape.inputs);
    const int first = chunk * kMatrixChunk + own_input();
    if (number > 0) {
      const float* const from =
          values_ + (number - 1) % 2 * kBuffer + own_row() * kChainValuePitch;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        values[i] = first + i < inputs ? from[first + i] : 0;
      }
      return;
    }
    const float* const from =
        in_ + min(first_ + own_row(), images_ - 1) * inputs + first;
    if (vector_) {
#pragma unroll
      for (int i = 0; i < kOwn; i += 4) {
        float4 v = make_float4(0, 0, 0, 0);
        if (first + i < inputs) v = *reinterpret_cast<const float4*>(from + i);
        values[i] = v.x, values[i + 1] = v.y;
        values[i + 2] = v.z, values[i + 3] = v.w;
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      values[i] = first + i < inputs ? from[i] : 0;
    }
  }

  // A row's chunk has its own power of two (ScaleOf).
  static __device__ __forceinline__ void Split(const float (&values)[kOwn],
                                               uint2* words, float* factors) {
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) most = LargerMagnitude(most, values[i]);
#pragma unroll
    for (int distance = kRowThreads / 2; distance > 0; distance /= 2) {
      most = max(most, __shfl_xor_sync(0xffffffff, most, distance));
    }
    const RowScale row = ScaleOf(most);
    if (own_input() == 0) factors[own_row()] = row.factor;
    auto* const to = reinterpret_cast<uint4*>(words + own_row() * kChainPitch +
                                              own_input() / 2);
#pragma unroll
    for (int i = 0; i < kOwn; i += 4) {
      const SplitPair a =
          SplitHalves(values[i] * row.scale, values[i + 1] * row.scale);
      const SplitPair b =
          SplitHalves(values[i + 2] * row.scale, values[i + 3] * row.scale);
      to[i / 4] = make_uint4(a.high, a.low, b.high, b.low);
    }
  }

  static __device__ __forceinline__ void Multiply(const uint2* words,
                                                  const float* factors,
                                                  const Columns& columns,
                                                  float (&totals)[kTiles][4]) {
    const int row = warp_row() + lane() / 4;
    const uint2* const from = words + row * kChainPitch + lane() % 4;
    float large[kTiles][4] = {}, small[kTiles][4] = {};
#pragma unroll
    for (int s = 0; s < kChunkSteps; ++s) {
      uint32_t high[4], low[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // row + 8 (i % 2), words i / 2
        const uint2 v = from[i % 2 * 8 * kChainPitch + s * 8 + i / 2 * 4];
        high[i] = v.x;
        low[i] = v.y;
      }
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        MultiplyAdd(low, columns.words[s][j].x, columns.words[s][j].y,
                    small[j]);
      }
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        MultiplyAdd(high, columns.words[s][j].x, columns.words[s][j].y,
                    large[j]);
      }
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        MultiplyAdd(high, columns.words[s][j].z, columns.words[s][j].w,
                    small[j]);
      }
    }
    // Out of the tensor cores, which cut off what they add.
    const float factor[2] = {factors[row], factors[row + 8]};
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        totals[j][i] += (large[j][i] + small[j][i]) * factor[i / 2];
      }
    }
  }

  __device__ __forceinline__ void Finish(int number,
                                         const float (&totals)[kTiles][4]) {
    const ChainLayer& layer = chain_.layers[number];
    const int outputs = static_cast<int>(layer.shape.outputs);
    const bool last = number + 1 == chain_.count;
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = warp_row() + lane() / 4 + i / 2 * 8;
        const int output = (warp_column() + j * kWarpsWide) * kMatrixTile +
                           lane() % 4 * 2 + i % 2;
        if (output >= outputs) continue;
        const float2 own = outputs_[number * kMostChainOutputs + output];
        float value = totals[j][i] * own.x;
        if (layer.bias != nullptr) value += own.y;
        value = Apply(layer.activation, value);
        if (!last) {
          values_[number % 2 * kBuffer + row * kChainValuePitch + output] =
              value;
        } else if (first_ + row < images_) {
          out_[(first_ + row) * outputs + output] = value;
        }
      }
    }
  }

  static constexpr int kBuffer = kRows * kChainValuePitch;

  const Chain& chain_;
  uint2* const words_;     // [chunk % 2][row][pair of inputs]
  float* const factors_;   // [chunk % 2][row]
  float* const values_;    // [layer % 2][row][output]
  float2* const outputs_;  // [layer][output]: factor and bias
  const int64_t first_, images_;
  const float* const in_;
  float* const out_;
  const bool vector_;
};

#endif

// `vector`: rows of `in` begin at multiples of 16 bytes.
template <int kRowTiles, int kTiles>
__global__ void __launch_bounds__(kChainThreads, 2)
    ChainKernel(const __grid_constant__ Chain chain, int64_t images,
                const float* in, float* out, bool vector) {
#if __CUDA_ARCH__ >= 800
  LetNextKernelStart();
  extern __shared__ __align__(16) char chain_shared[];
  ChainBlock<kRowTiles, kTiles>(chain_shared, chain, images, in, out, vector)
      .Run();
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_CUH_
