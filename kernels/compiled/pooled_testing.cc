#include "kernels/compiled/pooled_testing.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

// What the numbers are like.
enum class Data {
  kUniform,
  kIntegers,
  kScales,
  kFaint,
  kFaintCorner,
  kFaintCornerAndBias,
  kSpecial
};

PooledValues MakeValues(const Pooled& shape, int64_t images, Data data) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::uniform_int_distribution<int> integer(-8, 8);
  PooledValues values;
  const auto fill = [&](int64_t count, std::vector<float>* to) {
    to->resize(count);
    for (float& v : *to) {
      v = data == Data::kIntegers ? integer(random) : uniform(random);
    }
  };
  const int64_t of_image = shape.image_floats();
  fill(images * of_image, &values.in);
  fill(int64_t{shape.of.filters} * shape.weights(), &values.filters);
  fill(shape.of.filters, &values.bias);
  std::vector<float>& in = values.in;
  for (int64_t i = 0; i < images * of_image; ++i) {
    const int64_t image = i / of_image;
    // An image's largest value beside small ones, and images far apart.
    if (data == Data::kFaint && i % of_image > 5) in[i] *= 1e-12f;
    if (data == Data::kScales) in[i] = std::ldexp(in[i], image % 2 * 90 - 60);
  }
  for (size_t i = 0; data == Data::kScales && i < values.filters.size(); ++i) {
    const int filter = static_cast<int>(i / shape.weights());
    values.filters[i] = std::ldexp(values.filters[i], filter * 7 % 40 - 20);
  }
  // The last output of an image sees its last value, which is far smaller than
  // the largest, and zeros: 1e-12 grows as a half, and 1e-13 is lost. A bias
  // takes half of what it gives, so that a negative bias alone says nothing.
  const bool bias = data == Data::kFaintCornerAndBias;
  const bool corner = data == Data::kFaintCorner || bias;
  const float faint = bias ? 1e-13f : 1e-12f;
  for (int m = 0; bias && m < shape.of.filters; ++m) {
    values.bias[m] =
        -faint / 2 * std::fabs(values.filters[(m + 1) * shape.weights() - 1]);
  }
  const int size = shape.of.size,
            seen = shape.of.kernel_size + shape.of.pool.size;
  for (int64_t i = 0; corner && i < images * of_image; ++i) {
    const auto row = static_cast<int>(i / size % size);
    const auto column = static_cast<int>(i % size);
    if (row > size - seen && column > size - seen) in[i] = 0;
    if ((i + 1) % of_image == 0) in[i] = faint;
  }
  if (data == Data::kSpecial) {
    in[1] = std::numeric_limits<float>::infinity();
    in[in.size() - 2] = std::numeric_limits<float>::quiet_NaN();
    // A blank image, if there are so many.
    if (images > 2) std::fill_n(in.begin() + of_image, of_image, 0);
  }
  return values;
}

// A window's largest sum, with the bias, and the largest of its sums of
// magnitudes.
struct Expected {
  double value, magnitude;
};
Expected Window(const Pooled& shape, const PooledValues& values, int64_t image,
                int m, int h, int w, bool bias) {
  const PooledCase& problem = shape.of;
  const int K = problem.kernel_size, pool = problem.pool.size;
  Expected all = {-std::numeric_limits<double>::infinity(), 0};
  for (int y = h * pool; y < std::min((h + 1) * pool, shape.convolved()); ++y) {
    for (int x = w * pool; x < std::min((w + 1) * pool, shape.convolved());
         ++x) {
      double sum = bias ? values.bias[m] : 0, magnitude = std::fabs(sum);
      for (int c = 0; c < problem.channels; ++c) {
        for (int i = 0; i < K * K; ++i) {
          const int row = y + i / K, column = x + i % K;
          const double term =
              double{values.in[((image * problem.channels + c) * problem.size +
                                row) *
                                   problem.size +
                               column]} *
              values.filters[(m * problem.channels + c) * K * K + i];
          sum += term;
          magnitude += std::fabs(term);
        }
      }
      all.value = sum > all.value || std::isnan(sum) ? sum : all.value;
      all.magnitude = std::max(all.magnitude, magnitude);
    }
  }
  return all;
}

double Activated(Activation activation, double v) {
  if (activation == Activation::kTanh) return std::tanh(v);
  return activation == Activation::kRelu && v < 0 ? 0 : v;
}

void ExpectRight(const Pooled& shape, const PooledValues& values,
                 int64_t images, bool bias, Data data,
                 const std::vector<float>& found) {
  const Activation activation = shape.activation;
  const int pooled = shape.pooled();
  const size_t places = static_cast<size_t>(pooled) * pooled;
  const bool exact = data == Data::kIntegers && activation != Activation::kTanh;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto place = static_cast<int>(i % places);
    const auto plane = static_cast<int64_t>(i / places);
    const int m = static_cast<int>(plane % shape.of.filters);
    const Expected expected = Window(shape, values, plane / shape.of.filters, m,
                                     place / pooled, place % pooled, bias);
    const double value = Activated(activation, expected.value);
    if (std::isnan(value) || std::isinf(value)) {
      ASSERT_EQ(std::isnan(value), std::isnan(found[i])) << i;
      ASSERT_TRUE(std::isnan(value) || found[i] == value) << i;
      continue;
    }
    const double allowed =
        exact ? 0
              : 16 * 0x1p-24 * expected.magnitude + shape.weights() * 0x1p-149 +
                    (activation == Activation::kTanh ? 0x1p-22 : 0);
    ASSERT_LE(std::fabs(found[i] - value), allowed)
        << "value " << i << " of " << images << " images";
  }
}

}  // namespace

std::string NameOf(const ::testing::TestParamInfo<PooledCase>& info) {
  const PooledCase& c = info.param;
  return absl::StrCat(c.channels, "_", c.size, "_", c.filters, "_",
                      c.kernel_size, "_", c.pool.size);
}

void ExpectWhatTheDefinitionGives(const PooledCase& of,
                                  const ConvolvePooled& convolved) {
  for (const Activation activation :
       {Activation::kNone, Activation::kTanh, Activation::kRelu}) {
    const Pooled shape = {of, activation};
    for (const Data data :
         {Data::kUniform, Data::kIntegers, Data::kScales, Data::kFaint,
          Data::kFaintCorner, Data::kFaintCornerAndBias, Data::kSpecial}) {
      SCOPED_TRACE(absl::StrCat("activation ", static_cast<int>(activation),
                                ", data ", static_cast<int>(data)));
      constexpr int64_t kImages = 5;
      const bool bias = data != Data::kScales && data != Data::kFaintCorner;
      const PooledValues values = MakeValues(shape, kImages, data);
      ExpectRight(shape, values, kImages, bias, data,
                  convolved(shape, values, kImages, bias));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

void ExpectTheSameBitsInAnyBatch(const PooledCase& of,
                                 const ConvolvePooled& convolved) {
  const Pooled shape = {of, Activation::kRelu};
  // Several images for each block.
  constexpr int64_t kMost = 2111;
  for (const Data data : {Data::kUniform, Data::kScales, Data::kFaint}) {
    SCOPED_TRACE(absl::StrCat("data ", static_cast<int>(data)));
    const PooledValues values = MakeValues(shape, kMost, data);
    const std::vector<float> all = convolved(shape, values, kMost, true);
    EXPECT_EQ(convolved(shape, values, kMost, true), all);
    for (const int64_t images : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 133, 1001}) {
      const std::vector<float> some = convolved(shape, values, images, true);
      ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin()))
          << images << " images";
    }
  }
}

void ExpectBitsOfTheImageAlone(const PooledCase& of,
                               const ConvolvePooled& convolved) {
  const Pooled shape = {of, Activation::kRelu};
  constexpr int64_t kImages = 2111;
  PooledValues values = MakeValues(shape, kImages, Data::kUniform);
  const std::vector<float> before = convolved(shape, values, kImages, true);
  const int64_t of_image = shape.image_floats();
  const auto spoiled = [](int64_t image) { return image % 5 == 1; };
  for (int64_t image = 0; image < kImages; ++image) {
    if (!spoiled(image)) continue;
    float* const own = &values.in[image * of_image];
    if (image % 2 == 0) own[1] = std::numeric_limits<float>::infinity();
    for (int64_t i = 6; i < of_image; ++i) own[i] *= 1e-12f;
  }
  const std::vector<float> after = convolved(shape, values, kImages, true);
  const int64_t results = static_cast<int64_t>(after.size()) / kImages;
  for (int64_t i = 0; i < kImages * results; ++i) {
    if (spoiled(i / results)) continue;
    ASSERT_EQ(after[i], before[i]) << "image " << i / results;
  }
}

}  // namespace convlab
