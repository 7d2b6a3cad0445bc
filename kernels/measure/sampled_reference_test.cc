#include "kernels/measure/sampled_reference.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/measure/inputs.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;

TEST(CheckedImages, AreTheFirstTheLastAndSomeBetween) {
  EXPECT_THAT(CheckedImages(1), ElementsAre(0));
  EXPECT_THAT(CheckedImages(2), ElementsAre(0, 1));
  EXPECT_THAT(CheckedImages(5), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(CheckedImages(10000), ElementsAre(0, 2499, 4999, 7499, 9999));
}

TEST(SampledReference, ComparesTheCheckedImages) {
  const Problem problem = {20, 2, 6, 5, 3, 3};
  Workers workers(1);
  const std::vector<float> x = RandomFloats(problem.input_elements(), 1);
  const std::vector<float> k = RandomFloats(problem.kernel_elements(), 2);
  const int64_t input = problem.input_elements() / problem.batch;
  const int64_t output = problem.output_elements() / problem.batch;
  const SampledReference reference(
      problem,
      [&](int64_t b, float* image) {
        std::copy_n(&x[b * input], input, image);
      },
      k.data(), workers);

  const std::vector<double> y =
      ReferenceConvolution(problem, x.data(), k.data(), workers);
  const auto error_with = [&](int64_t wrong_image) {
    return reference.Error([&](int64_t b, float* image) {
      std::copy_n(&y[b * output], output, image);
      if (b == wrong_image) image[0] += 1;
      return absl::OkStatus();
    });
  };
  for (const int64_t right : {-1, 1}) {  // image 1 is not checked
    EXPECT_LT(error_with(right)->relative, 1e-6);
    EXPECT_LT(error_with(right)->worst.factor, 1);
    EXPECT_TRUE(
        CheckMeasured(*error_with(right), AccuracyClass::kFp32, true).ok());
  }
  for (const int64_t wrong : {0, 19}) {
    EXPECT_GT(error_with(wrong)->relative, 1e-3);
    EXPECT_GT(error_with(wrong)->worst.factor, 1e3);
  }
  EXPECT_TRUE(absl::IsAborted(
      reference.Error([](int64_t, float*) { return absl::AbortedError("no"); })
          .status()));
}

struct Tensors {
  std::vector<float> x, k, y;
};

// Random inputs and filters, and the outputs that float64 gives, rounded.
Tensors RightTensors(const Problem& problem, Workers& workers) {
  Tensors made;
  made.x = RandomFloats(problem.input_elements(), 1);
  made.k = RandomFloats(problem.kernel_elements(), 2);
  const std::vector<double> exact =
      ReferenceConvolution(problem, made.x.data(), made.k.data(), workers);
  made.y.assign(exact.begin(), exact.end());
  return made;
}

TEST(DrawnError, FindsWhatIsWrongAnywhere) {
  const Problem problem = {20, 3, 9, 7, 5, 3};
  Workers workers(2);
  Tensors made = RightTensors(problem, workers);
  std::vector<float>& y = made.y;
  const auto error = [&](uint64_t seed) {
    return DrawnError(problem, made.x.data(), made.k.data(), y.data(), seed,
                      workers);
  };
  EXPECT_GT(error(1).relative, 0);
  EXPECT_LT(error(1).relative, 1e-7);
  EXPECT_LE(error(1).worst.factor, 1);
  EXPECT_EQ(error(1).worst.allowed, 16);
  EXPECT_NE(error(1).relative, error(2).relative);
  EXPECT_TRUE(CheckDrawn(error(1), AccuracyClass::kFp32, true).ok());
  // One image of twenty holds another's outputs.
  const int64_t image = problem.output_elements() / problem.batch;
  std::copy_n(&y[3 * image], image, &y[11 * image]);
  EXPECT_GT(error(1).relative, 0.1);
  EXPECT_FALSE(CheckDrawn(error(1), AccuracyClass::kBf16, true).ok());
  EXPECT_FALSE(CheckDrawn(error(1), AccuracyClass::kFp32, false).ok());
}

TEST(WholeError, FindsOneWrongOutput) {
  // More outputs than are compared at a time, and a part that is smaller.
  const Problem problem = {3, 1, 1001, 2051, 1, 2};
  Workers workers(2);
  Tensors made = RightTensors(problem, workers);
  std::vector<float>& y = made.y;
  const auto error = [&] {
    return WholeError(problem, made.x.data(), made.k.data(), y.data(), workers);
  };
  EXPECT_GT(error().relative, 0);
  EXPECT_LT(error().relative, 1e-7);
  EXPECT_LE(error().worst.factor, 1);
  EXPECT_TRUE(error().worst.ok());
  for (const size_t wrong : {size_t{0}, y.size() / 2, y.size() - 1}) {
    const float right = std::exchange(y[wrong], y[wrong] + 1);
    EXPECT_FALSE(error().worst.ok()) << wrong;
    EXPECT_FALSE(CheckMeasured(error(), AccuracyClass::kFp32, false).ok());
    y[wrong] = right;
  }
}

TEST(CheckMeasured, ClassFp32PromisesEachOutput) {
  const MeasuredError small = {1e-8, {100, 16, 0}};
  EXPECT_EQ(CheckMeasured(small, AccuracyClass::kFp32, true).message(),
            "an output breaks the contract of class fp32: c = 100, expected at "
            "most 16");
  EXPECT_FALSE(CheckMeasured(small, AccuracyClass::kFp32, false).ok());
  EXPECT_TRUE(CheckMeasured(small, AccuracyClass::kFp32Normwise, true).ok());
  const MeasuredError large = {1e-5, {10, 16, 0}};
  EXPECT_FALSE(CheckMeasured(large, AccuracyClass::kFp32, true).ok());
  EXPECT_TRUE(CheckMeasured(large, AccuracyClass::kFp32, false).ok());
}

}  // namespace
}  // namespace convlab
