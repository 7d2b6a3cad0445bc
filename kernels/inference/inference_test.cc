// Compares inference with a network in double precision, with random weights,
// on the CPU and, if there is one, on the GPU. Slices, repetitions and threads
// must not change an answer.
#include "kernels/inference/inference.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/dataset/resize.h"
#include "common/network/test_networks.h"
#include "common/weights/parameters.h"
#include "common/weights/tensor_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

// Networks that are not in the table: a single layer without a bias and without
// a convolution; no fully connected layer; some biases, an activation without a
// pooling after it, and one after a pooling.
std::vector<Network> OtherNetworks() {
  constexpr Activation kTanh = Activation::kTanh;
  constexpr Activation kRelu = Activation::kRelu;
  return {LeNet5(),
          {"connected", {}, 1, 28, {FullyConnectedLayer{10, false}}},
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

Network Find(const std::string& name) {
  for (const Network& network : OtherNetworks()) {
    if (network.name == name) return network;
  }
  return **FindNetwork(name);
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

class InferenceTest
    : public ::testing::TestWithParam<std::tuple<std::string, Backend>> {
 protected:
  void SetUp() override {
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
                            std::sqrt(static_cast<float>(count / outputs)));
      if (parameters.has_bias) layer.bias = Random(outputs, 0.1f);
      range = 1;
    }
    options_.backend = std::get<1>(GetParam());
    options_.variants.assign(
        convolutions_,
        *FindVariant(options_.backend, on_gpu() ? "naive" : "im2col_eigen"));
  }

  std::vector<float> Random(int64_t count, float range) {
    std::uniform_real_distribution<float> distribution(-range, range);
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }

  // The logits of image `index`, layer by layer.
  std::vector<double> Logits(int64_t index) const {
    const int size = network_.image_size;
    std::vector<uint8_t> pixels(size * size);
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

  // Bytes of device memory for more than one image, but not for ten: a buffer
  // holds at most the largest tensor.
  int64_t BytesForAFewImages() const {
    int64_t largest = 0;
    for (const TensorShape& shape : network_.Shapes()) {
      largest = std::max(largest, shape.values());
    }
    return 4 * largest * int64_t{sizeof(float)};
  }

  bool on_gpu() const { return std::get<1>(GetParam()) == Backend::kCuda; }

  // Expects that RunInference rejects the arguments.
  std::string Error() {
    const absl::Status status =
        RunInference(network_, weights_, images_, 1, options_, workers_)
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  Network network_ = Find(std::get<0>(GetParam()));
  const size_t convolutions_ = network_.Convolutions().size();
  ImageSet images_;
  NetworkWeights weights_;
  InferenceOptions options_;
  Workers workers_{3};
  std::mt19937 generator_{7};
};

TEST_P(InferenceTest, FindsTheClassThatDoublePrecisionFinds) {
  const auto result = RunInference(network_, weights_, images_, images_.count,
                                   options_, workers_);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->labels.size(), images_.count);
  int compared = 0;
  for (int64_t i = 0; i < images_.count; ++i) {
    std::vector<double> logits = Logits(i);
    const int best =
        std::max_element(logits.begin(), logits.end()) - logits.begin();
    std::sort(logits.rbegin(), logits.rend());
    if (logits[0] - logits[1] < 1e-4) continue;  // either would be right
    EXPECT_EQ(result->labels[i], best) << "image " << i;
    ++compared;
  }
  EXPECT_GE(compared, 9);
}

TEST_P(InferenceTest, SlicesAndRepetitionsChangeNothing) {
  const auto whole = RunInference(network_, weights_, images_, images_.count,
                                  options_, workers_);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->slice, images_.count);
  EXPECT_EQ(whole->note, "");
  // The GPU's memory is handed out in blocks of 2 MB, and a small network may
  // fit into one that was there before.
  if (!on_gpu() || BytesForAFewImages() > 100000) {
    EXPECT_EQ(whole->device_memory_peak_bytes > 0, on_gpu());
  }
  std::vector<double> progress;
  options_.progress = [&](double share) { progress.push_back(share); };
  options_.repeat = 3;
  // One image at a time, and a few.
  for (const int64_t bytes : {int64_t{1}, BytesForAFewImages()}) {
    options_.device_memory_bytes = bytes;
    // Four images for the three threads together.
    options_.activation_bytes =
        bytes == 1 ? 1 : (4 * 4 * network_.Features() + 2) / 3;
    options_.cached_bytes = 1;
    progress.clear();
    const auto sliced =
        RunInference(network_, weights_, images_, 10, options_, workers_);
    ASSERT_TRUE(sliced.ok()) << sliced.status();
    EXPECT_LT(sliced->slice, 10);
    EXPECT_EQ(sliced->slice == 1, bytes == 1);
    EXPECT_EQ(sliced->note.find("the batch was cut into") != std::string::npos,
              on_gpu());
    EXPECT_EQ(sliced->labels, std::vector<uint8_t>(whole->labels.begin(),
                                                   whole->labels.begin() + 10));
    ASSERT_EQ(sliced->op_time_ns.size(), convolutions_);
    for (const auto& samples : sliced->op_time_ns) {
      ASSERT_EQ(samples.size(), 3u);
      for (const int64_t sample : samples) EXPECT_GT(sample, 0);
    }
    ASSERT_EQ(sliced->kernel_time_ns.size(), convolutions_);
    for (size_t i = 0; i < convolutions_; ++i) {
      const std::vector<int64_t>& samples = sliced->kernel_time_ns[i];
      ASSERT_EQ(samples.size(), on_gpu() ? 3u : 0u);
      for (size_t r = 0; r < samples.size(); ++r) {
        EXPECT_GT(samples[r], 0);
        EXPECT_LT(samples[r], sliced->op_time_ns[i][r]);
      }
    }
    EXPECT_EQ(sliced->inference_ns.size(), 3u);
    EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
    EXPECT_DOUBLE_EQ(progress.back(), 1);
  }
}

// Pieces of a slice, whole and cut.
TEST_P(InferenceTest, PiecesChangeNothing) {
  if (on_gpu()) GTEST_SKIP() << "a slice is one piece";
  const auto whole =
      RunInference(network_, weights_, images_, 11, options_, workers_);
  for (const int64_t bytes : {1, 200000, 400000}) {
    options_.cached_bytes = bytes;
    const auto in_pieces =
        RunInference(network_, weights_, images_, 11, options_, workers_);
    ASSERT_TRUE(in_pieces.ok()) << in_pieces.status();
    EXPECT_EQ(in_pieces->slice, 11);
    EXPECT_EQ(in_pieces->labels, whole->labels);
  }
}

TEST_P(InferenceTest, ImagesMayAlreadyBeEnlarged) {
  const int size = network_.image_size;
  ImageSet enlarged;
  enlarged.count = images_.count;
  enlarged.height = enlarged.width = size;
  enlarged.pixels.resize(images_.count * size * size);
  EnlargeImages(images_.pixels.data(), images_.count, 28, size,
                enlarged.pixels.data());
  EXPECT_EQ(RunInference(network_, weights_, enlarged, 11, options_, workers_)
                ->labels,
            RunInference(network_, weights_, images_, 11, options_, workers_)
                ->labels);
  enlarged.height = 29;
  const absl::Status status =
      RunInference(network_, weights_, enlarged, 11, options_, workers_)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the images are 29x"));
}

// A variant with memory for at most three images.
absl::StatusOr<std::unique_ptr<Convolution>> MakeForThree(
    const Problem& problem, const Epilogue& epilogue,
    const Resources& resources) {
  if (problem.batch > 3) return absl::ResourceExhaustedError("for three");
  return (*FindVariant(Backend::kCpu, "naive"))
      ->Create(problem, resources, epilogue);
}

TEST_P(InferenceTest, WorkspacesThatDoNotFitCutTheBatch) {
  if (on_gpu()) GTEST_SKIP() << "the same code as on the CPU";
  if (convolutions_ == 0) GTEST_SKIP() << "no workspaces";
  const auto whole =
      RunInference(network_, weights_, images_, 11, options_, workers_);
  Variant variant = **FindVariant(Backend::kCpu, "naive");
  variant.make = MakeForThree;
  options_.variants.back() = &variant;
  const auto cut =
      RunInference(network_, weights_, images_, 11, options_, workers_);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->slice, 3);
  EXPECT_EQ(cut->labels, whole->labels);
  variant.make =
      [](const Problem&, const Epilogue&,
         const Resources&) -> absl::StatusOr<std::unique_ptr<Convolution>> {
    return absl::ResourceExhaustedError("for none");
  };
  const absl::Status status =
      RunInference(network_, weights_, images_, 11, options_, workers_)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("variant naive on"));
}

TEST_P(InferenceTest, VariantsThatAreNotTheNetworks) {
  const std::vector<const Variant*> variants = options_.variants;
  Variant other = **FindVariant(Backend::kCpu, "naive");
  other.backend = on_gpu() ? Backend::kCpu : Backend::kCuda;
  options_.variants.push_back(&other);
  EXPECT_THAT(Error(),
              HasSubstr(absl::StrCat(convolutions_ + 1, " variants, expected ",
                                     convolutions_, " for")));
  if (convolutions_ == 0) return;
  options_.variants = variants;
  options_.variants.back() = &other;
  EXPECT_THAT(Error(), HasSubstr("but the network runs on the"));
}

TEST_P(InferenceTest, NetworksAndWeightsThatDoNotFit) {
  NetworkWeights weights = weights_;
  weights_.layers.back().weight.pop_back();
  EXPECT_THAT(Error(), HasSubstr("weights and"));
  weights_ = weights;
  network_.image_size = 0;
  EXPECT_THAT(Error(), HasSubstr("the images are 1x0x0"));
  network_.image_channels = 3;
  network_.image_size = 28;
  network_.layers = {FullyConnectedLayer{10, false}};
  weights_.layers = {{std::vector<float>(3 * 28 * 28 * 10), {}}};
  EXPECT_THAT(Error(), HasSubstr("the images have 1 channel, expected 3"));
}

INSTANTIATE_TEST_SUITE_P(
    Networks, InferenceTest,
    ::testing::Combine(::testing::Values("fa17-high", "sp19", "fa20", "lenet5",
                                         "connected", "convolved", "mixed"),
                       ::testing::Values(Backend::kCpu, Backend::kCuda)),
    [](const auto& test) {
      std::string name = absl::StrCat(std::get<0>(test.param), "_",
                                      Name(std::get<1>(test.param)));
      name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
      return name;
    });

}  // namespace
}  // namespace convlab
