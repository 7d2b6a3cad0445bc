// Runs the trained models on the test images: the numbers of correct answers
// are known exactly, and no variant may change them.
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/dataset/fashion_mnist.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/weights.h"
#include "gtest/gtest.h"
#include "kernels/baseline/convolution.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/inference/inference.h"
#include "kernels/simd/cpu_target.h"

namespace convlab {
namespace {

struct Expected {
  const char* network;
  int64_t correct_100;
  int64_t correct_1000;
  int64_t correct_10000;
};

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

// Counted with float64 arithmetic when the models were trained.
constexpr Expected kExpected[] = {
    {"fa17-high", 88, 924, 9216},     {"fa17-low", 61, 626, 6158},
    {"sp18", 87, 919, 9124},          {"fa18", 89, 925, 9159},
    {"sp19", 90, 923, 9062},          {"sp19-final", 90, 913, 9113},
    {"sp19-baseline", 88, 914, 9090}, {"fa19", 90, 921, 9193},
    {"fa20", 91, 911, 9172},          {"lenet5", 90, 918, 9106},
};

const Dataset& TestImages() {
  static const Dataset* const dataset =
      new Dataset(*LoadFashionMnist(FashionMnistFolder(), "t10k"));
  return *dataset;
}

NetworkWeights Weights(const Network& network) {
  auto weights = LoadWeights(absl::StrCat(std::getenv("TEST_SRCDIR"),
                                          "/convlab/common/weights/models/",
                                          network.name, ".safetensors"),
                             network);
  EXPECT_TRUE(weights.ok()) << weights.status();
  return *std::move(weights);
}

int64_t Correct(const InferenceResult& result, int64_t size) {
  int64_t correct = 0;
  for (int64_t i = 0; i < size; ++i) {
    correct += result.labels.back()[i] == TestImages().labels[i];
  }
  return correct;
}

class ModelsTest : public ::testing::TestWithParam<Expected> {
 protected:
  const Network& network_ = **FindNetwork(GetParam().network);
  const NetworkWeights weights_ = Weights(network_);
  Workers workers_{Workers::Available()};
};

TEST_P(ModelsTest, CountsAreInTheMetadata) {
  const Expected& expected = GetParam();
  EXPECT_EQ(weights_.metadata.at("network"), expected.network);
  EXPECT_EQ(weights_.metadata.at("correct_100"),
            absl::StrCat(expected.correct_100));
  EXPECT_EQ(weights_.metadata.at("correct_1000"),
            absl::StrCat(expected.correct_1000));
  EXPECT_EQ(weights_.metadata.at("correct_10000"),
            absl::StrCat(expected.correct_10000));
  EXPECT_GT(weights_.metadata.at("recipe").size(), 20u);
}

// All images with the instruction set that `auto` takes, and a part of them
// with each other one, for the layers too. The thread sanitizer is slow.
TEST_P(ModelsTest, AllTestImages) {
  InferenceOptions options;
  options.variants.assign(network_.Convolutions().size(),
                          *FindVariant(Backend::kCpu, "dense_lanes"));
  const CpuTarget best = ChosenCpuTarget();
  for (const CpuTarget target : SupportedCpuTargets()) {
    SCOPED_TRACE(Name(target));
    ASSERT_TRUE(ForceCpuTarget(Name(target)).ok());
    const int64_t size = kThreadSanitizer ? 100 : target == best ? 10000 : 1000;
    const auto result = RunInference(network_, weights_, TestImages().images,
                                     size, options, workers_);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Correct(*result, 100), GetParam().correct_100);
    if (size < 1000) continue;
    EXPECT_EQ(Correct(*result, 1000), GetParam().correct_1000);
    if (size < 10000) continue;
    EXPECT_EQ(Correct(*result, 10000), GetParam().correct_10000);
  }
  ASSERT_TRUE(ForceCpuTarget("auto").ok());
}

TEST_P(ModelsTest, EveryVariantOnAHundredImages) {
  for (const Variant* variant : Variants()) {
    if (variant->backend != Backend::kCpu) continue;
    SCOPED_TRACE(variant->name);
    InferenceOptions options;
    options.variants.assign(network_.Convolutions().size(), variant);
    const auto result = RunInference(network_, weights_, TestImages().images,
                                     100, options, workers_);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Correct(*result, 100), GetParam().correct_100);
  }
}

TEST_P(ModelsTest, TheGpuFindsWhatTheCpuFinds) {
  const auto device = cuda::FindDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  InferenceOptions options;
  options.variants.assign(network_.Convolutions().size(),
                          *FindVariant(Backend::kCpu, "im2col_eigen"));
  const auto on_cpu = RunInference(network_, weights_, TestImages().images,
                                   10000, options, workers_);
  ASSERT_TRUE(on_cpu.ok()) << on_cpu.status();
  options.backend = Backend::kCuda;
  options.variants.assign(network_.Convolutions().size(),
                          *FindVariant(Backend::kCuda, "naive"));
  // All that is free, and memory for few and for many images of 10,000.
  for (const int64_t bytes : {0, 8 << 20, 200 << 20}) {
    SCOPED_TRACE(bytes);
    options.device_memory_bytes = bytes;
    const auto on_gpu = RunInference(network_, weights_, TestImages().images,
                                     10000, options, workers_);
    ASSERT_TRUE(on_gpu.ok()) << on_gpu.status();
    EXPECT_EQ(on_gpu->slice == 10000, bytes == 0) << on_gpu->slice;
    EXPECT_LT(on_gpu->device_memory_peak_bytes, int64_t{8000000000});
    EXPECT_EQ(on_gpu->labels, on_cpu->labels);
    EXPECT_EQ(Correct(*on_gpu, 10000), GetParam().correct_10000);
  }
}

// Variants of class fp32 keep every answer, others all but 5.
TEST_P(ModelsTest, EveryGpuVariantKeepsTheCounts) {
  const auto device = cuda::FindDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  for (const Variant* variant : Variants()) {
    if (variant->backend != Backend::kCuda) continue;
    SCOPED_TRACE(variant->name);
    InferenceOptions options;
    options.backend = Backend::kCuda;
    options.variants.assign(network_.Convolutions().size(), variant);
    const auto result = RunInference(network_, weights_, TestImages().images,
                                     10000, options, workers_);
    if (absl::IsUnimplemented(result.status())) continue;  // declined
    ASSERT_TRUE(result.ok()) << result.status();
    const int64_t most = MaxChangedAnswers(variant->accuracy);
    EXPECT_LE(std::abs(Correct(*result, 100) - GetParam().correct_100), most);
    EXPECT_LE(std::abs(Correct(*result, 1000) - GetParam().correct_1000), most);
    EXPECT_LE(std::abs(Correct(*result, 10000) - GetParam().correct_10000),
              most);
  }
}

TEST_P(ModelsTest, TheBaselineFindsEveryCorrectAnswer) {
  InferenceOptions options;
  options.backend = Backend::kCuda;
  options.variants.assign(network_.Convolutions().size(), &kCudnnVariant);
  options.library_layers = true;
  // All at once, and in slices.
  for (const int64_t bytes : {0, 200 << 20}) {
    options.device_memory_bytes = bytes;
    const auto result = RunInference(network_, weights_, TestImages().images,
                                     10000, options, workers_);
    if (absl::IsUnavailable(result.status())) {
      GTEST_SKIP() << result.status().message();
    }
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Correct(*result, 100), GetParam().correct_100);
    EXPECT_EQ(Correct(*result, 1000), GetParam().correct_1000);
    EXPECT_EQ(Correct(*result, 10000), GetParam().correct_10000);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ModelsTest, ::testing::ValuesIn(kExpected),
                         [](const auto& network) {
                           std::string name = network.param.network;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace convlab
