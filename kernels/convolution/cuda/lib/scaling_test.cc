#include "kernels/convolution/cuda/lib/scaling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

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
    const int exponent = InputExponent(Bits(std::ldexp(1.f, power)));
    ASSERT_LE(exponent, 127);
    ASSERT_GE(exponent, -126);
    EXPECT_LT(power + exponent, 15) << power;
    if (exponent < 127) {
      EXPECT_GE(power + exponent, 5) << power;
    }
    // What is just below the next power is scaled the same.
    EXPECT_EQ(InputExponent(Bits(std::ldexp(1.f, power)) | 0x7fffff),
              InputExponent(Bits(std::ldexp(1.f, power > -127 ? power : -127))))
        << power;
  }
}

TEST(Scaling, InputsOfUsualSizeShareTheUsualExponent) {
  EXPECT_EQ(InputExponent(Bits(1 / 32.f)), kUsualExponent);
  EXPECT_EQ(InputExponent(Bits(1.f)), kUsualExponent);
  EXPECT_EQ(InputExponent(Bits(31.9f)), kUsualExponent);
  EXPECT_NE(InputExponent(Bits(32.f)), kUsualExponent);
  EXPECT_NE(InputExponent(Bits(0.031f)), kUsualExponent);
}

TEST(Scaling, AFilterFillsTheHalves) {
  EXPECT_EQ(FilterExponent(0), 0);
  for (int power = -113; power <= 127; ++power) {
    EXPECT_EQ(power + FilterExponent(Bits(std::ldexp(1.9f, power))), 14);
  }
  EXPECT_EQ(FilterExponent(Bits(std::numeric_limits<float>::denorm_min())),
            127);
}

TEST(Scaling, ValuesAreKeptFromTheLeastExponentOn) {
  for (int exponent = -126; exponent <= 127; ++exponent) {
    const uint32_t least = LeastKept(exponent, kLeastExponent);
    float value;
    std::memcpy(&value, &least, sizeof(value));
    EXPECT_EQ(std::ldexp(static_cast<double>(value), exponent),
              std::ldexp(1., kLeastExponent))
        << exponent;
  }
}

// A half, as the kernels round to it: 11 bits, and no less than 2^-24.
double RoundToHalf(double v) {
  if (v == 0) return 0;
  const int exponent = std::max(std::ilogb(v), -14);
  return std::ldexp(std::nearbyint(std::ldexp(v, 10 - exponent)),
                    exponent - 10);
}

// The bounds that LeastCertainSum rests on, at the worst values of each power.
TEST(Scaling, HalvesHoldWhatTheCommentSays) {
  const double low_scale = std::ldexp(1., kLowExponent);
  for (int power = -60; power < 15; ++power) {
    for (int mantissa = 0; mantissa < 1 << 14; ++mantissa) {
      const double v = std::ldexp((1 << 23) + 511 * mantissa, power - 23);
      const double high = RoundToHalf(v);
      const double low = RoundToHalf((v - high) * low_scale) / low_scale;
      const double lost = std::abs(v - high - low);
      if (power >= kLeastExponent) {
        ASSERT_LE(lost, std::ldexp(v, -23)) << v;
        ASSERT_LE(std::abs(low), std::ldexp(v, -11)) << v;
      } else {
        ASSERT_LE(lost, std::ldexp(1., -36)) << v;
        ASSERT_LE(std::abs(low), std::ldexp(1., -25)) << v;
      }
      // Without the low halves' scale, and high halves for low ones.
      const double plain_low = RoundToHalf(v - high);
      const double for_low = RoundToHalf(high / low_scale) * low_scale;
      const double one_sum = std::abs(v - high - plain_low);
      if (power >= kLeastOneSumExponent) {
        ASSERT_LE(one_sum, std::ldexp(v, -23)) << v;
        ASSERT_EQ(for_low, high) << v;
      } else {
        ASSERT_LE(one_sum, std::ldexp(1., -25)) << v;
        // Inputs' low halves are below 2^-11 of 2^15.
        ASSERT_LE(std::ldexp(std::abs(for_low - high), 4),
                  std::ldexp(1., -25 + 15))
            << v;
      }
    }
  }
}

TEST(Scaling, CertainSumsGrowWithWhatIsLossy) {
  EXPECT_EQ(LeastCertainSum(0, 0, false), 0);
  EXPECT_EQ(LeastCertainSum(0, 0, true), 0);
  // The bound of each loss, 2^-35 * 2^15 or twice 2^-25 * 2^15, is 2^-23 of it.
  EXPECT_EQ(LeastCertainSum(1, 0, false), std::ldexp(1., -35 + 15 + 23));
  EXPECT_EQ(LeastCertainSum(0, 1, false), std::ldexp(1., -35 + 15 + 23));
  EXPECT_EQ(LeastCertainSum(0, 1, true), std::ldexp(1., 1 - 25 + 15 + 23));
  EXPECT_EQ(LeastCertainSum(588, 3, false), 8 * 591);
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
