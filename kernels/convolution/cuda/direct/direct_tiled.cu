// The parameter sweep: a direct kernel whose tile sizes are template
// parameters, and the instance of it that a sweep found to be the fastest.
//
// Idea. A block keeps a strip of one image (all columns, some rows, all input
// channels if they fit) in shared memory. A thread computes a register tile of
// outputs: `filters` filters by `columns` neighbouring columns in each of
// `rows` rows. For each row of the filter it loads columns + K - 1 inputs once
// and uses them for all K taps of that row, sliding the window over registers:
// no gathering, and K times fewer loads of inputs than the implicit matrix
// product has.
//
// Change against register_tiled
// - No gathering, and sizes known to the compiler where it pays: K and the
//   register tile. All others stay run-time values, so any layer is taken.
// - Blocks stay and go from image to image: the filters are loaded once, and
//   the next image's inputs are copied to a second buffer (cp.async) while this
//   one is computed.
// - With one input channel a thread computes all filters of its positions, one
//   group after another, with the weights in constant memory: every thread of
//   a warp needs the same weight at the same time, and the multiply-add takes
//   it from a uniform register, so that weights cost neither shared-memory
//   loads nor registers.
//
// What the sweep decides (//tools/sweep shows it for any layer)
// - filters x rows x columns of a thread: fewer loads per multiply-add against
//   registers, so against warps that hide each other's waiting; and the padding
//   of M, H and W. 29 columns are 4 x 8 with 10 % waste.
// - columns: four of them are one 16-byte store where the rows' length allows.
// - threads of a block, so rows of a strip: what two strips share is loaded
//   twice, and a smaller block leaves room for others.
//
// Cost. The tensors' own bytes, and K - 1 rows again for each further strip.
// Per filter row, a thread with 6 filters and 2 x 4 columns (K = 5) issues 240
// multiply-adds beside 19 vector loads, or 4 with constant weights.
//
// Bound. The multiply-add units on second layers; on first layers they and the
// writing of the output need about the same time.
//
// Measured on one H200, batch 10,000: fa17 0.45 ms, fa18 1.31 and 6.32, sp19
// 0.19 and 0.44, fa19 0.80 and 3.53, fa20 0.76 and 2.00: 31 to 39 TFLOP/s, of
// 67 that the data sheet promises, and 1.6 to 11.6 times as fast as cuDNN's
// fp32.
//
// Counters (ncu, fa19's layers). Fullest are the issue slots, 78 and 80 % used;
// the multiply-add pipes are 55 and 68 % busy, of which the definition's FLOPs
// need 49 and 52 (at 1.98 GHz) and padding most of the rest; DRAM is 60 and 8 %
// busy. Warps are ready: the longest stall is not selected (2.8 and 2.0 cycles
// per instruction) at 33 and 23 % occupancy. On the first layer neither
// arithmetic nor memory is full, and barriers come next (1.0).
//
// What did not help
// - Constant weights with several channels: fa19's second layer took 4.21 ms at
//   best. A block of threads that compute all filters has a larger tile, and
//   fewer of these fit into shared memory.
// - Unrolling the rows of the filter with weights in shared memory: the
//   compiler fetches all rows ahead and runs out of registers.
// - Finding a tile's place (64-bit divisions) per tile, and each input's place
//   (multiplications) per input: fa19's first layer took 1.29 ms. Blocks that
//   keep their place, and offsets that are counted along, made it 0.80.
// - Tiles of two columns, whose stores are consecutive where rows are 66 wide:
//   they load more often, 1.03 ms.
#include <cuda_pipeline_primitives.h>

#include "kernels/convolution/cuda/direct/direct_tiled.h"
#include "kernels/convolution/cuda/direct/plan.h"
#include "kernels/convolution/cuda/lib/constant_memory.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

// Taps of a filter row that are unrolled where K is not known to the compiler.
constexpr int kAnyTaps = 4;

// All of the constant memory that a program may declare.
constexpr int kConstantFloats = 16384;
__constant__ float constant_filters[kConstantFloats];
// Its users take turns.
ConstantMemoryTurns turns;

constexpr int VectorFloats(int count) {
  return count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1;
}

// kCount floats of shared memory, and what is needed to fill the last vector.
template <int kCount, int kFloats>
__device__ __forceinline__ void LoadVectors(const float* from, float* to) {
  using Vector = typename FloatVector<kFloats>::Type;
#pragma unroll
  for (int i = 0; i < kCount; i += kFloats) {
    const Vector vector = *reinterpret_cast<const Vector*>(from + i);
#pragma unroll
    for (int j = 0; j < kFloats; ++j) {
      to[i + j] = reinterpret_cast<const float*>(&vector)[j];
    }
  }
}

// Starts the copy of a tile's inputs, from its first one on, to shared memory.
template <int kFloats>
__device__ __forceinline__ void CopyInputs(const DirectPlan& plan,
                                           TileWalk walk, const float* from,
                                           int channels, int rows_left,
                                           int columns_left, float* to) {
  for (; walk.plane() < channels; walk.Advance(plan.steps)) {
    if (walk.row() < rows_left && walk.column() * kFloats < columns_left) {
      __pipeline_memcpy_async(to + walk.to(), from + walk.from(), 4 * kFloats);
    }
  }
}

// Orders the filters for constant memory: [group of `filters`][tap][filter].
__global__ void ArrangeKernel(const float* k, float* arranged, int M, int taps,
                              int filters, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int m = i / (filters * taps) * filters + i % filters;
  arranged[i] = m < M ? k[m * taps + i / filters % taps] : 0;
}

template <int kK, int kFilters, int kRows, int kColumns, int kThreads,
          bool kConstant>
constexpr DirectTile kTile = {kFilters,
                              kRows,
                              kColumns,
                              kThreads,
                              /*element_bytes=*/4,
                              kK > 0 ? VectorFloats(kColumns) : 1,
                              /*buffers=*/2,
                              kConstant};

// Blocks that a multiprocessor should hold, by the registers that the sums
// leave to a thread: 80 registers for up to 32 sums, 128 for up to 80.
template <int kSums, int kThreads>
constexpr int kBlocks = (kSums <= 32 ? 768 : 512) / kThreads;

// kK: K, or 0 for any.
template <int kK, int kFilters, int kRows, int kColumns, int kThreads,
          bool kConstant>
__global__ void __launch_bounds__(
    kThreads, kBlocks<kFilters * kRows * kColumns, kThreads>)
    DirectTiledKernel(const float* x, const float* k, float* y,
                      const DirectPlan plan) {
  constexpr DirectTile kT =
      kTile<kK, kFilters, kRows, kColumns, kThreads, kConstant>;
  constexpr int kTaps = kK > 0 ? kK : kAnyTaps;  // of a filter row at a time
  constexpr int kInputs = RoundUp(kColumns + kTaps - 1, kT.vector);
  // Constant weights are addressed by the unrolled tap.
  constexpr int kUnrolledRows = kConstant ? kK : 1;
  const int K = kK > 0 ? kK : plan.K;

  extern __shared__ __align__(16) float shared[];
  // Two buffers of inputs; of filters a second one only if they come in chunks.
  float* const shared_inputs = shared;
  float* const shared_filters = shared + 2 * plan.input_elements;
  DirectThread thread(plan, kT);

  const auto walk_inputs = [&] {
    return TileWalk(plan.steps, plan.W, int64_t{plan.H} * plan.W, plan.pitch,
                    plan.rows * plan.pitch);
  };
  const TileWalk first_walk = walk_inputs();
  const auto copy_inputs = [&](int64_t b, int chunk, int buffer) {
    // Found once where there are registers to keep it in.
    const TileWalk walk = kConstant ? first_walk : walk_inputs();
    const int c0 = chunk * plan.channels;
    const int channels = min(plan.channels, plan.C - c0);
    const float* const from =
        x + ((b * plan.C + c0) * plan.H + thread.tile_h) * plan.W +
        thread.tile_w;
    float* const to = shared_inputs + buffer * plan.input_elements;
    const int rows = plan.H - thread.tile_h;
    const int columns = plan.W - thread.tile_w;
    if (plan.steps.floats == 4) {
      CopyInputs<4>(plan, walk, from, channels, rows, columns, to);
    } else if (plan.steps.floats == 2) {
      CopyInputs<2>(plan, walk, from, channels, rows, columns, to);
    } else {
      CopyInputs<1>(plan, walk, from, channels, rows, columns, to);
    }
  };
  // To [channel][tap][filter], so that a thread's filters are one vector.
  const int block_filters = plan.threads_m * kFilters;
  const auto copy_filters = [&](int chunk, int buffer) {
    const int m0 = thread.filter - thread.m * kFilters;
    const int c0 = chunk * plan.channels;
    const int taps = min(plan.channels, plan.C - c0) * K * K;
    float* const to = shared_filters + buffer * plan.filter_elements;
    for (int i = threadIdx.x; i < block_filters * taps; i += blockDim.x) {
      const int tap = i % taps;
      const int m = i / taps;
      float* const element = to + tap * block_filters + m;
      if (m0 + m < plan.M) {
        __pipeline_memcpy_async(
            element, k + (int64_t{m0 + m} * plan.C + c0) * K * K + tap, 4);
      } else {
        *element = 0;
      }
    }
  };

  float sums[kFilters][kRows][kColumns];
  const auto clear_sums = [&] {
#pragma unroll
    for (int m = 0; m < kFilters; ++m) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kColumns; ++i) sums[m][r][i] = 0;
      }
    }
  };
  // `group` of filters: of those in constant memory.
  const auto compute = [&](int chunk, int buffer, int group) {
    const float* filters =
        shared_filters + (plan.chunks > 1 ? buffer * plan.filter_elements : 0) +
        thread.m * kFilters;
    int constant = group * plan.C * K * K * kFilters;
    const float* const inputs = shared_inputs + buffer * plan.input_elements +
                                thread.y * plan.pitch + thread.x * kColumns;
    const int channels = min(plan.channels, plan.C - chunk * plan.channels);
#pragma unroll 1
    for (int c = 0; c < channels; ++c) {
#pragma unroll kUnrolledRows
      for (int p = 0; p < K; ++p) {
        const float* const input_row =
            inputs + (c * plan.rows + p) * plan.pitch;
#pragma unroll 1
        for (int q0 = 0; q0 < K; q0 += kTaps) {
          float in[kRows][kInputs];
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            LoadVectors<kInputs, kT.vector>(
                input_row + r * plan.threads_y * plan.pitch + q0, in[r]);
          }
#pragma unroll
          for (int q = 0; q < kTaps; ++q) {
            if (kK == 0 && q0 + q >= K) break;
            float filter[kFilters];
            if constexpr (kConstant) {
#pragma unroll
              for (int m = 0; m < kFilters; ++m) {
                filter[m] =
                    constant_filters[constant + (p * K + q) * kFilters + m];
              }
            } else {
              LoadVectors<kFilters, VectorFloats(kFilters)>(filters, filter);
              filters += block_filters;
            }
#pragma unroll
            for (int m = 0; m < kFilters; ++m) {
#pragma unroll
              for (int r = 0; r < kRows; ++r) {
#pragma unroll
                for (int i = 0; i < kColumns; ++i) {
                  sums[m][r][i] += filter[m] * in[r][i + q];
                }
              }
            }
          }
        }
      }
      constant += K * K * kFilters;
    }
  };

  // Steps: every chunk of channels of every image. The inputs of the next step
  // are on their way while this one is computed.
  copy_inputs(thread.b, 0, 0);
  if constexpr (!kConstant) copy_filters(0, 0);
  __pipeline_commit();
  float* out = thread.Output(plan, kT, y);
  int buffer = 0;
  for (int64_t b = thread.b; b < plan.batch; b += thread.b_step) {
    if constexpr (!kConstant) clear_sums();
    for (int chunk = 0; chunk < plan.chunks; ++chunk) {
      const bool last_chunk = chunk + 1 == plan.chunks;
      const int64_t next_b = last_chunk ? b + thread.b_step : b;
      const int next_chunk = last_chunk ? 0 : chunk + 1;
      if (next_b < plan.batch) {
        copy_inputs(next_b, next_chunk, 1 - buffer);
        if constexpr (!kConstant) {
          if (plan.chunks > 1) copy_filters(next_chunk, 1 - buffer);
        }
      }
      __pipeline_commit();
      __pipeline_wait_prior(1);
      __syncthreads();
      if constexpr (kConstant) {
        // There is one chunk only, so a group's sums are whole.
        float* group_out = out;
        const int filters_left = thread.filters_left;
#pragma unroll 1
        for (int m = 0, group = 0; m < plan.M; m += kFilters, ++group) {
          clear_sums();
          compute(chunk, buffer, group);
          StoreTile(plan, thread, group_out, sums);
          group_out += int64_t{kFilters} * plan.H_out * plan.W_out;
          thread.filters_left -= kFilters;
        }
        thread.filters_left = filters_left;
      } else {
        compute(chunk, buffer, 0);
        if (last_chunk) StoreTile(plan, thread, out, sums);
      }
      // The next step but one copies into this step's buffer.
      __syncthreads();
      buffer = 1 - buffer;
    }
    out += thread.b_step * plan.M * plan.H_out * plan.W_out;
  }
}

using KernelPointer = void (*)(const float*, const float*, float*, DirectPlan);

struct Instance {
  int kernel_size;  // 0: any
  DirectTile tile;
  KernelPointer kernel;
  // TFLOP/s of what it computes on the H200, padding included: the sweep's,
  // about, on the layers that suit it.
  double rate;
};

template <int kK, int kFilters, int kRows, int kColumns, int kThreads,
          bool kConstant>
constexpr Instance MakeInstance(double rate) {
  return {kK, kTile<kK, kFilters, kRows, kColumns, kThreads, kConstant>,
          DirectTiledKernel<kK, kFilters, kRows, kColumns, kThreads, kConstant>,
          rate};
}

// Where the filters are.
constexpr bool kShared = false;
constexpr bool kConst = true;

// K; filters, rows and columns of a thread; threads of a block; filters; rate.
constexpr Instance kInstances[] = {
    MakeInstance<5, 4, 2, 4, 256, kShared>(36),
    MakeInstance<5, 6, 2, 4, 256, kShared>(41),
    MakeInstance<5, 8, 2, 4, 128, kShared>(33),
    MakeInstance<5, 8, 1, 6, 128, kShared>(40),
    MakeInstance<5, 8, 1, 8, 256, kShared>(40),
    MakeInstance<5, 12, 1, 4, 256, kShared>(40),
    MakeInstance<5, 4, 2, 4, 256, kConst>(38),
    MakeInstance<5, 6, 2, 4, 128, kConst>(35),
    MakeInstance<5, 6, 4, 2, 256, kConst>(30),
    MakeInstance<5, 6, 1, 6, 256, kConst>(34),
    MakeInstance<5, 10, 1, 4, 256, kConst>(33),
    MakeInstance<5, 12, 2, 2, 256, kConst>(30),
    MakeInstance<7, 4, 2, 8, 256, kShared>(42),
    MakeInstance<7, 6, 2, 4, 256, kShared>(38),
    MakeInstance<7, 8, 2, 4, 256, kShared>(36),
    MakeInstance<7, 8, 1, 6, 256, kShared>(39),
    MakeInstance<7, 8, 1, 8, 128, kShared>(44),
    MakeInstance<7, 8, 1, 10, 256, kShared>(38),
    MakeInstance<7, 12, 1, 4, 256, kShared>(37),
    MakeInstance<7, 4, 2, 4, 256, kConst>(39),
    MakeInstance<7, 4, 4, 2, 128, kConst>(37),
    MakeInstance<7, 6, 1, 6, 256, kConst>(34),
    MakeInstance<7, 12, 2, 2, 256, kConst>(37),
    MakeInstance<0, 4, 2, 4, 128, kShared>(24),
    MakeInstance<0, 8, 2, 4, 128, kShared>(33),
};
constexpr int kInstanceCount = sizeof(kInstances) / sizeof(kInstances[0]);

bool PlanFor(const Instance& instance, const Problem& problem,
             const DeviceLimits& limits, DirectPlan* plan) {
  if (instance.kernel_size != 0 &&
      instance.kernel_size != problem.kernel_size) {
    return false;
  }
  if (!MakeDirectPlan(instance.tile, problem, limits, plan)) return false;
  if (!instance.tile.constant_filters) return true;
  const int64_t filters = CeilDivide(problem.filters, instance.tile.filters) *
                          instance.tile.filters;
  return plan->chunks == 1 &&
         filters * problem.channels * plan->K * plan->K <= kConstantFloats;
}

// Multiply-adds that the threads do for one that counts.
double Padding(const Instance& instance, const DirectPlan& plan) {
  const DirectTile& tile = instance.tile;
  const double groups = tile.constant_filters ? CeilDivide(plan.M, tile.filters)
                                              : plan.filter_blocks;
  return groups * plan.strips_x * plan.strips_y * RoundUp(plan.threads(), 32) *
         tile.filters * tile.rows * tile.columns /
         (static_cast<double>(plan.M) * plan.H_out * plan.W_out);
}

class DirectTiled : public Kernel {
 public:
  DirectTiled(const Problem& problem, const Instance& instance)
      : Kernel(problem), instance_(instance) {}

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!PlanFor(instance_, problem_, limits, &plan_)) {
      return {"DirectTiled::Prepare", "the instance does not take the problem"};
    }
    if (instance_.tile.constant_filters) {
      RETURN_IF_FAILED(arranged_.Allocate(sizeof(float) * kConstantFloats));
    }
    return PrepareDirectLaunch(instance_.kernel, limits, plan_, &launch_);
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    DirectPlan plan = plan_;
    SetVectors(x, y, instance_.tile, launch_.threads, 4, &plan);
    if (!instance_.tile.constant_filters) return Launch(plan, x, k, y, stream);
    ConstantMemoryTurn turn(turns, stream);
    RETURN_IF_FAILED(turn.Begin());
    RETURN_IF_FAILED(CopyToConstantMemory(k, stream));
    RETURN_IF_FAILED(Launch(plan, x, k, y, stream));
    return turn.End();
  }

  Error Usage(DirectTiledUsage* usage) const {
    cudaFuncAttributes attributes;
    RETURN_IF_CUDA_ERROR(cudaFuncGetAttributes(&attributes, instance_.kernel));
    int threads_per_multiprocessor = 0;
    RETURN_IF_FAILED(AskDevice(cudaDevAttrMaxThreadsPerMultiProcessor,
                               &threads_per_multiprocessor));
    usage->threads = launch_.threads;
    usage->registers = attributes.numRegs;
    usage->spill_bytes = attributes.localSizeBytes;
    usage->shared_bytes = plan_.shared_bytes;
    usage->blocks = launch_.blocks_per_multiprocessor;
    usage->occupancy = static_cast<double>(launch_.blocks_per_multiprocessor) *
                       launch_.threads / threads_per_multiprocessor;
    usage->padding = Padding(instance_, plan_);
    return {};
  }

 private:
  Error Launch(const DirectPlan& plan, const float* x, const float* k, float* y,
               cudaStream_t stream) {
    instance_
        .kernel<<<launch_.blocks, launch_.threads, plan.shared_bytes, stream>>>(
            x, k, y, plan);
    return CheckLaunch("DirectTiledKernel");
  }

  Error CopyToConstantMemory(const float* k, cudaStream_t stream) {
    constexpr int kArrangeThreads = 256;
    const int filters = instance_.tile.filters;
    const int taps = plan_.C * plan_.K * plan_.K;
    const int count = RoundUp(plan_.M, filters) * taps;
    float* const arranged = arranged_.as<float>();
    ArrangeKernel<<<CeilDivide(count, kArrangeThreads), kArrangeThreads, 0,
                    stream>>>(k, arranged, plan_.M, taps, filters, count);
    RETURN_IF_FAILED(CheckLaunch("ArrangeKernel"));
    RETURN_IF_CUDA_ERROR(cudaMemcpyToSymbolAsync(
        constant_filters, arranged, sizeof(float) * count, 0,
        cudaMemcpyDeviceToDevice, stream));
    return {};
  }

  const Instance& instance_;
  DirectPlan plan_ = {};
  DirectLaunch launch_;
  Workspace arranged_;  // the filters on their way to constant memory
};

Kernel* MakeDirectTiled(const Problem& problem, Error* error) {
  return MakeDirectTiledInstance(ChooseDirectTiledInstance(problem), problem,
                                 error);
}

const char* Reject(const Problem& problem) {
  return ChooseDirectTiledInstance(problem) < 0 ? kTileTooLarge : nullptr;
}

}  // namespace

int DirectTiledInstances() { return kInstanceCount; }

DirectTiledParameters DirectTiledInstance(int instance) {
  const Instance& entry = kInstances[instance];
  return {entry.kernel_size,  entry.tile.filters, entry.tile.rows,
          entry.tile.columns, entry.tile.threads, entry.tile.constant_filters};
}

bool DirectTiledInstanceTakes(int instance, const Problem& problem) {
  DeviceLimits limits;
  DirectPlan plan;
  return !AskLimits(&limits).failed() &&
         PlanFor(kInstances[instance], problem, limits, &plan);
}

// The least time by padding and measured rate. The filters of one channel go
// to constant memory if they can.
int ChooseDirectTiledInstance(const Problem& problem) {
  DeviceLimits limits;
  if (AskLimits(&limits).failed()) return -1;
  int best = -1;
  double best_time = 0;
  for (const bool constant : {true, false}) {
    if (constant && problem.channels > 1) continue;
    for (int i = 0; i < kInstanceCount; ++i) {
      const Instance& instance = kInstances[i];
      DirectPlan plan;
      if (instance.tile.constant_filters != constant ||
          !PlanFor(instance, problem, limits, &plan)) {
        continue;
      }
      const double time = Padding(instance, plan) / instance.rate;
      if (best < 0 || time < best_time) best = i, best_time = time;
    }
    if (best >= 0) return best;
  }
  return best;
}

Kernel* MakeDirectTiledInstance(int instance, const Problem& problem,
                                Error* error) {
  Kernel* const kernel = new DirectTiled(problem, kInstances[instance]);
  *error = kernel->Prepare();
  return kernel;
}

Error AskDirectTiledUsage(int instance, const Problem& problem,
                          DirectTiledUsage* usage) {
  DirectTiled kernel(problem, kInstances[instance]);
  RETURN_IF_FAILED(kernel.Prepare());
  return kernel.Usage(usage);
}

extern const KernelVariant kDirectTiled;
const KernelVariant kDirectTiled = {
    "direct_tiled",
    AccuracyClass::kFp32,
    Track::kProduction,
    "Direct convolution from shared memory with a register tile per thread, "
    "its sizes and the place of the filters chosen by a sweep on the GPU.",
    "No gathering: a loaded row of inputs serves all taps of a filter row, "
    "copies overlap with arithmetic, and the tile's shape fits the layer.",
    Reject,
    MakeDirectTiled,
};

}  // namespace convlab::cuda
