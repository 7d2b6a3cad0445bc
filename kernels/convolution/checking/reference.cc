#include "kernels/convolution/checking/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace convlab {
namespace {

// fmax would drop a NaN.
double MaxOrNan(double a, double b) { return a > b || std::isnan(a) ? a : b; }

double Activate(Activation activation, double value) {
  if (activation == Activation::kTanh) return std::tanh(value);
  if (activation == Activation::kRelu) return MaxOrNan(value, 0);
  return value;
}

// Pools a plane of height x width.
void PoolPlane(const MaxPool& pool, int64_t height, int64_t width,
               const double* in, double* out) {
  for (int64_t h = 0; h < pool.Output(height); ++h) {
    const int64_t top = h * pool.stride;
    for (int64_t w = 0; w < pool.Output(width); ++w) {
      const int64_t left = w * pool.stride;
      double largest = in[top * width + left];
      for (int64_t p = top; p < std::min(top + pool.size, height); ++p) {
        for (int64_t q = left; q < std::min(left + pool.size, width); ++q) {
          largest = MaxOrNan(in[p * width + q], largest);
        }
      }
      *out++ = largest;
    }
  }
}

// Calls add(row, weight, in) for each output row and each weight of its sums,
// in the order c, p, q: `in` are the inputs that the weight meets there. The
// rows of one plane, an output channel of an image, are one worker's.
template <typename Add>
void ForRows(const Problem& problem, const float* x, const float* k,
             Workers& workers, Add add) {
  const int64_t channels = problem.channels;
  const int64_t size = problem.kernel_size;
  const int64_t output_height = problem.output_height();
  workers.For(problem.batch * problem.filters, 1,
              [&](int, int64_t begin, int64_t end) {
                for (int64_t plane = begin; plane < end; ++plane) {
                  const int64_t b = plane / problem.filters;
                  const int64_t m = plane % problem.filters;
                  for (int64_t h = 0; h < output_height; ++h) {
                    for (int64_t c = 0; c < channels; ++c) {
                      for (int64_t p = 0; p < size; ++p) {
                        const float* in =
                            x + ((b * channels + c) * problem.height + h + p) *
                                    problem.width;
                        const float* weights =
                            k + ((m * channels + c) * size + p) * size;
                        for (int64_t q = 0; q < size; ++q) {
                          add(plane * output_height + h, weights[q], in + q);
                        }
                      }
                    }
                  }
                }
              });
}

}  // namespace

std::vector<double> ReferenceConvolution(const Problem& problem, const float* x,
                                         const float* k, Workers& workers) {
  std::vector<double> y(problem.output_elements());
  const int64_t width = problem.output_width();
  ForRows(problem, x, k, workers,
          [&](int64_t row, float weight, const float* in) {
            double* const out = y.data() + row * width;
            const double factor = weight;
            for (int64_t w = 0; w < width; ++w) out[w] += factor * in[w];
          });
  return y;
}

ReferenceSums ReferenceWithMagnitudes(const Problem& problem, const float* x,
                                      const float* k, Workers& workers) {
  const int64_t outputs = problem.output_elements();
  ReferenceSums sums = {std::vector<double>(outputs),
                        std::vector<double>(outputs),
                        std::vector<float>(outputs)};
  const int64_t width = problem.output_width();
  ForRows(problem, x, k, workers,
          [&](int64_t row, float weight, const float* in) {
            double* const y = sums.y.data() + row * width;
            double* const magnitude = sums.magnitude.data() + row * width;
            float* const plain = sums.plain.data() + row * width;
            const double factor = weight;
            for (int64_t w = 0; w < width; ++w) {
              const double product = factor * in[w];
              y[w] += product;
              magnitude[w] += std::abs(product);
              plain[w] += weight * in[w];
            }
          });
  return sums;
}

std::vector<double> ReferenceEpilogue(const Problem& problem,
                                      const Epilogue& epilogue,
                                      std::vector<double> y, Workers& workers) {
  const int64_t height = problem.output_height();
  const int64_t width = problem.output_width();
  const MaxPool& pool = epilogue.pool;
  const int64_t pooled = pool.Output(height) * pool.Output(width);
  std::vector<double> out(pool.size == 0 ? 0
                                         : epilogue.output_elements(problem));
  workers.For(
      problem.batch * problem.filters, 1, [&](int, int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          double* const values = y.data() + plane * height * width;
          const double bias = epilogue.bias == nullptr
                                  ? 0
                                  : epilogue.bias[plane % problem.filters];
          for (int64_t i = 0; i < height * width; ++i) {
            values[i] = Activate(epilogue.activation, values[i] + bias);
          }
          if (pool.size == 0) continue;
          PoolPlane(pool, height, width, values, out.data() + plane * pooled);
        }
      });
  return pool.size == 0 ? std::move(y) : std::move(out);
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
