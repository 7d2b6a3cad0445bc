// Few input channels: each warp for itself.
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
// Dealing. A block has a run of strips that follow each other in the output,
// and a warp takes the next when it is ready for it, so that all end together
// whatever their strips cost.
//
// Several channels. Their planes stand one after the other in the strip, with
// one scale, and an octet's sums take them in turn: operands and filters of one
// channel come from shared memory while the others wait there. With one channel
// a group's filters stay in registers for all octets.
//
// Filters of more than 7 rows. A step is 16 halves of one input row, which hold
// a row of 9 taps with 8 shifts, or of 11 with 4: nothing is lost to pairs, and
// a unit is 8 output columns.
//
// Change against tensor_split. Warps instead of groups of warps; the inputs of
// a warp's next strip are in registers while it multiplies; whole strips as
// pieces instead of lines of 128 bytes, and no barriers.
//
// Cost. Inputs are read rows + K - 1 for rows times, though all but once from
// the L2 cache; outputs are written once. Products are three times the
// definition's, padded from 25 to 48 taps (K = 5, rows of 8 and 6 of them),
// from 49 to 64 (K = 7) or from 81 to 144 (K = 9).
//
// Bound. Writing the output: 4.3 TB/s were measured for whole sectors of 32
// bytes, 3.3 to 3.8 for pieces of 1584 bytes that begin within one. mma.sync's
// 630 TFLOP/s alone would be 0.14 (fa17), 0.35 (fa18), 0.06 (sp19), 0.32 (fa19)
// and 0.16 ms (fa20); twice that with two channels, and 0.8 (fa18) and 0.35 ms
// (fa20) with K = 9.
//
// Measured on one H200, batch 10,000, medians in ms (and TB/s of inputs and
// outputs); errors are 1.0e-7 for K = 5 and 1.2e-7 for K = 7, 1.5e-7 and 1.9e-7
// with two channels and 2.0e-7 for K = 9:
//
//                    fa17        fa18        sp19        fa19        fa20
//   layer 1     0.32 (3.7)  0.72 (3.2)  0.165 (3.4) 0.65 (3.5)  0.38 (3.5)
//   whole_image 0.40        1.28        0.19        0.84        0.59
//   2 channels  0.63        1.56        0.33        1.33        0.84
//   tensor_wgmma 0.74       1.83        0.58        1.57        2.08
//   K = 9                   1.18                                0.73
//   tensor_split            1.84                                1.57
//
// 0.63 and 1.18 are of a prototype that loads late words as said below with
// 0.93 ms. More channels: with 3, fa19 1.84 (the prototype; tensor_wgmma 2.09)
// and sp19 0.45 (0.72); with 4, sp19 0.69 (0.72), but fa19 3.03 (2.10). Where
// tensor_wgmma's groups of filters are full it is faster with two, too: 16
// filters of 7 x 7 on 40 x 40, 0.46 instead of 0.56.
//
// Without products and stages written it took 0.30, 0.67, 0.16, 0.66 and 0.34
// ms, without stores 0.28, 0.68, 0.15, 0.65 and 0.36 (fa18 and fa19 in former
// shapes), and stores alone 0.49 (fa18), 0.12 (sp19) and 0.52 (fa19). So each
// hides most of the other, but not all.
//
// Counters (ncu, in the same order). L2 82, 73, 78, 80 and 81 % busy, DRAM 76,
// 65, 69, 73 and 71 %, tensor pipe 47, 49, 42, 48 and 43 %, issue slots 47, 50,
// 51, 49 and 55 %: nothing is full. DRAM reads the inputs once and nothing to
// fill up sectors that were written in part: 209 MB (fa18) and 197 (fa19) for
// inputs of 207 and 196. fa19's warps, in a former shape, spent 17 % of their
// time on issuing, 42 % on fixed latencies, mostly of products and branches,
// 11 % on the tensor pipe, 1 % on inputs and 0.3 % on the copy engine: an octet
// was 190 instructions, 36 of them products, and there are three warps to
// choose from.
//
// Counters of two channels (fa20's first layer, before the points about loads
// below): a quarter of a multiprocessor issues in 49 % of the cycles and
// has 2.75 warps, of which one multiplies at a time. So what counts is how long
// a warp takes for the rest; there are no registers for more warps.
//
// Predicted and measured. Units counted through a strip (without, fa17 took
// 0.38 and sp19 0.198 ms): 0.31 and 0.165 predicted, 0.32 and 0.18 measured.
// Longer pieces: 0.57 predicted for fa19 with pieces of two blocks, 0.70 to
// 0.84 measured, for larger stages leave fewer warps and larger strips do not
// fit into the registers for loads. Whole sectors, by rounding where pieces end
// (with wrong results): 0.66 predicted for fa19, 0.70 as before; without
// products and inputs 0.49 instead of 0.52. Strips taken when a warp is ready,
// not in turn: in turn, the 1584 warps always met the same strip of an image,
// since there are 4, 6 or 9 (sp19, fa18, fa19), and those of the last, which is
// smaller, ended early, fa18's first after 439 of 820 us; 0.74 (fa18) and 0.165
// (sp19) predicted, 0.75 and 0.165 measured instead of 0.80 and 0.18. DRAM read
// 271 MB then (fa18), for strips that share inputs had drifted apart. All of a
// strip's inputs loaded ahead: 0.72 for fa18 and, in another shape, 0.65
// instead of 0.70 for fa19.
//
// Several channels: 0.55 ms predicted for fa17 with two, since the products
// double, 0.63 measured; 1.2 for fa18, 1.56 measured; 0.28 for sp19, 0.33. K =
// 9: 1.2 to 1.4 predicted for fa18, 1.18 measured. What was learnt on the way,
// where fa20 with two channels began at 0.99 ms:
// - A register that two operands share is copied for each product anew, which
//   made 109 moves for 48 products; an exclusive or with a zero that the
//   compiler does not know makes 26 of them.
// - `condition ? *p : 0` becomes a branch, at whose end what it loaded is
//   waited for. A predicate within the instruction, and the next point: 1.13 to
//   0.93.
// - Words that do not fit into the registers are prefetched to L2, and asked
//   for many at a time, before those in registers are split. 20 of them instead
//   of 16, and one comparison less for each: 0.93 to 0.84.
// - One channel keeps its own loads: with those for several, when they still
//   were branches, it took 2 to 28 % longer.
// - Small products have sums of their own, or each would cut bits off the large
//   ones.
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
// registers of other warps. Strips in turn, but each time another strip of the
// image for a warp: 0 to 4 % slower, 12 % with fewer loads ahead. One counter
// for all blocks: no better. The next strip's number taken a strip earlier, or
// the first inputs loaded before the filters: 0 to 3 % slower. 14 to 16 warps
// of 128 registers: 4 to 80 % slower. Sums of their own for the small products,
// so that twice as many products are independent: 5 to 7 % slower. Rows whose
// distance the compiler knows: 0 to 3 % faster, for a kernel for each width.
#include <cstdint>
#include <utility>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/strips/mma_plan.h"
#include "kernels/convolution/cuda/strips/strips.cuh"

namespace convlab::cuda {
namespace {

#if __CUDA_ARCH__ >= 800

// A warp's walk over the items of its block, which follow each other: the warp
// takes the next when it is ready for it.
class StripWalk {
 public:
  // *taken, in shared memory, counts the items that were taken: one for each
  // warp at first.
  __device__ StripWalk(const StripsPlan& plan, int warp, int* taken)
      : taken_(taken) {
    const int of_image = plan.strips * plan.parts;
    const int64_t begin = blockIdx.x * plan.block_items;
    items_ = min(plan.block_items, plan.items() - begin);
    first_image_ = begin / of_image;
    first_rest_ = begin - first_image_ * of_image;
    GoTo(plan, warp);
  }
  __device__ __forceinline__ bool Done() const { return done_; }
  __device__ __forceinline__ void Advance(const StripsPlan& plan) {
    int item = 0;
    if (threadIdx.x % 32 == 0) item = atomicAdd(taken_, 1);
    GoTo(plan, __shfl_sync(0xffffffff, item, 0));
  }
  __device__ __forceinline__ StripItem Item(const StripsPlan& plan,
                                            int strip_rows, const float* x,
                                            float* y) const {
    return MakeStripItem(plan, strip_rows, image_, rest_, x, y);
  }

 private:
  __device__ __forceinline__ void GoTo(const StripsPlan& plan, int item) {
    const uint32_t of_image = plan.strips * plan.parts;
    const uint32_t rest = first_rest_ + item;
    const uint32_t images = rest / of_image;
    done_ = item >= items_;
    image_ = first_image_ + images;
    rest_ = rest - images * of_image;
  }

  int* taken_;
  int64_t first_image_, image_;
  int first_rest_, rest_;  // strips and parts of an image
  int items_;              // of the block
  bool done_;
};

// How many words a strip has: its rows, or as many of each channel's plane as
// the first strip has.
template <bool kOneChannel>
__device__ __forceinline__ int WordsOf(const StripsPlan& plan,
                                       const StripItem& item) {
  return kOneChannel ? item.input_rows * plan.pitch : plan.C * plan.plane_words;
}

// Word i of a strip with one channel, of those that it has.
__device__ __forceinline__ float2 LoadGlobalWord(const StripsPlan& plan,
                                                 const StripItem& item,
                                                 bool pairs, int i) {
  return pairs ? __ldg(reinterpret_cast<const float2*>(item.from) + i)
               : LoadWord(plan, item.from, item.inputs, false, i);
}

// The same with any channels, and zeros where there is no word. Without
// branches: the compiler waits for what was loaded before it leaves one.
__device__ __forceinline__ float2 LoadWordOrZeros(const StripsPlan& plan,
                                                  const StripItem& item,
                                                  bool pairs, int i) {
  const int c =
      min(static_cast<int>(SplitDivide(i, plan.plane_magic)), plan.C - 1);
  const float* const plane = item.from + c * (plan.H * plan.W);
  i -= c * plan.plane_words;
  const int words = item.input_rows * plan.pitch;
  if (pairs) return LoadPairIfBelow(i, words, plane + 2 * i);
  const int element =
      2 * i - plan.W % 2 * static_cast<int>(SplitDivide(i, plan.pitch_magic));
  return {LoadIfBelow(i, words, plane + element),
          LoadIfBelow(i < words ? element + 1 : item.inputs, item.inputs,
                      plane + element + 1)};
}

// A lane's words from word `first` of a strip on, 32 apart.
template <bool kOneChannel, int kCount>
__device__ __forceinline__ void LoadWords(const StripsPlan& plan,
                                          const StripItem& item, bool pairs,
                                          int first, int lane,
                                          float2 (&to)[kCount]) {
  const int words = WordsOf<kOneChannel>(plan, item);
  const auto load = [&](bool all_pairs, int i) -> float2 {
    if constexpr (!kOneChannel) {
      return LoadWordOrZeros(plan, item, all_pairs, i);
    }
    return i < words ? LoadGlobalWord(plan, item, all_pairs, i) : float2{0, 0};
  };
  if (pairs) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) to[j] = load(true, first + lane + 32 * j);
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j) to[j] = load(false, first + lane + 32 * j);
  }
}

// The first words of a strip to registers, the others to the L2 cache.
template <bool kOneChannel, int kLoads>
__device__ __forceinline__ void LoadAhead(const StripsPlan& plan,
                                          const StripItem& item, bool pairs,
                                          int lane, float2 (&ahead)[kLoads]) {
  LoadWords<kOneChannel>(plan, item, pairs, 0, lane, ahead);
  if constexpr (!kOneChannel) {
    constexpr int kLine = 16;  // words
    for (int i = 32 * kLoads + lane * kLine;
         i < WordsOf<kOneChannel>(plan, item); i += 32 * kLine) {
      const int c = SplitDivide(i, plan.plane_magic);
      const int element = min(2 * (i - c * plan.plane_words), item.inputs - 1);
      PrefetchToL2(item.from + c * (plan.H * plan.W) + element);
    }
  }
}

// Writes the first `count` floats of each of `filters` filters, which begin
// `pitch` apart in the stage, each as far from a multiple of 32 bytes as in the
// output. The stage may be written again after WaitForStage.
__device__ __forceinline__ void StoreStage(const float* stage, int pitch,
                                           float* to, int area, int filters,
                                           int count, int lane) {
#if __CUDA_ARCH__ >= 900
  FenceAsyncProxy();
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

// Adds what one channel gives to the sums of an octet, input row by input row:
// quad i of operands holds rows i and i + 1 if `wide`, or else rows 2 * i to
// 2 * i + 2, of which the second stands twice. The small products have sums of
// their own, or each would cut bits off. `filters` is the lane's first vector.
template <int kShape, int kS = kStripsShapes[kShape].rows / 2,
          int kNT = kStripsShapes[kShape].tiles_n>
__device__ __forceinline__ void MultiplyChannel(uint32_t in, uint32_t pitch,
                                                uint32_t low_offset,
                                                uint32_t filters, uint32_t zero,
                                                float (&sum)[kS][kNT][4],
                                                float (&small)[kS][kNT][4]) {
  constexpr StripsShape s = kStripsShapes[kShape];
  constexpr int kStride = s.wide ? 2 : 1;  // of quads, from pair to pair
  constexpr int kQuads = s.steps + kStride * (kS - 1);
  uint4 f[s.steps][kNT];
  uint32_t high[kQuads][4], low[kQuads][4];
  // What stands twice is copied in a way that the compiler cannot undo: it
  // would copy again for every product.
  const auto copy = [&](uint32_t v) { return v ^ zero; };
  if constexpr (s.wide) {
    high[0][0] = LoadShared<0>(in), high[0][2] = LoadShared<16>(in);
    low[0][0] = LoadShared<0>(in + low_offset);
    low[0][2] = LoadShared<16>(in + low_offset);
  } else {
    high[0][0] = LoadShared<0>(in), low[0][0] = LoadShared<0>(in + low_offset);
  }
#pragma unroll
  for (int i = 0; i < kQuads; ++i) {
    if (i < s.steps) {
#pragma unroll
      for (int n = 0; n < kNT; ++n) {
        f[i][n] = LoadShared4(filters + (i * kNT + n) * 512);
      }
    }
    if constexpr (s.wide) {
      in += pitch;
      high[i][1] = LoadShared<0>(in), high[i][3] = LoadShared<16>(in);
      low[i][1] = LoadShared<0>(in + low_offset);
      low[i][3] = LoadShared<16>(in + low_offset);
      if (i + 1 < kQuads) {
        high[i + 1][0] = copy(high[i][1]), high[i + 1][2] = copy(high[i][3]);
        low[i + 1][0] = copy(low[i][1]), low[i + 1][2] = copy(low[i][3]);
      }
    } else {
      in += pitch;
      high[i][1] = LoadShared<0>(in),
      low[i][1] = LoadShared<0>(in + low_offset);
      high[i][2] = copy(high[i][1]), low[i][2] = copy(low[i][1]);
      in += pitch;
      high[i][3] = LoadShared<0>(in),
      low[i][3] = LoadShared<0>(in + low_offset);
      if (i + 1 < kQuads) {
        high[i + 1][0] = copy(high[i][3]), low[i + 1][0] = copy(low[i][3]);
      }
    }
#pragma unroll
    for (int product = 0; product < 3; ++product) {
#pragma unroll
      for (int j = 0; j < kS; ++j) {
        const int step = i - kStride * j;
        if (step < 0 || step >= s.steps) continue;
#pragma unroll
        for (int n = 0; n < kNT; ++n) {
          const uint4& v = f[step][n];
          if (product == 0) MultiplyAdd(high[i], v.x, v.y, sum[j][n]);
          if (product == 1) MultiplyAdd(high[i], v.z, v.w, small[j][n]);
          if (product == 2) MultiplyAdd(low[i], v.x, v.y, small[j][n]);
        }
      }
    }
  }
}

#endif

constexpr int kStripsThreads = 32 * kStripsMostWarps;

// Shared memory: the arranged filters; then for each warp its stage, the high
// halves of its strip, and the low ones; then how many items were taken.
template <int kShape>
__global__ void __launch_bounds__(kStripsThreads, 1)
    StripsKernel(const float* __restrict__ x, const float* __restrict__ k,
                 const char* arranged, const int* filter_exponent,
                 float* __restrict__ y,
                 const __grid_constant__ StripsPlan plan) {
#if __CUDA_ARCH__ >= 800
  constexpr StripsShape s = kStripsShapes[kShape];
  constexpr int kR = s.rows, kS = kR / 2, kNT = s.tiles_n;
  constexpr int kSteps = s.steps, kShifts = s.shifts;
  constexpr int kFilters = s.filters(), kLoads = s.loads;
  constexpr bool kOneChannel = s.one_channel;
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
  int* const taken = reinterpret_cast<int*>(shared) + plan.filter_words() +
                     plan.warps * plan.warp_words();
  if (threadIdx.x == 0) *taken = plan.warps;
  const bool load_pairs =
      plan.W % 2 == 0 && reinterpret_cast<uintptr_t>(x) % 8 == 0;
  clear();
  WaitForKernelBefore();
  for (int i = threadIdx.x; i < plan.filter_words() / 4; i += blockDim.x) {
    shared[i] = reinterpret_cast<const uint4*>(arranged)[i];
  }
  const int filters_exponent = *filter_exponent;
  __syncthreads();

  const int strip_rows = plan.blocks * kR;
  StripWalk walk(plan, warp, taken);
  StripItem item;
  float2 ahead[kLoads];
  if (!walk.Done()) {
    LoadAhead<kOneChannel>(plan, walk.Item(plan, strip_rows, x, y), load_pairs,
                           lane, ahead);
  }

  const uint32_t pitch = plan.pitch * 4;
  const uint32_t low_offset = plan.image_words * 4;
  const int area = plan.H_out * plan.W_out;
  const bool store_pairs =
      plan.W_out % 2 == 0 && reinterpret_cast<uintptr_t>(y) % 8 == 0;
  const auto largest = [](uint32_t v) {
    v = __reduce_max_sync(0xffffffff, v);
    __syncwarp();
    return v;
  };
  int exponent = 5;  // of the strip before
  while (!walk.Done()) {
    item = walk.Item(plan, strip_rows, x, y);
    const int words = WordsOf<kOneChannel>(plan, item);
    const auto for_words = [&](const auto& put) {
      if constexpr (kOneChannel) {
#pragma unroll
        for (int j = 0; j < kLoads; ++j) {
          if (lane + 32 * j < words) put(lane + 32 * j, ahead[j]);
        }
#pragma unroll 4
        for (int i = lane + 32 * kLoads; i < words; i += 32) {
          put(i, LoadGlobalWord(plan, item, load_pairs, i));
        }
      } else {
        // Words that are late are under way while those in registers are split.
        constexpr int kLate = 20;  // of a lane, at a time
        const auto put_at = [&](int first, float2 v) {
          if (first < words) put(first + lane, v, first + lane < words);
        };
#pragma unroll 1
        for (int first = 32 * kLoads;; first += 32 * kLate) {
          float2 late[kLate];
          LoadWords<false>(plan, item, load_pairs, first, lane, late);
          if (first == 32 * kLoads) {
#pragma unroll
            for (int j = 0; j < kLoads; ++j) put_at(32 * j, ahead[j]);
          }
#pragma unroll
          for (int j = 0; j < kLate; ++j) put_at(first + 32 * j, late[j]);
          if (first + 32 * kLate >= words) break;
        }
      }
    };
    const auto plane = [&](int c) { return item.from + c * (plan.H * plan.W); };
    const bool scaled =
        SplitStrip(plan, plane, item.inputs, filters_exponent, lane, 32, high,
                   exponent, for_words, largest);
    walk.Advance(plan);
    if (!walk.Done()) {
      LoadAhead<kOneChannel>(plan, walk.Item(plan, strip_rows, x, y),
                             load_pairs, lane, ahead);
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
      if constexpr (kOneChannel) {
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
#pragma unroll
          for (int n = 0; n < kNT; ++n) {
            filters[i][n] = LoadShared4(group_filters + (i * kNT + n) * 512);
          }
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
        uint32_t in =
            image + 4 * (block * kR * plan.pitch + place * (kShifts / 2));
        float sum[kS][kNT][4] = {};
        if constexpr (kOneChannel) {
          StripOperands<kS + kSteps - 1> operands;
          operands.Load(in, pitch, low_offset);
          MultiplyOctet<kSteps, kS, kNT>(operands, filters, sum);
        } else {
          float small[kS][kNT][4] = {};
          uint32_t channel_filters = group_filters;
#pragma unroll 1
          for (int c = 0; c < plan.C; ++c) {
            MultiplyChannel<kShape>(in, pitch, low_offset, channel_filters,
                                    plan.zero, sum, small);
            in += 4 * plan.plane_words;
            channel_filters += kSteps * kNT * 512;
          }
#pragma unroll
          for (int j = 0; j < kS; ++j) {
#pragma unroll
            for (int n = 0; n < kNT; ++n) {
#pragma unroll
              for (int i = 0; i < 4; ++i) sum[j][n][i] += small[j][n][i];
            }
          }
        }
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
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeStripsPlan(problem_, limits.multiprocessors,
                        limits.shared_per_block, &plan_)) {
      return {"StripsConvolution::Prepare", "no strip fits"};
    }
    RETURN_IF_FAILED(AllowAllSharedMemory(
        reinterpret_cast<const void*>(Function(plan_.shape))));
    overlaps_ =
        MayOverlap(reinterpret_cast<const void*>(Function(plan_.shape)));
    return arranged_.Allocate(LayoutOf(plan_));
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    RETURN_IF_FAILED(arranged_.Arrange(k, stream));
    return LaunchOverlapping("StripsKernel", Function(plan_.shape), overlaps_,
                             plan_.thread_blocks, 32 * plan_.warps,
                             plan_.shared_bytes, stream, x, k, arranged_.data(),
                             arranged_.exponent(), y, plan_);
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutTensorCores(
            reinterpret_cast<const void*>(Function(0)))) {
      return reason;
    }
    if (problem.kernel_size < kStripsLeastKernelSize ||
        problem.kernel_size > kStripsMostKernelSize) {
      return "takes filters of 3 x 3 to 11 x 11";
    }
    if (problem.channels >
        kStripsMostSteps / StripsSteps(problem.kernel_size)) {
      return "takes few channels: at most 16, 10, 8, 3 and 2 for filters of up "
             "to 4, 6, 7, 9 and 11 rows";
    }
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    DeviceLimits limits;
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
    static constexpr FunctionPointer kTable[] = {StripsKernel<kShapes>...};
    return kTable[shape];
  }
  static FunctionPointer Function(int shape) {
    return FunctionOf(shape,
                      std::make_integer_sequence<int, kStripsShapeCount>());
  }

  StripsPlan plan_ = {};
  bool overlaps_ = false;
  ArrangedFilters arranged_;
};

}  // namespace

extern const KernelVariant kTensorStrips;
const KernelVariant kTensorStrips = {
    "tensor_strips",
    AccuracyClass::kFp32,
    Track::kProduction,
    "Layers with few input channels on tensor cores at float32's accuracy: "
    "each warp computes strips of rows by itself, and the copy engine writes "
    "them.",
    "Nothing waits for a barrier, and outputs leave in long pieces while the "
    "next are computed, so that writing to memory does not stop.",
    StripsConvolution::Reject,
    Make<StripsConvolution>,
    EstimateStripsNs,
};

}  // namespace convlab::cuda
