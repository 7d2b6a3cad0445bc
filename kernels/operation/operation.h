// The convolution that people have: with zero padding, strides, rectangular
// filters and an epilogue. Problem (kernels/convolution/problem.h) is the case
// without these, for which the variants are made; an operation is computed by
// a variant where it can be made a Problem, and by a general kernel elsewhere.
//
//   s[b,m,i,j] = sum over c,p,q of x[b,c,i*stride_y+p,j*stride_x+q] *
//   k[m,c,p,q]
//
// where x is padded, and y is s with the epilogue applied. x and y are NCHW or
// both NHWC, k is [M, C, kernel_height, kernel_width], all row-major and all of
// float32 or of halves, which are rounded once, when y is stored. The zeros of
// the padding take part as other inputs do: times an infinite weight they are
// NaN.
#ifndef KERNELS_OPERATION_OPERATION_H_
#define KERNELS_OPERATION_OPERATION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/network/layer.h"
#include "kernels/convolution/problem.h"

namespace convlab {

struct Operation {
  int64_t batch = 1, channels = 1, height = 1, width = 1;  // of x
  int64_t filters = 1, kernel_height = 1, kernel_width = 1;
  int64_t stride_y = 1, stride_x = 1;
  int64_t top = 0, bottom = 0, left = 0, right = 0;  // rows, columns of zeros
  bool bias = false;
  Activation activation = Activation::kNone;
  MaxPool pool;
  bool channels_last = false;  // NHWC
  bool halves = false;

  int64_t padded_height() const { return top + height + bottom; }
  int64_t padded_width() const { return left + width + right; }
  bool padded() const { return top + bottom + left + right > 0; }
  // Of s.
  int64_t sums_height() const {
    return (padded_height() - kernel_height) / stride_y + 1;
  }
  int64_t sums_width() const {
    return (padded_width() - kernel_width) / stride_x + 1;
  }
  // Of y.
  int64_t output_height() const { return pool.Output(sums_height()); }
  int64_t output_width() const { return pool.Output(sums_width()); }

  bool has_epilogue() const {
    return bias || activation != Activation::kNone || pool.size > 0;
  }
  // Products of each sum.
  int64_t taps() const { return channels * kernel_height * kernel_width; }

  // Whether the tensors are what a Problem has: NCHW of float32.
  bool is_plain() const { return !channels_last && !halves; }
  int64_t element_bytes() const { return halves ? 2 : 4; }

  // Elements.
  int64_t input_elements() const { return batch * channels * height * width; }
  int64_t padded_elements() const {
    return batch * channels * padded_height() * padded_width();
  }
  int64_t kernel_elements() const { return filters * taps(); }
  int64_t sums_elements() const {
    return batch * filters * sums_height() * sums_width();
  }
  int64_t output_elements() const {
    return batch * filters * output_height() * output_width();
  }
};

// Strides are 1 to kMaxStride.
constexpr int64_t kMaxStride = 4;

// InvalidArgument, with what was found and expected, unless all sizes are
// positive and below 2^31, strides are in their range, filters fit into the
// padded image, windows of the pooling begin within s, and the products and
// bytes can be counted in 63 bits.
absl::Status CheckOperation(const Operation& operation);

// "B=8 C=3 224x224 M=64 7x7 stride 2x2 padding 3,3,3,3", with the epilogue.
std::string ToString(const Operation& operation);

// Whether the sums are those of a Problem over the padded input: stride 1,
// square filters and plain tensors.
bool IsProblem(const Operation& operation);
// That problem.
Problem PaddedProblem(const Operation& operation);
// The operation whose padded input is x as it is.
Operation WithoutPadding(const Operation& operation);

}  // namespace convlab

#endif  // KERNELS_OPERATION_OPERATION_H_
