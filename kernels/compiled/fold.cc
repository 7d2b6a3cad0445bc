#include "kernels/compiled/fold.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "Eigen/Core"

namespace convlab {
namespace {

using Matrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// One output of the layers so far as a linear function of their input: the
// factors of its values, and the constant.
struct Row {
  std::vector<double> factors;
  double constant;
};

// The same output as a function of the input of the convolution that computes
// these values. A filter's factors spread over the inputs of its window.
void PassConvolution(const Matrix& filters_by_tap, int64_t kernel_size,
                     const std::vector<float>& bias, const TensorShape& in,
                     const TensorShape& out, Row& row) {
  const int64_t area = out.size * out.size;
  const Eigen::Map<const Matrix> factors(row.factors.data(), out.channels,
                                         area);
  if (!bias.empty()) {
    for (int64_t m = 0; m < out.channels; ++m) {
      row.constant += bias[m] * factors.row(m).sum();
    }
  }
  // [tap (c, p, q), output position]
  const Matrix spread = filters_by_tap * factors;
  std::vector<double> passed(in.values(), 0);
  int64_t tap = 0;
  for (int64_t c = 0; c < in.channels; ++c) {
    for (int64_t p = 0; p < kernel_size; ++p) {
      for (int64_t q = 0; q < kernel_size; ++q, ++tap) {
        const double* from = spread.row(tap).data();
        for (int64_t h = 0; h < out.size; ++h, from += out.size) {
          double* const to =
              passed.data() + (c * in.size + h + p) * in.size + q;
          for (int64_t w = 0; w < out.size; ++w) to[w] += from[w];
        }
      }
    }
  }
  row.factors = std::move(passed);
}

// The same for a fully connected layer.
void PassConnected(const LayerWeights& layer, int64_t inputs, Row& row) {
  std::vector<double> passed(inputs, 0);
  for (size_t o = 0; o < row.factors.size(); ++o) {
    const double factor = row.factors[o];
    if (factor == 0) continue;  // all but one of the last layer's
    if (!layer.bias.empty()) row.constant += factor * layer.bias[o];
    const float* const weights = layer.weight.data() + o * inputs;
    for (int64_t i = 0; i < inputs; ++i) passed[i] += factor * weights[i];
  }
  row.factors = std::move(passed);
}

// The filters [M, taps] of a convolution, transposed; empty for other layers.
Matrix FiltersByTap(const Layer& layer, const LayerWeights& weights) {
  const auto* const convolution = std::get_if<ConvolutionLayer>(&layer);
  if (convolution == nullptr) return Matrix();
  using Filters =
      Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const int64_t M = convolution->filters;
  return Eigen::Map<const Filters>(weights.weight.data(), M,
                                   weights.weight.size() / M)
      .cast<double>()
      .transpose();
}

}  // namespace

LayerWeights FoldLayers(const Network& network, const NetworkWeights& weights,
                        const Stage& stage, Workers& workers) {
  const std::vector<TensorShape> shapes = network.Shapes();
  const size_t end = stage.first + stage.linear;
  std::vector<Matrix> filters;
  for (size_t i = stage.first; i < end; ++i) {
    filters.push_back(FiltersByTap(network.layers[i], weights.layers[i]));
  }
  const int64_t inputs = shapes[stage.first].values();
  const int64_t outputs = shapes[end].values();
  LayerWeights folded;
  folded.weight.resize(inputs * outputs);
  if (stage.bias) folded.bias.resize(outputs);
  workers.For(outputs, 1, [&](int, int64_t output, int64_t) {
    Row row = {std::vector<double>(outputs, 0), 0};
    row.factors[output] = 1;
    for (size_t i = end; i-- > stage.first;) {
      const LayerWeights& layer = weights.layers[i];
      if (const auto* convolution =
              std::get_if<ConvolutionLayer>(&network.layers[i])) {
        PassConvolution(filters[i - stage.first], convolution->kernel_size,
                        layer.bias, shapes[i], shapes[i + 1], row);
      } else {
        PassConnected(layer, shapes[i].values(), row);
      }
    }
    std::transform(row.factors.begin(), row.factors.end(),
                   folded.weight.begin() + output * inputs,
                   [](double factor) { return static_cast<float>(factor); });
    if (stage.bias) folded.bias[output] = static_cast<float>(row.constant);
  });
  return folded;
}

}  // namespace convlab
