// FP16 arithmetic, two multiply-adds per instruction.
//
// Idea. HFMA2 does two half-precision multiply-adds where FFMA does one in
// single precision. The kernel is direct_tiled's direct one with the filters
// in pairs: one operand holds two filters' weights for a tap, the other the
// input twice, which costs nothing, for the instruction can read either half
// of a register for both.
//
// Change against direct_tiled. Inputs and filters are rounded to half on
// their way to shared memory, inside the operation, so they take half the space
// there and half the loads. Inputs are therefore not copied asynchronously;
// each thread reads a few before it converts them, and the other blocks on the
// multiprocessor compute meanwhile.
//
// Accuracy. A sum in half precision has 11 bits: its error grows with every
// addition, and it overflows at 65,504. So products are summed in half over at
// most 28 taps, a few filter rows, and these sums are added up in float32. With
// random inputs n such additions err by about sqrt(n / 2) * 1.8e-4 of the
// result, 6.7e-4 for 28, beside the 2.5e-4 of rounding the operands. Pixels up
// to 255 are exact in half, and 28 of them with weights below 9 do not
// overflow.
//
// Cost. The tensors' own bytes. Per filter row (K = 5), a thread with 8 filters
// and 2 x 4 columns issues 160 HFMA2 and 9 loads; moving the 64 sums to float32
// costs 128 instructions per 25 taps, a sixth of the arithmetic.
//
// Bound. Arithmetic, at twice the FP32 rate less that sixth, on second layers;
// first layers are bound by writing the float32 output.
//
// Measured on one H200, batch 10,000: fa17 0.54 ms, fa18 1.88 and 6.25, sp19
// 0.27 and 0.57, fa19 1.21 and 3.60, fa20 1.01 and 2.24; error 7.8e-4
// to 8.3e-4. A negative result: no faster than direct_tiled in float32. Half
// the multiply-add instructions are left, but the inputs' conversion, the
// carrying over and their waiting stay, with twelve to sixteen warps on a
// multiprocessor to hide it. Raw pixels through the trained filters err by at
// most 0.08 in outputs of up to 29.
//
// Counters (ncu, fa19's layers). Not the output on the first layer, for DRAM is
// 38 % busy (7 on the second). Issue slots are 53 and 48 % used; the longest
// stall is long scoreboard (1.9 cycles per instruction), the inputs on their
// way, and on the second layer wait (1.2), at 22 and 15 % occupancy. There some
// unit that these counters do not name is 71 % busy, the multiply-add pipes
// together 38 %. If only half of these take HFMA2, which was not measured, its
// peak is no higher than FP32's.
#include <cuda_fp16.h>

#include "kernels/convolution/cuda/direct/plan.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 2;
constexpr int kColumns = 4;
// Taps of a filter row that are unrolled where K is not known to the compiler.
constexpr int kAnyTaps = 4;
// The longest sum in half precision.
constexpr int kMaxHalfSum = 28;
// Loads of inputs that a thread has under way.
constexpr int kLoads = 8;

template <int kK, int kFilters>
constexpr DirectTile kTile = {kFilters,
                              kRows,
                              kColumns,
                              kThreads,
                              /*element_bytes=*/2,
                              kK > 0 ? 4 : 1,
                              /*buffers=*/1,
                              /*constant_filters=*/false};

// kCount halves of shared memory, with loads of eight bytes if kVector is 4.
template <int kCount, int kVector>
__device__ __forceinline__ void LoadHalves(const __half* from, __half* to) {
#pragma unroll
  for (int i = 0; i < kCount; i += kVector) {
    if constexpr (kVector == 4) {
      const uint2 v = *reinterpret_cast<const uint2*>(from + i);
      const __half2 low = reinterpret_cast<const __half2&>(v.x);
      const __half2 high = reinterpret_cast<const __half2&>(v.y);
      to[i] = low.x, to[i + 1] = low.y, to[i + 2] = high.x, to[i + 3] = high.y;
    } else {
      to[i] = from[i];
    }
  }
}

// Pairs of filters from shared memory, four in one load if that many divide
// them, else two or one.
template <int kPairs>
__device__ __forceinline__ void LoadFilters(const __half* from, __half2* to) {
  constexpr int kVector = kPairs % 4 == 0 ? 4 : kPairs % 2 == 0 ? 2 : 1;
  using Vector = typename FloatVector<kVector>::Type;
#pragma unroll
  for (int i = 0; i < kPairs; i += kVector) {
    const Vector vector = *reinterpret_cast<const Vector*>(from + 2 * i);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      to[i + j] = reinterpret_cast<const __half2*>(&vector)[j];
    }
  }
}

// kK: K, or 0 for any.
template <int kK, int kFilters>
__global__ void __launch_bounds__(kThreads, kFilters < 8 ? 4 : 3)
    Half2Kernel(const float* x, const float* k, float* y,
                const DirectPlan plan) {
  constexpr DirectTile kT = kTile<kK, kFilters>;
  constexpr int kTaps = kK > 0 ? kK : kAnyTaps;
  constexpr int kInputs = RoundUp(kColumns + kTaps - 1, kT.vector);
  constexpr int kPairs = kFilters / 2;
  const int K = kK > 0 ? kK : plan.K;

  extern __shared__ __align__(16) __half shared[];
  __half* const shared_inputs = shared;
  __half* const shared_filters = shared + plan.input_elements;

  const DirectThread thread(plan, kT);

  const TileWalk first_walk(plan.steps, plan.W, int64_t{plan.H} * plan.W,
                            plan.pitch, plan.rows * plan.pitch);
  const auto copy_inputs = [&](int64_t b, int chunk) {
    const int c0 = chunk * plan.channels;
    const int channels = min(plan.channels, plan.C - c0);
    const int64_t area = int64_t{plan.H} * plan.W;
    const float* const from = x + (b * plan.C + c0) * area +
                              int64_t{thread.tile_h} * plan.W + thread.tile_w;
    const int rows_left = plan.H - thread.tile_h;
    const int columns_left = plan.W - thread.tile_w;
    TileWalk walk = first_walk;
    while (walk.plane() < channels) {
      float value[kLoads];
      int to[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i, walk.Advance(plan.steps)) {
        const bool inside = walk.plane() < channels && walk.row() < rows_left &&
                            walk.column() < columns_left;
        // The walk's own offsets are slower here: sp19's first layer took 0.31
        // ms with them instead of 0.27.
        to[i] = inside ? (walk.plane() * plan.rows + walk.row()) * plan.pitch +
                             walk.column()
                       : -1;
        if (inside) {
          value[i] = from[walk.plane() * area + int64_t{walk.row()} * plan.W +
                          walk.column()];
        }
      }
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        if (to[i] >= 0) shared_inputs[to[i]] = __float2half_rn(value[i]);
      }
    }
  };
  // To [channel][tap][filter].
  const int block_filters = plan.threads_m * kFilters;
  const auto copy_filters = [&](int chunk) {
    const int m0 = thread.filter - thread.m * kFilters;
    const int c0 = chunk * plan.channels;
    const int taps = min(plan.channels, plan.C - c0) * K * K;
    for (int i = threadIdx.x; i < block_filters * taps; i += blockDim.x) {
      const int tap = i % taps;
      const int m = i / taps;
      shared_filters[tap * block_filters + m] = __float2half_rn(
          m0 + m < plan.M ? k[(int64_t{m0 + m} * plan.C + c0) * K * K + tap]
                          : 0);
    }
  };

  float sums[kFilters][kRows][kColumns];
  __half2 half_sums[kPairs][kRows][kColumns] = {};
  int half_taps = 0;  // that half_sums hold
  const auto flush = [&] {
#pragma unroll
    for (int m = 0; m < kPairs; ++m) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kColumns; ++i) {
          sums[2 * m][r][i] += __low2float(half_sums[m][r][i]);
          sums[2 * m + 1][r][i] += __high2float(half_sums[m][r][i]);
          half_sums[m][r][i] = __half2();
        }
      }
    }
    half_taps = 0;
  };
  const auto compute = [&](int chunk) {
    const __half* filters = shared_filters + thread.m * kFilters;
    const __half* inputs =
        shared_inputs + thread.y * plan.pitch + thread.x * kColumns;
    const int channels = min(plan.channels, plan.C - chunk * plan.channels);
    for (int c = 0; c < channels; ++c) {
#pragma unroll 1
      for (int p = 0; p < K; ++p) {
        const __half* const input_row =
            inputs + (c * plan.rows + p) * plan.pitch;
#pragma unroll 1
        for (int q0 = 0; q0 < K; q0 += kTaps) {
          if (half_taps + kTaps > kMaxHalfSum) flush();
          half_taps += kTaps;
          __half in[kRows][kInputs];
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            LoadHalves<kInputs, kT.vector>(
                input_row + r * plan.threads_y * plan.pitch + q0, in[r]);
          }
#pragma unroll
          for (int q = 0; q < kTaps; ++q) {
            if (kK == 0 && q0 + q >= K) break;
            __half2 filter[kPairs];
            LoadFilters<kPairs>(filters, filter);
            filters += block_filters;
#pragma unroll
            for (int m = 0; m < kPairs; ++m) {
#pragma unroll
              for (int r = 0; r < kRows; ++r) {
#pragma unroll
                for (int i = 0; i < kColumns; ++i) {
                  half_sums[m][r][i] =
                      __hfma2(filter[m], __half2half2(in[r][i + q]),
                              half_sums[m][r][i]);
                }
              }
            }
          }
        }
      }
    }
  };

  if (plan.chunks == 1) copy_filters(0);
  float* out = thread.Output(plan, kT, y);
  for (int64_t b = thread.b; b < plan.batch; b += thread.b_step) {
#pragma unroll
    for (int m = 0; m < kFilters; ++m) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kColumns; ++i) sums[m][r][i] = 0;
      }
    }
    for (int chunk = 0; chunk < plan.chunks; ++chunk) {
      copy_inputs(b, chunk);
      if (plan.chunks > 1) copy_filters(chunk);
      __syncthreads();
      compute(chunk);
      __syncthreads();
    }
    flush();
    StoreTile(plan, thread, out, sums);
    out += thread.b_step * plan.M * plan.H_out * plan.W_out;
  }
}

using KernelPointer = void (*)(const float*, const float*, float*, DirectPlan);

struct Instance {
  int kernel_size;  // 0: any
  DirectTile tile;
  KernelPointer kernel;
};

template <int kK, int kFilters>
constexpr Instance kInstance = {kK, kTile<kK, kFilters>,
                                Half2Kernel<kK, kFilters>};

constexpr Instance kInstances[] = {
    kInstance<0, 4>, kInstance<0, 8>, kInstance<5, 4>, kInstance<5, 6>,
    kInstance<5, 8>, kInstance<7, 4>, kInstance<7, 6>, kInstance<7, 8>,
};

// The instance made for K, if there is one, that pads the filters least, where
// a thread's loading counts as much as two filters; null if no tile fits into
// shared memory.
const Instance* Choose(const Problem& problem, const DeviceLimits& limits,
                       DirectPlan* plan) {
  const auto cost = [&](const Instance& instance) {
    const int filters = instance.tile.filters;
    return CeilDivide(problem.filters, filters) * (filters + 2);
  };
  const Instance* best = nullptr;
  for (const Instance& instance : kInstances) {
    if (instance.kernel_size != 0 &&
        instance.kernel_size != problem.kernel_size) {
      continue;
    }
    if (!MakeDirectPlan(instance.tile, problem, limits, plan)) continue;
    if (best == nullptr || instance.kernel_size != best->kernel_size ||
        cost(instance) < cost(*best)) {
      best = &instance;
    }
  }
  if (best != nullptr) MakeDirectPlan(best->tile, problem, limits, plan);
  return best;
}

class Half2 : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    const Instance* const instance = Choose(problem_, limits, &plan_);
    if (instance == nullptr) return {"Half2::Prepare", "no tile fits"};
    kernel_ = instance->kernel;
    tile_ = instance->tile;
    return PrepareDirectLaunch(kernel_, limits, plan_, &launch_);
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    DirectPlan plan = plan_;
    SetVectors(x, y, tile_, launch_.threads, 1, &plan);
    kernel_<<<launch_.blocks, launch_.threads, plan.shared_bytes, stream>>>(
        x, k, y, plan);
    return CheckLaunch("Half2Kernel");
  }

 private:
  KernelPointer kernel_ = nullptr;
  DirectTile tile_ = {};
  DirectPlan plan_ = {};
  DirectLaunch launch_;
};

const char* Reject(const Problem& problem) {
  DeviceLimits limits;
  DirectPlan plan;
  // A device that cannot be asked fails in Prepare, with the reason.
  if (AskLimits(&limits).failed()) return nullptr;
  return Choose(problem, limits, &plan) == nullptr ? kTileTooLarge : nullptr;
}

}  // namespace

extern const KernelVariant kHalf2;
const KernelVariant kHalf2 = {
    "half2",
    AccuracyClass::kFp16,
    Track::kSpecialty,
    "Direct convolution in half precision, two filters per instruction, with "
    "sums of at most 28 products carried over to float32.",
    "An instruction does two multiply-adds, and inputs and filters take half "
    "the space and loads in shared memory.",
    Reject,
    Make<Half2>,
};

}  // namespace convlab::cuda
