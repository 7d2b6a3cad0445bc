// Few input channels on Hopper: each warpgroup for itself.
//
// Idea. As tensor_strips, but what computes a strip of output rows by itself is
// a warpgroup, so that the products are wgmma's: 64 pixels from registers by
// filters in shared memory, which the tensor cores read themselves. All filters
// of a group, with every shift, are columns of one product of 32 to 96 columns,
// for which a strip's inputs are loaded from shared memory once, not once for
// every 8 columns.
//
// The product. A row is a unit of 2 or 4 neighbouring output columns in `rows`
// output rows; a column is a filter moved to the right by 0 to 3 pixels and
// down by 0 to rows - 1; a step of the depth is 8 halves of two input rows. A
// filter of 7 rows takes four steps, one of 5 rows three, whether it is moved
// down by one or not, so that the second output row costs columns but no depth,
// and 12 filters of 7 x 7 make 48 columns where tensor_strips' columns would be
// 24. With fewer than 32 a product's rows take longer to come than the product.
//
// More depth. The steps of a channel are a pass, whose inputs are in registers;
// the passes of all channels add up in the same sums. Where filters have 8 or 9
// rows, a step is 16 halves of one input row, for units of 8 columns in one
// row, and three steps are a pass.
//
// Who does what. The copy engine brings a strip's inputs, a piece for each
// channel, while the one before is multiplied; the warpgroup's 128 threads
// split them, load 64 units at a time, multiply, and stage the sums; the copy
// engine writes each filter's rows as one piece. One barrier of the warpgroup
// after splitting, one before where a channel's inputs are no whole vectors,
// and two for each group of filters; warpgroups never wait for each other, and
// three or four of them hide each other's latencies.
//
// Change against tensor_strips. A warp issues one product for what took 6 to
// 12, and inputs are loaded as operands once for all filters of a group. They
// come by the copy engine, not through registers, of which four warpgroups have
// 128 for a thread.
//
// Cost. As tensor_strips: inputs rows + K - 1 for rows times, most of them from
// the L2 cache, outputs once. Of shared memory, 128 bytes at a time, a tile of
// 64 units takes 6 * octets for filters and 32 for inputs for each step of all
// channels, and 16 * octets for outputs. All filters stay there; strips have
// the rest.
//
// Bound. Reading inputs and writing outputs at 4.3 TB/s: 0.28 (fa17), 0.53
// (fa18), 0.13 (sp19), 0.53 (fa19) and 0.31 ms (fa20). Products alone would be
// 0.15, 0.20, 0.03, 0.16 and 0.12 ms, and twice that with two channels.
//
// Measured on one H200, batch 10,000, medians in ms (and TB/s of inputs and
// outputs); errors are 9.8e-8 for K = 5 and 1.2e-7 for K = 7:
//
//                      fa17        fa18        sp19        fa19        fa20
//   layer 1       0.33 (3.6)  0.63 (3.7)  0.15 (3.6)  0.63 (3.6)  0.41 (3.2)
//   tensor_strips 0.32        0.72        0.165       0.65        0.38
//   no products   0.32        0.63        0.15        0.63        0.35
//   no stores     0.28        0.51        0.13        0.40        0.39
//   neither       0.15        0.30        0.09        0.27        0.22
//   stores alone  0.27        0.53        0.11        0.52        0.24
//
// (without something, of these plans or of neighbouring ones; stores alone are
// without inputs, too). So products hide behind stores, except for fa20, whose
// four filters make 32 columns; and fa17's images of 72 units fill 64 and 8 of
// 64. Those two layers are left to tensor_strips. What remains is memory.
//
// What memory allows. A kernel that brings fa19's strips and writes its pieces
// by the copy engine, and computes nothing, takes 0.63 to 0.64 ms; 0.57 if its
// inputs come from the L2 cache, and 0.51 without any. Whole sectors instead of
// pieces that begin and end within one: 0.61 to 0.62, and 0.47 without inputs.
// The same bytes one after another: 0.61 to 0.63 by the copy engine, 0.59 by
// plain loads and stores of short blocks, 3.9 TB/s, where filling alone reaches
// 4.6. So a byte read for eleven written costs three times its share, and this
// kernel is within 8 % of what the memory does with such a mix.
//
// With two and three channels, and fa18 with 9 rows, where errors are 2.8e-7 to
// 6.1e-7:
//
//                      fa17        fa18        sp19        fa19        fa20
//   2 channels    0.54 (2.2)  0.96 (2.6)  0.20 (3.3)  0.79 (3.1)  0.71 (2.3)
//   tensor_strips 0.66        1.61        0.33        1.36        0.82
//   tensor_wgmma  0.68        1.72        0.47        1.25        1.90
//   no products   0.34        0.70        0.18        0.69        0.43
//   no stores     0.50        0.88        0.19        0.72        0.68
//   neither       0.15        0.33        0.10        0.31        0.28
//   3 channels    0.77        1.39        0.29        1.22        1.09
//   tensor_strips 0.88        2.20        0.45        1.84        1.37
//   9 rows                    0.80
//   tensor_strips             1.18
//
// So here products take longest, and stores hide behind them. tensor_wgmma is
// faster where its groups of 16 filters are full (fa20's second layer 0.98
// here, 0.55 there), and where the filters, 256 or 512 bytes for each step,
// leave strips little room: 64 filters of 3 x 3 x 3 take 3.3 ms on 32 x 32,
// there 0.87. fastest.cc has the rule.
//
// Counters (ncu: fa19, fa18, sp19, fa20): tensor pipe 30, 37, 26 and 33 % busy,
// shared memory 40, 59, 57 and 57 %, issue slots 32, 42, 51 and 58 %, the
// fabric between the two halves of the L2 cache 82, 82, 83 and 67 %, which is
// 90 % when a kernel only fills memory, at 4.3 TB/s. With two channels: tensor
// pipe 48, 50, 38 and 43 %, shared memory 68, 65, 69 and 67 %, issue slots 48,
// 40, 49 and 49 %, the fabric 73, 62, 74 and 57 %: nothing is full, and three
// or four warpgroups wait for their own products.
//
// Predicted and measured. From the bytes and their shapes, 0.30, 0.60, 0.14,
// 0.57 and 0.35 ms were predicted: 0.33, 0.63, 0.15, 0.63 and 0.41. Inputs of
// the strip after the next brought to the L2 cache: 2 % predicted, 1 % faster
// to 3 % slower measured. fa19 in strips of 12 rows took 0.70 where those of 14
// took 0.64, for the 396 warpgroups always met the same of an image's 6 strips
// and the last is half as high: hence plan.walkers, with which it takes 0.64
// too. Runs of strips for each block of threads, whose warpgroups take the next
// when they are ready, as in tensor_strips: 2 % faster (fa17) to 5 % slower
// (fa20).
//
// Several channels: 0.75 to 0.9 ms predicted for fa18 with two, from shared
// memory's traffic, which nearly doubles, 0.96 measured; 0.45 for fa17, 0.54; 9
// rows 0.65, 0.80: waiting costs more than predicted, for less hides it. The
// loop over passes costs one channel nothing: fa18 1 % faster, fa17 and fa20
// 1 % slower than kernels that have none. High halves loaded while the small
// products run: 3 to 5 % faster with 9 rows, 4 % faster to 1 % slower with
// channels.
//
// Tried and left. Small products of all passes first, for errors half as large:
// 7 to 19 % slower with channels, for high halves are loaded twice. Sums of
// their own for small products: as exact, up to 8 % slower, and registers for
// them with 48 columns only. The next pass's low halves loaded while the large
// products run: the compiler spills 100 bytes and more. Groups of 24 filters of
// 7 x 7: 6 to 11 % faster with two channels and 16 or 24 filters, 3 % slower
// with three and 24. Units of 4 columns for filters of 10 and 11 rows: 7 to 26
// % faster than tensor_strips with 12 or 24 filters, but 1.7 times as long
// with 4.
//
// Whole images by one warpgroup, strip after strip, with pieces that begin and
// end with a sector because what is left over waits in the stage: 0.68 to 0.72
// (fa19), with and without whole sectors; strips dealt in turn are better by
// 6 %. Stages that stand as their targets do modulo 128 bytes: 42 % fewer
// requests to L2, but 0 to 4 % slower, and the lanes' stores meet the same
// banks. Whole planes of four filters as pieces of 70 KB: 0.82, for products of
// 32 columns and two warpgroups. Two stages for a warpgroup: no better, with
// smaller strips or fewer warpgroups. Five warpgroups of 96 registers: 2 to 6 %
// slower. Inputs loaded ahead to registers: no better in a prototype for even
// widths, 10 to 40 % slower with branches for odd ones. Inputs loaded by the
// threads when they are wanted: 20 to 80 % slower.
//
// In a kernel that computes nothing: hints to the L2 cache, which inputs or
// outputs are to leave it first or last, 0 to 1 % faster or slower. Inputs
// brought to the L2 cache in bursts, by all multiprocessors at the same time,
// so that the memory changes from writing to reading less often: no gain, and 5
// to 10 % slower with bursts of more than 3 MB. Pieces written by threads: 10
// to 20 % slower.
#include <cstdint>
#include <utility>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/strips/strips.cuh"
#include "kernels/convolution/cuda/strips/wgmma_plan.h"

namespace convlab::cuda {
namespace {

// Of a group, the filter at a place of the product's columns and of the stage.
// The even ones come first: those of one octet mostly begin alike in sectors
// then, and lanes that store them meet different banks.
template <int kFilters>
__device__ __forceinline__ int FilterAt(int place) {
  constexpr int kEven = (kFilters + 1) / 2;
  return place < kEven ? 2 * place : 2 * (place - kEven) + 1;
}
template <int kFilters>
__device__ __forceinline__ int PlaceOf(int filter) {
  return filter / 2 + filter % 2 * ((kFilters + 1) / 2);
}

// Scales the filters, splits them and brings them into the order in which
// products read them: [group][channel][pass][high, low][step][octet]
// [half of the depth][column][halves]. *exponent_out becomes the power of two,
// or kNotScalable.
template <int kShape>
__global__ void ArrangeKernel(const float* k, uint32_t* arranged,
                              int* exponent_out,
                              const __grid_constant__ WgmmaStripsPlan plan) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  LetNextKernelStart();
  constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
  const uint32_t most = LargestOfBlock(k, plan.M * plan.C * plan.K * plan.K);
  const float scale = FilterScale(most, exponent_out);

  constexpr int kOctetFilters = 8 / kS.shifts;
  constexpr int kWords = kS.steps * kS.octets * 64;  // a pass's high halves
  const int passes = plan.filter_groups * plan.C * plan.passes;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < passes * kWords;
       i += gridDim.x * blockDim.x) {
    const int at = i % kWords;
    const int pass = i / kWords % plan.passes;
    const int c = i / kWords / plan.passes % plan.C;
    const int group = i / kWords / plan.passes / plan.C;
    const int word = at % 4;
    const int column = at / 4 % 8;
    const int depth = at / 32 % 2;
    const int octet = at / 64 % kS.octets;
    const int step = at / 64 / kS.octets;
    // An octet is some filters with every shift, moved down by a row.
    const int m = group * kS.filters() +
                  FilterAt<kS.filters()>(octet / kS.rows * kOctetFilters +
                                         column / kS.shifts);
    const int row = kS.wide ? pass * kS.steps + step : 2 * step + depth;
    const int p = row - octet % kS.rows;
    float v[2];
    for (int e = 0; e < 2; ++e) {
      const int q =
          (kS.wide ? 8 * depth : 0) + 2 * word + e - column % kS.shifts;
      const bool exists =
          m < plan.M && p >= 0 && p < plan.K && q >= 0 && q < plan.K;
      v[e] = exists ? k[((int64_t{m} * plan.C + c) * plan.K + p) * plan.K + q] *
                          scale
                    : 0.f;
    }
    uint32_t* const to = arranged + i / kWords * (2 * kWords) + at;
    Split(v[0], v[1], to[0], to[kWords]);
  }
#endif
}

#if __CUDA_ARCH_FEAT_SM90_ALL

constexpr uint32_t kAllLanes = 0xffffffff;

// The 128 threads that multiply together.
class Warpgroup {
 public:
  // `most` is the warpgroup's own.
  __device__ __forceinline__ Warpgroup(uint32_t (*most)[4])
      : index_(__shfl_sync(kAllLanes, threadIdx.x / 128, 0)),
        thread_(threadIdx.x % 128),
        most_(most) {}
  __device__ __forceinline__ int thread() const { return thread_; }

  __device__ __forceinline__ void Sync() const { SyncGroup(1 + index_, 128); }

  // The largest v of all threads.
  __device__ __forceinline__ uint32_t Largest(uint32_t v) {
    v = __reduce_max_sync(kAllLanes, v);
    // Whoever still reads the last one's is not waited for.
    uint32_t* const most = most_[turn_];
    turn_ ^= 1;
    if (thread_ % 32 == 0) most[thread_ / 32] = v;
    Sync();
    return max(max(most[0], most[1]), max(most[2], most[3]));
  }

 private:
  int index_, thread_, turn_ = 0;
  uint32_t (*most_)[4];
};

// A warpgroup's walk over its items, `step` apart.
class StripWalk {
 public:
  __device__ StripWalk(const WgmmaStripsPlan& plan, int64_t first,
                       int64_t step) {
    const int of_image = plan.strips * plan.parts;
    image_ = first / of_image;
    rest_ = first - image_ * of_image;
    image_step_ = step / of_image;
    rest_step_ = step - image_step_ * of_image;
  }
  __device__ __forceinline__ bool Done(const WgmmaStripsPlan& plan) const {
    return image_ >= plan.batch;
  }
  __device__ __forceinline__ void Advance(const WgmmaStripsPlan& plan) {
    image_ += image_step_, rest_ += rest_step_;
    if (rest_ >= plan.strips * plan.parts) {
      rest_ -= plan.strips * plan.parts, ++image_;
    }
  }
  __device__ __forceinline__ StripItem Item(const WgmmaStripsPlan& plan,
                                            const float* x, float* y) const {
    return MakeStripItem(plan, plan.strip_rows, image_, rest_, x, y);
  }

 private:
  int64_t image_, image_step_;
  int rest_, rest_step_;  // strips and parts of an image
};

// The inputs of a strip and a channel as whole vectors of 16 bytes, which the
// copy engine takes, and what is left before and after them.
struct Vectors {
  const float* from;
  int inputs;
  int skew;  // where the first float stands among those of a vector
  int head;  // floats before the first vector

  __device__ __forceinline__ Vectors(const WgmmaStripsPlan& plan,
                                     const StripItem& item, int c)
      : from(item.from + c * (plan.H * plan.W)),
        inputs(item.inputs),
        skew(static_cast<int>(reinterpret_cast<uintptr_t>(from) / 4 % 4)),
        head(min(-skew & 3, inputs)) {}
  __device__ __forceinline__ const float* first() const { return from + head; }
  __device__ __forceinline__ int bytes() const {
    return ((inputs - head) & ~3) * 4;
  }
  __device__ __forceinline__ int tail() const { return head + bytes() / 4; }
  __device__ __forceinline__ bool whole() const {
    return bytes() == inputs * 4;
  }
};

// The products of a tile: 16 units of a warp, of which the lane has rows g and
// g + 8, that begin at in[0] and in[1], by the filters of a group. A pass's
// small products come first, whose sum loses least; meanwhile the large ones'
// inputs are loaded.
template <int kShape, int kSums>
__device__ __forceinline__ void MultiplyTile(const WgmmaStripsPlan& plan,
                                             const uint32_t (&in)[2],
                                             uint32_t low_offset,
                                             uint64_t filters,
                                             float (&sum)[kSums]) {
  constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
  constexpr int kSteps = kS.steps;
  constexpr int kStep = kSums * 64 >> 4, kLow = kSteps * kStep;
  const uint32_t pitch = plan.pitch * 4;
  uint32_t from[2] = {in[0], in[1]};
  const auto load = [&](uint32_t offset, uint32_t(&to)[kSteps][4]) {
    uint32_t at[2] = {from[0] + offset, from[1] + offset};
    // Or else the compiler has registers for all rows' addresses.
    const auto next_row = [&](int e) {
      asm volatile("add.u32 %0, %0, %1;" : "+r"(at[e]) : "r"(pitch));
    };
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          to[s][2 * half + e] = kS.wide && half == 1 ? LoadShared<16>(at[e])
                                                     : LoadShared<0>(at[e]);
          if (!kS.wide || half == 1) next_row(e);
        }
      }
    }
  };
  const auto start = [&](const uint32_t(&rows)[kSteps][4], int offset) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      StartProduct(sum, rows[s], filters + (offset + s * kStep));
    }
  };
#pragma unroll
  for (float& one : sum) one = 0;
  int of_channel = 0;
#pragma unroll 1
  for (int pass = kS.wide ? plan.C * plan.passes : plan.C; pass > 0; --pass) {
    uint32_t high[kSteps][4], low[kSteps][4];
    load(low_offset, low);
    FenceProducts();
    start(low, 0);
    CommitProducts();
    load(0, high);
    FenceProducts();
    start(high, kLow);
    start(high, 0);
    CommitProducts();
    filters += 2 * kLow;
    uint32_t to_next = plan.plane_words * 4;
    if (kS.wide) {
      const uint32_t rows = kSteps * pitch;
      if (++of_channel < plan.passes) {
        to_next = rows;
      } else {
        of_channel = 0;
        to_next -= (plan.passes - 1) * rows;
      }
    }
    for (uint32_t& at : from) at += to_next;
    WaitForProducts<0>();
  }
}

#endif

// Shared memory: the arranged filters; then for each warpgroup its stage, its
// next strip's inputs as they come, the high halves of its strip, and the low
// ones.
template <int kShape>
__global__ void __launch_bounds__(kWgmmaStripsShapes[kShape].threads(), 1)
    WgmmaStripsKernel(const float* __restrict__ x, const float* __restrict__ k,
                      const uint4* arranged, const int* filter_exponent,
                      float* __restrict__ y,
                      const __grid_constant__ WgmmaStripsPlan plan) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  constexpr WgmmaStripsShape kS = kWgmmaStripsShapes[kShape];
  constexpr int kFilters = kS.filters(), kThreads = 128;
  // Octets of kV rows are of the same filters.
  constexpr int kV = kS.rows, kBases = kS.octets / kV;
  extern __shared__ __align__(128) uint4 shared[];
  __shared__ uint32_t most[kS.warpgroups][2][4];
  __shared__ uint64_t barriers[kS.warpgroups];  // that inputs have come
  Warpgroup warpgroup(most[threadIdx.x / kThreads]);
  const int tid = warpgroup.thread();
  const int lane = tid % 32, warp = __shfl_sync(kAllLanes, tid / 32, 0);
  const int g = lane / 4, t = lane % 4;
  const int filter_vectors = plan.filter_bytes() / 16;
  uint32_t* const own = reinterpret_cast<uint32_t*>(shared + filter_vectors) +
                        threadIdx.x / kThreads * plan.warpgroup_words();
  float* const stage = reinterpret_cast<float*>(own);
  float* const raw = stage + plan.stage_words;
  uint32_t* const high = reinterpret_cast<uint32_t*>(raw) + plan.raw_words;
  const uint32_t brought = SharedAddress(&barriers[threadIdx.x / kThreads]);
  const auto clear = [&] {
    // Also what no strip reaches: there it is multiplied by zero.
    for (int i = tid; i < 2 * plan.image_words; i += kThreads) high[i] = 0;
  };
  clear();
  if (tid == 0) InitBarrier(brought, plan.C);
  __syncthreads();

  const uint32_t pitch = plan.pitch * 4;
  const uint32_t low_offset = plan.image_words * 4;
  const uint32_t out_pitch = plan.W_out * 4;
  const int area = plan.H_out * plan.W_out;
  const bool load_pairs =
      plan.W % 2 == 0 && reinterpret_cast<uintptr_t>(x) % 8 == 0;
  const bool store_pairs =
      plan.W_out % 2 == 0 && reinterpret_cast<uintptr_t>(y) % 8 == 0;
  const auto largest = [&](uint32_t v) { return warpgroup.Largest(v); };
  const int walker =
      blockIdx.x * plan.warpgroups + static_cast<int>(threadIdx.x) / kThreads;
  StripWalk walk(plan, walker < plan.walkers ? walker : plan.items(),
                 plan.walkers);
  const auto bring = [&] {
    if (tid >= plan.C || walk.Done(plan)) return;
    const Vectors in(plan, walk.Item(plan, x, y), tid);
    if (in.bytes() == 0) return Arrive(brought);
    FenceAsyncProxy();
    StartLoad(SharedAddress(raw + tid * plan.raw_plane + in.skew + in.head),
              in.first(), in.bytes(), brought);
  };
  bring();
  // Meanwhile the filters have been arranged.
  WaitForKernelBefore();
  for (int i = threadIdx.x; i < filter_vectors; i += blockDim.x) {
    shared[i] = arranged[i];
  }
  const int filters_exponent = *filter_exponent;
  FenceAsyncProxy();  // the tensor cores read filters as the engine does
  __syncthreads();
  int parity = 0;    // of the phase in which the strip's inputs come
  int exponent = 5;  // of the strip before
  while (!walk.Done(plan)) {
    const StripItem item = walk.Item(plan, x, y);
    const auto plane = [&](int c) {
      return raw + c * plan.raw_plane + Vectors(plan, item, c).skew;
    };
    WaitFor(brought, parity);
    parity ^= 1;
    bool whole = true;
    for (int c = 0; c < plan.C; ++c) whole &= Vectors(plan, item, c).whole();
    if (!whole) {
      // What is left at the ends, of each channel by eight threads.
      constexpr int kPart = 8;
      static_assert(WgmmaStripsMostChannels(kWgmmaStripsLeastKernelSize) *
                        kPart <=
                    kThreads);
      const int c = tid / kPart, part = tid % kPart;
      if (c < plan.C && part < 6) {
        const Vectors in(plan, item, c);
        const int i = part < in.head ? part : in.tail() + part - 3;
        if ((part < in.head || part >= 3) && i < in.inputs) {
          raw[c * plan.raw_plane + in.skew + i] = in.from[i];
        }
      }
      warpgroup.Sync();
    }
    const int words = item.input_rows * plan.pitch;
    const auto for_words = [&](const auto& put) {
      const auto all = [&](bool pairs) {
        for (int c = 0; c < plan.C; ++c) {
          const float* const from = plane(c);
          const int first = c * plan.plane_words;
#pragma unroll 4
          for (int i = tid; i < words; i += kThreads) {
            put(first + i, LoadWord(plan, from, item.inputs, pairs, i));
          }
        }
      };
      if (load_pairs) {
        all(true);
      } else {
        all(false);
      }
    };
    const bool scaled =
        SplitStrip(plan, plane, item.inputs, filters_exponent, tid, kThreads,
                   high, exponent, for_words, largest);
    // Whoever waits for the next inputs has seen these come.
    if (!scaled) warpgroup.Sync();
    walk.Advance(plan);
    bring();
    if (!scaled) {
      ComputeExactly(plan, item.from, k, item.to, item.rows, plan.W_out,
                     item.first_group * kFilters,
                     min(item.end_group * kFilters, plan.M), tid, kThreads);
      clear();
      exponent = 5;
      warpgroup.Sync();
      continue;
    }

    const float scale = PowerOfTwo(-(exponent + filters_exponent));
    const int units = (item.rows + kV - 1) / kV * plan.units;
    const uint32_t image = SharedAddress(high + t);
    for (int group = item.first_group; group < item.end_group; ++group) {
      const uint64_t filters = ColumnsAt(__shfl_sync(
          kAllLanes, SharedAddress(shared) + group * 2 * plan.group_bytes, 0));
      float* const to = item.to + int64_t{group} * kFilters * area;
      // Lane 4 * g + t has columns 2 * t and the next of an octet, of units g
      // and g + 8.
      const int column = 2 * t % kS.shifts;
      uint32_t base[kBases];
#pragma unroll
      for (int b = 0; b < kBases; ++b) {
        const int place = b * (8 / kS.shifts) + 2 * t / kS.shifts;
        base[b] =
            SharedAddress(stage + place * plan.stage_pitch + column +
                          Skew(to + FilterAt<kFilters>(place) * int64_t{area}));
      }
#pragma unroll 1
      for (int first = 0; first < units; first += kWgmmaStripsUnits) {
        uint32_t in[2], at[2];
        bool valid[2], second[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          // Beyond the last unit it is computed again, and not stored.
          const int index = first + warp * 16 + g + 8 * e;
          const int unit = min(index, units - 1);
          const int block = SplitDivide(unit, plan.units_magic);
          const int place = unit - block * plan.units;
          in[e] = image + block * (kV * pitch) + place * (kS.shifts * 2);
          at[e] = block * (kV * out_pitch) + place * (kS.shifts * 4);
          valid[e] = index < units && place * kS.shifts + column < plan.W_out;
          second[e] = place * kS.shifts + column + 1 < plan.W_out;
        }
        float sum[4 * kS.octets];
        MultiplyTile<kShape>(plan, in, low_offset, filters, sum);
        if (first == 0) {
          WaitForBulkReads();
          warpgroup.Sync();
        }
        const auto stage_sums = [&](const auto& put) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            if (!valid[e]) continue;
#pragma unroll
            for (int v = 0; v < kV; ++v) {
              const uint32_t row = at[e] + v * out_pitch;
#pragma unroll
              for (int b = 0; b < kBases; ++b) {
                const int i = (b * kV + v) * 4 + 2 * e;
                put(base[b] + row, sum[i] * scale, sum[i + 1] * scale, e);
              }
            }
          }
        };
        if (store_pairs) {
          stage_sums([&](uint32_t out, float a, float b, int) {
            StoreShared2(out, a, b);
          });
        } else {
          stage_sums([&](uint32_t out, float a, float b, int e) {
            StoreShared(out, a);
            if (second[e]) StoreShared(out + 4, b);
          });
        }
      }
      FenceAsyncProxy();
      warpgroup.Sync();
      const int group_filters = min(kFilters, plan.M - group * kFilters);
      // Every fourth filter is a warp's, and four lanes' of it.
      for (int m = lane / 4 * 4 + warp; m < group_filters; m += 32) {
        float* const out = to + int64_t{m} * area;
        StorePiece(stage + PlaceOf<kFilters>(m) * plan.stage_pitch + Skew(out),
                   out, item.rows * plan.W_out, lane % 4);
      }
      CommitBulkStores();
    }
  }
  WaitForBulkStores();
#endif
}

class WgmmaStripsConvolution : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeWgmmaStripsPlan(problem_, limits.multiprocessors,
                             limits.shared_per_block, &plan_)) {
      return {"WgmmaStripsConvolution::Prepare", "no strip fits"};
    }
    RETURN_IF_FAILED(AllowAllSharedMemory(
        reinterpret_cast<const void*>(Functions().kernel)));
    overlaps_ = MayOverlap(reinterpret_cast<const void*>(Functions().kernel));
    return arranged_.Allocate(kHeaderBytes + plan_.filter_bytes());
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    int* const exponent = arranged_.as<int>();
    char* const arranged = arranged_.as<char>() + kHeaderBytes;
    const int64_t most = CeilDivide(plan_.filter_bytes() / 8, kArrangeThreads);
    const int arranging_blocks = static_cast<int>(most < 64 ? most : 64);
    const ShapeFunctions& functions = Functions();
    functions.arrange<<<arranging_blocks, kArrangeThreads, 0, stream>>>(
        k, reinterpret_cast<uint32_t*>(arranged), exponent, plan_);
    RETURN_IF_FAILED(CheckLaunch("ArrangeKernel"));
    const int64_t blocks = CeilDivide(plan_.walkers, plan_.warpgroups);
    return LaunchOverlapping(
        "WgmmaStripsKernel", functions.kernel, overlaps_, blocks,
        128 * plan_.warpgroups, plan_.shared_bytes, stream, x, k,
        reinterpret_cast<const uint4*>(arranged), exponent, y, plan_);
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutWarpgroupProducts(
            reinterpret_cast<const void*>(WgmmaStripsKernel<0>))) {
      return reason;
    }
    if (problem.kernel_size < kWgmmaStripsLeastKernelSize ||
        problem.kernel_size > kWgmmaStripsMostKernelSize) {
      return "takes filters of 2 x 2 to 9 x 9";
    }
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    if (problem.channels > WgmmaStripsMostChannels(problem.kernel_size)) {
      return "takes few channels: at most 8, 5, 4, 2 and 1 for filters of up "
             "to 3, 5, 7, 8 and 9 rows";
    }
    DeviceLimits limits;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    WgmmaStripsPlan plan;
    return MakeWgmmaStripsPlan(problem, limits.multiprocessors,
                               limits.shared_per_block, &plan)
               ? nullptr
               : "the filters and strips of a few rows for two warpgroups do "
                 "not fit into shared memory";
  }

 private:
  // Before the arranged filters: their exponent.
  static constexpr int kHeaderBytes = 256;
  static constexpr int kArrangeThreads = 512;

  struct ShapeFunctions {
    void (*arrange)(const float*, uint32_t*, int*, WgmmaStripsPlan);
    void (*kernel)(const float*, const float*, const uint4*, const int*, float*,
                   WgmmaStripsPlan);
  };
  template <int... kShapes>
  static const ShapeFunctions& FunctionsOf(
      int shape, std::integer_sequence<int, kShapes...>) {
    static constexpr ShapeFunctions kTable[] = {
        {ArrangeKernel<kShapes>, WgmmaStripsKernel<kShapes>}...};
    return kTable[shape];
  }
  const ShapeFunctions& Functions() const {
    return FunctionsOf(
        plan_.shape, std::make_integer_sequence<int, kWgmmaStripsShapeCount>());
  }

  WgmmaStripsPlan plan_ = {};
  bool overlaps_ = false;
  Workspace arranged_;
};

}  // namespace

extern const KernelVariant kWgmmaStrips;
const KernelVariant kWgmmaStrips = {
    "wgmma_strips",
    AccuracyClass::kFp32,
    Track::kProduction,
    "Layers with few input channels on Hopper's tensor cores at float32's "
    "accuracy: each warpgroup computes strips of rows by itself, which the "
    "copy engine brings and writes.",
    "One load of the inputs serves all filters of a strip, and the tensor "
    "cores read filters from shared memory, so that issuing instructions and "
    "multiplying hide behind writing the outputs.",
    WgmmaStripsConvolution::Reject,
    Make<WgmmaStripsConvolution>,
    EstimateWgmmaStripsNs,
};

}  // namespace convlab::cuda
