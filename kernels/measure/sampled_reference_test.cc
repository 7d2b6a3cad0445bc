#include "kernels/measure/sampled_reference.h"

#include <algorithm>
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
  EXPECT_LT(error_with(-1).value(), 1e-6);
  EXPECT_LT(error_with(1).value(), 1e-6);  // is not checked
  EXPECT_GT(error_with(0).value(), 1e-3);
  EXPECT_GT(error_with(19).value(), 1e-3);
  EXPECT_TRUE(absl::IsAborted(
      reference.Error([](int64_t, float*) { return absl::AbortedError("no"); })
          .status()));
}

}  // namespace
}  // namespace convlab
