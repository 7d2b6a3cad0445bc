// No lane empty, and memory kept busy ahead of time.
//
// Idea. In the output the rows of a plane follow each other without a gap, so a
// vector of outputs may go on in the next row (a Span of dense_lanes_plan.h).
// Its inputs stand in two rows: load a vector from each, so that every lane
// finds its own input in one of them, and blend. For another product of the
// filter both addresses move by the same distance, so a tile needs a pair of
// addresses and a mask per vector and one table of distances, whatever C and K.
//
// Change from register_tiled.
// - Tiles take their vectors from the whole plane, so that all of them but the
//   last are full, and no row ends with a vector that is partly empty.
// - Tiles are 8 filters by 3 vectors, 12 by 2 and so on down to 1 by 8. A
//   blended vector loads four cache lines and a weight one, so many filters and
//   few vectors load least. Filters are divided into groups of equal size.
// - Threads take a few images at a time. A group's weights stay in the nearest
//   cache while its tiles go down the image. There is no workspace. Small
//   batches are cut into parts of images.
// - While a tile computes, it fetches a piece of the next image into cache and,
//   where an output has many products, the lines that the next tile will write.
// - Outputs that no cache can hold go past the caches, where planes are whole
//   vectors and so can all begin at an aligned address: an ordinary store reads
//   the line from memory before it overwrites it.
//
// Epilogue. A worker computes a group's planes of an image, and pools and
// activates them while they are in its cache: with pooling from a buffer of its
// own, so that only the pooled values are written to y.
//
// Bound. Second layers: the arithmetic. First layers: the arithmetic or writing
// the output, which take about the same time.
//
// Reached. Nearly the arithmetic's peak on one core. With all cores the second
// layers stay near it, and first layers are bound by memory; what was tried
// besides is told in docs/journal/cpu_dense_lanes.md.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/math/rounding.h"
#include "hwy/cache_control.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/cpu/dense_lanes_block.h"
#include "kernels/convolution/cpu/dense_lanes_plan.h"
#include "kernels/convolution/cpu/filter_groups.h"
#include "kernels/layers/layers.h"

namespace convlab::cpu {
namespace dense_lanes {
namespace {

class DenseLanes : public Convolution {
 public:
  DenseLanes(const Problem& problem, const Epilogue& epilogue, Workers& workers)
      : problem_(problem),
        epilogue_(epilogue),
        workers_(workers),
        kernel_(ChosenBlockKernel(problem.output_width())),
        group_(FiltersOfGroup(problem, epilogue, kernel_.most_filters,
                              workers.count())),
        taps_(MakeTaps(problem)),
        spans_(MakeSpans(problem, kernel_.lanes, /*aligned=*/0)),
        parts_(PartsPerImage(problem, spans_.size(), workers.count())),
        may_stream_(epilogue.empty() && parts_ == 1 &&
                    ShouldStream(problem, kernel_.lanes)),
        weights_(problem.kernel_elements()),
        planes_(epilogue.pool.size == 0
                    ? 0
                    : workers.count() * group_ * problem.output_height() *
                          problem.output_width()) {}

  void UseBias(const float* bias) override { epilogue_.bias = bias; }

  absl::Status Run(const float* x, const float* k, float* y,
                   Stream stream) override {
    Group(k, weights_.data());
    return RunPrepared(x, weights_.data(), y, stream);
  }

  int64_t filter_bytes() const override {
    return problem_.kernel_elements() * sizeof(float);
  }

  absl::Status PrepareFilters(const float* k, void* filters, Stream) override {
    Group(k, static_cast<float*>(filters));
    return absl::OkStatus();
  }

  absl::Status RunPrepared(const float* x, const void* filters, float* y,
                           Stream) override {
    const int64_t taps = taps_.size();
    const auto* const weights = static_cast<const float*>(filters);
    const bool stream = may_stream_ && AlignSpans(y);
    const int64_t plane = problem_.output_height() * problem_.output_width();
    const Plan plan = {spans_.data(), taps_.data(), taps, plane, stream};
    if (!epilogue_.empty()) {
      // The groups of all images, those of one image after each other.
      const int64_t groups = CeilDivide(problem_.filters, group_);
      const auto finish = [&](int worker, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          FinishGroup(plan, i / groups, i % groups * group_, worker, x, weights,
                      y);
        }
      };
      // By reference, which std::function keeps without memory of its own.
      workers_.For(problem_.batch * groups, 1, std::cref(finish));
      return absl::OkStatus();
    }
    const int64_t pieces = problem_.batch * parts_;
    // Consecutive images, but few enough that every worker gets several turns.
    const int64_t grain =
        std::clamp<int64_t>(pieces / (int64_t{32} * workers_.count()), 1, 8);
    const auto convolve = [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // The image to fetch meanwhile is the next one or, as the workers take
        // turns, the first of the range that this worker probably gets next.
        int64_t next = i + 1;
        if (next == end) {
          next = plan.tap_count >= kTapsToFetch
                     ? end + (workers_.count() - 1) * grain
                     : pieces;
        }
        ConvolvePiece(plan, i, parts_ == 1 && next < pieces ? next : -1, x,
                      weights, y);
      }
      if (stream) hwy::FlushStream();
    };
    workers_.For(pieces, grain, std::cref(convolve));
    return absl::OkStatus();
  }

 private:
  void Group(const float* k, float* grouped) const {
    GroupFilters(k, problem_.filters, taps_.size(), group_, grouped);
  }

  // Makes the spans begin at aligned addresses of y, for stores that go past
  // the caches. False, with the spans as without alignment, if that would cost
  // more than it gains.
  bool AlignSpans(const float* y) {
    const int64_t vector = kernel_.lanes * sizeof(float);
    const int64_t aligned = (vector - reinterpret_cast<uintptr_t>(y) % vector) %
                            vector / sizeof(float);
    // Where all spans lie within a row, starting elsewhere would make them go
    // on in the next one.
    const bool stream =
        aligned == 0 || problem_.output_width() % kernel_.lanes != 0;
    const int64_t wanted = stream ? aligned : 0;
    if (wanted != aligned_) {
      spans_ = MakeSpans(problem_, kernel_.lanes, wanted);
      aligned_ = wanted;
    }
    return stream;
  }

  // Computes image b, epilogue included, for the group that begins with filter
  // `first`.
  void FinishGroup(const Plan& plan, int64_t b, int64_t first, int worker,
                   const float* x, const float* weights, float* y) {
    const int64_t height = problem_.output_height();
    const int64_t width = problem_.output_width();
    const MaxPool& pool = epilogue_.pool;
    float* const to = y + (b * problem_.filters + first) * pool.Output(height) *
                              pool.Output(width);
    Block block = {};
    block.image = x + b * (problem_.input_elements() / problem_.batch);
    block.weights = weights + first * plan.tap_count;
    block.filters = std::min(group_, problem_.filters - first);
    block.end = spans_.size();
    block.out =
        pool.size == 0 ? to : planes_.data() + worker * group_ * plan.plane;
    kernel_.convolve(plan, block);
    FinishPlanes(pool, epilogue_.activation,
                 epilogue_.bias == nullptr ? nullptr : epilogue_.bias + first,
                 block.filters, height, width, block.out, to);
  }

  // Computes one part of one image for all filters, and fetches image `next`
  // into cache meanwhile unless it is negative.
  void ConvolvePiece(const Plan& plan, int64_t piece, int64_t next,
                     const float* x, const float* weights, float* y) const {
    const int64_t image = problem_.input_elements() / problem_.batch;
    const int64_t b = piece / parts_, part = piece % parts_;
    const int64_t spans = spans_.size();
    Block block;
    block.image = x + b * image;
    block.begin = spans * part / parts_;
    block.end = spans * (part + 1) / parts_;
    block.next = x + (next >= 0 ? next : b) * image;
    block.next_count = next >= 0 ? image : 0;
    for (int64_t m = 0; m < problem_.filters; m += group_) {
      block.weights = weights + m * plan.tap_count;
      block.filters = std::min(group_, problem_.filters - m);
      block.out = y + (b * problem_.filters + m) * plan.plane;
      kernel_.convolve(plan, block);
      block.next_count = 0;  // all of it has been fetched
    }
  }

  const Problem problem_;
  Epilogue epilogue_;
  Workers& workers_;
  const BlockKernel kernel_;
  const int64_t group_;  // filters of a block, but for the last
  const std::vector<int64_t> taps_;
  std::vector<Span> spans_;
  int64_t aligned_ = 0;         // outputs before the first whole vector
  const int64_t parts_;         // of an image, handed out each on its own
  const bool may_stream_;       // outputs may go past the caches
  std::vector<float> weights_;  // grouped
  std::vector<float> planes_;   // of each worker's group, to be pooled
};

}  // namespace
}  // namespace dense_lanes

namespace {

// dense_lanes is the only candidate on the CPU so far, so the estimate need not
// be exact: 100 GFLOP/s per thread is a round number between what it reaches
// with AVX2 and with AVX-512.
absl::StatusOr<double> EstimateNs(const Problem& problem,
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
    Track::kProduction,
    "Register tiles over the outputs of an image as one long row: vectors go "
    "on in the next row, and what comes next is fetched into cache.",
    "No lane of a vector is left empty at a row's end, and tiles of up to "
    "twelve filters keep both multipliers busy.",
    SupportsAll,
    [](const Problem& problem, const Epilogue& epilogue,
       const Resources& resources)
        -> absl::StatusOr<std::unique_ptr<Convolution>> {
      return std::make_unique<dense_lanes::DenseLanes>(problem, epilogue,
                                                       *resources.workers);
    },
    EstimateNs,
    /*detour=*/nullptr,
    /*exact_on_integers=*/true,
    /*by_cpu_target=*/true,
    /*fuses=*/
    [](const Problem&, const Epilogue&, const Resources&) {
      return absl::OkStatus();
    },
};

}  // namespace convlab::cpu
