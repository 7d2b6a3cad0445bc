// The convolution on tensor cores, as an implicit matrix product: what
// tensor_tf32 and tensor_fp16 share. Needs compute capability 8.0.
//
// The product. Rows are output positions, columns are filters, and the depth
// runs over the taps. One mma.sync multiplies 16 positions x 8 words of taps by
// 8 words x 8 filters; a word is one TF32 value or two FP16 values, and apart
// from that both types lie in the lanes' registers in the same way. With lane =
// 4 * g + t:
//   a[0] position g,     word t        a[2] position g,     word t + 4
//   a[1] position g + 8, word t        a[3] position g + 8, word t + 4
//   b[0] word t, filter g              b[1] word t + 4, filter g
//   c[0], c[1] position g, filters 2 * t and 2 * t + 1; c[2], c[3] of g + 8
//
// No gathering. A block keeps a strip of one image in shared memory as words
// [plane][row][column]. The word of a tap for a position lies at an offset of
// the position plus an offset of the tap, so that a's registers are loaded from
// where the image is, and a table holds the taps' offsets. The order of the
// taps is free: planes run fastest, and their distance is padded so that the
// four words t of a load, each for eight neighbouring positions, fall on
// different banks.
//
// FP16 pairs. A plane holds two channels, the word of a pixel its values in
// both; or, where that pads less (one channel above all), one channel, and the
// word of a pixel its value and its right neighbour's, so that a tap's word
// serves two taps.
//
// Filters are brought into the lanes' order by a small kernel of their own, so
// that b is one 8-byte load. Blocks stay and go from tile to tile with their
// filters in shared memory.
#ifndef KERNELS_CONVOLUTION_CUDA_IMPLICIT_TENSOR_CORE_CUH_
#define KERNELS_CONVOLUTION_CUDA_IMPLICIT_TENSOR_CORE_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/tile_walk.cuh"

namespace convlab::cuda {

constexpr int kWarps = 8;
constexpr int kBlockThreads = 32 * kWarps;
// Of the depth, per mma.sync.
constexpr int kStepWords = 8;

struct TensorPlan {
  int C, H, W, M, K, H_out, W_out;
  int plane_channels;  // in a plane: 1 or 2
  int word_columns;    // in a word: 1 or 2
  // Tiles of an image, and blocks of filters.
  int strips_x, strips_y, filter_blocks;
  int64_t batch;
  int rows, columns;  // of a tile's outputs
  // A tile's inputs: `planes` at a time, in `chunks` turns. Rows are `pitch`
  // words apart, planes `plane_words`.
  int planes, chunks, pitch, plane_words;
  TileSteps copy;
  int steps;  // of the depth, per chunk
  int64_t shared_bytes;

  __host__ __device__ int input_rows() const { return rows + K - 1; }
  __host__ __device__ int input_columns() const { return columns + K - 1; }
  // Blocks that one image needs; each goes from image to image.
  __host__ __device__ int64_t places() const {
    return int64_t{strips_x} * strips_y * filter_blocks;
  }
  // Words of taps in one plane's filter row.
  __host__ __device__ int row_taps() const {
    return (K + word_columns - 1) / word_columns;
  }
  __host__ __device__ int taps() const { return planes * K * row_taps(); }
  // Words of shared memory.
  __host__ __device__ int input_words() const {
    return (planes * plane_words + 3) / 4 * 4;
  }
  __host__ __device__ int filter_words(int tiles_n) const {
    return steps * tiles_n * 64;
  }
};

// A tap in the order of the depth.
struct Tap {
  int plane, p, q;  // q: of the word's first column

  __host__ __device__ Tap(const TensorPlan& plan, int tap)
      : plane(tap % plan.planes),
        p(tap / plan.planes / plan.row_taps()),
        q(tap / plan.planes % plan.row_taps() * plan.word_columns) {}
  __host__ __device__ int Offset(const TensorPlan& plan) const {
    return plane * plan.plane_words + p * plan.pitch + q;
  }
};

// Writes the filters as [chunk][block of filters][step][tile of 8
// filters][lane][2] words; zeros where there is no filter or no tap.
template <typename Words>
__global__ void ArrangeFiltersKernel(const float* k, uint32_t* arranged,
                                     const TensorPlan plan, int tiles_n,
                                     int64_t words) {
  const int64_t index = int64_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (index >= words) return;
  const int lane = index / 2 % 32;
  const int64_t tile = index / 64;
  const int64_t step = tile / tiles_n;
  const int64_t block = step / plan.steps;
  const int chunk = block / plan.filter_blocks;
  const int m =
      (block % plan.filter_blocks * tiles_n + tile % tiles_n) * 8 + lane / 4;
  const int t = step % plan.steps * kStepWords + lane % 4 + index % 2 * 4;
  float value[2] = {0, 0};
  if (t < plan.taps() && m < plan.M) {
    const Tap tap(plan, t);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int c = (chunk * plan.planes + tap.plane) * plan.plane_channels +
                    i * (plan.plane_channels - 1);
      const int q = tap.q + i * (plan.word_columns - 1);
      if (c < plan.C && q < plan.K) {
        value[i] = k[((int64_t{m} * plan.C + c) * plan.K + tap.p) * plan.K + q];
      }
    }
  }
  arranged[index] = Words::Pack(value[0], value[1]);
}

// A warp computes kTilesM tiles of 16 positions by kTilesN tiles of 8 filters
// at a time.
template <typename Words, int kTilesM, int kTilesN>
__global__ void __launch_bounds__(kBlockThreads, 2)
    TensorCoreKernel(const float* x, const uint32_t* arranged, float* y,
                     const TensorPlan plan) {
  constexpr int kWarpPositions = 16 * kTilesM;
  // Words of inputs that a thread loads before it stores them.
  constexpr int kInputLoads = 8 / Words::kValues;
  extern __shared__ __align__(16) uint32_t shared[];
  uint32_t* const inputs = shared;
  uint32_t* const filters = inputs + plan.input_words();
  int* const tap_offsets =
      reinterpret_cast<int*>(filters + plan.filter_words(kTilesN));

  const int tid = threadIdx.x;
  const int warp = tid / 32;
  const int g = tid % 32 / 4;
  const int t = tid % 4;
  const int64_t place = blockIdx.x % plan.places();
  const int filter_block = place % plan.filter_blocks;
  const int strip = place / plan.filter_blocks;
  const int h0 = strip / plan.strips_x * plan.rows;
  const int w0 = strip % plan.strips_x * plan.columns;

  // Taps that only fill up the last step read any input; their filters are 0.
  for (int i = tid; i < plan.steps * kStepWords; i += kBlockThreads) {
    tap_offsets[i] = i < plan.taps() ? 4 * Tap(plan, i).Offset(plan) : 0;
  }
  const auto copy_filters = [&](int chunk) {
    const int vectors = plan.filter_words(kTilesN) / 4;
    const uint4* const from =
        reinterpret_cast<const uint4*>(arranged) +
        (int64_t{chunk} * plan.filter_blocks + filter_block) * vectors;
    for (int i = tid; i < vectors; i += kBlockThreads) {
      reinterpret_cast<uint4*>(filters)[i] = from[i];
    }
  };
  const auto copy_inputs = [&](int64_t b, int chunk) {
    const int64_t area = int64_t{plan.H} * plan.W;
    const int c0 = chunk * plan.planes * plan.plane_channels;
    const float* const from =
        x + (b * plan.C + c0) * area + int64_t{h0} * plan.W + w0;
    TileWalk walk(plan.copy, plan.W, plan.plane_channels * area, plan.pitch,
                  plan.plane_words);
    while (walk.plane() < plan.planes) {
      float value[kInputLoads][2] = {};
      int to[kInputLoads];
#pragma unroll
      for (int i = 0; i < kInputLoads; ++i, walk.Advance(plan.copy)) {
        to[i] = walk.plane() < plan.planes ? walk.to() : -1;
        const int c = c0 + walk.plane() * plan.plane_channels;
        const int w = w0 + walk.column();
        if (c < plan.C && h0 + walk.row() < plan.H && w < plan.W) {
          value[i][0] = from[walk.from()];
          if constexpr (Words::kValues == 2) {
            if (plan.plane_channels == 2) {
              if (c + 1 < plan.C) value[i][1] = from[walk.from() + area];
            } else {
              if (w + 1 < plan.W) value[i][1] = from[walk.from() + 1];
            }
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kInputLoads; ++i) {
        if (to[i] >= 0) inputs[to[i]] = Words::Pack(value[i][0], value[i][1]);
      }
    }
  };

  const auto input_at = [&](int byte) {
    return *reinterpret_cast<const uint32_t*>(
        reinterpret_cast<const char*>(inputs) + byte);
  };
  // A tile's positions in the order of its rows. Below 2^15 of them the
  // rounded quotient is right.
  const int tile_positions = plan.rows * plan.columns;
  const float reciprocal = 1.0f / plan.columns;
  const auto row_of = [&](int position) {
    return static_cast<int>((position + 0.5f) * reciprocal);
  };

  if (plan.chunks == 1) copy_filters(0);
  for (int64_t b = blockIdx.x / plan.places(); b < plan.batch;
       b += gridDim.x / plan.places()) {
    if (plan.chunks == 1) {
      copy_inputs(b, 0);
      __syncthreads();
    }
    // With several chunks, one turn of this loop covers the tile: the sums of
    // all its positions have to live while the chunks come.
    for (int first = warp * kWarpPositions;
         first < tile_positions || plan.chunks > 1;
         first += kWarps * kWarpPositions) {
      int at[kTilesM][2];  // the byte where a position's first tap lies
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int position =
              min(first + 16 * i + 8 * j + g, tile_positions - 1);
          const int row = row_of(position);
          at[i][j] = 4 * (row * (plan.pitch - plan.columns) + position);
        }
      }
      float sums[kTilesM][kTilesN][4] = {};
      for (int chunk = 0; chunk < plan.chunks; ++chunk) {
        if (plan.chunks > 1) {
          copy_inputs(b, chunk);
          copy_filters(chunk);
          __syncthreads();
        }
        const uint2* step_filters =
            reinterpret_cast<const uint2*>(filters) + tid % 32;
#pragma unroll 2
        for (int step = 0; step < plan.steps; ++step) {
          const int offset0 = tap_offsets[step * kStepWords + t];
          const int offset1 = tap_offsets[step * kStepWords + t + 4];
          uint2 filter[kTilesN];
#pragma unroll
          for (int n = 0; n < kTilesN; ++n) {
            filter[n] = step_filters[n * 32];
          }
          step_filters += kTilesN * 32;
#pragma unroll
          for (int i = 0; i < kTilesM; ++i) {
            const uint32_t input[4] = {
                input_at(at[i][0] + offset0), input_at(at[i][1] + offset0),
                input_at(at[i][0] + offset1), input_at(at[i][1] + offset1)};
#pragma unroll
            for (int n = 0; n < kTilesN; ++n) {
              Words::MultiplyAdd(input, filter[n], sums[i][n]);
            }
          }
        }
        if (plan.chunks > 1) __syncthreads();
      }
      // A store writes eight neighbouring positions of four filters.
      const int64_t area = int64_t{plan.H_out} * plan.W_out;
      int64_t to[kTilesM][2];  // -1: outside
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int position = first + 16 * i + 8 * j + g;
          const int row = row_of(position);
          const int h = h0 + row;
          const int w = w0 + position - row * plan.columns;
          const bool inside =
              position < tile_positions && h < plan.H_out && w < plan.W_out;
          to[i][j] = inside ? int64_t{h} * plan.W_out + w : -1;
        }
      }
      int m = filter_block * kTilesN * 8 + 2 * t;
      float* out = y + (b * plan.M + m) * area;
#pragma unroll
      for (int n = 0; n < kTilesN; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (m + e < plan.M) {
#pragma unroll
            for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
              for (int j = 0; j < 2; ++j) {
                if (to[i][j] >= 0) {
                  out[e * area + to[i][j]] = sums[i][n][2 * j + e];
                }
              }
            }
          }
        }
        m += 8;
        out += 8 * area;
      }
      if (plan.chunks > 1) break;
    }
    __syncthreads();
  }
}

// Cycles that the first loads of `inputs` take for their words' banks.
inline int InputCycles(const TensorPlan& plan) {
  constexpr int kQuads = 64;
  int cycles = 0;
  for (int quad = 0; quad < kQuads && 4 * quad < plan.taps(); ++quad) {
    // Two lanes meet on a bank without harm if they want the same word.
    int words[32][4];
    int uses[32] = {};
    int worst = 0;
    for (int t = 0; t < 4; ++t) {
      const int tap = 4 * quad + t;
      const int offset = tap < plan.taps() ? Tap(plan, tap).Offset(plan) : 0;
      for (int g = 0; g < 8; ++g) {
        const int word = offset + g;
        const int bank = word % 32;
        bool known = false;
        for (int i = 0; i < uses[bank]; ++i) known |= words[bank][i] == word;
        if (!known) words[bank][uses[bank]++] = word;
        if (uses[bank] > worst) worst = uses[bank];
      }
    }
    cycles += worst;
  }
  return cycles;
}

// Sets the distances of rows and planes, which decide about banks. A few
// planes leave several rows of taps in one load, so rows are padded too.
inline void PadInputs(TensorPlan* plan) {
  TensorPlan best = *plan;
  int best_cycles = 1 << 30;
  const int row_padding = plan->planes < 4 ? 16 : 1;
  for (int i = 0; i < row_padding; ++i) {
    plan->pitch = plan->input_columns() + i;
    for (int j = 0; j < 32; ++j) {
      plan->plane_words = plan->input_rows() * plan->pitch + j;
      const int cycles = InputCycles(*plan);
      if (cycles < best_cycles) best = *plan, best_cycles = cycles;
    }
  }
  *plan = best;
}

// Cuts the problem for warps of tiles_m x tiles_n tiles; false if not even the
// smallest piece fits into shared memory.
inline bool MakeTensorPlan(const Problem& problem, int word_values, int tiles_m,
                           int tiles_n, const DeviceLimits& limits,
                           TensorPlan* plan) {
  plan->C = problem.channels, plan->H = problem.height;
  plan->W = problem.width, plan->M = problem.filters;
  plan->K = problem.kernel_size;
  plan->H_out = problem.output_height(), plan->W_out = problem.output_width();
  plan->filter_blocks = CeilDivide(plan->M, 8 * tiles_n);
  plan->batch = problem.batch;
  const bool pairs = word_values == 2;
  const bool pair_columns =
      pairs && problem.channels * CeilDivide(plan->K, 2) <
                   CeilDivide(problem.channels, 2) * plan->K;
  plan->plane_channels = pairs && !pair_columns ? 2 : 1;
  plan->word_columns = pair_columns ? 2 : 1;
  const int all_planes = CeilDivide(plan->C, plan->plane_channels);

  const auto fits = [&](int64_t size) {
    PadInputs(plan);
    plan->chunks = CeilDivide(all_planes, plan->planes);
    plan->steps = CeilDivide(plan->taps(), kStepWords);
    plan->shared_bytes =
        4 * (int64_t{plan->input_words()} + plan->filter_words(tiles_n) +
             plan->steps * kStepWords);
    return plan->shared_bytes <= size;
  };
  const auto set_tile = [&](int strips_x, int strips_y) {
    plan->columns = CeilDivide(plan->W_out, strips_x);
    plan->rows = CeilDivide(plan->H_out, strips_y);
    plan->strips_x = CeilDivide(plan->W_out, plan->columns);
    plan->strips_y = CeilDivide(plan->H_out, plan->rows);
  };
  // Two blocks on a multiprocessor if possible.
  const int64_t half = limits.shared_per_multiprocessor / 2 - 1024;
  const int64_t sizes[] = {half, limits.shared_per_block};

  // All channels at once, if the strips do not become much lower than the
  // filter: the rows that two strips share are loaded twice.
  constexpr int64_t kMostWords = 1 << 16;  // more do not fit anywhere
  for (int strips = 1;; ++strips) {
    set_tile(1, strips);
    if (plan->rows < plan->K && strips > 1) break;
    plan->planes = all_planes;
    const int64_t words =
        int64_t{all_planes} * plan->input_rows() * plan->input_columns();
    const int64_t taps = int64_t{all_planes} * plan->K * plan->row_taps();
    if (words < kMostWords && taps < kMostWords &&
        plan->rows * plan->columns < (1 << 15) && fits(half)) {
      return true;
    }
    if (plan->rows == 1) break;
  }

  // Chunks of channels, and tiles whose positions the warps hold at once.
  const int most = kWarps * 16 * tiles_m;
  for (int positions = most; positions >= 1; positions /= 2) {
    const int strips_x = CeilDivide(plan->W_out, positions);
    const int columns = CeilDivide(plan->W_out, strips_x);
    int rows = positions / columns;
    if (rows > plan->H_out) rows = plan->H_out;
    set_tile(strips_x, CeilDivide(plan->H_out, rows));
    for (const int64_t size : sizes) {
      int planes = all_planes;
      const int64_t plane_words =
          int64_t{plan->input_rows()} * plan->input_columns();
      if (plane_words > kMostWords) break;
      if (planes > kMostWords / plane_words) planes = kMostWords / plane_words;
      for (;;) {
        plan->planes = planes;
        if (int64_t{plan->K} * plan->K * planes < kMostWords && fits(size)) {
          return true;
        }
        if (planes == 1) break;
        planes = CeilDivide(all_planes, CeilDivide(all_planes, planes - 1));
      }
    }
  }
  return false;
}

template <typename Words>
class TensorCore : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    instance_ = Choose(problem_, limits, &plan_);
    if (instance_ == nullptr) return {"TensorCore::Prepare", "no tile fits"};
    const Problem& p = problem_;
    plan_.copy = MakeTileSteps(kBlockThreads, 1, plan_.input_rows(),
                               plan_.input_columns(), p.width,
                               plan_.plane_channels * p.height * p.width,
                               plan_.pitch, plan_.plane_words);
    words_ = int64_t{plan_.chunks} * plan_.filter_blocks *
             plan_.filter_words(instance_->tiles_n);
    RETURN_IF_FAILED(arranged_.Allocate(4 * words_));
    RETURN_IF_FAILED(
        AllowAllSharedMemory(reinterpret_cast<const void*>(instance_->kernel)));
    int resident = 0;
    RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &resident, instance_->kernel, kBlockThreads, plan_.shared_bytes));
    blocks_ = ImagesAtOnce(int64_t{limits.multiprocessors} * resident,
                           plan_.places(), plan_.batch) *
              plan_.places();
    return {};
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    uint32_t* const arranged = arranged_.as<uint32_t>();
    ArrangeFiltersKernel<Words>
        <<<CeilDivide(words_, kBlockThreads), kBlockThreads, 0, stream>>>(
            k, arranged, plan_, instance_->tiles_n, words_);
    RETURN_IF_FAILED(CheckLaunch("ArrangeFiltersKernel"));
    instance_->kernel<<<blocks_, kBlockThreads, plan_.shared_bytes, stream>>>(
        x, arranged, y, plan_);
    return CheckLaunch("TensorCoreKernel");
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutTensorCores(
            reinterpret_cast<const void*>(kInstance<4, 1>.kernel))) {
      return reason;
    }
    DeviceLimits limits;
    TensorPlan plan;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    return Choose(problem, limits, &plan) == nullptr ? kTileTooLarge : nullptr;
  }

 private:
  struct Instance {
    int tiles_m, tiles_n;
    void (*kernel)(const float*, const uint32_t*, float*, TensorPlan);
  };
  template <int kTilesM, int kTilesN>
  static constexpr Instance kInstance = {
      kTilesM, kTilesN, TensorCoreKernel<Words, kTilesM, kTilesN>};

  // The one that pads the filters least, where loading the positions' words
  // counts as much as two tiles of filters; null if no tile fits.
  static const Instance* Choose(const Problem& problem,
                                const DeviceLimits& limits, TensorPlan* plan) {
    static constexpr Instance kInstances[] = {kInstance<4, 1>, kInstance<4, 2>,
                                              kInstance<4, 3>, kInstance<4, 4>,
                                              kInstance<2, 7>};
    const auto cost = [&](const Instance& instance) {
      return CeilDivide(problem.filters, 8 * instance.tiles_n) *
             (instance.tiles_n + 2);
    };
    const Instance* best = kInstances;
    for (const Instance& instance : kInstances) {
      if (cost(instance) < cost(*best)) best = &instance;
    }
    return MakeTensorPlan(problem, Words::kValues, best->tiles_m, best->tiles_n,
                          limits, plan)
               ? best
               : nullptr;
  }

  const Instance* instance_ = nullptr;
  TensorPlan plan_ = {};
  Workspace arranged_;
  int64_t words_ = 0;  // of all filters, arranged
  int64_t blocks_ = 0;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_IMPLICIT_TENSOR_CORE_CUH_
