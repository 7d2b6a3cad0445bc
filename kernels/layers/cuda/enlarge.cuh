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
        step_(static_cast<float>(2 * size)),
        area_(d_ * d_),
        reciprocal_((1 - 0x1p-21f) / area_),
        larger_(enlarged <= kMostAtOnce ? InverseRoundedUp(area_) : 0) {}

  __device__ Tap TapOf(int i) const {
    const auto tap = integers_.TapOf(i);
    return {static_cast<int>(tap.first), static_cast<float>(tap.weight1)};
  }
  // Mixes two columns of a row of the input with its zeros.
  __device__ float Across(Tap column, const float* row) const {
    return Mix(column, row + column.first);
  }
  // The same where the first of them is at `from`.
  __device__ float Mix(Tap column, const float* from) const {
    return (d_ - column.weight1) * from[0] + column.weight1 * from[1];
  }
  // What both weights of a tap are together, and by how much the second one
  // grows from one tap to the next until it is as much as that: then it is 0
  // again, of the next row or column.
  __device__ float whole() const { return d_; }
  __device__ float step() const { return step_; }
  // The pixel of two rows after that.
  __device__ float Down(Tap row, float top, float bottom) const {
    return Down((d_ - row.weight1) * top + row.weight1 * bottom);
  }
  // Whether DownPair may be quicker for images of this size.
  __device__ bool at_once() const { return larger_ > 0; }
  // Two rows between which others lie: the upper one and how much the lower one
  // is larger, as DownPair needs them. All are integers below 2^24.
  struct Rows {
    float2 upper, rise;
  };
  __device__ Rows RowsOf(float2 top, float2 bottom) const {
    return {make_float2(d_ * top.x, d_ * top.y),
            make_float2(bottom.x - top.x, bottom.y - top.y)};
  }
  // Two neighbouring pixels as a word of two halves, the first in the low one.
  template <bool kAtOnce>
  __device__ uint32_t DownPair(float weight1, const Rows& rows) const {
    const auto pixel = [&](float upper, float rise) -> uint32_t {
      const float sum = weight1 * rise + upper;
      return __float_as_uint(kAtOnce ? DownAtOnce(sum) : Down(sum) + 0x1p23f);
    };
    // The highest and the lowest byte of 2^23 + v make the half 14 + v / 128.
    const uint32_t shifted =
        __byte_perm(pixel(rows.upper.x, rows.rise.x),
                    pixel(rows.upper.y, rows.rise.y), 0x7430);
    const __half2 values =
        __hfma2(reinterpret_cast<const __half2&>(shifted),
                __float2half2_rn(128), __float2half2_rn(-1792));
    return reinterpret_cast<const uint32_t&>(values);
  }

 private:
  // Up to this size 255 area_ is below 2^23.
  static constexpr int kMostAtOnce = 90;

  static __device__ float InverseRoundedUp(float x) { return __frcp_ru(x); }

  // The pixel of a sum over rows.
  __device__ float Down(float sum) const {
    // The reciprocal is a little less than it should be, by more than the
    // rounding errors: the quotient is never too large, and too small by one at
    // most.
    const float quotient = floorf(sum * reciprocal_);
    return sum - quotient * area_ >= area_ ? quotient + 1 : quotient;
  }
  // 2^23 and the pixel. The reciprocal is rounded up, by less than 2^-23 of it,
  // so that the product is never too small, and too large by less than
  // 1 / area_: rounded down it is the pixel.
  __device__ float DownAtOnce(float sum) const {
    return __fmaf_rd(sum, larger_, 0x1p23f);
  }

  const Interpolation integers_;
  const float d_, step_, area_, reciprocal_;
  const float larger_;  // 1 / area_ rounded up; 0: by too much
};

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_ENLARGE_CUH_
