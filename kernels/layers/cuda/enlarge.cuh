// The interpolation of common/dataset/resize.h in device code.
#ifndef KERNELS_LAYERS_CUDA_ENLARGE_CUH_
#define KERNELS_LAYERS_CUDA_ENLARGE_CUH_

#include <cuda_fp16.h>

#include <cstdint>

namespace convlab::cuda {

// Images of size x size that become enlarged x enlarged, at most 2048: sums fit
// into 32 bits.
class Interpolation {
 public:
  // The first input row or column that an output row or column mixes, counted
  // in an input with a zero at each end, and the weight of the second.
  struct Tap {
    unsigned first, weight1;
  };

  __device__ Interpolation(int size, int enlarged)
      : size_(size), enlarged_(enlarged), d_(2 * enlarged) {}

  __device__ Tap TapOf(int i) const {
    // n + d is positive, see resize.cc.
    const unsigned shifted = (2 * i + 1) * size_ + enlarged_;
    return {shifted / d_, shifted % d_};
  }

  // The output pixel by its row and column: pixel(y, x) reads the input with
  // its zeros.
  template <typename Pixel>
  __device__ unsigned Mix(Tap row, Tap column, const Pixel& pixel) const {
    const auto mix = [&](unsigned y) -> unsigned {
      return (d_ - column.weight1) * pixel(y, column.first) +
             column.weight1 * pixel(y, column.first + 1);
    };
    return ((d_ - row.weight1) * mix(row.first) +
            row.weight1 * mix(row.first + 1)) /
           (d_ * d_);
  }

 private:
  const int size_, enlarged_;
  const unsigned d_;
};

// Up to this size sums are below 2^24, which floats hold exactly.
constexpr int kSmallEnlarged = 128;

// The same in floats up to that size, columns first: what two columns of a row
// give is an integer, too, of which two rows are mixed.
class SmallInterpolation {
 public:
  struct Tap {
    int first;
    float weight1;
  };

  __device__ SmallInterpolation(int size, int enlarged)
      : integers_(size, enlarged),
        d_(static_cast<float>(2 * enlarged)),
        area_(d_ * d_),
        reciprocal_((1 - 0x1p-21f) / area_),
        larger_(enlarged <= kMostAtOnce ? InverseRoundedUp(area_) : 0) {}

  __device__ Tap TapOf(int i) const {
    const auto tap = integers_.TapOf(i);
    return {static_cast<int>(tap.first), static_cast<float>(tap.weight1)};
  }
  // Mixes two columns of a row of the input with its zeros.
  __device__ float Across(Tap column, const float* row) const {
    const float* const from = row + column.first;
    return (d_ - column.weight1) * from[0] + column.weight1 * from[1];
  }
  // The pixel of two rows after that.
  __device__ float Down(Tap row, float top, float bottom) const {
    const float sum = (d_ - row.weight1) * top + row.weight1 * bottom;
    // The reciprocal is a little less than it should be, by more than the
    // rounding errors: the quotient is never too large, and too small by one at
    // most.
    const float quotient = floorf(sum * reciprocal_);
    return sum - quotient * area_ >= area_ ? quotient + 1 : quotient;
  }
  // Whether DownPair may be quicker for images of this size.
  __device__ bool at_once() const { return larger_ > 0; }
  // Two neighbouring pixels as a word of two halves, the first in the low one.
  template <bool kAtOnce>
  __device__ uint32_t DownPair(Tap row, float2 top, float2 bottom) const {
    const auto pixel = [&](float a, float b) -> uint32_t {
      return __float_as_uint(kAtOnce ? DownAtOnce(row, a, b)
                                     : Down(row, a, b) + 0x1p23f);
    };
    // The highest and the lowest byte of 2^23 + v make the half 14 + v / 128.
    const uint32_t shifted =
        __byte_perm(pixel(top.x, bottom.x), pixel(top.y, bottom.y), 0x7430);
    const __half2 values =
        __hfma2(reinterpret_cast<const __half2&>(shifted),
                __float2half2_rn(128), __float2half2_rn(-1792));
    return reinterpret_cast<const uint32_t&>(values);
  }

 private:
  // Up to this size 255 area_ is below 2^23.
  static constexpr int kMostAtOnce = 90;

  static __device__ float InverseRoundedUp(float x) { return __frcp_ru(x); }

  // 2^23 and the pixel. The reciprocal is rounded up, by less than 2^-23 of it,
  // so that the product is never too small, and too large by less than
  // 1 / area_: rounded down it is the pixel.
  __device__ float DownAtOnce(Tap row, float top, float bottom) const {
    const float sum = (d_ - row.weight1) * top + row.weight1 * bottom;
    return __fmaf_rd(sum, larger_, 0x1p23f);
  }

  const Interpolation integers_;
  const float d_, area_, reciprocal_;
  const float larger_;  // 1 / area_ rounded up; 0: by too much
};

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_ENLARGE_CUH_
