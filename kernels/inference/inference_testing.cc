#include "kernels/inference/inference_testing.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/dataset/resize.h"
#include "common/weights/parameters.h"
#include "common/weights/tensor_file.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

// Networks that are not in the table: a single layer without a bias and without
// a convolution; no fully connected layer; some biases, an activation without a
// pooling after it, and one after a pooling.
std::vector<Network> OtherNetworks() {
  constexpr Activation kTanh = Activation::kTanh;
  constexpr Activation kRelu = Activation::kRelu;
  return {{"connected", {}, 1, 28, {FullyConnectedLayer{10, false}}},
          {"convolved",
           {},
           1,
           28,
           {ConvolutionLayer{3, 5, false}, MaxPool{2, 2, false},
            ConvolutionLayer{11, 12, true}}},
          {"mixed",
           {},
           1,
           30,
           {kRelu, ConvolutionLayer{4, 3, true}, ConvolutionLayer{6, 3, false},
            kTanh, MaxPool{3, 2, true}, kRelu, ConvolutionLayer{5, 3, true},
            kTanh, FullyConnectedLayer{12, false}, kRelu,
            FullyConnectedLayer{40, true}, FullyConnectedLayer{10, true}}}};
}

double Apply(Activation activation, double value) {
  if (activation == Activation::kTanh) return std::tanh(value);
  if (activation == Activation::kRelu) return std::max(value, 0.0);
  return value;
}

// Each layer from its definition, in double precision.
std::vector<double> LayerOutput(const ConvolutionLayer& layer,
                                const TensorShape& shape,
                                const LayerWeights& weights,
                                const std::vector<double>& in) {
  const int64_t size = shape.size, K = layer.kernel_size;
  std::vector<double> out;
  for (int64_t m = 0; m < layer.filters; ++m) {
    for (int64_t h = 0; h <= size - K; ++h) {
      for (int64_t w = 0; w <= size - K; ++w) {
        double sum = layer.bias ? weights.bias[m] : 0;
        for (int64_t c = 0; c < shape.channels; ++c) {
          for (int64_t p = 0; p < K; ++p) {
            for (int64_t q = 0; q < K; ++q) {
              sum += in[(c * size + h + p) * size + w + q] *
                     weights.weight[((m * shape.channels + c) * K + p) * K + q];
            }
          }
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

std::vector<double> LayerOutput(Activation activation, const TensorShape&,
                                const LayerWeights&,
                                const std::vector<double>& in) {
  std::vector<double> out;
  out.reserve(in.size());
  for (const double value : in) out.push_back(Apply(activation, value));
  return out;
}

std::vector<double> LayerOutput(const MaxPool& pool, const TensorShape& shape,
                                const LayerWeights&,
                                const std::vector<double>& in) {
  const int64_t size = shape.size, pooled = pool.Output(size);
  std::vector<double> out;
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t h = 0; h < pooled; ++h) {
      for (int64_t w = 0; w < pooled; ++w) {
        const int64_t top = h * pool.stride, left = w * pool.stride;
        double& largest = out.emplace_back(-1e300);
        for (int64_t y = top; y < std::min(top + pool.size, size); ++y) {
          for (int64_t x = left; x < std::min(left + pool.size, size); ++x) {
            largest = std::max(largest, in[(c * size + y) * size + x]);
          }
        }
      }
    }
  }
  return out;
}

std::vector<double> LayerOutput(const FullyConnectedLayer& layer,
                                const TensorShape&, const LayerWeights& weights,
                                const std::vector<double>& in) {
  std::vector<double> out(layer.outputs);
  for (int64_t o = 0; o < layer.outputs; ++o) {
    if (layer.bias) out[o] = weights.bias[o];
    for (size_t i = 0; i < in.size(); ++i) {
      out[o] += in[i] * weights.weight[o * in.size() + i];
    }
  }
  return out;
}

}  // namespace

Network FindTestNetwork(const std::string& name) {
  for (const Network& network : OtherNetworks()) {
    if (network.name == name) return network;
  }
  return **FindNetwork(name);
}

std::vector<InferenceCase> InferenceCases() {
  std::vector<InferenceCase> cases;
  for (const char* network : {"fa17-high", "sp19", "fa20", "lenet5",
                              "connected", "convolved", "mixed"}) {
    for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
      cases.emplace_back(network, backend);
    }
  }
  return cases;
}

std::string InferenceCaseName(
    const ::testing::TestParamInfo<InferenceCase>& info) {
  std::string name =
      absl::StrCat(std::get<0>(info.param), "_", Name(std::get<1>(info.param)));
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
}

void InferenceTest::SetUp() {
  if (on_gpu()) {
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }
  images_.count = 11;
  images_.height = images_.width = 28;
  std::uniform_int_distribution<int> pixel(0, 255);
  images_.pixels.resize(images_.count * 28 * 28);
  for (uint8_t& value : images_.pixels) value = pixel(generator_);
  weights_.layers.resize(network_.layers.size());
  // Inputs are raw pixels, which the first weights scale to tanh's range.
  float range = 1.0f / 255;
  for (const LayerParameters& parameters : ParametersOf(network_)) {
    LayerWeights& layer = weights_.layers[parameters.layer];
    const int64_t outputs = parameters.weight_shape[0];
    const int64_t count = *ElementCount(parameters.weight_shape);
    const bool convolves = parameters.weight_shape.size() == 4;
    layer.weight =
        Random(count, (convolves ? range : 3 * range) /
                          std::sqrt(static_cast<float>(count) / outputs));
    if (parameters.has_bias) layer.bias = Random(outputs, 0.1f);
    range = 1;
  }
  options_.backend = std::get<1>(GetParam());
  options_.variants.assign(
      convolutions_,
      *FindVariant(options_.backend, on_gpu() ? "naive" : "im2col_eigen"));
}

std::vector<float> InferenceTest::Random(int64_t count, float range) {
  std::uniform_real_distribution<float> distribution(-range, range);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator_);
  return values;
}

std::vector<double> InferenceTest::Logits(int64_t index) const {
  const int size = network_.image_size;
  std::vector<uint8_t> pixels(int64_t{size} * size);
  EnlargeImages(images_.pixels.data() + index * 28 * 28, 1, 28, size,
                pixels.data());
  std::vector<double> values(pixels.begin(), pixels.end());
  const std::vector<TensorShape> shapes = network_.Shapes();
  for (size_t i = 0; i < network_.layers.size(); ++i) {
    values = std::visit(
        [&](const auto& layer) {
          return LayerOutput(layer, shapes[i], weights_.layers[i], values);
        },
        network_.layers[i]);
  }
  return values;
}

}  // namespace convlab
