#include "kernels/convolution/checking/reference.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace convlab {

std::vector<double> ReferenceConvolution(const Problem& problem, const float* x,
                                         const float* k, Workers& workers) {
  const int64_t channels = problem.channels;
  const int64_t height = problem.height;
  const int64_t width = problem.width;
  const int64_t size = problem.kernel_size;
  const int64_t output_height = problem.output_height();
  const int64_t output_width = problem.output_width();
  std::vector<double> y(problem.output_elements());
  // A plane is one output channel of one image. The innermost loop runs over
  // columns, which are contiguous in memory; in float64 the order of summation
  // does not matter.
  workers.For(
      problem.batch * problem.filters, 1, [&](int, int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          const int64_t b = plane / problem.filters;
          const int64_t m = plane % problem.filters;
          for (int64_t h = 0; h < output_height; ++h) {
            double* out = y.data() + (plane * output_height + h) * output_width;
            for (int64_t c = 0; c < channels; ++c) {
              for (int64_t p = 0; p < size; ++p) {
                const float* in =
                    x + ((b * channels + c) * height + h + p) * width;
                const float* weights =
                    k + ((m * channels + c) * size + p) * size;
                for (int64_t q = 0; q < size; ++q) {
                  const double weight = weights[q];
                  for (int64_t w = 0; w < output_width; ++w) {
                    out[w] += weight * in[w + q];
                  }
                }
              }
            }
          }
        }
      });
  return y;
}

double RelativeError(const float* y, const std::vector<double>& reference) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double d = y[i] - reference[i];
    difference += d * d;
    norm += reference[i] * reference[i];
  }
  if (difference == 0) return 0;
  if (norm == 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(difference / norm);
}

}  // namespace convlab
