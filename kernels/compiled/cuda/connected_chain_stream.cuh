// The kernel of fully connected layers one after another by the products of
// warpgroups; connected_chain.cu tells the idea. For compute capability 9.0; in
// code for any other GPU its body is empty.
#ifndef KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_STREAM_CUH_
#define KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_STREAM_CUH_

#include <cstdint>

#include "kernels/compiled/cuda/connected_chain.cuh"
#include "kernels/compiled/cuda/connected_chain.h"
#include "kernels/compiled/cuda/connected_chain_inputs.cuh"
#include "kernels/compiled/cuda/connected_chain_plan.h"
#include "kernels/compiled/cuda/shared_products.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/split.cuh"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// Outputs are the rows of a product and images its columns, both from shared
// memory: the weights of 64 outputs then serve all images of the block.
//
// kGroups, kRows: the block's warpgroups that multiply, and its images. kParts:
// of a weight.
template <int kGroups, int kRows, int kParts>
class StreamedChain {
 public:
  // `barriers`: kBarriers of them in shared memory.
  static constexpr int kBarriers = 2 * kStreamMostStages + 1;

  __device__ StreamedChain(char* shared, uint64_t* barriers, const Chain& chain,
                           const ChainStream& stream, int64_t images,
                           const float* in, float* out)
      : chain_(chain),
        stream_(stream),
        shared_(shared),
        ready_(SharedAddress(barriers)),
        done_(ready_ + 8 * kStreamMostStages),
        finished_(done_ + 8 * kStreamMostStages),
        first_(int64_t{blockIdx.x} * kRows),
        images_(images),
        in_(in),
        out_(out) {}

  __device__ void Run() {
    if (threadIdx.x == 0) {
      // By each thread, not each warp, so that racecheck can follow.
      for (int i = 0; i < stream_.stages; ++i) {
        InitBarrier(ready_ + 8 * i, kSplitters + 1);  // and the weights
        InitBarrier(done_ + 8 * i, kMultipliers);
      }
      InitBarrier(finished_, kMultipliers);
      FenceAsyncProxy();
    }
    __syncthreads();
    if (threadIdx.x < kMultipliers) {
      MultiplyAll();
    } else if (threadIdx.x < kMultipliers + kSplitters) {
      SplitAll();
    } else if (threadIdx.x == kMultipliers + kSplitters) {
      LoadAll();
    }
  }

 private:
  static constexpr int kMultipliers = 128 * kGroups, kSplitters = 4 * kRows;
  // Of 8 images and of 8 outputs, for a step.
  static constexpr int kTileBytes = kTileWords * 4;
  static constexpr int kWeightTileBytes = ChainStream::TileBytes(kParts);
  // Of a chunk's step as halves.
  static constexpr int kStepBytes = kRows / 8 * kTileBytes;
  static constexpr int kSums = kRows / 2;  // of a thread
  // Of a layer behind the first.
  static constexpr int kMostChunks = kMostChainOutputs / kMatrixChunk;
  static_assert(kMostChainOutputs % kMatrixChunk == 0);
  static constexpr int kStagedVectors = kMatrixStep / 4;
  // Two warpgroups have no registers for the sums of 40 images twice.
  static constexpr bool kAhead = kGroups == 1 || kRows <= 32;

  // A stage's turn, and the parity of its barriers' phases.
  struct Turn {
    int stage = 0, parity = 0;

    __device__ __forceinline__ void Next(int stages) {
      if (++stage == stages) stage = 0, parity ^= 1;
    }
  };

  static __device__ int lane() { return threadIdx.x % 32; }

  __device__ float* values(int layer) const {  // [row][output]
    return reinterpret_cast<float*>(shared_) +
           layer % 2 * kRows * kChainValuePitch;
  }
  // [layer][output]: factor and bias.
  __device__ float2* columns() const {
    return reinterpret_cast<float2*>(shared_ + ChainStream::ColumnsAt(kRows));
  }
  // [chunk % kStreamAhead][vector of four inputs][thread].
  __device__ float4* staging() const {
    return reinterpret_cast<float4*>(shared_ + ChainStream::StagingAt(kRows));
  }
  __device__ float* factors(int stage) const {  // [row]
    return reinterpret_cast<float*>(shared_ + ChainStream::FactorsAt(kRows)) +
           stage * kRows;
  }
  __device__ char* halves(int stage) const {
    return shared_ + ChainStream::StagesAt(kRows) +
           stage * stream_.stage_bytes();
  }
  __device__ char* weights(int stage) const {
    return halves(stage) + ChainStream::HalvesBytes(kRows);
  }
  __device__ int chunks(int layer) const {
    return static_cast<int>(chain_.layers[layer].shape.chunks);
  }

  // The first weights come while the kernel before this one computes the
  // images.
  __device__ void LoadAll() const {
    Turn turn;
    for (int i = 0; i < chain_.count; ++i) {
      const ChainLayer& layer = chain_.layers[i];
      const int bytes =
          kChunkSteps * static_cast<int>(layer.shape.tiles) * kWeightTileBytes;
      const float* from = kParts == 1
                              ? reinterpret_cast<const float*>(layer.high)
                              : layer.packed + layer.shape.columns();
#pragma unroll 1
      for (int chunk = 0; chunk < chunks(i); ++chunk) {
        WaitFor(done_ + 8 * turn.stage, turn.parity ^ 1);
        StartLoad(SharedAddress(weights(turn.stage)), from, bytes,
                  ready_ + 8 * turn.stage);
        from += bytes / 4;
        turn.Next(stream_.stages);
      }
    }
  }

  // A thread splits of each chunk the inputs of one row that one step
  // multiplies.
  static __device__ int own_step() { return lane() / 8; }
  static __device__ int own_row() {
    return (threadIdx.x - kMultipliers) / 32 * 8 + lane() % 8;
  }

  // Rows beyond the last repeat it: their results are dropped.
  __device__ void SplitAll() const {
    Turn turn;
    WaitForKernelBefore();
    {
      const int inputs = static_cast<int>(chain_.layers[0].shape.inputs);
      const float* const from =
          in_ + min(first_ + own_row(), images_ - 1) * int64_t{inputs};
      // Chunks are on their way to memory, not to registers: the machine code
      // has too few counters of loads to wait for one chunk's alone.
      const auto staged = [&](int chunk) -> float4* {
        return staging() + chunk % kStreamAhead * kStagedVectors * kSplitters +
               threadIdx.x - kMultipliers;
      };
      const auto start = [&](int chunk) {
        const int first = chunk * kMatrixChunk + own_step() * kMatrixStep;
#pragma unroll
        for (int i = 0; i < kStagedVectors; ++i) {
          StartCopy<sizeof(float4)>(staged(chunk) + i * kSplitters,
                                    from + first + 4 * i,
                                    first + 4 * i < inputs);
        }
        CommitCopies();
      };
#pragma unroll 1
      for (int chunk = 0; chunk < kStreamAhead; ++chunk) start(chunk);
#pragma unroll 1
      for (int chunk = 0; chunk < chunks(0); ++chunk) {
        WaitForCopies<kStreamAhead - 1>();
        float v[kMatrixStep];
#pragma unroll
        for (int i = 0; i < kStagedVectors; ++i) {
          const float4 four = staged(chunk)[i * kSplitters];
          v[4 * i] = four.x, v[4 * i + 1] = four.y;
          v[4 * i + 2] = four.z, v[4 * i + 3] = four.w;
        }
        SplitChunk(v, &turn);
        start(chunk + kStreamAhead);
      }
    }
#pragma unroll 1
    for (int layer = 1; layer < chain_.count; ++layer) {
      WaitFor(finished_, (layer - 1) % 2);
      const int inputs = static_cast<int>(chain_.layers[layer].shape.inputs);
      const float* const from =
          values(layer - 1) + own_row() * kChainValuePitch;
      float v[kMostChunks][kMatrixStep];
#pragma unroll
      for (int chunk = 0; chunk < kMostChunks; ++chunk) {
        const int first = chunk * kMatrixChunk + own_step() * kMatrixStep;
        LoadInputs(from + first, inputs - first, v[chunk]);
      }
      WithActivation(chain_.layers[layer - 1].activation, [&](auto own) {
#pragma unroll
        for (auto& of_chunk : v) {
#pragma unroll
          for (float& value : of_chunk) {
            value = Apply<decltype(own)::value>(value);
          }
        }
      });
#pragma unroll
      for (int chunk = 0; chunk < kMostChunks; ++chunk) {
        if (chunk == chunks(layer)) break;
        SplitChunk(v[chunk], &turn);
      }
    }
    StoreOutputs();
  }

  // A row's chunk, of which four lanes have a part each, has its own power of
  // two (ScaleOf).
  __device__ __forceinline__ void SplitChunk(const float (&v)[kMatrixStep],
                                             Turn* turn) const {
    uint32_t most = 0;
#pragma unroll
    for (const float value : v) most = LargerMagnitude(most, value);
    most = max(most, __shfl_xor_sync(0xffffffff, most, 8));
    most = max(most, __shfl_xor_sync(0xffffffff, most, 16));
    const RowScale scale = ScaleOf(most);
    const int row = own_row();
    WaitFor(done_ + 8 * turn->stage, turn->parity ^ 1);
    if (own_step() == 0) factors(turn->stage)[row] = scale.factor;
    StoreHalves(v, scale.scale,
                halves(turn->stage) + own_step() * kStepBytes +
                    row / 8 * kTileBytes + row % 8 * 16);
    Arrive(ready_ + 8 * turn->stage);
    turn->Next(stream_.stages);
  }

  // The splitters store the last layer's outputs, too: the multipliers' code,
  // which has each sum in a register, would be long.
  __device__ __forceinline__ void StoreOutputs() const {
    const int last = chain_.count - 1;
    const ChainLayer& layer = chain_.layers[last];
    const int outputs = static_cast<int>(layer.shape.outputs);
    const int rows = static_cast<int>(min(int64_t{kRows}, images_ - first_));
    WaitFor(finished_, last % 2);
    int row = (threadIdx.x - kMultipliers) / outputs;
    int output = (threadIdx.x - kMultipliers) - row * outputs;
    const int step_rows = kSplitters / outputs;
    const int step = kSplitters - step_rows * outputs;
#pragma unroll 1
    while (row < rows) {
      out_[(first_ + row) * outputs + output] = Apply(
          layer.activation, values(last)[row * kChainValuePitch + output]);
      row += step_rows;
      output += step;
      if (output >= outputs) output -= outputs, ++row;
    }
  }

  // A chunk's sums in the tensor cores: of the high halves' products, and of
  // the others. A thread has, for each 8 images, two of one output and two of
  // the output 8 rows below.
  struct Sums {
    float large[kSums], small[kSums];
  };

  __device__ void MultiplyAll() const {
    // The weights' factors and biases do not depend on the kernel before.
    StoreColumns<kMultipliers>(chain_, columns());
    SyncGroup(1, kMultipliers);
    Turn started, done;
    const int first_tile = threadIdx.x / 128 * (kStreamOutputs / kMatrixTile);
    for (int layer = 0; layer < chain_.count; ++layer) {
      if (first_tile < chain_.layers[layer].shape.tiles) {
        float totals[kSums] = {};
        Multiply(layer, first_tile, &started, &done, totals);
        Finish(layer, totals);
      } else {
        for (int i = 0; i < chunks(layer); ++i) {
          WaitFor(ready_ + 8 * started.stage, started.parity);
          started.Next(stream_.stages);
          Arrive(done_ + 8 * done.stage);
          done.Next(stream_.stages);
        }
      }
      Arrive(finished_);
    }
  }

  // While a chunk's sums are taken out of the tensor cores, the next chunk is
  // multiplied: by the other warpgroup, and by this one if kAhead.
  __device__ __forceinline__ void Multiply(int layer, int first_tile,
                                           Turn* started, Turn* done,
                                           float (&totals)[kSums]) const {
    const int step_bytes =
        static_cast<int>(chain_.layers[layer].shape.tiles) * kWeightTileBytes;
    const auto start = [&](Sums* sums) {
      WaitFor(ready_ + 8 * started->stage, started->parity);
      // For the halves. In a thread that stores them the fence would wait for
      // its copies of later chunks, too.
      FenceAsyncProxy();
      Start(weights(started->stage) + first_tile * kWeightTileBytes, step_bytes,
            halves(started->stage), sums);
      started->Next(stream_.stages);
    };
    // What the tensor cores cut off when they add is of one chunk's sum.
    const auto take = [&](const Sums& sums) {
      const float* const own = factors(done->stage) + 2 * (lane() % 4);
#pragma unroll
      for (int i = 0; i < kSums; i += 4) {
        const auto two = *reinterpret_cast<const float2*>(own + 2 * i);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          totals[i + j] += (sums.large[i + j] + sums.small[i + j]) *
                           (j % 2 == 0 ? two.x : two.y);
        }
      }
      Arrive(done_ + 8 * done->stage);
      done->Next(stream_.stages);
    };
    int left = chunks(layer);
    if (!kAhead) {
#pragma unroll 1
      for (; left > 0; --left) {
        Sums sums;
        start(&sums);
        WaitForProducts<0>();
        take(sums);
      }
      return;
    }
    Sums a, b;
    start(&a);
#pragma unroll 1
    for (; left > 2; left -= 2) {
      start(&b);
      WaitForProducts<1>();
      take(a);
      start(&a);
      WaitForProducts<1>();
      take(b);
    }
    if (left == 2) {
      start(&b);
      WaitForProducts<1>();
      take(a);
      WaitForProducts<0>();
      take(b);
    } else {
      WaitForProducts<0>();
      take(a);
    }
  }

  // Starts a chunk's products, as a group. Steps of weights lie `step_bytes`
  // apart.
  static __device__ __forceinline__ void Start(const char* weights,
                                               int step_bytes,
                                               const char* images, Sums* sums) {
    uint32_t rows = SharedAddress(weights), columns = SharedAddress(images);
    FenceProducts();
#pragma unroll
    for (int s = 0; s < kChunkSteps; ++s) {
      const uint64_t high_rows = ColumnsAt<kWeightTileBytes>(rows);
      const uint64_t high = ColumnsAt<kTileBytes>(columns);
      const uint64_t low = ColumnsAt<kTileBytes>(columns + kTileBytes / 2);
      StartProduct(sums->small, high_rows, low, s > 0);
      StartProduct(sums->large, high_rows, high, s > 0);
      if constexpr (kParts == 2) {
        StartProduct(sums->small,
                     ColumnsAt<kWeightTileBytes>(rows + kWeightTileBytes / 2),
                     high);
      }
      rows += step_bytes;
      columns += kStepBytes;
    }
    CommitProducts();
  }

  // What is left is the activation, for those who read the values. Outputs
  // beyond the last are not used.
  __device__ __forceinline__ void Finish(int number,
                                         const float (&totals)[kSums]) const {
    const ChainLayer& layer = chain_.layers[number];
    const int outputs = static_cast<int>(layer.shape.outputs);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int output = threadIdx.x / 32 * 16 + half * 8 + lane() / 4;
      if (output >= outputs) break;
      const float2 own = columns()[number * kMostChainOutputs + output];
      float* const to =
          values(number) + lane() % 4 * 2 * kChainValuePitch + output;
#pragma unroll
      for (int i = 0; i < kSums / 2; ++i) {
        float value = totals[i / 2 * 4 + half * 2 + i % 2] * own.x;
        if (layer.bias != nullptr) value += own.y;
        to[(i / 2 * 8 + i % 2) * kChainValuePitch] = value;
      }
    }
  }

  const Chain& chain_;
  const ChainStream& stream_;
  char* const shared_;
  // Of stages, and of layers.
  const uint32_t ready_, done_, finished_;
  const int64_t first_, images_;
  const float* const in_;
  float* const out_;
};

#endif

// Rows of `in` begin at multiples of 16 bytes.
template <int kGroups, int kRows, int kParts>
__global__ void __launch_bounds__(ChainStream::Threads(kGroups, kRows), 1)
    StreamedChainKernel(const __grid_constant__ Chain chain,
                        const __grid_constant__ ChainStream stream,
                        int64_t images, const float* in, float* out) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  LetNextKernelStart();
  extern __shared__ __align__(128) char streamed_chain_shared[];
  __shared__ uint64_t
      barriers[StreamedChain<kGroups, kRows, kParts>::kBarriers];
  StreamedChain<kGroups, kRows, kParts>(streamed_chain_shared, barriers, chain,
                                        stream, images, in, out)
      .Run();
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_STREAM_CUH_
