// Rung 7 on the CPU: no lane empty, and the memory kept busy ahead of time.
//
// Idea. In the output the rows of a plane follow each other without a gap, so a
// vector of outputs may go on in the next row. Its inputs stand in two rows:
// load a vector in each, so that every lane finds its own input in one of them,
// and blend. For another product of the filter both addresses move by the same
// distance, so that a tile needs a pair of addresses and a mask per vector and
// one table of distances, whatever C and K.
//
// Change against register_tiled.
// - Tiles take their vectors from the whole plane: 4356 outputs are 272.25
//   vectors instead of 330, 841 are 52.6 instead of 58, and each tile is full.
// - Tiles are 8 filters by 3 vectors, 12 by 2 and so on down to 1 by 8. A
//   blended vector loads four cache lines, a weight one, so many filters and
//   few vectors load least: 20 loads where 24 multiplications leave time for
//   24. Filters are divided into groups of equal size, at most 12.
// - Threads take a few images at a time. A group's weights (28 KB in fa18's
//   second layer) stay in the nearest cache while its tiles go down the image.
//   There is no workspace. Small batches are cut into parts of images.
// - While a tile computes, it fetches a piece of the next image into cache,
//   and, where an output has 100 products or more, the lines that the next
//   tile will write, and past a thread's last image the one it will probably
//   be handed next (one core, cold caches: 8.0 to 7.7 us per image in sp19's
//   second layer, 35.0 to 34.4 in fa20's).
// - Outputs of 32 MB or more go past the caches, where planes are whole vectors
//   and so can all begin at an aligned address: a store to memory else reads
//   the line that it overwrites.
//
// Bound. Second layers: the arithmetic. First layers: arithmetic or writing,
// which takes 209 MB for fa19's at 1,000 images: 5.0 ms at the 500 GFLOP/s of
// two cores, and 5 to 8 ms at the 27 to 42 GB/s of a fill that reads what it
// overwrites, 2.6 ms at the 81 GB/s of one that does not.
//
// Measured. One core, fa19, AVX-512: 222 and 239 GFLOP/s, 88 and 95 % of the
// peak; AVX2 120 and 114 of 127, SSE4 43 and 41, one lane 13 and 14. Two cores,
// 1,000 images, medians of 42 to 263 samples, and the least, in turn with
// oneDNN 2.6 on a machine that is shared but was idle; of the peak by the
// median (reports/measured/cpu/bench-fp32.json):
//
//   layer     ms      least   GFLOP/s  of peak  times oneDNN: NCHW  preferred
//   fa17      6.2     4.7     232      55 %     1.9                  1.9
//   fa18-L1   16.9    13.4    303      72 %     4.9                  2.3
//   fa18-L2   49.8    47.7    413      90 %     4.1                  1.7
//   sp19-L1   2.4     1.8     239      51 %     7.5                  5.3
//   sp19-L2   4.9     4.0     316      75 %     4.3                  1.7
//   fa19-L1   12.2    9.7     214      46 %     3.6                  2.1
//   fa19-L2   31.1    28.4    389      85 %     3.6                  1.6
//   fa20-L1   9.4     7.3     266      58 %     10.8                 4.7
//   fa20-L2   19.1    16.5    379      88 %     5.0                  1.6
//
// By geometric mean 4.6 and 2.3 times oneDNN. sp19's second layer, whose planes
// of 20.25 vectors are computed as 21, ends after 4 to 5 ms, of which waking a
// thread is a part: its least time is 92 % of the peak.
//
// What did not help, each measured on the way here (one core, per image):
// - A copy of the input in which rows stand without gaps, once for each of the
//   filter's K columns, so that no vector needs blending: the tiles run at 93 %
//   of the peak, but writing the copy takes 9 to 13 % of the time in second
//   layers and up to a quarter (fa20-L1: 3.7 of 14.4 us). Blending two loads
//   costs nothing as long as the loads have time.
// - Making that copy piece by piece just before it is used: 94.8 us instead of
//   89.6 in fa18-L2. It is no longer in cache before, and the stores wait.
// - Weights in registers and inputs from memory at 8 by 3: 35 registers, which
//   spill: 171 instead of 221 GFLOP/s.
// - Streaming outputs that are not aligned through a buffer: 18.1 us instead of
//   15.7 in fa19-L1. The copy costs more than the line that is not read.
// - Fetching the lines to be written in first layers: 12.6 ms instead of 11.9
//   in fa18-L1. The memory has no time to spare there.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/math/rounding.h"
#include "kernels/convolution/convolution.h"
#include "kernels/simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/cpu/dense_lanes.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef KERNELS_CONVOLUTION_CPU_DENSE_LANES_ONCE
#define KERNELS_CONVOLUTION_CPU_DENSE_LANES_ONCE
namespace convlab::cpu::dense_lanes {

// With fewer products per output the memory has no time to fetch more than the
// next image.
constexpr int64_t kTapsToFetch = 100;

// A vector of outputs that follow each other in their plane, from `position`
// on. The inputs of the first `count` of them stand in a vector at `first`;
// those of the others, which begin the next row, stand in their own lanes of a
// vector at `second`.
struct Span {
  int64_t position, first, second, count;
};

// What is the same for all images.
struct Plan {
  const Span* spans;
  const int64_t* taps;  // where each product's input stands, from a position's
  int64_t tap_count;
  int64_t plane;  // outputs of one image and filter
  bool stream;    // outputs go past the caches where spans allow it
};

// A range of spans of one image's outputs for a group of filters.
struct Block {
  const float* image;
  const float* weights;  // [tap, filter]
  int filters;
  int64_t begin, end;  // spans
  float* out;          // the first filter's plane
  // What will be read next, to be fetched on the way; may be empty.
  const float* next;
  int64_t next_count;
};

// What this file is compiled to for one set of instructions.
struct Kernel {
  int64_t lanes;
  int most_filters;  // of a block
  void (*convolve)(const Plan& plan, const Block& block);
};

}  // namespace convlab::cpu::dense_lanes
#endif  // KERNELS_CONVOLUTION_CPU_DENSE_LANES_ONCE

HWY_BEFORE_NAMESPACE();
namespace convlab::cpu::dense_lanes {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
constexpr int64_t kLanes = hn::MaxLanes(D());
constexpr int kFloatsPerLine = 16;  // of a cache

constexpr bool k32Registers = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;
constexpr int kMostFilters = k32Registers ? 12 : 6;

// The vectors of a tile, so that its sums, one input per vector and a weight
// fill the registers.
constexpr int VectorsFor(int filters) {
  constexpr int k32[] = {8, 8, 7, 6, 5, 4, 3, 3, 2, 2, 2, 2};
  constexpr int k16[] = {6, 5, 3, 3, 2, 2};
  return k32Registers ? k32[filters - 1] : k16[filters - 1];
}

// The outputs of kFilters filters in kVectors spans. With kTwoRows a span may
// go on in the next row.
template <int kFilters, int kVectors, bool kTwoRows>
void Tile(const Plan& plan, const Span* spans, const float* image,
          const float* HWY_RESTRICT weights, bool stream,
          float* HWY_RESTRICT out) {
  const D d;
  const float* first[kVectors];
  const float* second[kVectors];
  hn::Mask<D> in_first[kVectors];
  hn::Vec<D> sums[kFilters][kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    first[v] = image + spans[v].first;
    if (kTwoRows) {
      second[v] = image + spans[v].second;
      in_first[v] = hn::FirstN(d, spans[v].count);
    }
#pragma GCC unroll 16
    for (int f = 0; f < kFilters; ++f) sums[f][v] = hn::Zero(d);
  }
  const int64_t* const taps = plan.taps;
  const int64_t tap_count = plan.tap_count;
  for (int64_t t = 0; t < tap_count; ++t, weights += kFilters) {
    const int64_t tap = taps[t];
    hn::Vec<D> inputs[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      inputs[v] = hn::LoadU(d, first[v] + tap);
      if (kTwoRows) {
        inputs[v] = hn::IfThenElse(in_first[v], inputs[v],
                                   hn::LoadU(d, second[v] + tap));
      }
    }
#pragma GCC unroll 16
    for (int f = 0; f < kFilters; ++f) {
      const auto weight = hn::Set(d, weights[f]);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        sums[f][v] = hn::MulAdd(inputs[v], weight, sums[f][v]);
      }
    }
  }
  if (stream) {
#pragma GCC unroll 16
    for (int f = 0; f < kFilters; ++f) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        hn::Stream(sums[f][v], d, out + f * plan.plane + spans[v].position);
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int f = 0; f < kFilters; ++f) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[f][v], d, out + f * plan.plane + spans[v].position);
    }
  }
}

using TileFunction = void(const Plan&, const Span*, const float*, const float*,
                          bool, float*);

// The tile of that shape; `vectors` is at most VectorsFor(filters).
template <bool kTwoRows, int kFilters = kMostFilters,
          int kVectors = VectorsFor(kFilters)>
TileFunction* FindTile(int filters, int64_t vectors) {
  if constexpr (kFilters > 1) {
    if (filters < kFilters) {
      return FindTile<kTwoRows, kFilters - 1>(filters, vectors);
    }
  }
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) {
      return FindTile<kTwoRows, kFilters, kVectors - 1>(filters, vectors);
    }
  }
  return Tile<kFilters, kVectors, kTwoRows>;
}

void Convolve(const Plan& plan, const Block& block) {
  const bool fetch_outputs = plan.tap_count >= kTapsToFetch;
  const int64_t most = VectorsFor(block.filters);
  const int64_t tiles = CeilDivide(block.end - block.begin, most);
  const int64_t step = CeilDivide(block.next_count, tiles);
  const float* next = block.next;
  const float* const next_end = next + block.next_count;
  for (int64_t i = block.begin; i < block.end; i += most) {
    const Span* const spans = plan.spans + i;
    const int64_t vectors = std::min(most, block.end - i);
    bool two_rows = false, stream = plan.stream;
    for (int64_t v = 0; v < vectors; ++v) {
      two_rows |= spans[v].count < kLanes;
      stream &= reinterpret_cast<uintptr_t>(block.out + spans[v].position) %
                    sizeof(hn::Vec<D>) ==
                0;
    }
    const float* const stop = next + std::min<int64_t>(step, next_end - next);
    for (const float* line = next; line < stop; line += kFloatsPerLine) {
      hwy::Prefetch(line);
    }
    next = stop;
    // The next tile's outputs.
    for (int64_t v = 0; fetch_outputs && v < most; ++v) {
      if (i + most + v >= block.end) break;
      const float* out = block.out + spans[most + v].position;
      for (int f = 0; f < block.filters; ++f) {
        hwy::Prefetch(out + f * plan.plane);
      }
    }
    (two_rows ? FindTile<true>(block.filters, vectors)
              : FindTile<false>(block.filters, vectors))(
        plan, spans, block.image, block.weights, stream, block.out);
  }
}

Kernel GetKernel() { return {kLanes, kMostFilters, Convolve}; }

}  // namespace HWY_NAMESPACE
}  // namespace convlab::cpu::dense_lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convlab::cpu {
namespace dense_lanes {
namespace {

// Outputs that no cache holds until somebody reads them.
constexpr int64_t kStreamedFloats = 8 << 20;

class DenseLanes : public Convolution {
 public:
  DenseLanes(const Problem& problem, Workers& workers)
      : problem_(problem),
        workers_(workers),
        kernel_(
            ChosenKernel(CONVLAB_KERNELS(GetKernel), problem.output_width())),
        positions_(problem.output_height() * problem.output_width()),
        group_(CeilDivide(problem.filters,
                          CeilDivide(problem.filters, kernel_.most_filters))),
        weights_(problem.kernel_elements()) {
    const int64_t H = problem.height, W = problem.width;
    const int64_t K = problem.kernel_size;
    for (int64_t c = 0; c < problem.channels; ++c) {
      for (int64_t p = 0; p < K; ++p) {
        for (int64_t q = 0; q < K; ++q) taps_.push_back((c * H + p) * W + q);
      }
    }
    MakeSpans(0);
    // Small batches are cut, so that no worker stays idle; a part has two spans
    // at least, because the last two may share outputs.
    const int64_t spans = spans_.size();
    parts_ = std::clamp<int64_t>(
        CeilDivide(int64_t{4} * workers.count(), problem.batch), 1,
        std::max<int64_t>(1, spans / 2));
    // Planes of whole vectors, which are aligned in all images where they are
    // in one.
    stream_ = parts_ == 1 && positions_ % kernel_.lanes == 0 &&
              problem.output_elements() >= kStreamedFloats;
  }

  absl::Status Run(const float* x, const float* k, float* y, Stream) override {
    ReorderWeights(k);
    bool stream = stream_;
    if (stream) {
      const int64_t vector = kernel_.lanes * sizeof(float);
      const int64_t aligned =
          (vector - reinterpret_cast<uintptr_t>(y) % vector) % vector /
          sizeof(float);
      // Where no span is in two rows, starting elsewhere would cost more.
      stream = aligned == 0 || problem_.output_width() % kernel_.lanes != 0;
      MakeSpans(stream ? aligned : 0);
    }
    const int64_t image = problem_.input_elements() / problem_.batch;
    const Plan plan = {spans_.data(), taps_.data(),
                       static_cast<int64_t>(taps_.size()), positions_, stream};
    const int64_t spans = spans_.size();
    const int64_t pieces = problem_.batch * parts_;
    // Images that follow each other, as many as leave every worker some turns.
    const int64_t grain =
        std::clamp<int64_t>(pieces / (int64_t{32} * workers_.count()), 1, 8);
    workers_.For(pieces, grain, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / parts_, part = i % parts_;
        Block block;
        block.image = x + b * image;
        block.begin = spans * part / parts_;
        block.end = spans * (part + 1) / parts_;
        // The next image or, as the workers take turns, the one of the range
        // that this one will be handed next.
        int64_t next = i + 1;
        if (next == end) {
          next = plan.tap_count >= kTapsToFetch
                     ? end + (workers_.count() - 1) * grain
                     : pieces;
        }
        const bool fetch = parts_ == 1 && next < pieces;
        block.next = x + (fetch ? next : b) * image;
        block.next_count = fetch ? image : 0;
        for (int64_t m = 0; m < problem_.filters; m += group_) {
          block.weights = weights_.data() + m * plan.tap_count;
          block.filters = std::min(group_, problem_.filters - m);
          block.out = y + (b * problem_.filters + m) * positions_;
          kernel_.convolve(plan, block);
          block.next_count = 0;
        }
      }
      if (stream) hwy::FlushStream();
    });
    return absl::OkStatus();
  }

 private:
  // Spans over all positions: one at the first and then, from `aligned` on, one
  // after the other.
  void MakeSpans(int64_t aligned) {
    const int64_t W = problem_.width, W_out = problem_.output_width();
    const int64_t lanes = kernel_.lanes;
    spans_.clear();
    for (int64_t i = 0; i < positions_;
         i = i == 0 && aligned > 0 ? aligned : i + lanes) {
      // The last span ends with the plane, whatever of it is done already.
      const int64_t position = std::min(i, positions_ - lanes);
      const int64_t row = position / W_out, column = position % W_out;
      const int64_t count = std::min(lanes, W_out - column);
      const int64_t first = row * W + column;
      const int64_t second = count < lanes ? (row + 1) * W - count : first;
      spans_.push_back({position, first, second, count});
    }
  }

  // From [filter, tap] to [group, tap, filter of the group].
  void ReorderWeights(const float* k) {
    const int64_t taps = taps_.size();
    for (int64_t m = 0; m < problem_.filters; m += group_) {
      const int64_t filters = std::min(group_, problem_.filters - m);
      for (int64_t f = 0; f < filters; ++f) {
        for (int64_t t = 0; t < taps; ++t) {
          weights_[m * taps + t * filters + f] = k[(m + f) * taps + t];
        }
      }
    }
  }

  const Problem problem_;
  Workers& workers_;
  const Kernel kernel_;
  const int64_t positions_;  // outputs of one image and filter
  const int64_t group_;      // filters of a block, but for the last
  int64_t parts_;            // of an image, handed out each on its own
  bool stream_;              // outputs go past the caches where they can
  std::vector<int64_t> taps_;
  std::vector<Span> spans_;
  std::vector<float> weights_;  // reordered
};

}  // namespace
}  // namespace dense_lanes

namespace {

// The only candidate on the CPU so far; 100 GFLOP/s of each thread are a round
// number between what it reaches with AVX2 and with AVX-512.
std::optional<double> EstimateNs(const Problem& problem,
                                 const Resources& resources) {
  constexpr double kThreadFlopsPerNs = 100;
  const int threads =
      resources.workers == nullptr ? 1 : resources.workers->count();
  return static_cast<double>(problem.flops()) / (kThreadFlopsPerNs * threads);
}

}  // namespace

extern const Variant kDenseLanes;
const Variant kDenseLanes = {
    "dense_lanes",
    Backend::kCpu,
    AccuracyClass::kFp32,
    Track::kLesson,
    "Register tiles over the outputs of an image as one long row: vectors go "
    "on "
    "in the next row, and what comes next is fetched into cache.",
    "No lane of a vector is left empty at a row's end, and tiles of up to "
    "twelve filters keep both multipliers busy.",
    SupportsAll,
    [](const Problem& problem, const Resources& resources)
        -> absl::StatusOr<std::unique_ptr<Convolution>> {
      return std::make_unique<dense_lanes::DenseLanes>(problem,
                                                       *resources.workers);
    },
    EstimateNs,
    /*detour=*/nullptr,
    /*exact_on_integers=*/true,
    /*by_cpu_target=*/true,
};

}  // namespace convlab::cpu
#endif  // HWY_ONCE
