// Compares networks whose convolutions fuse what follows them with the same
// networks layer by layer.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/variants.h"
#include "kernels/inference/inference.h"
#include "kernels/inference/inference_testing.h"

namespace convlab {
namespace {

class Fuse : public InferenceTest {};

// Expects the labels and, within float32's accuracy, the logits of another run.
void ExpectSameAnswers(const InferenceResult& result,
                       const InferenceResult& expected) {
  EXPECT_EQ(result.labels, expected.labels);
  ASSERT_EQ(result.logits.size(), expected.logits.size());
  ASSERT_FALSE(expected.logits.empty());
  double largest = 0;
  for (const float logit : expected.logits) {
    largest = std::max<double>(largest, std::abs(logit));
  }
  for (size_t i = 0; i < result.logits.size(); ++i) {
    EXPECT_NEAR(result.logits[i], expected.logits[i], 1e-5 * largest) << i;
  }
}

// What follows each convolution of the networks.
std::vector<std::string> Followers(const std::string& network) {
  const std::string halving = "max pooling of 2x2 with stride 2";
  if (network == "lenet5") {
    return std::vector<std::string>(2, "bias, ReLU and " + halving);
  }
  if (network == "fa20") {
    return {"ReLU and " + halving,
            "ReLU and max pooling of 4x4 with stride 4, rounded up"};
  }
  if (network == "connected") return {};
  if (network == "fa17-high") return {"tanh and " + halving};
  if (network == "convolved") return {halving, "bias"};
  if (network == "mixed") {
    return {"bias", "tanh and max pooling of 3x3 with stride 2, rounded up",
            "bias and tanh"};
  }
  return {"tanh and " + halving, ""};
}

// Every variant that fuses, whole slices, pieces and single images.
TEST_P(Fuse, ChangesNoAnswer) {
  options_.logits = true;
  for (const Variant* variant : Variants()) {
    if (variant->backend != options_.backend || variant->fuses == nullptr) {
      continue;
    }
    SCOPED_TRACE(variant->name);
    options_.fuse = false;
    options_.variants.assign(convolutions_, variant);
    const auto apart =
        RunInference(network_, weights_, images_, 11, options_, workers_);
    if (absl::IsUnimplemented(apart.status())) continue;  // declined
    ASSERT_TRUE(apart.ok()) << apart.status();
    EXPECT_EQ(apart->fused, std::vector<std::string>(convolutions_));
    options_.fuse = true;
    for (const int64_t bytes :
         {int64_t{1}, int64_t{200000}, int64_t{1} << 40}) {
      InferenceOptions options = options_;
      options.cached_bytes = bytes;
      options.device_memory_bytes = on_gpu() && bytes == 1 ? 1 : 0;
      const auto fused =
          RunInference(network_, weights_, images_, 11, options, workers_);
      ASSERT_TRUE(fused.ok()) << fused.status();
      ExpectSameAnswers(*fused, *apart);
      const std::vector<std::string> all = Followers(network_.name);
      ASSERT_EQ(fused->fused.size(), all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        if (on_gpu() && fused->fused[i].empty()) continue;  // declined
        EXPECT_EQ(fused->fused[i], all[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Fuse, ::testing::ValuesIn(InferenceCases()),
                         InferenceCaseName);

}  // namespace
}  // namespace convlab
