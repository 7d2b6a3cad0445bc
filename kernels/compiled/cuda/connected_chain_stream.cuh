// The kernel of fully connected layers one after another whose weights stream
// through shared memory; connected_chain.cu tells the idea. For compute
// capability 9.0; in code for any other GPU its body is empty.
#ifndef KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_STREAM_CUH_
#define KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_STREAM_CUH_

#include <cstdint>

#include "kernels/compiled/cuda/connected_chain.cuh"
#include "kernels/compiled/cuda/connected_chain.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/split.cuh"

namespace convlab::cuda {

// Images of a block, the warps that multiply, half of them for each 16 images,
// and the threads, of which the last warp's only load.
constexpr int kStreamRows = 32, kStreamWarps = 16, kStreamWarpsWide = 8;
constexpr int kStreamMultipliers = 32 * kStreamWarps;
constexpr int kStreamThreads = kStreamMultipliers + 32;
constexpr int kStreamMostStages = 8;

// A chain's launch: chunks of weights, and of the first layer's inputs, take
// turns in `stages` places in shared memory.
struct ChainStream {
  int stages;
  int weight_bytes;  // of a stage: what the widest layer's chunk needs

  static constexpr int kInputBytes = kStreamRows * kMatrixChunk * 4;
  constexpr int stage_bytes() const { return kInputBytes + weight_bytes; }
  // What lies before the stages: two chunks of images as halves, high and low,
  // and their factors, two layers' values, and the columns' factors and biases.
  // Rows of halves are so far apart that eight of them meet different banks.
  static constexpr int kRowBytes = 2 * kMatrixChunk + 16;
  static constexpr int kPartBytes = kStreamRows * kRowBytes;
  static constexpr int kFactorsAt = 2 * 2 * kPartBytes;
  static constexpr int kValuesAt = kFactorsAt + 2 * kStreamRows * 4;
  static constexpr int kColumnsAt =
      kValuesAt + 2 * kStreamRows * kChainValuePitch * 4;
  static constexpr int kStagesAt =
      kColumnsAt + Chain::kMost * kMostChainOutputs * 8;
  static_assert(kStagesAt % 128 == 0);
  constexpr int shared_bytes() const {
    return kStagesAt + stages * stage_bytes();
  }
};

#if __CUDA_ARCH_FEAT_SM90_ALL

// Loads four matrices of 8 rows x 8 halves from shared memory, of each of which
// 8 lanes give the addresses of the rows, in the order in which MultiplyAdd
// takes them.
__device__ __forceinline__ void LoadMatrices(uint32_t address,
                                             uint32_t (&words)[4]) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
      : "r"(address)
      : "memory");
}

// kTiles: of 8 outputs, that a warp computes of a layer, at most.
template <int kTiles>
class StreamedChain {
 public:
  // `barriers`: 2 kStreamMostStages of them in shared memory.
  __device__ StreamedChain(char* shared, uint64_t* barriers, const Chain& chain,
                           const ChainStream& stream, int64_t images,
                           const float* in, float* out)
      : chain_(chain),
        stream_(stream),
        shared_(shared),
        full_(SharedAddress(barriers)),
        empty_(full_ + 8 * kStreamMostStages),
        first_(int64_t{blockIdx.x} * kStreamRows),
        images_(images),
        in_(in),
        out_(out) {}

  __device__ void Run() {
    if (threadIdx.x == 0) {
      for (int i = 0; i < stream_.stages; ++i) {
        // A row's inputs for each lane that loads, and the weights.
        InitBarrier(full_ + 8 * i, kStreamRows + 1);
        // By each thread, not each warp, so that racecheck can follow.
        InitBarrier(empty_ + 8 * i, kStreamMultipliers);
      }
      FenceAsyncProxy();
    }
    __syncthreads();
    if (threadIdx.x >= kStreamMultipliers) {
      Load();
      return;
    }
    StoreColumns<kStreamMultipliers>(chain_, columns());
    Position position;
    for (int i = 0; i < chain_.count; ++i) {
      if (i > 0) SyncGroup(1, kStreamMultipliers);
      Connect(i, &position);
    }
  }

 private:
  // Which stage a chunk is in, and the parity of the barriers' phases.
  struct Position {
    int stage = 0, parity = 0;
    int half = 0;  // of two places
  };
  // Of a row of a chunk: each splits four inputs.
  static constexpr int kRowThreads = kStreamMultipliers / kStreamRows;
  static_assert(4 * kRowThreads == kMatrixChunk);
  static constexpr int kBuffer = kStreamRows * kChainValuePitch;

  static __device__ int lane() { return threadIdx.x % 32; }
  static __device__ int warp_row() { return threadIdx.x / 32 % 2 * 16; }
  static __device__ int warp_column() { return threadIdx.x / 32 / 2; }
  static __device__ int own_row() { return threadIdx.x / kRowThreads; }
  static __device__ int own_vector() { return threadIdx.x % kRowThreads; }

  __device__ char* halves(int number) const {  // [high and low][row][input]
    return shared_ + number * 2 * ChainStream::kPartBytes;
  }
  __device__ float* factors(int number) const {  // [row]
    return reinterpret_cast<float*>(shared_ + ChainStream::kFactorsAt) +
           number * kStreamRows;
  }
  __device__ float* values(int layer) const {  // [row][output]
    return reinterpret_cast<float*>(shared_ + ChainStream::kValuesAt) +
           layer % 2 * kBuffer;
  }
  // [layer][output]: factor and bias.
  __device__ float2* columns() const {
    return reinterpret_cast<float2*>(shared_ + ChainStream::kColumnsAt);
  }
  __device__ char* stage(int number) const {
    return shared_ + ChainStream::kStagesAt + number * stream_.stage_bytes();
  }

  // Of a layer's chunk: products that meet inputs, and bytes of weights.
  static __device__ int Steps(const ChainLayer& layer, int chunk) {
    const int left = static_cast<int>(layer.shape.inputs) -
                     chunk * kMatrixChunk + kMatrixStep - 1;
    return min(kChunkSteps, left / kMatrixStep);
  }

  // The place of a chunk in the chain.
  struct Cursor {
    int layer = 0, chunk = 0;

    __device__ void Next(const Chain& chain) {
      if (++chunk == chain.layers[layer].shape.chunks) ++layer, chunk = 0;
    }
  };

  __device__ void LoadWeights(const Cursor& at, int number) const {
    const ChainLayer& layer = chain_.layers[at.layer];
    const int tiles = static_cast<int>(layer.shape.tiles);
    const float* const from = layer.packed + layer.shape.columns() +
                              at.chunk * kChunkSteps * tiles * kTileWords;
    StartLoad(SharedAddress(stage(number) + ChainStream::kInputBytes), from,
              Steps(layer, at.chunk) * tiles * kTileWords * 4,
              full_ + 8 * number);
  }

  // Rows beyond the last repeat it: their results are dropped.
  __device__ void Load() const {
    int chunks = 0;
    for (int i = 0; i < chain_.count; ++i) {
      chunks += static_cast<int>(chain_.layers[i].shape.chunks);
    }
    const int ahead = min(chunks, stream_.stages);
    // The weights come while the kernel before this one computes the images.
    Cursor at;
    if (lane() == 0) {
      for (int i = 0; i < ahead; ++i, at.Next(chain_)) LoadWeights(at, i);
    }
    WaitForKernelBefore();
    const int inputs = static_cast<int>(chain_.layers[0].shape.inputs);
    const float* const row =
        in_ + min(first_ + lane(), images_ - 1) * int64_t{inputs};
    at = {};
    int number = 0, parity = 0;
#pragma unroll 1
    for (int i = 0; i < chunks; ++i, at.Next(chain_)) {
      if (i >= ahead) {
        WaitFor(empty_ + 8 * number, parity);
        if (lane() == 0) LoadWeights(at, number);
      }
      if (at.layer == 0) {
        const int first = at.chunk * kMatrixChunk;
        StartLoad(SharedAddress(stage(number)) + lane() * kMatrixChunk * 4,
                  row + first, min(kMatrixChunk, inputs - first) * 4,
                  full_ + 8 * number);
      } else {
        Arrive(full_ + 8 * number);
      }
      if (++number == stream_.stages) {
        number = 0;
        if (i >= ahead) parity ^= 1;
      }
    }
  }

  __device__ __forceinline__ void Connect(int number, Position* position) {
    const ChainLayer& layer = chain_.layers[number];
    const int chunks = static_cast<int>(layer.shape.chunks);
    float totals[kTiles][4] = {};
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const char* const own = stage(position->stage);
      char* const to = halves(position->half);
      float* const to_factors = factors(position->half);
      WaitFor(full_ + 8 * position->stage, position->parity);
      Split(number, chunk, reinterpret_cast<const float*>(own), to, to_factors);
      SyncGroup(1, kStreamMultipliers);
      Multiply(to, to_factors, own + ChainStream::kInputBytes,
               static_cast<int>(layer.shape.tiles), Steps(layer, chunk),
               totals);
      Arrive(empty_ + 8 * position->stage);
      position->half ^= 1;
      if (++position->stage == stream_.stages) {
        position->stage = 0;
        position->parity ^= 1;
      }
    }
    WithActivation(layer.activation, [&](auto activation) {
      Finish<decltype(activation)::value>(number, totals);
    });
  }

  // The thread's inputs of a chunk: of the images, or of the layer before.
  // Those beyond the last are zeros. A row's chunk has its own power of two
  // (ScaleOf).
  __device__ __forceinline__ void Split(int number, int chunk,
                                        const float* staged, char* to,
                                        float* to_factors) const {
    const float* const from = number == 0 ? staged + own_row() * kMatrixChunk
                                          : values(number - 1) +
                                                own_row() * kChainValuePitch +
                                                chunk * kMatrixChunk;
    const float4 loaded = reinterpret_cast<const float4*>(from)[own_vector()];
    const int left = static_cast<int>(chain_.layers[number].shape.inputs) -
                     chunk * kMatrixChunk - 4 * own_vector();
    const float v[4] = {left > 0 ? loaded.x : 0, left > 1 ? loaded.y : 0,
                        left > 2 ? loaded.z : 0, left > 3 ? loaded.w : 0};
    uint32_t most = 0;
#pragma unroll
    for (const float value : v) most = LargerMagnitude(most, value);
#pragma unroll
    for (int distance = kRowThreads / 2; distance > 0; distance /= 2) {
      most = max(most, __shfl_xor_sync(0xffffffff, most, distance));
    }
    const RowScale row = ScaleOf(most);
    if (own_vector() == 0) to_factors[own_row()] = row.factor;
    const SplitPair a = SplitHalves(v[0] * row.scale, v[1] * row.scale);
    const SplitPair b = SplitHalves(v[2] * row.scale, v[3] * row.scale);
    char* const own =
        to + own_row() * ChainStream::kRowBytes + 8 * own_vector();
    *reinterpret_cast<uint2*>(own) = make_uint2(a.high, b.high);
    *reinterpret_cast<uint2*>(own + ChainStream::kPartBytes) =
        make_uint2(a.low, b.low);
  }

  static __device__ __forceinline__ void Multiply(const char* halves,
                                                  const float* factors,
                                                  const char* weights,
                                                  int tiles, int steps,
                                                  float (&totals)[kTiles][4]) {
    if (warp_column() >= tiles) return;
    // Of the matrices' rows: 16 images in two columns of 8 inputs, and 8
    // outputs in two such columns, high and low.
    const uint32_t images =
        SharedAddress(halves) +
        (warp_row() + lane() % 16) * ChainStream::kRowBytes + lane() / 16 * 16;
    uint32_t columns[kTiles];
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      // Tiles beyond the last repeat it.
      const int tile = min(warp_column() + j * kStreamWarpsWide, tiles - 1);
      columns[j] = SharedAddress(weights) + tile * kTileWords * 4 + 16 * lane();
    }
    float large[kTiles][4] = {}, small[kTiles][4] = {};
#pragma unroll
    for (int s = 0; s < kChunkSteps; ++s) {
      if (s >= steps) break;
      uint32_t high[4], low[4], own[kTiles][4];
      LoadMatrices(images + s * 2 * kMatrixStep, high);
      LoadMatrices(images + s * 2 * kMatrixStep + ChainStream::kPartBytes, low);
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        LoadMatrices(columns[j], own[j]);
        columns[j] += tiles * kTileWords * 4;
      }
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        MultiplyAdd(low, own[j][0], own[j][1], small[j]);
      }
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        MultiplyAdd(high, own[j][0], own[j][1], large[j]);
      }
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        MultiplyAdd(high, own[j][2], own[j][3], small[j]);
      }
    }
    // Out of the tensor cores, which cut off what they add.
    const int row = warp_row() + lane() / 4;
    const float factor[2] = {factors[row], factors[row + 8]};
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        totals[j][i] += (large[j][i] + small[j][i]) * factor[i / 2];
      }
    }
  }

  // Outputs beyond the last, of whole tiles, are not used.
  template <Activation kActivation>
  __device__ __forceinline__ void Finish(int number,
                                         const float (&totals)[kTiles][4]) {
    const ChainLayer& layer = chain_.layers[number];
    const int outputs = static_cast<int>(layer.shape.outputs);
    const bool last = number + 1 == chain_.count;
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const int output =
          (warp_column() + j * kStreamWarpsWide) * kMatrixTile + lane() % 4 * 2;
      if (output >= outputs) break;
      const auto two = *reinterpret_cast<const float4*>(
          columns() + number * kMostChainOutputs + output);
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const int row = warp_row() + lane() / 4 + i / 2 * 8;
        float2 value =
            make_float2(totals[j][i] * two.x, totals[j][i + 1] * two.z);
        if (layer.bias != nullptr) value.x += two.y, value.y += two.w;
        value.x = Apply<kActivation>(value.x);
        value.y = Apply<kActivation>(value.y);
        if (!last) {
          *reinterpret_cast<float2*>(values(number) + row * kChainValuePitch +
                                     output) = value;
        } else if (first_ + row < images_) {
          float* const to = out_ + (first_ + row) * outputs + output;
          to[0] = value.x;
          if (output + 1 < outputs) to[1] = value.y;
        }
      }
    }
  }

  const Chain& chain_;
  const ChainStream& stream_;
  char* const shared_;
  const uint32_t full_, empty_;
  const int64_t first_, images_;
  const float* const in_;
  float* const out_;
};

#endif

// Rows of `in` begin at multiples of 16 bytes.
template <int kTiles>
__global__ void __launch_bounds__(kStreamThreads, 1)
    StreamedChainKernel(const __grid_constant__ Chain chain,
                        const __grid_constant__ ChainStream stream,
                        int64_t images, const float* in, float* out) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  LetNextKernelStart();
  extern __shared__ __align__(128) char streamed_chain_shared[];
  __shared__ uint64_t barriers[2 * kStreamMostStages];
  StreamedChain<kTiles>(streamed_chain_shared, barriers, chain, stream, images,
                        in, out)
      .Run();
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_STREAM_CUH_
