#include <algorithm>
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

// A sum with some products more, as tensor cores add them: aligned with the
// largest, with two bits more than a float has, and cut off (docs/numerics.md).
float AddAsTensorCores(float sum, const std::vector<double>& products) {
  double largest = std::abs(sum);
  for (const double one : products) {
    largest = std::max(largest, std::abs(one));
  }
  if (largest == 0) return 0;
  const double unit = std::ldexp(1.0, std::ilogb(largest) - 25);
  double all = std::trunc(sum / unit);
  for (const double one : products) all += std::trunc(one / unit);
  const double bits = std::ldexp(1.0, std::max(0, std::ilogb(all) - 23));
  return static_cast<float>(std::trunc(all / bits) * bits * unit);
}

// The worst output of a kernel that has one sum of tensor cores for each.
WorstOutput WorstOfOneSum(const char* family) {
  constexpr Problem p = {2, 12, 15, 17, 3, 7};
  const ConvolutionData data =
      MakeData(p, RecipeOf(**FindDataFamily(family), 3));
  const ContractReference reference(p, data.x.data(), data.k.data(),
                                    TestWorkers());
  std::vector<float> y(p.output_elements());
  const int64_t width = p.output_width(), height = p.output_height();
  const int64_t taps = p.kernel_size * p.kernel_size;
  for (int64_t i = 0; i < p.output_elements(); ++i) {
    const int64_t plane = i / width / height;
    const float* const x =
        data.x.data() +
        (plane / p.filters * p.channels * p.height + i / width % height) *
            p.width +
        i % width;
    const float* const k =
        data.k.data() + plane % p.filters * p.channels * taps;
    std::vector<double> products;
    for (int64_t at = 0; at < p.channels * taps; ++at) {
      const int64_t row = at / taps * p.height + at % taps / p.kernel_size;
      products.push_back(
          static_cast<double>(x[row * p.width + at % p.kernel_size]) * k[at]);
      if (products.size() < 16 && at + 1 < p.channels * taps) continue;
      y[i] = AddAsTensorCores(y[i], products);
      products.clear();
    }
  }
  return reference.Worst(y.data(), TestWorkers());
}

// The plain loop rounds such sums often, too, and allows the more.
TEST(ContractReference, LongSumsOfTensorCoresBreakItWhereOneProductDominates) {
  for (const char* family : {"uniform", "bright-pixel"}) {
    EXPECT_TRUE(WorstOfOneSum(family).ok()) << family;
  }
  EXPECT_FALSE(WorstOfOneSum("dominant").ok());
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
