#include "kernels/judge/check.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint32_t kPoison = 0x7f81beef;
// Compared completely, and by sums.
constexpr Problem kSmall = {3, 4, 19, 21, 6, 5};
constexpr Problem kLarge = {400, 4, 30, 31, 8, 5};

Workers& TestWorkers() {
  static Workers* const workers = new Workers(2);
  return *workers;
}

// Inputs with the right output in float32.
struct Case {
  Case(const Problem& problem, Family family) : inputs{problem, family, 17} {
    x.resize(problem.input_elements());
    k.resize(problem.kernel_elements());
    Fill(inputs, absl::MakeSpan(x), absl::MakeSpan(k), TestWorkers());
    const auto reference =
        ReferenceConvolution(problem, x.data(), k.data(), TestWorkers());
    y.assign(reference.begin(), reference.end());
  }

  OutputCheck Check() {
    return CheckOutput(
        inputs, {absl::MakeSpan(x), absl::MakeSpan(k), absl::MakeSpan(y)},
        kPoison, /*seed=*/5, TestWorkers());
  }

  Inputs inputs;
  std::vector<float> x, k, y;
};

TEST(Tensors, AreAsTheFamilySays) {
  const Case integers(kSmall, Family::kIntegers);
  for (const float value : integers.x) {
    EXPECT_EQ(value, std::round(value));
    EXPECT_LE(std::abs(value), 2);
  }
  for (const float value : integers.k) EXPECT_LE(std::abs(value), 1);
  const Case positive(kSmall, Family::kPositive);
  double sum = 0;
  for (const float value : positive.x) {
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / static_cast<double>(positive.x.size()), 0.5, 0.02);
  const Case special(kSmall, Family::kNotFinite);
  int not_finite = 0;
  for (const float value : special.x) not_finite += !std::isfinite(value);
  EXPECT_GT(not_finite, 0);
  EXPECT_LT(not_finite, 40);
}

TEST(Tensors, PoisonIsASignalingNan) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const uint32_t bits = RandomPoison(seed);
    EXPECT_EQ(bits & 0x7fc00000, 0x7f800000u);
    EXPECT_NE(bits & 0x3fffff, 0u);
  }
  EXPECT_NE(RandomPoison(1), RandomPoison(2));
}

class CheckTest : public ::testing::TestWithParam<Problem> {};

TEST_P(CheckTest, RightOutputsAreFp32) {
  for (const Family family :
       {Family::kIntegers, Family::kSigned, Family::kPositive,
        Family::kFilterScales, Family::kSmall, Family::kLarge}) {
    const OutputCheck check = Case(GetParam(), family).Check();
    EXPECT_EQ(check.accuracy, AccuracyClass::kFp32) << Name(family);
    EXPECT_LT(check.error, 1e-7);
    EXPECT_THAT(check.mismatch, SizeIs(0));
  }
}

TEST_P(CheckTest, TheClassIsTheTightestThatHolds) {
  const auto class_of = [](double error) {
    Case run(GetParam(), Family::kSigned);
    for (size_t i = 0; i < run.y.size(); ++i) {
      run.y[i] *= i % 2 == 0 ? 1 + error : 1 - error;
    }
    return run.Check().accuracy;
  };
  EXPECT_EQ(class_of(5e-7), AccuracyClass::kFp32);
  EXPECT_EQ(class_of(2e-6), AccuracyClass::kTf32);
  EXPECT_EQ(class_of(7e-4), AccuracyClass::kFp16);
  EXPECT_EQ(class_of(2e-3), AccuracyClass::kBf16);
  EXPECT_EQ(class_of(1e-2), std::nullopt);
}

// An error that is small for the whole output, as transforms have them.
TEST_P(CheckTest, Fp32IsForEachOutput) {
  Case run(GetParam(), Family::kSigned);
  // One output of each image.
  for (size_t i = 0; i < run.y.size(); i += run.y.size() / GetParam().batch) {
    run.y[i] += 3.5e-5f;
  }
  EXPECT_EQ(run.Check().accuracy, AccuracyClass::kFp32Normwise);
}

TEST_P(CheckTest, OneWrongElementIsFound) {
  Case run(GetParam(), Family::kSigned);
  const size_t middle = run.y.size() / 2;
  const float value = run.y[middle];
  run.y[middle] += 5;
  EXPECT_THAT(run.Check().mismatch.at(0), HasSubstr(": 1 of "));
  std::memcpy(&run.y[middle], &kPoison, sizeof kPoison);
  const OutputCheck check = run.Check();
  EXPECT_EQ(check.accuracy, std::nullopt);
  EXPECT_TRUE(check.has_nan);
  EXPECT_EQ(check.mismatch.at(3), "never written");
  run.y[middle] = value;
  EXPECT_EQ(run.Check().accuracy, AccuracyClass::kFp32);
}

TEST_P(CheckTest, ExchangedFiltersAreFound) {
  Case run(GetParam(), Family::kSigned);
  const int64_t plane = GetParam().output_height() * GetParam().output_width();
  // In the last image.
  float* const image = run.y.data() + run.y.size() - GetParam().filters * plane;
  for (int64_t i = 0; i < plane; ++i) std::swap(image[i], image[plane + i]);
  const OutputCheck check = run.Check();
  EXPECT_EQ(check.accuracy, std::nullopt);
  EXPECT_THAT(check.mismatch.at(2), HasSubstr("the first 2 filters"));
  EXPECT_THAT(check.mismatch.at(2), HasSubstr("the last image"));
}

TEST_P(CheckTest, AFilterOfSmallScaleIsNotHidden) {
  Case run(GetParam(), Family::kFilterScales);
  const int64_t plane = GetParam().output_height() * GetParam().output_width();
  for (size_t i = 0; i < run.y.size(); ++i) {
    // Filter 0 has the factor 1/16.
    if (static_cast<int64_t>(i) / plane % GetParam().filters == 0) {
      run.y[i] *= 1.001f;
    }
  }
  EXPECT_GT(run.Check().error, 3e-4);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CheckTest, ::testing::Values(kSmall, kLarge),
                         [](const auto& sizes) {
                           return sizes.param.batch < 10 ? "Small" : "Large";
                         });

TEST(Check, IntegersMustRoundToTheReference) {
  Case run(kSmall, Family::kIntegers);
  EXPECT_TRUE(run.Check().exact);
  run.y[7] += 0.25f;
  OutputCheck check = run.Check();
  EXPECT_FALSE(check.exact);
  EXPECT_EQ(check.accuracy, AccuracyClass::kFp32);
  run.y[7] += 0.75f;
  check = run.Check();
  EXPECT_EQ(check.accuracy, std::nullopt);
  EXPECT_THAT(check.mismatch.at(0), HasSubstr("1 of 4590 outputs are wrong"));
}

TEST(Check, NotFiniteOutputsMustBeWhereTheReferenceHasThem) {
  Case run(kSmall, Family::kNotFinite);
  EXPECT_EQ(run.Check().accuracy, AccuracyClass::kFp32);
  for (float& value : run.y) {
    if (std::isnan(value)) value = 0;
  }
  const OutputCheck check = run.Check();
  EXPECT_EQ(check.accuracy, std::nullopt);
  EXPECT_THAT(check.mismatch.at(3),
              HasSubstr("NaN or infinities of the inputs are not kept"));
}

// No output may make the check crash or pass: all poison, all infinite.
TEST(Check, OutputsThatAreNoNumbersFail) {
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const Problem& problem : {kSmall, kLarge}) {
      Case run(problem, Family::kSigned);
      run.y.assign(run.y.size(), value);
      EXPECT_EQ(run.Check().accuracy, std::nullopt);
    }
  }
}

}  // namespace
}  // namespace convlab
