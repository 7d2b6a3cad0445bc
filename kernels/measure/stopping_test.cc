#include "kernels/measure/stopping.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

std::vector<int64_t> Samples(int count, int64_t low, int64_t high) {
  std::vector<int64_t> samples;
  for (int i = 0; i < count; ++i) samples.push_back(i % 2 == 0 ? low : high);
  return samples;
}

TEST(MedianUncertainty, IsTheStandardErrorOfTheMedian) {
  EXPECT_EQ(MedianUncertainty({100, 100, 100}), 0);
  // IQR 10 about 1000: 1.2533 * 10 / 1.349 / sqrt(100) / 1000.
  EXPECT_NEAR(MedianUncertainty(Samples(100, 995, 1005)), 0.000929, 1e-6);
  // Four times the samples give half the error.
  EXPECT_NEAR(MedianUncertainty(Samples(400, 995, 1005)), 0.000465, 1e-6);
  // One outlier does not matter.
  std::vector<int64_t> samples(20, 100);
  samples.back() = 100000;
  EXPECT_EQ(MedianUncertainty(samples), 0);
  // Samples of 0 ns give no precision.
  EXPECT_GT(MedianUncertainty({0, 0, 0}), 1);
}

TEST(EnoughSamples, AsksForTheLeastNumberFirst) {
  StoppingRule rule;
  EXPECT_FALSE(EnoughSamples({}, 100, rule));
  EXPECT_FALSE(EnoughSamples(Samples(19, 100, 100), 0, rule));
  EXPECT_TRUE(EnoughSamples(Samples(20, 100, 100), 0, rule));
}

// One or two samples give no reliable spread.
TEST(EnoughSamples, NeverTrustsTheSpreadOfTooFew) {
  StoppingRule rule;
  rule.min_samples = 1;
  EXPECT_FALSE(EnoughSamples(Samples(1, 100, 100), 0, rule));
  EXPECT_FALSE(EnoughSamples(Samples(2, 100, 100), 0, rule));
  EXPECT_TRUE(EnoughSamples(Samples(3, 100, 100), 0, rule));
}

TEST(EnoughSamples, GoesOnWhileTheSpreadIsLarge) {
  StoppingRule rule;
  EXPECT_FALSE(EnoughSamples(Samples(20, 90, 110), 0, rule));
  EXPECT_FALSE(EnoughSamples(Samples(299, 90, 110), 0, rule));
  EXPECT_TRUE(EnoughSamples(Samples(300, 90, 110), 0, rule));
  rule.precision = 0.1;
  EXPECT_TRUE(EnoughSamples(Samples(20, 90, 110), 0, rule));
}

TEST(EnoughSamples, EndsWhenTheTimeIsUpButNeverWithOne) {
  StoppingRule rule;
  EXPECT_FALSE(EnoughSamples(Samples(2, 100, 100), 6, rule));
  EXPECT_TRUE(EnoughSamples(Samples(3, 100, 100), 6, rule));
  EXPECT_FALSE(EnoughSamples(Samples(3, 100, 100), 4, rule));
}

TEST(StoppingRule, IsDescribed) {
  EXPECT_EQ(ToString(StoppingRule()),
            "at least 20 samples and until the median's standard error is "
            "0.5 % of it, at most 300 samples or 5 s");
}

}  // namespace
}  // namespace convlab
