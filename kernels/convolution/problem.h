// The operation that this project is about, and its size.
//
//   y[b,m,h,w] = sum over c,p,q of x[b,c,h+p,w+q] * k[m,c,p,q]
//
// Cross-correlation, stride 1, no padding, square kernels, no bias. x is NCHW,
// k is MCKK, y is NCHW, all row-major float32.
//
// This header is small because nvcc parses it once per architecture.
#ifndef KERNELS_CONVOLUTION_PROBLEM_H_
#define KERNELS_CONVOLUTION_PROBLEM_H_

#include <cstdint>

namespace convlab {

struct Problem {
  int64_t batch = 1;        // B
  int64_t channels = 1;     // C, of the input
  int64_t height = 1;       // H, of the input
  int64_t width = 1;        // W, of the input
  int64_t filters = 1;      // M, channels of the output
  int64_t kernel_size = 1;  // K

  int64_t output_height() const { return height - kernel_size + 1; }
  int64_t output_width() const { return width - kernel_size + 1; }

  // Elements of x, k and y.
  int64_t input_elements() const { return batch * channels * height * width; }
  int64_t kernel_elements() const {
    return filters * channels * kernel_size * kernel_size;
  }
  int64_t output_elements() const {
    return batch * filters * output_height() * output_width();
  }

  // Multiplications and additions of the definition, whatever the algorithm.
  int64_t flops() const {
    return 2 * output_elements() * channels * kernel_size * kernel_size;
  }
  // The least bytes that must move: inputs read once, outputs written once.
  int64_t min_bytes() const {
    return 4 * (input_elements() + kernel_elements() + output_elements());
  }
};

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_PROBLEM_H_
