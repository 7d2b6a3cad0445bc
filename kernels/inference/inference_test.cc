// The runner against a network written out in double precision, with random
// weights, on the CPU and, where there is one, on the GPU: slices, repetitions
// and threads must not change an answer.
#include "kernels/inference/inference.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/dataset/resize.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

class InferenceTest
    : public ::testing::TestWithParam<std::tuple<std::string, Backend>> {
 protected:
  void SetUp() override {
    const auto& [network, backend] = GetParam();
    if (backend == Backend::kCuda) {
      const auto device = cuda::FindDevice();
      if (!device.ok()) GTEST_SKIP() << device.status().message();
    }
    network_ = *FindNetwork(network);
    images_.count = 11;
    images_.height = images_.width = 28;
    std::uniform_int_distribution<int> pixel(0, 255);
    images_.pixels.resize(images_.count * 28 * 28);
    for (uint8_t& value : images_.pixels) value = pixel(generator_);
    for (const ConvolutionStage& stage : network_->stages) {
      const int inputs =
          stage.input_channels * stage.kernel_size * stage.kernel_size;
      // Raw pixels come in: the first layer's weights bring them to tanh's
      // range.
      const float range = stage.input_channels == 1 ? 1.0f / 255 : 1.0f;
      weights_.convolutions.push_back(Random(
          int64_t{stage.output_channels} * inputs, range / std::sqrt(inputs)));
    }
    weights_.hidden = RandomLayer(network_->Flattened(), network_->hidden);
    weights_.output = RandomLayer(network_->hidden, kClasses);
    options_.variants.assign(
        network_->stages.size(),
        *FindVariant(backend,
                     backend == Backend::kCpu ? "im2col_eigen" : "naive"));
  }

  std::vector<float> Random(int64_t count, float range) {
    std::uniform_real_distribution<float> distribution(-range, range);
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }

  FullyConnectedWeights RandomLayer(int64_t inputs, int64_t outputs) {
    return {inputs, outputs,
            Random(inputs * outputs, 3 / std::sqrt(static_cast<float>(inputs))),
            Random(outputs, 0.1f)};
  }

  // The logits of image `index`, layer by layer from the definitions.
  std::vector<double> Logits(int64_t index) const {
    const int size = network_->image_size;
    std::vector<uint8_t> pixels(size * size);
    EnlargeImages(images_.pixels.data() + index * 28 * 28, 1, 28, size,
                  pixels.data());
    std::vector<double> values(pixels.begin(), pixels.end());
    const std::vector<StageShape> shapes = network_->StageShapes();
    for (size_t i = 0; i < shapes.size(); ++i) {
      const ConvolutionStage& stage = network_->stages[i];
      const int64_t in = shapes[i].input_size, out = shapes[i].output_size;
      const int64_t pooled = shapes[i].pooled_size, K = stage.kernel_size;
      std::vector<double> next(stage.output_channels * pooled * pooled, -1e300);
      for (int64_t m = 0; m < stage.output_channels; ++m) {
        for (int64_t h = 0; h < out; ++h) {
          for (int64_t w = 0; w < out; ++w) {
            double sum = 0;
            for (int64_t c = 0; c < stage.input_channels; ++c) {
              for (int64_t p = 0; p < K; ++p) {
                for (int64_t q = 0; q < K; ++q) {
                  sum +=
                      values[(c * in + h + p) * in + w + q] *
                      weights_.convolutions
                          [i][((m * stage.input_channels + c) * K + p) * K + q];
                }
              }
            }
            const int64_t step = std::max(1, stage.pool.stride);
            if (h / step >= pooled || w / step >= pooled) continue;
            double& cell = next[(m * pooled + h / step) * pooled + w / step];
            cell = std::max(cell, Apply(stage.activation, sum));
          }
        }
      }
      values = next;
    }
    values = Connect(weights_.hidden, values);
    for (double& value : values) {
      value = Apply(network_->hidden_activation, value);
    }
    return Connect(weights_.output, values);
  }

  static double Apply(Activation activation, double value) {
    if (activation == Activation::kTanh) return std::tanh(value);
    if (activation == Activation::kRelu) return std::max(value, 0.0);
    return value;
  }

  static std::vector<double> Connect(const FullyConnectedWeights& layer,
                                     const std::vector<double>& in) {
    std::vector<double> out(layer.bias.begin(), layer.bias.end());
    for (int64_t o = 0; o < layer.outputs; ++o) {
      for (int64_t i = 0; i < layer.inputs; ++i) {
        out[o] += in[i] * layer.weight[o * layer.inputs + i];
      }
    }
    return out;
  }

  bool on_gpu() const { return std::get<1>(GetParam()) == Backend::kCuda; }

  const Network* network_ = nullptr;
  ImageSet images_;
  NetworkWeights weights_;
  InferenceOptions options_;
  Workers workers_{3};
  std::mt19937 generator_{7};
};

TEST_P(InferenceTest, FindsTheClassThatDoublePrecisionFinds) {
  const auto result = RunInference(*network_, weights_, images_, images_.count,
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
  const auto whole = RunInference(*network_, weights_, images_, images_.count,
                                  options_, workers_);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->slice, images_.count);
  EXPECT_EQ(whole->note, "");
  EXPECT_EQ(whole->device_memory_peak_bytes > 0, on_gpu());
  std::vector<double> progress;
  options_.progress = [&](double share) { progress.push_back(share); };
  options_.repeat = 3;
  // One image at a time, and a few.
  for (const int64_t bytes : {1, 300000}) {
    options_.device_memory_bytes = bytes;
    // Four images for the three threads together.
    options_.activation_bytes =
        bytes == 1 ? 1 : (4 * 4 * network_->Flattened() + 2) / 3;
    options_.cached_bytes = 1;
    progress.clear();
    const auto sliced =
        RunInference(*network_, weights_, images_, 10, options_, workers_);
    ASSERT_TRUE(sliced.ok()) << sliced.status();
    EXPECT_LT(sliced->slice, 10);
    EXPECT_EQ(sliced->slice == 1, bytes == 1);
    EXPECT_EQ(sliced->note.find("the batch was cut into") != std::string::npos,
              on_gpu());
    EXPECT_EQ(sliced->labels, std::vector<uint8_t>(whole->labels.begin(),
                                                   whole->labels.begin() + 10));
    ASSERT_EQ(sliced->op_time_ns.size(), network_->stages.size());
    for (const auto& samples : sliced->op_time_ns) {
      ASSERT_EQ(samples.size(), 3u);
      for (const int64_t sample : samples) EXPECT_GT(sample, 0);
    }
    ASSERT_EQ(sliced->kernel_time_ns.size(), network_->stages.size());
    for (size_t i = 0; i < network_->stages.size(); ++i) {
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
      RunInference(*network_, weights_, images_, 11, options_, workers_);
  for (const int64_t bytes : {1, 200000, 400000}) {
    options_.cached_bytes = bytes;
    const auto in_pieces =
        RunInference(*network_, weights_, images_, 11, options_, workers_);
    ASSERT_TRUE(in_pieces.ok()) << in_pieces.status();
    EXPECT_EQ(in_pieces->slice, 11);
    EXPECT_EQ(in_pieces->labels, whole->labels);
  }
}

TEST_P(InferenceTest, ImagesMayAlreadyBeEnlarged) {
  const int size = network_->image_size;
  ImageSet enlarged;
  enlarged.count = images_.count;
  enlarged.height = enlarged.width = size;
  enlarged.pixels.resize(images_.count * size * size);
  EnlargeImages(images_.pixels.data(), images_.count, 28, size,
                enlarged.pixels.data());
  EXPECT_EQ(RunInference(*network_, weights_, enlarged, 11, options_, workers_)
                ->labels,
            RunInference(*network_, weights_, images_, 11, options_, workers_)
                ->labels);
  enlarged.height = 29;
  const absl::Status status =
      RunInference(*network_, weights_, enlarged, 11, options_, workers_)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the images are 29x"));
}

// A variant that has memory for three images, and its workings.
absl::StatusOr<std::unique_ptr<Convolution>> MakeForThree(
    const Problem& problem, const Resources& resources) {
  if (problem.batch > 3) return absl::ResourceExhaustedError("for three");
  return (*FindVariant(Backend::kCpu, "naive"))->Create(problem, resources);
}

TEST_P(InferenceTest, WorkspacesThatDoNotFitCutTheBatch) {
  if (on_gpu()) GTEST_SKIP() << "the same code as on the CPU";
  const auto whole =
      RunInference(*network_, weights_, images_, 11, options_, workers_);
  Variant variant = **FindVariant(Backend::kCpu, "naive");
  variant.make = MakeForThree;
  options_.variants.back() = &variant;
  const auto cut =
      RunInference(*network_, weights_, images_, 11, options_, workers_);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->slice, 3);
  EXPECT_EQ(cut->labels, whole->labels);
  variant.make =
      [](const Problem&,
         const Resources&) -> absl::StatusOr<std::unique_ptr<Convolution>> {
    return absl::ResourceExhaustedError("for none");
  };
  const absl::Status status =
      RunInference(*network_, weights_, images_, 11, options_, workers_)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("variant naive on"));
}

TEST_P(InferenceTest, VariantsOfTwoBackendsAreRefused) {
  Variant other = *options_.variants.front();
  other.backend = on_gpu() ? Backend::kCpu : Backend::kCuda;
  options_.variants = {options_.variants.front(), &other};
  const absl::Status status =
      RunInference(*network_, weights_, images_, 1, options_, workers_)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the network runs on"));
}

INSTANTIATE_TEST_SUITE_P(
    Networks, InferenceTest,
    ::testing::Combine(::testing::Values("fa17-high", "sp19", "fa20"),
                       ::testing::Values(Backend::kCpu, Backend::kCuda)),
    [](const auto& test) {
      std::string name = absl::StrCat(std::get<0>(test.param), "_",
                                      Name(std::get<1>(test.param)));
      name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
      return name;
    });

}  // namespace
}  // namespace convlab
