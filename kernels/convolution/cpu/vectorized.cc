// A row's outputs in the lanes of vectors.
//
// Idea. Neighbouring outputs of a row multiply the same weight with
// neighbouring inputs: one load, one instruction and one register do for up to
// 16 of them what blocked did one by one.
//
// Change from blocked. The block is four vectors wide and its arithmetic is
// written with Highway, once for all instruction sets; the file is compiled for
// each of them, and Create takes the best that the machine has. The last vector
// of a row ends with the row and computes some outputs twice, which is simpler
// than a mask and as fast. A row that is narrower than a vector goes to an
// instruction set with narrower vectors.
//
// Bound. A fused multiplication and addition takes 4 cycles and two can start
// in each, so 8 sums should be under way, but a block has 4: half of the peak.
// Each multiplication also needs a load, which at an unaligned address touches
// two cache lines and costs two of the two loads per cycle: half of the peak
// again. With AVX-512, a row of 29 outputs is two single vectors of one sum
// each: an eighth of the peak.
//
// Reached. Those bounds: wide rows come nearest to half of the peak, rows of
// two vectors to an eighth (docs/journal/cpu_vectorized.md).
#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/convolution/convolution.h"
#include "kernels/simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/cpu/vectorized.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef KERNELS_CONVOLUTION_CPU_VECTORIZED_ONCE
#define KERNELS_CONVOLUTION_CPU_VECTORIZED_ONCE
namespace convlab::cpu::vectorized {

// What this file compiles to for one instruction set.
struct Kernel {
  int64_t lanes;
  // Computes the output plane of one image and one filter.
  void (*convolve)(const Problem& problem, const float* image,
                   const float* filter, float* out);
};

}  // namespace convlab::cpu::vectorized
#endif  // KERNELS_CONVOLUTION_CPU_VECTORIZED_ONCE

HWY_BEFORE_NAMESPACE();
namespace convlab::cpu::vectorized {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
constexpr int64_t kLanes = hn::MaxLanes(D());

// kVectors vectors of neighbouring outputs of one row.
template <int kVectors>
void Block(const Problem& problem, const float* in, const float* filter,
           float* out) {
  const D d;
  const int64_t K = problem.kernel_size;
  hn::Vec<D> sums[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
  for (int64_t c = 0; c < problem.channels; ++c) {
    for (int64_t p = 0; p < K; ++p) {
      const float* row = in + (c * problem.height + p) * problem.width;
      for (int64_t q = 0; q < K; ++q, ++filter) {
        const auto weight = hn::Set(d, *filter);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          const auto inputs = hn::LoadU(d, row + q + v * kLanes);
          sums[v] = hn::MulAdd(inputs, weight, sums[v]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(sums[v], d, out + v * kLanes);
  }
}

void Convolve(const Problem& problem, const float* image, const float* filter,
              float* out) {
  constexpr int kVectors = 4;
  const int64_t W_out = problem.output_width();
  for (int64_t h = 0; h < problem.output_height(); ++h) {
    const float* in = image + h * problem.width;
    int64_t w = 0;
    for (; w + kVectors * kLanes <= W_out; w += kVectors * kLanes) {
      Block<kVectors>(problem, in + w, filter, out + w);
    }
    for (; w < W_out; w += kLanes) {
      // The last vector ends with the row and may compute outputs again.
      const int64_t first = std::min(w, W_out - kLanes);
      Block<1>(problem, in + first, filter, out + first);
    }
    out += W_out;
  }
}

Kernel GetKernel() { return {kLanes, Convolve}; }

}  // namespace HWY_NAMESPACE
}  // namespace convlab::cpu::vectorized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convlab::cpu {
namespace vectorized {
namespace {

class Vectorized : public Convolution {
 public:
  Vectorized(const Problem& problem, Workers& workers)
      : problem_(problem),
        workers_(workers),
        kernel_(
            ChosenKernel(CONVLAB_KERNELS(GetKernel), problem.output_width())) {}

  absl::Status Run(const float* x, const float* k, float* y, Stream) override {
    const int64_t M = problem_.filters;
    const int64_t image = problem_.channels * problem_.height * problem_.width;
    const int64_t filter = problem_.kernel_elements() / M;
    const int64_t plane = problem_.output_height() * problem_.output_width();
    workers_.For(problem_.batch * M, 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        kernel_.convolve(problem_, x + i / M * image, k + i % M * filter,
                         y + i * plane);
      }
    });
    return absl::OkStatus();
  }

 private:
  const Problem problem_;
  Workers& workers_;
  const Kernel kernel_;
};

}  // namespace
}  // namespace vectorized

extern const Variant kVectorized;
const Variant kVectorized = {
    "vectorized",
    Backend::kCpu,
    AccuracyClass::kFp32,
    Track::kLesson,
    "Neighbouring outputs of a row in the lanes of vectors, with the widest "
    "instructions that the processor has.",
    "One instruction multiplies and adds for up to 16 outputs at once.",
    SupportsAll,
    [](const Problem& problem, const Epilogue&, const Resources& resources)
        -> absl::StatusOr<std::unique_ptr<Convolution>> {
      return std::make_unique<vectorized::Vectorized>(problem,
                                                      *resources.workers);
    },
    /*estimate_ns=*/nullptr,
    /*detour=*/
    "It takes the library's vectors into the project's own loops, and shows "
    "the bound of loads that register_tiled removes.",
    /*exact_on_integers=*/true,
    /*by_cpu_target=*/true,
};

}  // namespace convlab::cpu
#endif  // HWY_ONCE
