// Every convolution: one of stride 1 over phases of the image.
//
// Idea. With a stride of s, the inputs that a tap meets at neighbouring outputs
// lie s apart. Divide each padded plane into its phases, of which phase (r, t)
// holds the pixels of rows r, r + s, r + 2s, ... and columns t, t + s, ...: now
// they lie side by side, in the phase (p mod s, q mod s), from (p div s, q div
// s) on. So an operation is a convolution of stride 1 with a list of taps, each
// of which says where its input stands, and dense_lanes computes it as it
// computes any list of taps. Rectangular filters are another list, and the
// padding is part of the copy. Only products of the definition are computed.
//
// Change from dense_lanes. The list of taps, and the copy of the images that
// come next, which all workers make together before they compute; without
// padding and strides there is none.
//
// Cost. A copy of the input, a few images at a time, so that it stays in cache.
//
// Accuracy. Each sum adds its taps by fused multiply-adds in the order c, p, q:
// the contract of class fp32 holds as it does for the plain loop.
//
// Bound. The arithmetic, where there are more than a few filters.
#include "kernels/operation/cpu/general.h"

#include <algorithm>
#include <functional>

#include "common/math/rounding.h"
#include "kernels/convolution/cpu/filter_groups.h"
#include "kernels/layers/layers.h"

namespace convlab::cpu {
namespace {

// Of arranged images: what caches hold beside weights and outputs, but enough
// images that no worker waits.
constexpr int64_t kArrangedFloats = 1 << 20;
constexpr int64_t kImagesPerWorker = 4;

// MakeSpans takes a problem. This one has rows of so many inputs, and outputs
// of that size.
Problem RowsOf(int64_t width, int64_t output_height, int64_t output_width) {
  const int64_t size = width - output_width + 1;
  return {1, 1, output_height + size - 1, width, 1, size};
}

// Groups of equal size but for the last, and enough for all workers.
int64_t FiltersOfGroup(const Operation& operation, int64_t most,
                       int64_t workers) {
  const int64_t groups =
      std::clamp(CeilDivide(workers, operation.batch),
                 CeilDivide(operation.filters, most), operation.filters);
  return CeilDivide(operation.filters, groups);
}

}  // namespace

GeneralConvolution::GeneralConvolution(const Operation& operation,
                                       Workers& workers)
    : operation_(operation),
      workers_(workers),
      kernel_(dense_lanes::ChosenBlockKernel(operation.sums_width())),
      arranges_(operation.padded() || operation.stride_y > 1 ||
                operation.stride_x > 1),
      phases_y_(std::min(operation.stride_y, operation.kernel_height)),
      phases_x_(std::min(operation.stride_x, operation.kernel_width)),
      phase_height_(CeilDivide(operation.padded_height(), operation.stride_y)),
      phase_width_(CeilDivide(operation.padded_width(), operation.stride_x)),
      group_(FiltersOfGroup(operation, kernel_.most_filters, workers.count())),
      images_(std::min(
          operation.batch,
          std::max(kImagesPerWorker * workers.count(),
                   kArrangedFloats /
                       (operation.channels * phase_height_ * phase_width_)))),
      spans_(dense_lanes::MakeSpans(
          RowsOf(phase_width_, operation.sums_height(), operation.sums_width()),
          kernel_.lanes, /*aligned=*/0)),
      arranged_(arranges_ ? images_ * operation.channels * phases_y_ *
                                phases_x_ * phase_height_ * phase_width_
                          : 0),
      sums_(operation.pool.size == 0
                ? 0
                : workers.count() * group_ * operation.sums_height() *
                      operation.sums_width()) {
  const Operation& o = operation_;
  for (int64_t c = 0; c < o.channels; ++c) {
    for (int64_t p = 0; p < o.kernel_height; ++p) {
      for (int64_t q = 0; q < o.kernel_width; ++q) {
        const int64_t phase =
            (c * phases_y_ + p % o.stride_y) * phases_x_ + q % o.stride_x;
        taps_.push_back((phase * phase_height_ + p / o.stride_y) *
                            phase_width_ +
                        q / o.stride_x);
      }
    }
  }
}

void GeneralConvolution::PrepareFilters(const float* k, float* filters) const {
  GroupFilters(k, operation_.filters, operation_.taps(), group_, filters);
}

void GeneralConvolution::Run(const float* x, const float* filters,
                             const float* bias, float* y) {
  const Operation& o = operation_;
  const int64_t plane = o.height * o.width;
  const int64_t arranged_plane =
      phases_y_ * phases_x_ * phase_height_ * phase_width_;
  const int64_t groups = CeilDivide(o.filters, group_);
  const int64_t outputs = o.output_elements() / o.batch;
  for (int64_t b = 0; b < o.batch; b += images_) {
    const int64_t images = std::min(images_, o.batch - b);
    const float* in = x + b * o.channels * plane;
    int64_t image = o.channels * plane;
    // By reference, which std::function keeps without memory of its own.
    const auto arrange = [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ArrangePlane(in + i * plane, arranged_.data() + i * arranged_plane);
      }
    };
    if (arranges_) workers_.For(images * o.channels, 1, std::cref(arrange));
    const float* const from = arranges_ ? arranged_.data() : in;
    if (arranges_) image = o.channels * arranged_plane;
    const auto convolve = [&](int worker, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ConvolveGroup(from + i / groups * image, filters, i % groups * group_,
                      worker, bias, y + (b + i / groups) * outputs);
      }
    };
    workers_.For(images * groups, 1, std::cref(convolve));
  }
}

// Divides a plane of the image into its phases.
void GeneralConvolution::ArrangePlane(const float* x, float* arranged) const {
  const Operation& o = operation_;
  for (int64_t r = 0; r < phases_y_; ++r) {
    for (int64_t t = 0; t < phases_x_; ++t) {
      // The columns of the phase that lie in the image, [begin, end).
      const int64_t begin =
          std::min(CeilDivide(std::max<int64_t>(o.left - t, 0), o.stride_x),
                   phase_width_);
      const int64_t end = std::clamp(
          CeilDivide(std::max<int64_t>(o.left + o.width - t, 0), o.stride_x),
          begin, phase_width_);
      for (int64_t i = 0; i < phase_height_; ++i, arranged += phase_width_) {
        const int64_t row = i * o.stride_y + r - o.top;
        if (row < 0 || row >= o.height) {
          std::fill_n(arranged, phase_width_, 0.f);
          continue;
        }
        std::fill_n(arranged, begin, 0.f);
        const float* const from = x + row * o.width + t - o.left;
        for (int64_t j = begin; j < end; ++j) {
          arranged[j] = from[j * o.stride_x];
        }
        std::fill(arranged + end, arranged + phase_width_, 0.f);
      }
    }
  }
}

// Computes the filters of a group, from the `first` on, for an image.
void GeneralConvolution::ConvolveGroup(const float* image, const float* filters,
                                       int64_t first, int worker,
                                       const float* bias, float* y) {
  const Operation& o = operation_;
  const int64_t height = o.sums_height(), width = o.sums_width();
  const dense_lanes::Plan plan = {spans_.data(), taps_.data(), o.taps(),
                                  height * width, /*stream=*/false};
  float* const to = y + first * (o.output_height() * o.output_width());
  dense_lanes::Block block = {};
  block.image = image;
  block.weights = filters + first * o.taps();
  block.filters = static_cast<int>(std::min(group_, o.filters - first));
  block.end = static_cast<int64_t>(spans_.size());
  block.out =
      o.pool.size == 0 ? to : sums_.data() + worker * group_ * height * width;
  kernel_.convolve(plan, block);
  if (!o.has_epilogue()) return;
  FinishPlanes(o.pool, o.activation, bias == nullptr ? nullptr : bias + first,
               block.filters, height, width, block.out, to);
}

}  // namespace convlab::cpu
