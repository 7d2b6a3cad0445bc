#include <algorithm>
#include <vector>

#include "common/dataset/resize.h"
#include "kernels/layers/layers.h"
#include "kernels/simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layers/enlarge.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef KERNELS_LAYERS_ENLARGE_ONCE
#define KERNELS_LAYERS_ENLARGE_ONCE
namespace convlab::enlarging {

// EnlargeTaps and their divisor.
struct EnlargePlan {
  int64_t size, enlarged;
  std::vector<int32_t> first;
  std::vector<float> weight0, weight1;
  float divisor;
};

// The functions that this file compiles for one instruction set.
struct Kernel {
  int64_t lanes;
  // Enlarges one image; `padded` has room for one of its rows with a pixel
  // before and after it, and `rows` for as many enlarged rows; they hold zeros
  // and values of earlier images.
  void (*enlarge)(const EnlargePlan& plan, const uint8_t* image, float* padded,
                  float* rows, float* out);
};

}  // namespace convlab::enlarging
#endif  // KERNELS_LAYERS_ENLARGE_ONCE

HWY_BEFORE_NAMESPACE();
namespace convlab::enlarging {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());

// All sums are whole numbers below 2^24, which floats hold exactly.
void Enlarge(const EnlargePlan& plan, const uint8_t* image, float* padded,
             float* rows, float* out) {
  const D d;
  const hn::RebindToSigned<D> indices;
  const int64_t enlarged = plan.enlarged;
  for (int64_t y = 0; y < plan.size; ++y, image += plan.size) {
    std::copy_n(image, plan.size, padded + 1);
    rows += enlarged;
    for (int64_t x = 0; x < enlarged; x += kLanes) {
      // The last vector ends with the row and may overlap the one before.
      const int64_t i = std::min(x, enlarged - kLanes);
      const auto first = hn::LoadU(indices, plan.first.data() + i);
      const V sum = hn::Mul(hn::LoadU(d, plan.weight0.data() + i),
                            hn::GatherIndex(d, padded, first));
      hn::StoreU(hn::MulAdd(hn::LoadU(d, plan.weight1.data() + i),
                            hn::GatherIndex(d, padded + 1, first), sum),
                 d, rows + i);
    }
  }
  rows -= plan.size * enlarged;
  // A little less than the reciprocal, by more than all rounding errors: the
  // quotient is never too large, and too small by at most one.
  const V reciprocal = hn::Set(d, (1 - 0x1p-21f) / plan.divisor);
  const V divisor = hn::Set(d, plan.divisor), one = hn::Set(d, 1);
  for (int64_t y = 0; y < enlarged; ++y, out += enlarged) {
    const float* const above = rows + plan.first[y] * enlarged;
    const V weight0 = hn::Set(d, plan.weight0[y]);
    const V weight1 = hn::Set(d, plan.weight1[y]);
    for (int64_t x = 0; x < enlarged; x += kLanes) {
      const int64_t i = std::min(x, enlarged - kLanes);
      const V sum = hn::MulAdd(weight1, hn::LoadU(d, above + enlarged + i),
                               hn::Mul(weight0, hn::LoadU(d, above + i)));
      const V quotient = hn::Floor(hn::Mul(sum, reciprocal));
      const V rest = hn::NegMulAdd(quotient, divisor, sum);
      hn::StoreU(
          hn::Add(quotient, hn::IfThenElseZero(hn::Ge(rest, divisor), one)), d,
          out + i);
    }
  }
}

Kernel GetKernel() { return {kLanes, Enlarge}; }

}  // namespace HWY_NAMESPACE
}  // namespace convlab::enlarging
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convlab {
namespace enlarging {
namespace {

const KernelTable<Kernel>& Kernels() {
  static const KernelTable<Kernel> table = CONVLAB_KERNELS(GetKernel);
  return table;
}

}  // namespace
}  // namespace enlarging

void EnlargeToFloats(const uint8_t* images, int64_t count, int size,
                     int enlarged, float* out, Workers& workers) {
  constexpr int64_t kImagesPerPiece = 4;
  const int64_t in_pixels = int64_t{size} * size;
  const int64_t out_pixels = int64_t{enlarged} * enlarged;
  enlarging::EnlargePlan plan = {size, enlarged, {}, {}, {}, 4.0f * out_pixels};
  for (const EnlargeTap& tap : EnlargeTaps(size, enlarged)) {
    plan.first.push_back(tap.first);
    plan.weight0.push_back(tap.weight0);
    plan.weight1.push_back(tap.weight1);
  }
  const bool exact = int64_t{255} * 4 * out_pixels < int64_t{1} << 24;
  const enlarging::Kernel kernel = ChosenKernel(enlarging::Kernels(), enlarged);
  workers.For(count, kImagesPerPiece, [&](int, int64_t begin, int64_t end) {
    if (size == enlarged) {
      std::copy(images + begin * in_pixels, images + end * in_pixels,
                out + begin * out_pixels);
      return;
    }
    if (!exact) {
      std::vector<uint8_t> bytes((end - begin) * out_pixels);
      EnlargeImages(images + begin * in_pixels, end - begin, size, enlarged,
                    bytes.data());
      std::copy(bytes.begin(), bytes.end(), out + begin * out_pixels);
      return;
    }
    std::vector<float> padded(size + 2), rows(int64_t{size + 2} * enlarged);
    for (int64_t i = begin; i < end; ++i) {
      kernel.enlarge(plan, images + i * in_pixels, padded.data(), rows.data(),
                     out + i * out_pixels);
    }
  });
}

}  // namespace convlab
#endif  // HWY_ONCE
