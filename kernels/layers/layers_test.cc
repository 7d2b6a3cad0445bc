#include "kernels/layers/layers.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class LayersTest : public ::testing::Test {
 protected:
  std::vector<float> Random(int64_t count) {
    std::uniform_real_distribution<float> distribution(-1, 1);
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }
  Workers workers_{3};
  std::mt19937 generator_{1};
};

TEST_F(LayersTest, TanhStaysWithinItsStatedError) {
  std::vector<float> values;
  for (float x = -20; x <= 20; x += 1e-4f) values.push_back(x);
  for (float x = 1e-30f; x < 1; x *= 1.01f) values.push_back(x);
  std::vector<float> results = values;
  Activate(Activation::kTanh, results.size(), results.data(), workers_);
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    worst =
        std::max(worst, std::abs(results[i] - std::tanh(double{values[i]})));
  }
  EXPECT_LT(worst, 5e-7);
}

TEST_F(LayersTest, ReluKeepsPositivesAndNan) {
  std::vector<float> values = {-2, -0.0f, 0, 3, kInfinity, -kInfinity, kNan};
  Activate(Activation::kRelu, values.size(), values.data(), workers_);
  EXPECT_THAT(std::vector<float>(values.begin(), values.end() - 1),
              ElementsAre(0, 0, 0, 3, kInfinity, 0));
  EXPECT_TRUE(std::isnan(values.back()));
}

TEST_F(LayersTest, NoActivationChangesNothing) {
  std::vector<float> values = {-2, 3};
  Activate(Activation::kNone, 2, values.data(), workers_);
  EXPECT_THAT(values, ElementsAre(-2, 3));
}

TEST_F(LayersTest, PoolingWithFloorDropsTheLastRowAndColumn) {
  const std::vector<float> image = {1, 2, 9,  //
                                    4, 3, 9,  //
                                    9, 9, 9};
  std::vector<float> pooled(1, kNan);
  PoolMax({2, 2, false}, 1, 3, image.data(), pooled.data(), workers_);
  EXPECT_THAT(pooled, ElementsAre(4));
}

TEST_F(LayersTest, PoolingWithCeilTakesWhatIsInside) {
  const std::vector<float> images = {1,  2,  -5, 4,  3,  -6, -7, -8, -9,  //
                                     10, 20, 30, 40, 50, 60, 70, 80, 90};
  std::vector<float> pooled(8, kNan);
  PoolMax({2, 2, true}, 2, 3, images.data(), pooled.data(), workers_);
  EXPECT_THAT(pooled, ElementsAre(4, -5, -7, -9, 50, 60, 80, 90));
}

TEST_F(LayersTest, PoolingWindowsMayOverlapAndHandOnNan) {
  const std::vector<float> image = {kNan, 1, 2,  //
                                    3,    4, 5,  //
                                    6,    7, 8};
  std::vector<float> pooled(4);
  PoolMax({2, 1, false}, 1, 3, image.data(), pooled.data(), workers_);
  EXPECT_TRUE(std::isnan(pooled[0]));
  EXPECT_EQ(pooled[1], 5);
  EXPECT_EQ(pooled[3], 8);
}

// fa20's second pooling: 34 rows in windows of 4 with ceil are 9.
TEST_F(LayersTest, PoolingMatchesADirectMaximum) {
  const MaxPool pool{4, 4, true};
  const int64_t planes = 37, size = 34, pooled_size = 9;
  const std::vector<float> images = Random(planes * size * size);
  std::vector<float> pooled(planes * pooled_size * pooled_size, kNan);
  PoolMax(pool, planes, size, images.data(), pooled.data(), workers_);
  std::vector<float> expected(pooled.size(), -kInfinity);
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t y = 0; y < size; ++y) {
      for (int64_t x = 0; x < size; ++x) {
        float& cell = expected[(p * pooled_size + y / 4) * pooled_size + x / 4];
        cell = std::max(cell, images[(p * size + y) * size + x]);
      }
    }
  }
  EXPECT_EQ(pooled, expected);
}

TEST_F(LayersTest, FullyConnectedMatchesDoublePrecision) {
  for (const int64_t batch : {1, 2, 130, 257}) {
    const int64_t inputs = 333, outputs = 10;
    const std::vector<float> in = Random(batch * inputs);
    const std::vector<float> weight = Random(outputs * inputs);
    const std::vector<float> bias = Random(outputs);
    std::vector<float> out(batch * outputs, kNan);
    FullyConnected(batch, inputs, outputs, in.data(), weight.data(),
                   bias.data(), out.data(), workers_);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t o = 0; o < outputs; ++o) {
        double expected = bias[o];
        for (int64_t i = 0; i < inputs; ++i) {
          expected += double{in[b * inputs + i]} * weight[o * inputs + i];
        }
        ASSERT_NEAR(out[b * outputs + o], expected, 2e-5);
      }
    }
  }
}

TEST_F(LayersTest, SoftmaxSumsToOneAndDoesNotOverflow) {
  std::vector<float> values = {0, std::log(3.0f), 1000, 1000, -kInfinity, 0};
  Softmax(3, 2, values.data());
  EXPECT_THAT(values, ElementsAre(FloatNear(0.25, 1e-6), FloatNear(0.75, 1e-6),
                                  0.5, 0.5, 0, 1));
}

}  // namespace
}  // namespace convlab
