#include "kernels/convolution/cuda/lib/scaling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/round_to_half.h"

namespace convlab::cuda {
namespace {

uint32_t Bits(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof(bits));
  return bits;
}

TEST(Scaling, PowersOfTwoHaveTheirBits) {
  for (int e = -149; e <= 127; ++e) {
    EXPECT_EQ(PowerOfTwoBits(e), Bits(std::ldexp(1.f, e))) << e;
  }
}

TEST(Scaling, InputsComeBelowTheLargestHalfAndNotFarBelow) {
  for (int power = -149; power <= 127; ++power) {
    // The largest and the least that share an exponent's class, and another.
    for (const float mantissa : {1.f, 1.2499999f, 1.25f, 1.9999999f}) {
      const double value = std::ldexp(static_cast<double>(mantissa), power);
      const float input = static_cast<float>(value);
      const int exponent = InputExponent(Bits(input));
      ASSERT_LE(exponent, 127);
      ASSERT_GE(exponent, -126);
      const double scaled = std::ldexp(static_cast<double>(input), exponent);
      EXPECT_LT(scaled, 1.25 * 0x1p15) << input;
      if (exponent < 127) {
        EXPECT_GE(scaled, 1.25 * 0x1p12) << input;
      }
    }
  }
}

TEST(Scaling, InputsOfUsualSizeShareTheUsualExponent) {
  EXPECT_EQ(InputExponent(Bits(0.15625f)), kUsualExponent);
  EXPECT_EQ(InputExponent(Bits(1.f)), kUsualExponent);
  EXPECT_EQ(InputExponent(Bits(1.2499f)), kUsualExponent);
  EXPECT_NE(InputExponent(Bits(1.25f)), kUsualExponent);
  EXPECT_NE(InputExponent(Bits(0.15624f)), kUsualExponent);
}

TEST(Scaling, AFilterFillsTheHalves) {
  EXPECT_EQ(FilterExponent(0), 0);
  for (int power = -149; power <= 127; ++power) {
    const float weight = std::ldexp(power < -126 ? 1.f : 1.9f, power);
    EXPECT_EQ(power + FilterExponent(Bits(weight)), 14) << power;
  }
}

TEST(Scaling, ValuesAreKeptFromTheLeastExponentOn) {
  for (int exponent = -126; exponent <= 127; ++exponent) {
    const uint32_t least = LeastKept(exponent);
    float value;
    std::memcpy(&value, &least, sizeof(value));
    EXPECT_EQ(std::ldexp(static_cast<double>(value), exponent),
              std::ldexp(1., kLeastExponent))
        << exponent;
  }
}

// The bounds that LeastCertainSum rests on, at many values of each power.
TEST(Scaling, HalvesHoldWhatTheCommentSays) {
  for (int power = -60; power < 15; ++power) {
    for (int mantissa = 0; mantissa < 1 << 14; ++mantissa) {
      const double v = std::ldexp((1 << 23) + 511 * mantissa, power - 23);
      const double high = RoundToHalf(v);
      const double low = RoundToHalf(v - high);
      const double lost = std::abs(v - high - low);
      ASSERT_LE(lost, std::max<double>(std::ldexp(v, -23), kMostLost)) << v;
      ASSERT_LE(std::abs(low),
                std::max(std::ldexp(v, -11), std::ldexp(1., -25)))
          << v;
      if (power >= kLeastExponent) {
        ASSERT_LE(lost, v * kKeptShare) << v;
      }
    }
  }
}

// An output may be a single product, and may lose 16 * 2^-24 of itself.
TEST(Scaling, ProductsOfKeptFactorsKeepTheContract) {
  double most_lost = 0, most_low = 0;  // of a kept value
  for (int power = -14; power < 2; ++power) {
    for (int bits = 0; bits < 1 << 14; ++bits) {
      const double v = std::ldexp((1 << 23) + bits, power - 23);
      const double high = RoundToHalf(v);
      const double low = RoundToHalf(v - high);
      const double lost = std::abs(v - high - low);
      if (lost > v * kKeptShare) continue;
      most_lost = std::max(most_lost, lost / v);
      most_low = std::max(most_low, std::abs(low) / v);
    }
  }
  EXPECT_LE(2 * most_lost + most_low * most_low, 16 * 0x1p-24);
  // It is not far from what the comment says.
  EXPECT_GE(2 * most_lost + most_low * most_low, 11 * 0x1p-24);
}

TEST(Scaling, CertainSumsGrowWithWhatIsLossy) {
  EXPECT_EQ(LeastCertainSum(0), 0);
  // The bound of each loss, 2^-25 * 1.25 * 2^15, is 2^-22 of it.
  EXPECT_EQ(LeastCertainSum(1), std::ldexp(1.25, -25 + 15 + 22));
  EXPECT_EQ(LeastCertainSum(591), 1.25 * 4096 * 591);
  EXPECT_EQ(LeastCertainSum(3, std::ldexp(1.f, -40)),
            LeastCertainSum(3) * 0x1p-15);
}

TEST(Scaling, ScalesAreTakenBackByOnePowerOfTwo) {
  EXPECT_TRUE(CanScaleBack(-126, -1));
  EXPECT_FALSE(CanScaleBack(-126, -2));
  EXPECT_TRUE(CanScaleBack(100, 26));
  EXPECT_FALSE(CanScaleBack(100, 27));
  EXPECT_FALSE(CanScaleBack(kNotScalable, 0));
  EXPECT_FALSE(CanScaleBack(-126, kNotScalable));
}

}  // namespace
}  // namespace convlab::cuda
