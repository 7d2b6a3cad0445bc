// One input channel: each warp for itself.
//
// Idea. A layer with one input channel writes 3 to 37 times what it reads and
// multiplies little, so that what counts is that the output never stops
// flowing. A warp computes a strip of output rows, over all columns and all
// filters, without ever waiting for another: the strip's inputs are in its own
// part of shared memory, split into halves as in tensor_split, and its outputs
// go to a stage there, from which the copy engine of compute capability 9.0
// writes each filter's rows as one piece, since they follow each other in the
// output. Meanwhile the warp goes on; barriers of the block there are none.
//
// The product. As tensor_split's row pairs: a row of m16n8k16 is a unit of 2 or
// 4 neighbouring output columns, a column is a filter moved by 0 to 3 pixels,
// and a step of the depth is 8 halves of two input rows. Eight units, an octet,
// in `rows` output rows are computed at a time. The units of all blocks of a
// strip are counted through, so that octets are full where a row has 6 units
// (fa17) or 11 (sp19).
//
// Change against tensor_split. Warps instead of groups of warps; the inputs of
// a warp's next strip are in registers while it multiplies; whole strips as
// pieces instead of lines of 128 bytes, and no barriers.
//
// Cost. Inputs are read rows + K - 1 for rows times, though all but once from
// the L2 cache; outputs are written once. Products are three times the
// definition's, padded from 25 to 48 taps (K = 5, rows of 8 and 6 of them) or
// from 49 to 64 (K = 7).
//
// Bound. Writing the output: 4.3 TB/s were measured for whole sectors of 32
// bytes, 3.3 to 3.8 for pieces of 1584 bytes that begin within one. mma.sync's
// 630 TFLOP/s alone would be 0.14 (fa17), 0.35 (fa18), 0.06 (sp19), 0.32 (fa19)
// and 0.16 ms (fa20).
//
// Measured on one H200, batch 10,000, medians in ms (and TB/s of inputs and
// outputs); errors are 1.0e-7 for K = 5 and 1.2e-7 for K = 7:
//
//                    fa17        fa18        sp19        fa19        fa20
//   layer 1     0.32 (3.7)  0.80 (2.9)  0.18 (3.1)  0.70 (3.3)  0.38 (3.5)
//   layer_sizes 0.40        1.28        0.19        0.84        0.59
//
// Prototypes without products took 0.30, 0.74, 0.16, 0.69 and 0.34 ms, those
// without stores 0.28, 0.75, 0.15, 0.61 and 0.35, with neither 0.26 (fa19) and
// 0.18 (fa20). So each hides most of the other, but not all.
//
// Counters (ncu, in the same order). L2 80, 69, 71, 76 and 79 % busy, DRAM 75,
// 62, 64, 67 and 70 %, tensor pipe 49, 45, 39, 46 and 43 %, issue slots 49, 46,
// 53, 52 and 55 %: nothing is full. Where stores come out slowest, they begin
// in the middle of a sector (fa18 and fa19, whose planes are 544.5 sectors);
// fa19 with K = 7, whose planes are whole lines, takes 0.62 ms.
//
// Predicted and measured. Units counted through a strip (without, fa17 took
// 0.38 and sp19 0.198 ms): 0.31 and 0.165 predicted, 0.32 and 0.18 measured.
// Longer pieces: 0.57 predicted for fa19 with pieces of two blocks, 0.70 to
// 0.84 measured, for larger stages leave fewer warps and larger strips do not
// fit into the registers for loads.
//
// Tried and left. The next strip by cp.async into a buffer of its own instead
// of registers: fa17 and sp19 3 % faster, fa19 1 %, but fa18 4 % and fa20 25 %
// slower, where the buffers take room from stages. Inputs loaded when they are
// needed, prefetched to L2: 1 to 19 % slower. High and low halves side by side,
// which are one load, but the tensor cores want them in other registers: 6 to
// 17 % slower than apart. Two stages for a warp: no better, for then there are
// fewer warps. Stages that stand in shared memory as their targets do modulo
// 128 bytes instead of 32: no better. Whole lines by lanes, 16 bytes each,
// instead of the copy engine: 7 to 52 % slower; GPUs that have none do so. A
// policy of early eviction from L2 for what is written: 3 % slower (fa17) to
// 2 % faster. Two octets at a time: slower, the sums and operands take the
// registers of other warps.
#include <cstdint>
#include <utility>

#include "kernels/convolution/cuda/direct_plan.h"
#include "kernels/convolution/cuda/kernel.h"
#include "kernels/convolution/cuda/split_halves.cuh"
#include "kernels/convolution/cuda/split_ptx.cuh"
#include "kernels/convolution/cuda/strips.cuh"
#include "kernels/convolution/cuda/strips_plan.h"

namespace convlab::cuda {
namespace {

#if __CUDA_ARCH__ >= 800

template <int kLoads>
__device__ __forceinline__ void LoadAhead(const StripsPlan& plan,
                                          const StripItem& item, bool pairs,
                                          int lane, float2 (&ahead)[kLoads]) {
  const int words = item.input_rows * plan.pitch;
  const auto load = [&](bool whole) {
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int i = lane + 32 * j;
      ahead[j] = i < words ? LoadWord(plan, item.from, item.inputs, whole, i)
                           : float2{0, 0};
    }
  };
  if (pairs) {
    load(true);
  } else {
    load(false);
  }
}

// Writes the first `count` floats of each of `filters` filters, which begin
// `pitch` apart in the stage, each as far from a multiple of 32 bytes as in the
// output. The stage may be written again after WaitForStage.
__device__ __forceinline__ void StoreStage(const float* stage, int pitch,
                                           float* to, int area, int filters,
                                           int count, int lane) {
#if __CUDA_ARCH__ >= 900
  FenceForBulkStores();
  __syncwarp();
  for (int i = lane; i < 4 * filters; i += 32) {
    const int m = i / 4;
    float* const out = to + int64_t{m} * area;
    StorePiece(stage + m * pitch + Skew(out), out, count, i % 4);
  }
  CommitBulkStores();
#else
  // Whole lines, of which a lane has a vector.
  __syncwarp();
  for (int m = 0; m < filters; ++m) {
    float* const out = to + int64_t{m} * area;
    const float* const in = stage + m * pitch + Skew(out);
    const int in_line =
        static_cast<int>(reinterpret_cast<uintptr_t>(out) / 4 % 32);
    for (int i = 4 * lane - in_line; i < count; i += 4 * 32) {
      if (i >= 0 && i + 4 <= count) {
        *reinterpret_cast<float4*>(out + i) =
            *reinterpret_cast<const float4*>(in + i);
      } else {
        for (int j = max(i, 0); j < min(i + 4, count); ++j) out[j] = in[j];
      }
    }
  }
#endif
}
__device__ __forceinline__ void WaitForStage() {
#if __CUDA_ARCH__ >= 900
  WaitForBulkReads();
#endif
  __syncwarp();
}

// The inputs of an octet as operands: output rows 2 * j and 2 * j + 1 with
// filter rows 2 * s and 2 * s + 1 take quad j + s.
template <int kQuads>
struct StripOperands {
  uint32_t high[kQuads][4], low[kQuads][4];

  // `in` is the lane's first word, rows are `pitch` bytes and the low halves
  // low_offset bytes on.
  __device__ __forceinline__ void Load(uint32_t in, uint32_t pitch,
                                       uint32_t low_offset) {
#pragma unroll
    for (int i = 0; i < 2 * kQuads + 1; ++i, in += pitch) {
      const uint32_t h = LoadShared<0>(in);
      const uint32_t l = LoadShared<0>(in + low_offset);
      if (i < 2 * kQuads) high[i / 2][i % 2] = h, low[i / 2][i % 2] = l;
      if (i % 2 == 1) high[i / 2][2] = h, low[i / 2][2] = l;
      if (i % 2 == 0 && i > 0) {
        high[i / 2 - 1][3] = h, low[i / 2 - 1][3] = l;
      }
    }
  }
};

// The small products first, whose sum loses least.
template <int kSteps, int kS, int kNT>
__device__ __forceinline__ void MultiplyOctet(
    const StripOperands<kS + kSteps - 1>& in,
    const uint4 (&filters)[kSteps][kNT], float (&sum)[kS][kNT][4]) {
#pragma unroll
  for (int product = 0; product < 3; ++product) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int j = 0; j < kS; ++j) {
#pragma unroll
        for (int n = 0; n < kNT; ++n) {
          const uint4& f = filters[s][n];
          if (product == 0) {
            MultiplyAdd(in.high[j + s], f.z, f.w, sum[j][n]);
          } else {
            MultiplyAdd(product == 1 ? in.low[j + s] : in.high[j + s], f.x, f.y,
                        sum[j][n]);
          }
        }
      }
    }
  }
}

#endif

constexpr int kStripsThreads = 32 * kStripsMostWarps;

// Shared memory: the arranged filters; then for each warp its stage, the high
// halves of its strip, and the low ones.
template <int kSteps, int kShifts, int kR, int kNT, int kLoads>
__global__ void __launch_bounds__(kStripsThreads, 1)
    StripsKernel(const float* __restrict__ x, const float* __restrict__ k,
                 const char* __restrict__ arranged,
                 const int* __restrict__ filter_exponent, float* __restrict__ y,
                 const __grid_constant__ StripsPlan plan) {
#if __CUDA_ARCH__ >= 800
  constexpr int kS = kR / 2;
  constexpr int kFilters = 8 * kNT / kShifts;
  extern __shared__ __align__(128) uint4 shared[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int g = lane / 4, t = lane % 4;
  uint32_t* const own = reinterpret_cast<uint32_t*>(shared) +
                        plan.filter_words() + warp * plan.warp_words();
  float* const stage = reinterpret_cast<float*>(own);
  uint32_t* const high = own + plan.stage_words;
  const auto clear = [&] {
    // Also what no strip reaches: there it is multiplied by zero.
    for (int i = lane; i < 2 * plan.image_words; i += 32) high[i] = 0;
  };
  for (int i = threadIdx.x; i < plan.filter_words() / 4; i += blockDim.x) {
    shared[i] = reinterpret_cast<const uint4*>(arranged)[i];
  }
  clear();
  const int filters_exponent = *filter_exponent;
  __syncthreads();

  const uint32_t pitch = plan.pitch * 4;
  const uint32_t low_offset = plan.image_words * 4;
  const int area = plan.H_out * plan.W_out;
  const bool load_pairs =
      plan.W % 2 == 0 && reinterpret_cast<uintptr_t>(x) % 8 == 0;
  const bool store_pairs =
      plan.W_out % 2 == 0 && reinterpret_cast<uintptr_t>(y) % 8 == 0;
  StripWalk<StripsPlan> walk(plan, int64_t{blockIdx.x} * plan.warps + warp,
                             int64_t{gridDim.x} * plan.warps);
  const auto largest = [](uint32_t v) {
    v = __reduce_max_sync(0xffffffff, v);
    __syncwarp();
    return v;
  };
  const int strip_rows = plan.blocks * kR;
  StripItem item;
  float2 ahead[kLoads];
  if (!walk.Done(plan)) {
    LoadAhead(plan, walk.Item(plan, strip_rows, x, y), load_pairs, lane, ahead);
  }
  int exponent = 5;  // of the strip before
  while (!walk.Done(plan)) {
    item = walk.Item(plan, strip_rows, x, y);
    const int words = item.input_rows * plan.pitch;
    const auto for_words = [&](const auto& put) {
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        if (lane + 32 * j < words) put(lane + 32 * j, ahead[j]);
      }
#pragma unroll 4
      for (int i = lane + 32 * kLoads; i < words; i += 32) {
        put(i, LoadWord(plan, item.from, item.inputs, load_pairs, i));
      }
    };
    const bool scaled =
        SplitStrip(plan, item.from, item.inputs, filters_exponent, lane, 32,
                   high, exponent, for_words, largest);
    walk.Advance(plan);
    if (!walk.Done(plan)) {
      LoadAhead(plan, walk.Item(plan, strip_rows, x, y), load_pairs, lane,
                ahead);
    }
    __syncwarp();
    if (!scaled) {
      ComputeExactly(plan, item.from, k, item.to, item.rows, plan.W_out,
                     item.first_group * kFilters,
                     min(item.end_group * kFilters, plan.M), lane, 32);
      clear();
      exponent = 5;
      __syncwarp();
      continue;
    }

    const float scale = PowerOfTwo(-(exponent + filters_exponent));
    const int units = (item.rows + kR - 1) / kR * plan.units;
    const uint32_t image = SharedAddress(high + t);
    for (int group = item.first_group; group < item.end_group; ++group) {
      uint4 filters[kSteps][kNT];
      const uint32_t group_filters =
          SharedAddress(shared + group * plan.filter_vectors + lane);
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
#pragma unroll
        for (int n = 0; n < kNT; ++n) {
          filters[s][n] = LoadShared4(group_filters + (s * kNT + n) * 512);
        }
      }
      float* const to = item.to + int64_t{group} * kFilters * area;
      // Lane 4 * g + t has columns 8 * n + 2 * t and the next of the product,
      // of unit g.
      float* lane_stage[kNT];
#pragma unroll
      for (int n = 0; n < kNT; ++n) {
        const int m = (8 * n + 2 * t) / kShifts;
        lane_stage[n] =
            stage + m * plan.stage_pitch + Skew(to + int64_t{m} * area);
      }
#pragma unroll 1
      for (int first = 0; first < units; first += 8) {
        // Beyond the last unit it is computed again, and not stored.
        const int unit = min(first + g, units - 1);
        const int block = SplitDivide(unit, plan.units_magic);
        const int place = unit - block * plan.units;
        StripOperands<kS + kSteps - 1> operands;
        operands.Load(
            image + 4 * (block * kR * plan.pitch + place * (kShifts / 2)),
            pitch, low_offset);
        float sum[kS][kNT][4] = {};
        MultiplyOctet<kSteps, kS, kNT>(operands, filters, sum);
        if (first == 0) WaitForStage();
        const int column = place * kShifts + 2 * t % kShifts;
        if (first + g >= units || column >= plan.W_out) continue;
        const int at = block * kR * plan.W_out + column;
        const bool second = column + 1 < plan.W_out;
#pragma unroll
        for (int n = 0; n < kNT; ++n) {
          float* out = lane_stage[n] + at;
          if (store_pairs) {
#pragma unroll
            for (int j = 0; j < kR; ++j, out += plan.W_out) {
              *reinterpret_cast<float2*>(out) = {
                  sum[j / 2][n][j % 2 * 2] * scale,
                  sum[j / 2][n][j % 2 * 2 + 1] * scale};
            }
          } else {
#pragma unroll
            for (int j = 0; j < kR; ++j, out += plan.W_out) {
              out[0] = sum[j / 2][n][j % 2 * 2] * scale;
              if (second) out[1] = sum[j / 2][n][j % 2 * 2 + 1] * scale;
            }
          }
        }
      }
      StoreStage(stage, plan.stage_pitch, to, area,
                 min(kFilters, plan.M - group * kFilters),
                 item.rows * plan.W_out, lane);
    }
  }
#if __CUDA_ARCH__ >= 900
  WaitForBulkStores();
#endif
#endif
}

class StripsConvolution : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DirectLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeStripsPlan(problem_, limits.multiprocessors,
                        limits.shared_per_block, &plan_)) {
      return {"StripsConvolution::Prepare", "no strip fits"};
    }
    RETURN_IF_FAILED(AllowAllSharedMemory(
        reinterpret_cast<const void*>(Function(plan_.shape))));
    const int64_t blocks = CeilDivide(plan_.items(), plan_.warps);
    blocks_ = blocks < limits.multiprocessors ? blocks : limits.multiprocessors;
    return arranged_.Allocate(LayoutOf(plan_));
  }

  Error Run(const float* x, const float* k, float* y) override {
    RETURN_IF_FAILED(arranged_.Arrange(k));
    Function(plan_.shape)<<<blocks_, 32 * plan_.warps, plan_.shared_bytes>>>(
        x, k, arranged_.data(), arranged_.exponent(), y, plan_);
    return CheckLaunch("StripsKernel");
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutTensorCores(
            reinterpret_cast<const void*>(Function(0)))) {
      return reason;
    }
    if (problem.channels != 1) return "takes one input channel";
    if (problem.kernel_size < kStripsLeastKernelSize ||
        problem.kernel_size > kStripsMostKernelSize) {
      return "takes filters of 3 x 3 to 7 x 7";
    }
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    DirectLimits limits;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    StripsPlan plan;
    return MakeStripsPlan(problem, limits.multiprocessors,
                          limits.shared_per_block, &plan)
               ? nullptr
               : "the filters and strips of a few rows for four warps do not "
                 "fit into shared memory";
  }

 private:
  using FunctionPointer = void (*)(const float*, const float*, const char*,
                                   const int*, float*, StripsPlan);

  template <int... kShapes>
  static FunctionPointer FunctionOf(int shape,
                                    std::integer_sequence<int, kShapes...>) {
    static constexpr FunctionPointer kTable[] = {
        StripsKernel<kStripsShapes[kShapes].steps,
                     kStripsShapes[kShapes].shifts, kStripsShapes[kShapes].rows,
                     kStripsShapes[kShapes].tiles_n,
                     kStripsShapes[kShapes].loads>...};
    return kTable[shape];
  }
  static FunctionPointer Function(int shape) {
    return FunctionOf(shape,
                      std::make_integer_sequence<int, kStripsShapeCount>());
  }

  StripsPlan plan_ = {};
  ArrangedFilters<true> arranged_;
  int64_t blocks_ = 0;
};

}  // namespace

extern const KernelVariant kTensorStrips;
const KernelVariant kTensorStrips = {
    "tensor_strips",
    AccuracyClass::kFp32,
    "Layers with one input channel on tensor cores at float32's accuracy: each "
    "warp computes strips of rows by itself, and the copy engine writes them.",
    "Nothing waits for a barrier, and outputs leave in long pieces while the "
    "next are computed, so that writing to memory does not stop.",
    StripsConvolution::Reject,
    Make<StripsConvolution>,
};

}  // namespace convlab::cuda
