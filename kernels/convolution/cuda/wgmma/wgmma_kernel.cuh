// The convolution by Hopper's products of warpgroups: what tensor_wgmma, whose
// chapter says how it works and what was learnt, and wgmma_fp16 share.
//
// An operand has parts: two where it is split into high and low halves, which
// take three products, or one, its values rounded to halves, which takes one.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_WGMMA_KERNEL_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_WGMMA_KERNEL_CUH_

#include <cstdint>
#include <utility>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"

namespace convlab::cuda {

// Scales the filters, makes halves of them and brings them into the order in
// which products read them: [group][part][step][filter row][octet][half of the
// depth][filter][halves], where filter rows run downwards from the last and
// `vector_rows` - 1 rows of zeros stand before and after them. With two shifts
// there are twice as many octets, each of four filters: two pairs, each as it
// is and moved by a pixel, so that two lanes that lie side by side have outputs
// that do. *exponent_out becomes the power of two, or kNotScalable.
template <int kParts>
__global__ void ArrangeKernel(const float* k, uint32_t* arranged,
                              int* exponent_out,
                              const __grid_constant__ WgmmaPlan plan,
                              int octets, int shifts, int vector_rows,
                              bool wide) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  LetNextKernelStart();
  const uint32_t most = LargestOfBlock(k, plan.M * plan.C * plan.K * plan.K);
  const float scale = FilterScale(most, exponent_out);

  const int rows = plan.K + 2 * (vector_rows - 1);
  const int words =
      plan.steps * rows * shifts * octets * 64;  // of a group's high halves
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < plan.groups * words;
       i += gridDim.x * blockDim.x) {
    const int group = i / words, at = i % words;
    const int word = at % 4;
    const int filter = at / 4 % 8;
    const int depth = at / 32 % 2;
    const int octet = at / 64 % (octets * shifts);
    const int row =
        plan.K + vector_rows - 2 - at / 64 / (octets * shifts) % rows;
    const int step = at / 64 / (octets * shifts) / rows;
    const int shift = shifts == 1 ? 0 : filter / 2 % 2;
    const int64_t m = int64_t{group} * octets * 8 +
                      (shifts == 1 ? octet * 8 + filter
                                   : octet * 4 + filter / 4 * 2 + filter % 2);
    float v[2];
    for (int e = 0; e < 2; ++e) {
      // Which of the step's halves a lane loads: two words that lie side by
      // side, or four words apart.
      const int half =
          wide ? word * 4 + depth * 2 + e : depth * 8 + word * 2 + e;
      const int from = step * 16 + half - shift * plan.pixel_halves;
      const int c = from % plan.pixel_halves, q = from / plan.pixel_halves;
      const bool exists = from >= 0 && m < plan.M && c < plan.C && q < plan.K &&
                          row >= 0 && row < plan.K;
      v[e] = exists ? k[((m * plan.C + c) * plan.K + row) * plan.K + q] * scale
                    : 0.f;
    }
    uint32_t* const to = arranged + int64_t{group} * kParts * words + at;
    uint32_t low;
    Split(v[0], v[1], to[0], low);
    if constexpr (kParts == 2) to[words] = low;
  }
#endif
}

#if __CUDA_ARCH_FEAT_SM90_ALL

template <int kI>
struct Index {
  static constexpr int value = kI;
};
// f(Index<0>()) to f(Index<kCount - 1>()).
template <int kCount, typename F>
__device__ __forceinline__ void Unroll(const F& f) {
  if constexpr (kCount > 0) {
    Unroll<kCount - 1>(f);
    f(Index<kCount - 1>());
  }
}

// Slab `index` of the batch.
struct Slab {
  int64_t image;
  int first_row, rows;  // of the output
  // Its units, and how many of its first block belong to the slab before.
  int units, units_before;

  template <int kRows, bool kDirect>
  static __device__ __forceinline__ Slab At(const WgmmaPlan& plan, int index) {
    Slab slab;
    const int image = plan.slabs_divisor.Quotient(index);
    const int part = index - image * plan.slabs;
    const int first = part * plan.slab_units;
    int block = part * plan.slab_blocks, blocks = plan.slab_blocks;
    slab.image = image;
    slab.units = min(plan.slab_units, plan.units - first);
    slab.units_before = 0;
    if constexpr (kDirect) {
      block = plan.units_divisor.Quotient(first);
      slab.units_before = first - block * plan.block_units;
      blocks =
          plan.units_divisor.Quotient(slab.units_before + slab.units - 1) + 1;
    }
    slab.first_row = block * kRows;
    slab.rows = min((block + blocks) * kRows, plan.H_out) - slab.first_row;
    return slab;
  }
  __device__ const float* Input(const WgmmaPlan& plan, const float* x) const {
    return x + (image * plan.C * plan.H + first_row) * plan.W;
  }
  __device__ float* Output(const WgmmaPlan& plan, float* y, int m) const {
    return y + ((image * plan.M + m) * plan.H_out + first_row) * plan.W_out;
  }
  // WordInLine of that, where y has `word`.
  __device__ int OutputInLine(const WgmmaPlan& plan, int word, int m) const {
    const uint32_t row =
        (static_cast<uint32_t>(image) * plan.M + m) * plan.H_out + first_row;
    return (word + row * plan.W_out) % 32;
  }
};

// Where the stage has filter m of a phase, in words: as many words after a
// multiple of 32 as the target, since then the copy engine writes whole
// sectors.
__device__ __forceinline__ int StageOffset(const WgmmaPlan& plan, int target,
                                           int m) {
  return m * plan.stage_pitch +
         ((plan.merged
               ? target
               : target + static_cast<uint32_t>(m) * plan.H_out * plan.W_out) &
          31);
}
// Where p stands among the 32 words of 128 bytes.
__device__ __forceinline__ int WordInLine(const void* p) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(p) / 4 % 32);
}

// Where a channel's pixels come from: device memory or, if the image was
// brought ahead, shared memory. Two types, so that a load is the one memory's,
// its address one register or two, and all offsets are the instruction's.
struct GlobalPixels {
  const float* p;
  __device__ __forceinline__ void Advance(int64_t floats) { p += floats; }
  // The kOffset-th from here, if i < end, or 0: without it the register would
  // be taken from the kernel's beginning on, in case nothing is loaded.
  template <int kOffset>
  __device__ __forceinline__ float LoadIfBelow(int i, int end) const {
    float v;
    asm volatile(
        "{ .reg .pred below; setp.lt.s32 below, %2, %3; mov.b32 %0, 0; "
        "@below ld.global.f32 %0, [%1+%4]; }"
        : "=&f"(v)
        : "l"(p), "r"(i), "r"(end), "n"(kOffset * 4));
    return v;
  }
};
struct SharedPixels {
  uint32_t address;
  __device__ __forceinline__ void Advance(int64_t floats) {
    address += static_cast<uint32_t>(4 * floats);
  }
  template <int kOffset>
  __device__ __forceinline__ float LoadIfBelow(int i, int end) const {
    float v;
    asm volatile(
        "{ .reg .pred below; setp.lt.s32 below, %2, %3; mov.b32 %0, 0; "
        "@below ld.shared.f32 %0, [%1+%4]; }"
        : "=&f"(v)
        : "r"(address), "r"(i), "r"(end), "n"(kOffset * 4));
    return v;
  }
};

// kUnits units of kValues channels of a slab, of which `channels` exist, from
// `source` to `target` as scaled halves; the largest magnitude goes to `most`.
// Sixteen loads are on their way at a time. Channels beyond the last are copies
// of it: their filters are zeros. One part has no low halves.
template <int kParts, int kValues, int kUnits, int kThreads, typename Source>
__device__ __forceinline__ void ConvertChannels(Source source, int area,
                                                int channels, int pixels,
                                                int pixel_bytes, float scale,
                                                int tid, uint32_t target,
                                                uint32_t low_offset,
                                                uint32_t& most) {
  constexpr int kChannels = kUnits * kValues;
  constexpr int kAtOnce = 16 / kChannels;
  source.Advance(tid);
  target += tid * pixel_bytes;
#pragma unroll 1
  for (int left = pixels - tid; left > 0; left -= kThreads * kAtOnce) {
    float v[kAtOnce][kChannels];
    Source from = source;
    Unroll<kChannels>([&](auto c_index) {
      constexpr int c = decltype(c_index)::value;
      if (c > 0 && c < channels) from.Advance(area);
      Unroll<kAtOnce>([&](auto i_index) {
        constexpr int i = decltype(i_index)::value;
        v[i][c] = from.template LoadIfBelow<kThreads * i>(kThreads * i, left);
      });
    });
    source.Advance(kThreads * kAtOnce);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i, target += kThreads * pixel_bytes) {
      if (kThreads * i >= left) break;
#pragma unroll
      for (int unit = 0; unit < kUnits; ++unit) {
        if (unit > 0 && unit * kValues >= channels) break;
        uint32_t h[kValues / 2], l[kValues / 2];
#pragma unroll
        for (int j = 0; j < kValues / 2; ++j) {
          const float a = v[i][unit * kValues + 2 * j];
          const float b = v[i][unit * kValues + 2 * j + 1];
          most = max(most, max(Magnitude(a), Magnitude(b)));
          Split(a * scale, b * scale, h[j], l[j]);
        }
        const uint32_t to = target + unit * kValues * 2;
        if constexpr (kValues == 4) {
          StoreShared2(to, __uint_as_float(h[0]), __uint_as_float(h[1]));
          if constexpr (kParts == 2) {
            StoreShared2(to + low_offset, __uint_as_float(l[0]),
                         __uint_as_float(l[1]));
          }
        } else {
          StoreShared(to, __uint_as_float(h[0]));
          if constexpr (kParts == 2) {
            StoreShared(to + low_offset, __uint_as_float(l[0]));
          }
        }
      }
    }
  }
}

// The products of a tile for `steps` steps of 16 halves. A lane's two units
// begin in shared memory at `first`, the group's filters at `filters`. main
// becomes the sums of high * high, and of two parts small those of high * low
// and low * high; they may be the same. kSums are a vector's, in a thread.
template <int kShape, int kVectors, int kSums>
__device__ __forceinline__ void MultiplyTile(const WgmmaPlan& plan,
                                             const uint32_t (&first)[2],
                                             uint32_t filters, int steps,
                                             float (&main)[kVectors][kSums],
                                             float (&small)[kVectors][kSums]) {
  constexpr WgmmaShape kS = kWgmmaShapes[kShape];
  constexpr int kK = kS.kernel_size, kR = kS.rows, kV = kS.vector_rows;
  constexpr int kOctets = kS.octets, kShifts = kS.shifts;
  constexpr bool kWide = kS.wide;
  constexpr int kAhead = kS.ahead;
  constexpr int kParts = kS.parts;
  constexpr int kInputRows = kR + kK - 1;
  const uint32_t pitch = plan.pitch * 4;
  const uint32_t low_offset = plan.slab_words * 4;
  uint32_t in[2] = {first[0], first[1]};
  // Rows of halves, of each part: one whose products run, and one that waits
  // for them. Loads go to registers of their own, and from there by an
  // instruction that the compiler cannot leave out: products would wait for a
  // load to registers of theirs.
  uint32_t rows[2][2][4], next[kAhead][2][4];
  uint32_t at[2];
  // Of input row j, modulo the step's; it follows the last one.
  const auto load = [&](auto j_index, auto buffer_index) {
    constexpr int kBuffer = decltype(buffer_index)::value % kAhead;
    if constexpr (decltype(j_index)::value % kInputRows == 0) {
      at[0] = in[0], at[1] = in[1];
      in[0] += 32, in[1] += 32;
    } else {
      at[0] += pitch, at[1] += pitch;
    }
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const uint32_t from = at[e] + part * low_offset;
        if constexpr (kWide) {
          const uint2 words = LoadShared2(from);
          next[kBuffer][part][e] = words.x;
          next[kBuffer][part][e + 2] = words.y;
        } else {
          next[kBuffer][part][e] = LoadShared<0>(from);
          next[kBuffer][part][e + 2] = LoadShared<16>(from);
        }
      }
    }
  };
  const auto take = [&](uint32_t(&to)[2][4], auto buffer_index) {
    constexpr int kBuffer = decltype(buffer_index)::value % kAhead;
#pragma unroll
    for (int i = 0; i < 4 * kParts; ++i) {
      asm volatile("xor.b32 %0, %1, %2;"
                   : "=r"(to[i / 4][i % 4])
                   : "r"(next[kBuffer][i / 4][i % 4]), "r"(plan.zero));
    }
  };
  // Input row j of a step, in rows[kParity]. In the first step `step_adds` is
  // 0: a sum begins with its first product, whatever it was.
  const auto multiply = [&](auto j_index, auto parity_index, int step_adds) {
    constexpr int j = decltype(j_index)::value;
    constexpr int kParity = decltype(parity_index)::value % 2;
    constexpr int kRowBytes = kShifts * kOctets * 256;
    FenceProducts();
    Unroll<kVectors>([&](auto v_index) {
      constexpr int v = decltype(v_index)::value;
      constexpr int kFirst = v * kV;  // of its output rows
      if constexpr (j >= kFirst && j < kFirst + kV + kK - 1) {
        // Filter row j - kFirst and those before it.
        const uint32_t address =
            filters + (kK + kV - 2 - (j - kFirst)) * kRowBytes;
        const uint64_t high = ColumnsAt(address);
        const int adds = j == kFirst ? step_adds : 1;
        if constexpr (kParts == 2) {
          const uint64_t low = ColumnsAt(address + plan.group_bytes);
          StartProduct(small[v], rows[kParity][0], low, adds);
          StartProduct(main[v], rows[kParity][0], high, kS.one_sum ? 1 : adds);
          StartProduct(small[v], rows[kParity][1], high);
        } else {
          StartProduct(main[v], rows[kParity][0], high, adds);
        }
      }
    });
    CommitProducts();
    if constexpr (j + 1 == kInputRows) {
      filters += (kK + 2 * (kV - 1)) * kRowBytes;
    }
    // After the last step in vain.
    constexpr int kIndex = decltype(parity_index)::value;
    load(Index<j + kAhead>(), Index<kIndex + kAhead>());
    WaitForProducts<1>();
    take(rows[kParity ^ 1], Index<kIndex + 1>());
  };
  Unroll<kAhead>([&](auto i) { load(i, i); });
  take(rows[0], Index<0>());
  int step = steps;
#pragma unroll 1
  for (; step >= 2; step -= 2) {
    Unroll<2 * kInputRows>([&](auto i) {
      constexpr int kI = decltype(i)::value;
      multiply(Index<kI % kInputRows>(), Index<kI>(),
               kI < kInputRows ? step != steps : 1);
    });
  }
  if (step > 0) {
    Unroll<kInputRows>([&](auto j) { multiply(j, j, step != steps); });
  }
  WaitForProducts<0>();
}

#endif

// Shared memory: the arranged filters; slab_buffers times a slab's halves, part
// by part; raw_buffers images as they came; the stages, if there are any.
template <int kShape>
__global__ void __launch_bounds__(kWgmmaShapes[kShape].threads, 1)
    WgmmaKernel(const float* __restrict__ x, const float* __restrict__ k,
                const uint4* arranged, const int* filter_exponent,
                float* __restrict__ y, const __grid_constant__ WgmmaPlan plan) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  constexpr WgmmaShape kS = kWgmmaShapes[kShape];
  constexpr int kK = kS.kernel_size, kR = kS.rows, kV = kS.vector_rows;
  constexpr int kOctets = kS.octets, kConsumers = kS.consumers;
  constexpr bool kWide = kS.wide;
  constexpr bool kDirect = kS.direct;
  constexpr int kParts = kS.parts;
  constexpr int kVectors = kR / kV;
  constexpr bool kOneSum = kS.one_sum;
  constexpr int kShifts = kS.shifts;
  constexpr int kSums = kV * kShifts * kOctets * 4;  // of a vector, in a thread
  constexpr int kConsumerWarps = 4 * kConsumers;
  // Those that multiply a slab.
  constexpr int kSlabThreads = kS.own_slabs ? 128 : 32 * kConsumerWarps;
  constexpr int kConverterWarps = kS.converter_warps();
  constexpr int kConverterGroups = kS.converter_groups;
  constexpr int kGroupWarps = kConverterWarps / kConverterGroups;
  constexpr int kConverters = 32 * kGroupWarps;  // of a group
  constexpr int kGroupFilters = 8 * kOctets;
  constexpr int kMostBarriers = kS.most_barriers();

  extern __shared__ __align__(1024) uint4 shared[];
  __shared__ uint64_t barriers[5 * kMostBarriers];
  __shared__ int slab_exponent[kWgmmaMostBuffers];
  __shared__ uint32_t slab_most[kConverterGroups][3];
  const int lane = threadIdx.x % 32;
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  const int filter_vectors = plan.filter_bytes(kParts) / 16;
  uint32_t* const slabs = reinterpret_cast<uint32_t*>(shared + filter_vectors);
  float* const raws = reinterpret_cast<float*>(
      slabs + plan.slab_buffers * kParts * plan.slab_words);
  float* const stages = raws + plan.raw_buffers * plan.raw_words;
  // Barriers, of each kind as many as WgmmaShape::barriers says:
  //            says that            who arrives       who waits
  //   full     a slab is converted  its converters    consumers
  //   empty    it was read          consumers         converters
  //   staged   outputs are staged   consumers         the storing warp,
  //                                                   consumers a turn later
  //   stored   the stage was read   its first lane    consumers
  //   brought  an image came        the copy engine   converters
  const uint32_t full = SharedAddress(barriers);
  const uint32_t empty = full + 8 * kMostBarriers;
  const uint32_t staged = empty + 8 * kMostBarriers;
  const uint32_t stored = staged + 8 * kMostBarriers;
  const uint32_t brought = stored + 8 * kMostBarriers;
  // Also what no slab reaches: there it is multiplied by zero.
  for (int i = threadIdx.x; i < plan.slab_buffers * kParts * plan.slab_words;
       i += blockDim.x) {
    slabs[i] = 0;
  }
  const int slab_barriers = kS.barriers(plan.slab_buffers);
  const int stage_barriers = kS.barriers(plan.stages);
  if (threadIdx.x == 0) {
    for (int i = 0; i < slab_barriers; ++i) {
      InitBarrier(full + 8 * i, kConverters);
      InitBarrier(empty + 8 * i, kSlabThreads);
    }
    for (int i = 0; i < stage_barriers; ++i) {
      InitBarrier(staged + 8 * i, kSlabThreads);
      InitBarrier(stored + 8 * i, 1);
    }
    for (int i = 0; i < plan.raw_buffers; ++i) InitBarrier(brought + 8 * i, 1);
    for (auto& turns : slab_most) turns[0] = turns[1] = turns[2] = 0;
  }
  FenceAsyncProxy();
  __syncthreads();

  const int out_area = plan.H_out * plan.W_out;
  const int slab_count = static_cast<int>(plan.slab_count());

  if (warp >= kConsumerWarps) {
    GiveRegisters<kS.converter_registers()>();
    if (!kDirect && warp == kConsumerWarps + kConverterWarps) {
      // Stores what is staged.
      WgmmaRing ring(plan.stages, stage_barriers);
      for (int index = blockIdx.x; index < slab_count; index += gridDim.x) {
        const Slab slab = Slab::At<kR, kDirect>(plan, index);
        for (int group = 0; group < plan.groups;
             group += plan.phase_groups, ring.Advance()) {
          const int m0 = group * kGroupFilters;
          const int filters =
              min(plan.phase_groups * kGroupFilters, plan.M - m0);
          float* const out = slab.Output(plan, y, m0);
          const int target = WordInLine(out);
          const float* const stage = stages + ring.buffer * plan.stage_words;
          WaitFor(staged + 8 * ring.barrier, ring.parity);
          // Lanes write what is before the first and after the last 16 bytes.
          const int pieces = plan.merged ? 1 : filters;
          const int count =
              plan.merged ? filters * out_area : slab.rows * plan.W_out;
          for (int m = lane; m < pieces; m += 32) {
            float* const to = out + int64_t{m} * out_area;
            const float* const from = stage + StageOffset(plan, target, m);
            const int head = min(-WordInLine(to) & 3, count);
            const int body = (count - head) & ~3;
            for (int i = 0; i < head; ++i) to[i] = from[i];
            if (body > 0) {
              BulkStore(to + head, from + head, body * 4);
            }
            for (int i = head + body; i < count; ++i) to[i] = from[i];
          }
          CommitBulkStores();
          WaitForBulkReads();
          __syncwarp();
          if (lane == 0) Arrive(stored + 8 * ring.barrier);
        }
      }
      WaitForBulkStores();
      return;
    }
    // Converts slabs: a group of warps one, the next group the next.
    const int converter_group = (warp - kConsumerWarps) / kGroupWarps;
    if (converter_group >= kConverterGroups) return;
    const int tid =
        threadIdx.x - 32 * kConsumerWarps - converter_group * kConverters;
    uint32_t* const most_of_turn = slab_most[converter_group];
    const int first_slab = blockIdx.x + gridDim.x * converter_group;
    const int slab_step = gridDim.x * kConverterGroups;
    const int area = plan.H * plan.W;
    const int image_bytes = plan.C * area * 4;
    // Whole images come ahead by the copy engine, if there is room.
    const auto bring = [&](int index, int buffer) {
      if (tid != 0 || index >= slab_count) return;
      FenceAsyncProxy();
      StartLoad(SharedAddress(raws + buffer * plan.raw_words),
                x + int64_t{index} * plan.C * area, image_bytes,
                brought + 8 * buffer);
    };
    for (int i = converter_group; i < plan.raw_buffers; i += kConverterGroups) {
      bring(blockIdx.x + gridDim.x * i, i);
    }
    WgmmaRing ring(plan.slab_buffers, slab_barriers);
    WgmmaRing raw_ring(plan.raw_buffers, plan.raw_buffers);
    ring.Advance(converter_group), raw_ring.Advance(converter_group);
    int exponent = 5;  // of the slab before
    int filters_exponent = 0;
    int turn = 0;
    for (int index = first_slab; index < slab_count; index += slab_step,
             ring.Advance(kConverterGroups),
             raw_ring.Advance(kConverterGroups)) {
      const Slab slab = Slab::At<kR, kDirect>(plan, index);
      const int pixels = (slab.rows + kK - 1) * plan.W;
      if (plan.raw_words > 0) {
        WaitFor(brought + 8 * raw_ring.barrier, raw_ring.parity);
      } else if (index + slab_step < slab_count) {
        const Slab next = Slab::At<kR, kDirect>(plan, index + slab_step);
        const float* const p = next.Input(plan, x);
        const int next_pixels = (next.rows + kK - 1) * plan.W;
        constexpr int kLine = 32;  // floats
        for (int c = 0; c < plan.C; ++c) {
          for (int i = tid * kLine; i < next_pixels; i += kConverters * kLine) {
            PrefetchToL2(p + int64_t{c} * area + i);
          }
        }
      }
      uint32_t* const high = slabs + ring.buffer * kParts * plan.slab_words;
      const uint32_t target = SharedAddress(high);
      WaitFor(empty + 8 * ring.free_barrier(), ring.free_parity());
      bool scalable;
      for (;; turn = turn == 2 ? 0 : turn + 1) {
        const float scale = PowerOfTwo(exponent);
        uint32_t most = 0;
        constexpr int kValues = kS.values();
        constexpr int kManyUnits = WgmmaManyUnits(kValues);
        const bool many =
            WgmmaRounds(plan.C, pixels, kValues, kManyUnits, kConverters) <
            WgmmaRounds(plan.C, pixels, kValues, 1, kConverters);
        const auto convert = [&](auto source) {
          const auto by_units = [&](auto units_index) {
            constexpr int kChannels = decltype(units_index)::value * kValues;
#pragma unroll 1
            for (int c = 0; c < plan.C; c += kChannels) {
              ConvertChannels<kParts, kValues, kChannels / kValues,
                              kConverters>(
                  source, area, plan.C - c, pixels, plan.pixel_halves * 2,
                  scale, tid, target + 2 * c, plan.slab_words * 4, most);
              source.Advance(int64_t{kChannels} * area);
            }
          };
          if (many) {
            by_units(Index<kManyUnits>());
          } else {
            by_units(Index<1>());
          }
        };
        if (plan.raw_words > 0) {
          convert(SharedPixels{
              SharedAddress(raws + raw_ring.buffer * plan.raw_words)});
        } else {
          convert(GlobalPixels{slab.Input(plan, x)});
        }
        most = __reduce_max_sync(0xffffffff, most);
        if (lane == 0) atomicMax(&most_of_turn[turn], most);
        SyncGroup(2 + converter_group, kConverters);
        most = *static_cast<volatile uint32_t*>(&most_of_turn[turn]);
        // The next turn's is 0; the last turn's was read by all.
        if (tid == 0) most_of_turn[turn == 0 ? 2 : turn - 1] = 0;
        if (index == first_slab) {
          WaitForKernelBefore();
          filters_exponent = *filter_exponent;
        }
        const int right = most == 0 ? exponent : InputExponent(most);
        const int all = right + filters_exponent;
        scalable = IsFinite(most) && filters_exponent != kNotScalable &&
                   all >= -127 && all <= 126;
        if (!scalable || right == exponent) break;
        exponent = right;
      }
      turn = turn == 2 ? 0 : turn + 1;
      if (!scalable) {
        // No infinities or NaN, of which a product with zero makes NaN, where
        // the next slab leaves what was there.
        for (int i = tid; i < kParts * plan.slab_words; i += kConverters)
          high[i] = 0;
      }
      if (tid == 0)
        slab_exponent[ring.buffer] = scalable ? exponent : kNotScalable;
      Arrive(full + 8 * ring.barrier);
      if (plan.raw_words > 0) {
        // All have read this image, or SyncGroup would not have let us pass.
        bring(index + gridDim.x * plan.raw_buffers, raw_ring.buffer);
      }
    }
    return;
  }

  TakeRegisters<kS.consumer_registers()>();
  // Meanwhile the first slab is being converted.
  WaitForKernelBefore();
  for (int i = threadIdx.x; i < filter_vectors; i += 32 * kConsumerWarps) {
    shared[i] = arranged[i];
  }
  const int filters_exponent = *filter_exponent;
  FenceAsyncProxy();
  SyncGroup(1, 32 * kConsumerWarps);
  const int warpgroup = warp / 4;
  const int g = lane / 4, t = lane % 4;
  const uint32_t filters_address = SharedAddress(shared);
  WgmmaRing ring(plan.slab_buffers, slab_barriers);
  WgmmaRing stage_ring(plan.stages, stage_barriers);
  // A thread arrives at `staged` once a turn, so it waits until the stage's
  // turn before is complete. Who fills the stage waits until that turn was
  // stored, too: then `stored` is one phase behind at most, since who filled it
  // had seen the storing before, and its parity tells.
  constexpr bool kTogether = !kS.own_slabs;
  const auto wait_for_stage = [&](bool to_fill) {
    const int barrier = 8 * stage_ring.free_barrier();
    const int parity = stage_ring.free_parity();
    if constexpr (kTogether) WaitFor(staged + barrier, parity);
    if (to_fill) WaitFor(stored + barrier, parity);
  };
  // With slabs of its own a warpgroup leaves out the others' slabs; otherwise
  // all work on each, and `turn` is whose the next tile is.
  constexpr int kSkipped = kS.own_slabs ? kConsumers - 1 : 0;
  static_assert(!kDirect || kS.own_slabs, "the last tile is the warpgroup's");
  int turn = 0;
  int index = blockIdx.x;
  if constexpr (kS.own_slabs) {
    index += warpgroup * gridDim.x;
    ring.Advance(warpgroup), stage_ring.Advance(warpgroup);
  }
  for (; index < slab_count; index += gridDim.x * (1 + kSkipped),
                             ring.Advance(1 + kSkipped),
                             stage_ring.Advance(kSkipped)) {
    const Slab slab = Slab::At<kR, kDirect>(plan, index);
    const int tiles = (slab.units + kWgmmaUnits - 1) / kWgmmaUnits;
    const uint32_t slab_address =
        SharedAddress(slabs + ring.buffer * kParts * plan.slab_words);
    WaitFor(full + 8 * ring.barrier, ring.parity);
    const int exponent =
        *static_cast<volatile int*>(&slab_exponent[ring.buffer]);
    bool held = true;  // the slab, by this warpgroup
    for (int phase = 0; phase < plan.groups;
         phase += plan.phase_groups, stage_ring.Advance()) {
      const int phase_end = min(phase + plan.phase_groups, plan.groups);
      bool stage_free = false;
      const int m0 = phase * kGroupFilters;
      const int target = slab.OutputInLine(plan, WordInLine(y), m0);
      float* const stage = stages + stage_ring.buffer * plan.stage_words;
      for (int group = phase; group < phase_end; ++group) {
        for (int tile = 0; tile < tiles; ++tile) {
          if constexpr (!kS.own_slabs) {
            const bool mine = turn == warpgroup;
            turn = turn + 1 == kConsumers ? 0 : turn + 1;
            if (!mine) continue;
          }

          // Rows g and g + 8 of a warp's 16 are two units: kShifts columns of a
          // block of kR output rows. Those beyond the last are computed again,
          // and not stored.
          const auto locate = [&](int in_tile, int e, int* block, int* column) {
            const int unit = in_tile * kWgmmaUnits + warp % 4 * 16 + g + 8 * e;
            const int near = min(unit, slab.units - 1) + slab.units_before;
            *block = SplitDivide(near, plan.units_magic);
            *column = (near - *block * plan.block_units) * kShifts;
            return unit < slab.units;
          };
          // Of the phase, the lane's first filter.
          const int first_filter =
              (group - phase) * kGroupFilters + 2 * (t / kShifts);
          // And its others.
          const auto filter_of = [](int i) {
            return i / 2 * (8 / kShifts) + i % 2;
          };
          if (exponent == kNotScalable) {
            if (!kDirect && !stage_free) {
              stage_free = true;
              wait_for_stage(true);
            }
#pragma unroll 1
            for (int e = 0; e < 2; ++e) {
              int block, column;
              if (!locate(tile, e, &block, &column)) continue;
              column += t % kShifts;
              if (column >= plan.W_out) continue;
              const int at = block * kR;
#pragma unroll 1
              for (int i = 0; i < 2 * kOctets * kShifts; ++i) {
                const int m = first_filter + filter_of(i);
                if (m0 + m >= plan.M) continue;
                const int64_t first =
                    int64_t{m0 + m} * plan.C * plan.K * plan.K;
#pragma unroll 1
                for (int row = 0; row < min(kR, slab.rows - at); ++row) {
                  float* const to = kDirect
                                        ? slab.Output(plan, y, m0 + m)
                                        : stage + StageOffset(plan, target, m);
                  to[(at + row) * plan.W_out + column] = ExactOutput(
                      plan,
                      slab.Input(plan, x) + int64_t{at + row} * plan.W + column,
                      k + first);
                }
              }
            }
            continue;
          }

          uint32_t in[2];
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            int block, column;
            locate(tile, e, &block, &column);
            in[e] = slab_address + 4 * (block * kR * plan.pitch +
                                        column * (plan.pixel_halves / 2) +
                                        (kWide ? 2 * t : t));
          }
          uint32_t filters = __shfl_sync(
              0xffffffff, filters_address + group * kParts * plan.group_bytes,
              0);

          for (int pass = 0; pass < plan.passes; ++pass) {
            float main[kVectors][kSums], small[kVectors][kSums];
            const int pass_steps =
                min(plan.pass_steps, plan.steps - pass * plan.pass_steps);
            if constexpr (kOneSum) {
              MultiplyTile<kShape>(plan, in, filters, pass_steps, main, main);
            } else {
              MultiplyTile<kShape>(plan, in, filters, pass_steps, main, small);
            }
            in[0] += 32 * pass_steps, in[1] += 32 * pass_steps;
            filters +=
                pass_steps * (kK + 2 * (kV - 1)) * kShifts * kOctets * 256;
            // After its last products a slab is free: outputs take a while.
            if constexpr (kDirect) {
              if (pass + 1 == plan.passes && group + 1 == plan.groups &&
                  tile + 1 == tiles) {
                held = false;
                Arrive(empty + 8 * ring.barrier);
              }
            }

            if (!kDirect && !stage_free) {
              stage_free = true;
              wait_for_stage(true);
            }
            const float scale = PowerOfTwo(-(exponent + filters_exponent));
            // Computed again rather than kept in registers.
            int in_tile = tile, filter = first_filter;
            asm volatile("" : "+r"(in_tile), "+r"(filter));
            float* const out = kDirect ? slab.Output(plan, y, m0) : stage;
            // Whole: every filter of the group exists. Adds: to what is there.
            const auto store_sums = [&](auto whole, auto adds) {
              constexpr bool kWhole = decltype(whole)::value;
              constexpr bool kAdds = decltype(adds)::value;
#pragma unroll
              for (int e = 0; e < 2; ++e) {
                int block, column;
                const bool exists = locate(in_tile, e, &block, &column);
                column += t % kShifts;
                const int rows_left =
                    exists && column < plan.W_out ? slab.rows - block * kR : 0;
#pragma unroll
                for (int i = 0; i < 2 * kOctets * kShifts; ++i) {
                  const int m = filter + filter_of(i);
                  const int rows = kWhole || m0 + m < plan.M ? rows_left : 0;
                  float* to =
                      out + static_cast<uint32_t>(
                                (kDirect ? static_cast<uint32_t>(m) * out_area
                                         : StageOffset(plan, target, m)) +
                                block * kR * plan.W_out + column);
#pragma unroll
                  for (int row = 0; row < kR; ++row, to += plan.W_out) {
                    const int at = (row % kV * kShifts * kOctets + i / 2) * 4 +
                                   e * 2 + i % 2;
                    float sum = main[row / kV][at];
                    if constexpr (kParts == 2 && !kOneSum) {
                      sum += small[row / kV][at];
                    }
                    sum *= scale;
                    if (kAdds && row < rows) sum += *to;
                    if constexpr (kDirect) {
                      StoreIfBelow(row, rows, to, sum);
                    } else {
                      StoreSharedIfBelow(row, rows, SharedAddress(to), sum);
                    }
                  }
                }
              }
            };
            // One part has one pass (WgmmaPlan).
            if (kParts == 2 && pass > 0) {
              store_sums(Index<0>(), Index<1>());
            } else if ((group + 1) * kGroupFilters <= plan.M) {
              store_sums(Index<1>(), Index<0>());
            } else {
              store_sums(Index<0>(), Index<0>());
            }
          }
        }
      }
      // Also who had no tile says that its part of the phase is done.
      if constexpr (!kDirect) {
        if (!stage_free) wait_for_stage(false);
        FenceAsyncProxy();
        Arrive(staged + 8 * stage_ring.barrier);
      }
    }
    if (held) Arrive(empty + 8 * ring.barrier);
  }
#endif
}

// With operands of so many parts (WgmmaShape::parts).
template <int kParts>
class WgmmaConvolution : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeWgmmaPlan(problem_, kParts, limits.multiprocessors,
                       limits.shared_per_block, &plan_)) {
      return {"WgmmaConvolution::Prepare", "nothing fits"};
    }
    RETURN_IF_FAILED(
        AllowAllSharedMemory(reinterpret_cast<const void*>(Function())));
    overlaps_ = MayOverlap(reinterpret_cast<const void*>(Function()));
    blocks_ = plan_.slab_count() < limits.multiprocessors
                  ? plan_.slab_count()
                  : limits.multiprocessors;
    return arranged_.Allocate(kHeaderBytes + plan_.filter_bytes(kParts));
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const WgmmaShape& shape = kWgmmaShapes[plan_.shape];
    int* const exponent = arranged_.as<int>();
    char* const arranged = arranged_.as<char>() + kHeaderBytes;
    const int64_t most =
        CeilDivide(plan_.filter_bytes(kParts) / (4 * kParts), 512);
    const int blocks = static_cast<int>(most < 64 ? most : 64);
    ArrangeKernel<kParts><<<blocks, 512, 0, stream>>>(
        k, reinterpret_cast<uint32_t*>(arranged), exponent, plan_, shape.octets,
        shape.shifts, shape.vector_rows, shape.wide);
    RETURN_IF_FAILED(CheckLaunch("ArrangeKernel"));
    WgmmaPlan plan = plan_;
    // The copy engine takes multiples of 16 bytes.
    if (reinterpret_cast<uintptr_t>(x) % 16 != 0)
      plan.raw_words = plan.raw_buffers = 0;
    return LaunchOverlapping("WgmmaKernel", Function(), overlaps_, blocks_,
                             shape.threads, plan.shared_bytes, stream, x, k,
                             reinterpret_cast<const uint4*>(arranged), exponent,
                             y, plan);
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutWarpgroupProducts(
            reinterpret_cast<const void*>(FirstFunction()))) {
      return reason;
    }
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    DeviceLimits limits;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    if (!CompiledFor(problem.kernel_size)) {
      return "takes filters of 3 x 3, 5 x 5, 7 x 7 and 9 x 9";
    }
    WgmmaPlan plan;
    return MakeWgmmaPlan(problem, kParts, limits.multiprocessors,
                         limits.shared_per_block, &plan)
               ? nullptr
               : "the filters and a slab of all channels do not fit into "
                 "shared memory";
  }

 private:
  using FunctionPointer = void (*)(const float*, const float*, const uint4*,
                                   const int*, float*, WgmmaPlan);
  // Before the arranged filters: their exponent.
  static constexpr int kHeaderBytes = 256;

  static bool CompiledFor(int kernel_size) {
    for (const WgmmaShape& shape : kWgmmaShapes) {
      if (shape.kernel_size == kernel_size && shape.parts == kParts)
        return true;
    }
    return false;
  }

  // The shape's kernel, or null if it is of other parts.
  template <int kShape>
  static FunctionPointer FunctionOf() {
    if constexpr (kWgmmaShapes[kShape].parts == kParts) {
      return WgmmaKernel<kShape>;
    } else {
      return nullptr;
    }
  }
  template <int... kShapes>
  static FunctionPointer FunctionAt(int shape,
                                    std::integer_sequence<int, kShapes...>) {
    const FunctionPointer functions[] = {FunctionOf<kShapes>()...};
    return functions[shape];
  }
  static FunctionPointer FunctionOfShape(int shape) {
    return FunctionAt(shape,
                      std::make_integer_sequence<int, kWgmmaShapeCount>());
  }
  FunctionPointer Function() const { return FunctionOfShape(plan_.shape); }
  static FunctionPointer FirstFunction() {
    int shape = 0;
    while (kWgmmaShapes[shape].parts != kParts) ++shape;
    return FunctionOfShape(shape);
  }

  WgmmaPlan plan_ = {};
  bool overlaps_ = false;
  Workspace arranged_;
  int64_t blocks_ = 0;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_WGMMA_KERNEL_CUH_
