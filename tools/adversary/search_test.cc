#include "tools/adversary/search.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"

namespace convlab {
namespace {

constexpr Problem kProblem = {2, 2, 9, 8, 3, 3};

Workers& TestWorkers() {
  static Workers* const workers = new Workers(3);
  return *workers;
}

std::vector<float> Right(const ConvolutionData& data) {
  const std::vector<double> y = ReferenceConvolution(
      kProblem, data.x.data(), data.k.data(), TestWorkers());
  return {y.begin(), y.end()};
}

// As of a kernel that keeps only what is not far smaller than the largest.
std::vector<float> LosesSmallOutputs(const ConvolutionData& data) {
  std::vector<float> y = Right(data);
  float largest = 0;
  for (const float value : y) largest = std::max(largest, std::abs(value));
  for (float& value : y) {
    if (std::abs(value) < largest * 0x1p-40f) value = 0;
  }
  return y;
}

Search Searched(const Computation& compute, int steps) {
  Search search(kProblem, compute, /*seed=*/1, TestWorkers());
  for (int i = 0; i < steps; ++i) {
    const absl::Status status = search.Step();
    EXPECT_TRUE(status.ok()) << status;
  }
  return search;
}

TEST(Search, FindsWhereAKernelIsWrong) {
  Search search = Searched(LosesSmallOutputs, 40);
  EXPECT_EQ(search.tried(), 120);
  ASSERT_FALSE(search.worst().empty());
  const RatedRecipe& worst = search.worst()[0];
  EXPECT_GT(worst.score(), 1000);
  EXPECT_TRUE(std::is_sorted(search.worst().begin(), search.worst().end(),
                             [](const RatedRecipe& a, const RatedRecipe& b) {
                               return a.score() > b.score();
                             }));
  const auto simple = search.Simplify(worst);
  ASSERT_TRUE(simple.ok()) << simple.status();
  EXPECT_GE(simple->score(), 0.9 * worst.score());
  EXPECT_LE(simple->recipe.operations.size(), 2u);
}

TEST(Search, FindsNothingInARightKernel) {
  const Search search = Searched(Right, 40);
  EXPECT_LE(search.worst()[0].score(), 1.0 / 16);
}

TEST(Search, IsTheSameAgain) {
  const Search a = Searched(LosesSmallOutputs, 15);
  const Search b = Searched(LosesSmallOutputs, 15);
  EXPECT_EQ(ToString(a.worst()[0].recipe), ToString(b.worst()[0].recipe));
}

TEST(Search, StopsWhereTheKernelFails) {
  Search search(
      kProblem,
      [](const ConvolutionData&) -> absl::StatusOr<std::vector<float>> {
        return absl::InternalError("the launch failed");
      },
      1, TestWorkers());
  EXPECT_EQ(search.Step().message(), "the launch failed");
}

}  // namespace
}  // namespace convlab
