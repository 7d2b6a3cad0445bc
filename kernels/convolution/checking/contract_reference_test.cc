#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/contract.h"
#include "kernels/convolution/checking/families.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

constexpr Problem kProblem = {2, 3, 11, 13, 4, 5};

Workers& TestWorkers() {
  static Workers* const workers = new Workers(2);
  return *workers;
}

// Data of a family, their reference, and an output that is right.
struct Case {
  explicit Case(const char* family)
      : data(MakeData(kProblem, RecipeOf(**FindDataFamily(family), 3))),
        reference(kProblem, data.x.data(), data.k.data(), TestWorkers()),
        y(reference.y().begin(), reference.y().end()) {}

  WorstOutput Worst() const { return reference.Worst(y.data(), TestWorkers()); }

  // Replaces y by the output of data that a kernel has made of these.
  void Compute(float (*change)(float)) {
    ConvolutionData changed = data;
    for (float& value : changed.x) value = change(value);
    for (float& value : changed.k) value = change(value);
    const ContractReference computed(kProblem, changed.x.data(),
                                     changed.k.data(), TestWorkers());
    y.assign(computed.y().begin(), computed.y().end());
  }

  const ConvolutionData data;
  const ContractReference reference;
  std::vector<float> y;
};

TEST(ContractReference, RoundedReferencesAndThePlainLoopKeepIt) {
  for (const DataFamily& family : DataFamilies()) {
    const Case run(family.name);
    EXPECT_LE(run.Worst().factor, 1) << family.name;
    EXPECT_LE(run.reference.plain_factor(), 16) << family.name;
    EXPECT_GE(run.reference.allowed_factor(), 16) << family.name;
  }
}

// What halves lose, and what is lost with a split into two of them.
TEST(ContractReference, FewerBitsBreakIt) {
  for (const char* family : {"uniform", "one-signed", "cancelling"}) {
    Case run(family);
    run.Compute([](float value) {
      return std::ldexp(std::round(std::ldexp(value, 11)), -11);
    });
    EXPECT_GT(run.Worst().factor, 100) << family;
  }
}

TEST(ContractReference, FlushedDenormalsBreakIt) {
  Case run("denormal");
  run.Compute([](float value) {
    return std::abs(value) < std::numeric_limits<float>::min() ? 0 : value;
  });
  EXPECT_GT(run.Worst().factor, 1e6);
}

TEST(ContractReference, NothingHidesBehindLargerOutputs) {
  for (const char* family :
       {"filter-scales", "image-scales", "dazzling-pixel"}) {
    Case run(family);
    float largest = 0;
    for (const float value : run.y) {
      largest = std::max(largest, std::abs(value));
    }
    size_t small = 0;
    for (size_t i = 0; i < run.y.size(); ++i) {
      if (std::abs(run.y[i]) < largest * 0x1p-20f) small = i;
    }
    run.y[small] *= 1.01f;
    const WorstOutput worst = run.Worst();
    EXPECT_FALSE(worst.ok()) << family;
    EXPECT_EQ(worst.index, static_cast<int64_t>(small)) << family;
  }
}

TEST(ContractReference, SaysWhereAndHowMuch) {
  Case run("uniform");
  // The plane of image 1 and filter 2, row 3, column 4.
  run.y[((1 * 4 + 2) * 7 + 3) * 9 + 4] += 1;
  const absl::Status status = run.reference.Check(
      run.y.data(), "naive", "uniform, seed=3", TestWorkers());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("naive on B=2 C=3 H=11 W=13 M=4 K=5: output "
                                 "(b=1, m=2, h=3, w=4) is "));
  EXPECT_THAT(message, HasSubstr("expected at most 16"));
  EXPECT_THAT(message, HasSubstr("the data are uniform, seed=3"));
}

TEST(ContractReference, PooledOutputsAreTheWorstOfTheirWindows) {
  Case run("uniform");
  // 7 x 9 outputs become 3 x 4.
  const ContractReference pooled = run.reference.Pooled({2, 2}, TestWorkers());
  std::vector<float> y(pooled.y().begin(), pooled.y().end());
  ASSERT_EQ(y.size(), 2u * 4 * 3 * 4);
  EXPECT_LE(pooled.Worst(y.data(), TestWorkers()).factor, 1);
  // Image 1, filter 2, row 1, column 3.
  y[((1 * 4 + 2) * 3 + 1) * 4 + 3] += 1;
  EXPECT_THAT(
      std::string(pooled.Check(y.data(), "naive", "", TestWorkers()).message()),
      HasSubstr("output (b=1, m=2, h=1, w=3) is "));
}

TEST(ContractReference, NotFiniteValuesBelongWhereTheDefinitionHasThem) {
  Recipe recipe = *ParseRecipe("not-finite(2) filters-not-finite(1)");
  const ConvolutionData data = MakeData(kProblem, recipe);
  const ContractReference reference(kProblem, data.x.data(), data.k.data(),
                                    TestWorkers());
  std::vector<float> y(reference.y().begin(), reference.y().end());
  EXPECT_TRUE(reference.Worst(y.data(), TestWorkers()).ok());
  for (float& value : y) {
    if (std::isnan(value)) value = 0;
  }
  EXPECT_FALSE(reference.Worst(y.data(), TestWorkers()).ok());
}

}  // namespace
}  // namespace convlab
