#include "kernels/layers/layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "common/dataset/resize.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/simd/cpu_target.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// All tests run with each of the machine's instruction sets.
class LayersTest : public ::testing::TestWithParam<CpuTarget> {
 protected:
  void SetUp() override { ASSERT_TRUE(ForceCpuTarget(Name(GetParam())).ok()); }
  void TearDown() override { ASSERT_TRUE(ForceCpuTarget("auto").ok()); }

  std::vector<float> Random(int64_t count) {
    std::uniform_real_distribution<float> distribution(-1, 1);
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }
  Workers workers_{3};
  std::mt19937 generator_{1};
};

INSTANTIATE_TEST_SUITE_P(Targets, LayersTest,
                         ::testing::ValuesIn(SupportedCpuTargets()),
                         [](const auto& target) {
                           return std::string(Name(target.param));
                         });

// The distance of `value` from `exact` in units of the last place.
double UlpsFrom(double exact, float value) {
  if (exact == value) return 0;
  int exponent;
  std::frexp(exact, &exponent);
  const int last = std::max(exponent - std::numeric_limits<float>::digits,
                            std::numeric_limits<float>::min_exponent -
                                std::numeric_limits<float>::digits);
  return std::abs(value - exact) / std::ldexp(1.0, last);
}

// Every size that floats hold exactly and that the next one does not, narrower
// than a vector, smaller than the image, and as large; sums of all greys.
TEST_P(LayersTest, EnlargedImagesAreThoseOfTheDataset) {
  for (int enlarged = 1; enlarged <= 130; ++enlarged) {
    const int size = enlarged == 3 ? 1 : 28;
    const int count = 9;
    std::vector<uint8_t> images(count * size * size);
    for (uint8_t& pixel : images) pixel = generator_() % 3 ? 255 : generator_();
    for (int i = 0; i < size * size; ++i) images[i] = enlarged;  // all alike
    std::vector<uint8_t> bytes(count * enlarged * enlarged);
    EnlargeImages(images.data(), count, size, enlarged, bytes.data());
    std::vector<float> floats(bytes.size(), kNan);
    EnlargeToFloats(images.data(), count, size, enlarged, floats.data(),
                    workers_);
    ASSERT_EQ(floats, std::vector<float>(bytes.begin(), bytes.end()))
        << enlarged;
  }
}

TEST_P(LayersTest, TanhStaysWithinItsStatedError) {
  // Floats by their bits, a prime apart, of both signs: every binade evenly.
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0x7f800000; bits += 1009) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    values.push_back(value);
    values.push_back(-value);
  }
  std::vector<float> results = values;
  Activate(Activation::kTanh, results.size(), results.data(), workers_);
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    worst = std::max(worst, UlpsFrom(std::tanh(double{values[i]}), results[i]));
  }
  EXPECT_LT(worst, 3);
  EXPECT_GT(worst, 0.5);  // the comparison does see a difference
}

TEST_P(LayersTest, TanhOfWhatIsNoFiniteNumber) {
  for (const size_t count : {1, 3, 40}) {
    std::vector<float> values(count, kNan);
    Activate(Activation::kTanh, count, values.data(), workers_);
    for (const float value : values) EXPECT_TRUE(std::isnan(value));
    values.assign(count, -kInfinity);
    values[0] = kInfinity;
    Activate(Activation::kTanh, count, values.data(), workers_);
    EXPECT_EQ(values[0], 1);
    for (size_t i = 1; i < count; ++i) EXPECT_EQ(values[i], -1);
  }
}

TEST_P(LayersTest, ReluKeepsPositivesAndNan) {
  std::vector<float> values = {-2, -0.0f, 0, 3, kInfinity, -kInfinity, kNan};
  Activate(Activation::kRelu, values.size(), values.data(), workers_);
  EXPECT_THAT(std::vector<float>(values.begin(), values.end() - 1),
              ElementsAre(0, 0, 0, 3, kInfinity, 0));
  EXPECT_TRUE(std::isnan(values.back()));
}

TEST_P(LayersTest, NoActivationChangesNothing) {
  std::vector<float> values = {-2, 3};
  Activate(Activation::kNone, 2, values.data(), workers_);
  EXPECT_THAT(values, ElementsAre(-2, 3));
}

TEST_P(LayersTest, PoolingWithFloorDropsTheLastRowAndColumn) {
  const std::vector<float> image = {1, 2, 9,  //
                                    4, 3, 9,  //
                                    9, 9, 9};
  std::vector<float> pooled(1, kNan);
  PoolMax({2, 2, false}, Activation::kNone, 1, 3, image.data(), pooled.data(),
          workers_);
  EXPECT_THAT(pooled, ElementsAre(4));
}

TEST_P(LayersTest, PoolingWithCeilTakesThePartInside) {
  const std::vector<float> images = {1,  2,  -5, 4,  3,  -6, -7, -8, -9,  //
                                     10, 20, 30, 40, 50, 60, 70, 80, 90};
  std::vector<float> pooled(8, kNan);
  PoolMax({2, 2, true}, Activation::kNone, 2, 3, images.data(), pooled.data(),
          workers_);
  EXPECT_THAT(pooled, ElementsAre(4, -5, -7, -9, 50, 60, 80, 90));
}

TEST_P(LayersTest, PoolingWindowsMayOverlapAndPropagateNan) {
  const std::vector<float> image = {kNan, 1, 2,  //
                                    3,    4, 5,  //
                                    6,    7, 8};
  std::vector<float> pooled(4);
  PoolMax({2, 1, false}, Activation::kNone, 1, 3, image.data(), pooled.data(),
          workers_);
  EXPECT_TRUE(std::isnan(pooled[0]));
  EXPECT_EQ(pooled[1], 5);
  EXPECT_EQ(pooled[3], 8);
}

// The networks' poolings, and rows of every length round a vector's. fa20's
// second: 34 rows in windows of 4 with ceil are 9.
TEST_P(LayersTest, PoolingMatchesADirectMaximum) {
  struct Case {
    MaxPool pool;
    int64_t planes, size;
  };
  std::vector<Case> cases = {{{4, 4, true}, 37, 34}, {{2, 2, false}, 5, 66},
                             {{2, 2, false}, 3, 24}, {{2, 2, false}, 3, 80},
                             {{3, 2, true}, 2, 40},  {{3, 1, false}, 2, 21}};
  for (int64_t size = 2; size <= 70; ++size) {
    cases.push_back({{2, 2, size % 3 == 0}, 2, size});
  }
  for (const auto& [pool, planes, size] : cases) {
    SCOPED_TRACE(size);
    const int64_t pooled_size = pool.Output(size);
    std::vector<float> images = Random(planes * size * size);
    images[images.size() / 2] = kNan;
    std::vector<float> pooled(planes * pooled_size * pooled_size, kInfinity);
    PoolMax(pool, Activation::kRelu, planes, size, images.data(), pooled.data(),
            workers_);
    for (size_t i = 0; i < pooled.size(); ++i) {
      const int64_t plane = i / (pooled_size * pooled_size);
      const int64_t top = i / pooled_size % pooled_size * pool.stride;
      const int64_t left = i % pooled_size * pool.stride;
      float expected = 0;  // ReLU
      for (int64_t y = top; y < std::min(top + pool.size, size); ++y) {
        for (int64_t x = left; x < std::min(left + pool.size, size); ++x) {
          const float value = images[(plane * size + y) * size + x];
          if (!(value <= expected) && !std::isnan(expected)) expected = value;
        }
      }
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(pooled[i])) << i;
      } else {
        ASSERT_EQ(pooled[i], expected) << i;
      }
    }
  }
}

TEST_P(LayersTest, PoolingBeforeTheActivationChangesNothing) {
  const int64_t planes = 20, size = 66;
  std::vector<float> images = Random(planes * size * size);
  for (float& value : images) value *= 4;
  std::vector<float> pooled(planes * 33 * 33), expected(planes * 33 * 33);
  PoolMax({2, 2, false}, Activation::kTanh, planes, size, images.data(),
          pooled.data(), workers_);
  Activate(Activation::kTanh, images.size(), images.data(), workers_);
  PoolMax({2, 2, false}, Activation::kNone, planes, size, images.data(),
          expected.data(), workers_);
  // The approximation is monotonic within its error.
  for (size_t i = 0; i < pooled.size(); ++i) {
    ASSERT_NEAR(pooled[i], expected[i], 5e-7);
  }
}

TEST_P(LayersTest, AddsBias) {
  for (const auto& [batch, channels, area] :
       {std::tuple(1, 1, 1), std::tuple(2, 3, 5), std::tuple(7, 6, 784),
        std::tuple(3, 2, 20003), std::tuple(40000, 3, 1)}) {
    const std::vector<float> in = Random(int64_t{batch} * channels * area);
    const std::vector<float> bias = Random(channels);
    std::vector<float> values = in;
    AddBias(batch, channels, area, bias.data(), values.data(), workers_);
    for (size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(values[i], in[i] + bias[i / area % channels]) << "at " << i;
    }
  }
}

TEST_P(LayersTest, FullyConnectedMatchesDoublePrecision) {
  for (const auto& [batch, inputs, outputs, has_bias] :
       {std::tuple(1, 333, 10, true), std::tuple(2, 5, 1, true),
        std::tuple(130, 333, 10, true), std::tuple(257, 20, 13, true),
        std::tuple(7, 5000, 16, true), std::tuple(23, 600, 180, true),
        std::tuple(257, 20, 13, false)}) {
    const std::vector<float> in = Random(batch * inputs);
    const std::vector<float> weight = Random(outputs * inputs);
    const std::vector<float> bias = Random(outputs);
    const auto packed = PackWeights(inputs, outputs, weight.data(), workers_);
    std::vector<float> out(batch * outputs, kNan);
    FullyConnected(batch, inputs, outputs, in.data(), packed.get(),
                   has_bias ? bias.data() : nullptr, out.data(), workers_);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t o = 0; o < outputs; ++o) {
        double expected = has_bias ? bias[o] : 0;
        for (int64_t i = 0; i < inputs; ++i) {
          expected += double{in[b * inputs + i]} * weight[o * inputs + i];
        }
        ASSERT_NEAR(out[b * outputs + o], expected, 1e-6 * inputs);
      }
    }
  }
}

TEST_P(LayersTest, SoftmaxSumsToOneAndDoesNotOverflow) {
  std::vector<float> values = {0, std::log(3.0f), 1000, 1000, -kInfinity, 0};
  Softmax(3, 2, values.data());
  EXPECT_THAT(values, ElementsAre(FloatNear(0.25, 1e-6), FloatNear(0.75, 1e-6),
                                  0.5, 0.5, 0, 1));
}

}  // namespace
}  // namespace convlab
