#include "kernels/layers/layers.h"

#include <algorithm>
#include <limits>

#include "Eigen/Core"

namespace convlab {
namespace {

using Array = Eigen::Array<float, Eigen::Dynamic, 1>;
using Matrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Large enough to hide the hand-out, small enough to stay in a core's cache.
constexpr int64_t kValuesPerPiece = 16 << 10;

// std::max would drop a NaN that stands in its second argument.
float MaxOrNan(float a, float b) { return a > b || a != a ? a : b; }

}  // namespace

void Activate(Activation activation, int64_t count, float* values,
              Workers& workers) {
  if (activation == Activation::kNone) return;
  workers.For(count, kValuesPerPiece, [&](int, int64_t begin, int64_t end) {
    if (activation == Activation::kTanh) {
      Eigen::Map<Array> piece(values + begin, end - begin);
      piece = piece.tanh();
    } else {
      for (int64_t i = begin; i < end; ++i) {
        values[i] = MaxOrNan(values[i], 0);
      }
    }
  });
}

void PoolMax(const MaxPool& pool, int64_t planes, int64_t size, const float* in,
             float* out, Workers& workers) {
  const int64_t pooled = pool.Output(size);
  workers.For(planes, 16, [&](int, int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const float* image = in + plane * size * size;
      float* result = out + plane * pooled * pooled;
      for (int64_t h = 0; h < pooled; ++h) {
        const int64_t bottom = std::min(h * pool.stride + pool.size, size);
        for (int64_t w = 0; w < pooled; ++w) {
          const int64_t right = std::min(w * pool.stride + pool.size, size);
          float largest = -std::numeric_limits<float>::infinity();
          for (int64_t y = h * pool.stride; y < bottom; ++y) {
            for (int64_t x = w * pool.stride; x < right; ++x) {
              largest = MaxOrNan(image[y * size + x], largest);
            }
          }
          result[h * pooled + w] = largest;
        }
      }
    }
  });
}

void FullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                    const float* in, const float* weight, const float* bias,
                    float* out, Workers& workers) {
  const Eigen::Map<const Matrix> weights(weight, outputs, inputs);
  const Eigen::Map<const Eigen::RowVectorXf> biases(bias, outputs);
  // Each piece reads all the weights once, so a piece is many images; but never
  // so many that a core stays idle.
  const int64_t share = (batch + workers.count() - 1) / workers.count();
  workers.For(batch, std::min<int64_t>(128, share),
              [&](int, int64_t begin, int64_t end) {
                const int64_t rows = end - begin;
                const Eigen::Map<const Matrix> images(in + begin * inputs, rows,
                                                      inputs);
                Eigen::Map<Matrix> result(out + begin * outputs, rows, outputs);
                result.noalias() = images * weights.transpose();
                result.rowwise() += biases;
              });
}

void Softmax(int64_t batch, int64_t classes, float* values) {
  for (int64_t b = 0; b < batch; ++b) {
    Eigen::Map<Array> row(values + b * classes, classes);
    row = (row - row.maxCoeff()).exp();
    row /= row.sum();
  }
}

}  // namespace convlab
