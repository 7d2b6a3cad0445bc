#include "common/accuracy/contract.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace convlab {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Contract, CountsRoundingsOfTheMagnitude) {
  EXPECT_EQ(ErrorFactor(1, {1, 3, 9}), 0);
  EXPECT_NEAR(ErrorFactor(1 + 0x1p-20f, {1, 1, 9}), 16, 1e-6);
  // Of the magnitude, not of the result, which may cancel.
  EXPECT_NEAR(ErrorFactor(1 + 0x1p-20f, {1, 4, 9}), 4, 1e-6);
  EXPECT_NEAR(ErrorFactor(0x1p-20f, {0, 4, 9}), 4, 1e-6);
}

TEST(Contract, IsTheSameAtEveryScale) {
  for (const int exponent : {-90, -30, 0, 30, 90}) {
    EXPECT_NEAR(
        ErrorFactor(std::ldexp(1 + 0x1p-20f, exponent),
                    {std::ldexp(1, exponent), std::ldexp(2, exponent), 25}),
        8, 1e-6)
        << exponent;
  }
}

TEST(Contract, SmallestSumsMayLoseWhatFloat32Does) {
  constexpr float kLeast = 0x1p-149f;
  // Each of nine products was below half the smallest float.
  EXPECT_EQ(ErrorFactor(0, {4 * 0x1p-149, 4 * 0x1p-149, 9}), 0);
  EXPECT_EQ(ErrorFactor(13 * kLeast, {4 * 0x1p-149, 4 * 0x1p-149, 9}), 0);
  EXPECT_GT(ErrorFactor(14 * kLeast, {4 * 0x1p-149, 4 * 0x1p-149, 9}), 1e6);
  // A denormal input that was taken for zero.
  EXPECT_GT(ErrorFactor(0, {0x1p-120, 0x1p-120, 9}), 1e6);
  // Nothing but zeros is summed.
  EXPECT_EQ(ErrorFactor(0, {0, 0, 9}), 0);
  EXPECT_EQ(ErrorFactor(1e-30f, {0, 0, 9}), HUGE_VAL);
}

TEST(Contract, NotFiniteOutputsAreTheDefinitions) {
  EXPECT_EQ(ErrorFactor(kNan, {std::nan(""), HUGE_VAL, 9}), 0);
  EXPECT_EQ(ErrorFactor(kInfinity, {std::nan(""), HUGE_VAL, 9}), HUGE_VAL);
  EXPECT_EQ(ErrorFactor(kInfinity, {HUGE_VAL, HUGE_VAL, 9}), 0);
  EXPECT_EQ(ErrorFactor(-kInfinity, {HUGE_VAL, HUGE_VAL, 9}), HUGE_VAL);
  EXPECT_EQ(ErrorFactor(1, {HUGE_VAL, HUGE_VAL, 9}), HUGE_VAL);
  EXPECT_EQ(ErrorFactor(kNan, {1, 1, 9}), HUGE_VAL);
  EXPECT_EQ(ErrorFactor(kInfinity, {1, 1, 9}), HUGE_VAL);
}

TEST(Contract, OverflowingSumsMayBeInfinite) {
  EXPECT_EQ(ErrorFactor(kInfinity, {1, 0x1p127, 9}), 0);
  EXPECT_EQ(ErrorFactor(kNan, {1, 0x1p130, 9}), 0);
  // But a number must be right.
  EXPECT_EQ(ErrorFactor(1, {1, 0x1p130, 9}), 0);
  EXPECT_GT(ErrorFactor(1, {0x1p129, 0x1p130, 9}), 1e6);
  EXPECT_EQ(ErrorFactor(kInfinity, {1, 0x1p126, 9}), HUGE_VAL);
}

TEST(Contract, AllowsFourTimesThePlainLoop) {
  EXPECT_EQ(AllowedFactor(0.5), 16);
  EXPECT_EQ(AllowedFactor(4), 16);
  EXPECT_EQ(AllowedFactor(10), 40);
}

}  // namespace
}  // namespace convlab
