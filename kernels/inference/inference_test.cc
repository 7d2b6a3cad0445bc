// Compares inference with a network in double precision, with random weights,
// on the CPU and, if there is one, on the GPU. Slices, repetitions and threads
// must not change an answer.
#include "kernels/inference/inference.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/dataset/resize.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/variants.h"
#include "kernels/inference/inference_testing.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

class Inference : public InferenceTest {
 protected:
  // Bytes of device memory for more than one image, but not for ten: a buffer
  // holds at most the largest tensor.
  int64_t BytesForAFewImages() const {
    int64_t largest = 0;
    for (const TensorShape& shape : network_.Shapes()) {
      largest = std::max(largest, shape.values());
    }
    return 4 * largest * int64_t{sizeof(float)};
  }

  // Expects that RunInference rejects the arguments.
  std::string Error() {
    const absl::Status status =
        RunInference(network_, weights_, images_, 1, options_, workers_)
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
};

TEST_P(Inference, FindsTheClassThatDoublePrecisionFinds) {
  const auto result = RunInference(network_, weights_, images_, images_.count,
                                   options_, workers_);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->labels.back().size(), images_.count);
  int compared = 0;
  for (int64_t i = 0; i < images_.count; ++i) {
    std::vector<double> logits = Logits(i);
    const int best =
        std::max_element(logits.begin(), logits.end()) - logits.begin();
    std::sort(logits.rbegin(), logits.rend());
    if (logits[0] - logits[1] < 1e-4) continue;  // either would be right
    EXPECT_EQ(result->labels.back()[i], best) << "image " << i;
    ++compared;
  }
  EXPECT_GE(compared, 9);
}

TEST_P(Inference, SlicesAndRepetitionsChangeNothing) {
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
    EXPECT_EQ(sliced->labels.back(),
              std::vector<uint8_t>(whole->labels.back().begin(),
                                   whole->labels.back().begin() + 10));
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
TEST_P(Inference, PiecesChangeNothing) {
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

TEST_P(Inference, ImagesMayAlreadyBeEnlarged) {
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

TEST_P(Inference, WorkspacesThatDoNotFitCutTheBatch) {
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

TEST_P(Inference, VariantsThatAreNotTheNetworks) {
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

TEST_P(Inference, NetworksAndWeightsThatDoNotFit) {
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

INSTANTIATE_TEST_SUITE_P(Networks, Inference,
                         ::testing::ValuesIn(InferenceCases()),
                         InferenceCaseName);

}  // namespace
}  // namespace convlab
