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
      EXPECT_GE(power + exponent, 12) << power;
    }
    // What is just below the next power is scaled the same.
    EXPECT_EQ(InputExponent(Bits(std::ldexp(1.f, power)) | 0x7fffff),
              InputExponent(Bits(std::ldexp(1.f, power > -127 ? power : -127))))
        << power;
  }
}

TEST(Scaling, InputsOfUsualSizeShareTheUsualExponent) {
  EXPECT_EQ(InputExponent(Bits(0.25f)), kUsualExponent);
  EXPECT_EQ(InputExponent(Bits(1.f)), kUsualExponent);
  EXPECT_EQ(InputExponent(Bits(1.99f)), kUsualExponent);
  EXPECT_NE(InputExponent(Bits(2.f)), kUsualExponent);
  EXPECT_NE(InputExponent(Bits(0.249f)), kUsualExponent);
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
    const uint32_t least = LeastKept(exponent);
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

// The bounds that LeastCertainSum rests on, at many values of each power.
TEST(Scaling, HalvesHoldWhatTheCommentSays) {
  for (int power = -60; power < 15; ++power) {
    for (int mantissa = 0; mantissa < 1 << 14; ++mantissa) {
      const double v = std::ldexp((1 << 23) + 511 * mantissa, power - 23);
      const double high = RoundToHalf(v);
      const double low = RoundToHalf(v - high);
      const double lost = std::abs(v - high - low);
      ASSERT_LE(lost, std::max(std::ldexp(v, -23), std::ldexp(1., -25))) << v;
      ASSERT_LE(std::abs(low),
                std::max(std::ldexp(v, -11), std::ldexp(1., -25)))
          << v;
      if (power >= kLeastExponent) {
        ASSERT_LE(lost, std::ldexp(v, -21)) << v;
      }
    }
  }
}

TEST(Scaling, CertainSumsGrowWithWhatIsLossy) {
  EXPECT_EQ(LeastCertainSum(0), 0);
  // The bound of each loss, 2^-25 * 2^15, is 2^-22 of it.
  EXPECT_EQ(LeastCertainSum(1), std::ldexp(1., -25 + 15 + 22));
  EXPECT_EQ(LeastCertainSum(591), 4096 * 591);
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
