// The kernel of a network's front for images of floats, by the definition.
#include "kernels/compiled/cuda/float_front.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {
namespace {

constexpr MaxPool kHalve{2, 2, false};

class FloatFrontTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!FindDevice().ok() || !RunsFloatFront()) GTEST_SKIP() << "for a GPU";
  }

  void Make(int size, int filters, int kernel_size, Activation activation,
            int64_t images) {
    ASSERT_TRUE(MakeFloatFront(size, filters, kernel_size, kHalve, activation,
                               &front_));
    std::uniform_real_distribution<float> uniform(-1, 1);
    const int weights = filters * kernel_size * kernel_size;
    for (int i = 0; i < weights; ++i) front_.weights[i] = uniform(random_);
    for (int i = 0; i < filters; ++i) front_.bias[i] = uniform(random_);
    // One more than there are images, so that they may begin anywhere.
    images_.resize(images * size * size + 1);
    for (float& v : images_) v = uniform(random_);
    Pack();
  }

  // Lets tensor cores compute, where the device has them, if they may.
  void Pack() {
    front_.packed = nullptr;
    if (!FloatFrontKeepsFilters(front_)) return;
    const int weights =
        front_.filters * front_.kernel_size * front_.kernel_size;
    auto filters = DeviceBuffer::Allocate(weights * sizeof(float));
    auto bias = DeviceBuffer::Allocate(front_.filters * sizeof(float));
    auto packed = DeviceBuffer::Allocate(PackedFloatFrontBytes(front_));
    ASSERT_TRUE(filters.ok() && bias.ok() && packed.ok());
    ASSERT_TRUE(
        CopyToDevice(filters->data(), front_.weights, filters->bytes()).ok());
    ASSERT_TRUE(CopyToDevice(bias->data(), front_.bias, bias->bytes()).ok());
    ASSERT_TRUE(ToStatus(PackFloatFront(front_, filters->floats(),
                                        bias->floats(), packed->data()))
                    .ok());
    ASSERT_TRUE(Synchronize().ok());
    packed_ = *std::move(packed);
    front_.packed = packed_.data();
  }

  int64_t results() const {  // of an image
    return int64_t{front_.filters} * front_.pooled * front_.pooled;
  }

  std::vector<float> Run(int64_t images, int64_t begin = 0) {
    const int64_t bytes = images_.size() * sizeof(float);
    auto in = DeviceBuffer::Allocate(bytes);
    std::vector<float> result(images * results());
    auto out = DeviceBuffer::Allocate(result.size() * sizeof(float));
    EXPECT_TRUE(in.ok() && out.ok());
    EXPECT_TRUE(CopyToDevice(in->data(), images_.data(), bytes).ok());
    EXPECT_TRUE(FillBytes(out->data(), 0xff, out->bytes()).ok());
    EXPECT_TRUE(Synchronize().ok());
    EXPECT_TRUE(ToStatus(LaunchFloatFront(front_, images, in->floats() + begin,
                                          out->floats(), nullptr))
                    .ok());
    EXPECT_TRUE(CopyToHost(result.data(), out->data(), out->bytes()).ok());
    return result;
  }

  // The worst error of an output in units of 2^-24 of the magnitudes of the
  // terms of its window's sums (docs/numerics.md), without an activation and
  // bias.
  double WorstOfContract(const std::vector<float>& found, int64_t images) {
    const int K = front_.kernel_size, pooled = front_.pooled;
    double worst = 0;
    size_t i = 0;
    for (int64_t n = 0; n < images; ++n) {
      const float* const image = &images_[n * front_.size * front_.size];
      for (int f = 0; f < front_.filters; ++f) {
        for (int at = 0; at < pooled * pooled; ++at, ++i) {
          double most = -std::numeric_limits<double>::infinity();
          double magnitudes = 0;
          for (int place = 0; place < 4; ++place) {
            double sum = 0, magnitude = 0;
            for (int j = 0; j < K * K; ++j) {
              const int row = 2 * (at / pooled) + place / 2 + j / K;
              const int column = 2 * (at % pooled) + place % 2 + j % K;
              const double term = double{front_.weights[f * K * K + j]} *
                                  image[row * front_.size + column];
              sum += term;
              magnitude += std::abs(term);
            }
            most = std::max(most, sum);
            magnitudes = std::max(magnitudes, magnitude);
          }
          // What float32 cannot hold of each term is not asked for.
          const double least =
              K * K * double{std::numeric_limits<float>::denorm_min()};
          const double error = std::max(std::abs(found[i] - most) - least, 0.0);
          if (error > 0) {
            worst = std::max(worst, error / (magnitudes * 0x1p-24));
          }
          if (std::isnan(found[i])) return found[i];
        }
      }
    }
    return worst;
  }

  // The result of an image at a window, in double precision.
  double Expected(const float* image, int filter, int y, int x) const {
    const int K = front_.kernel_size;
    double most = -std::numeric_limits<double>::infinity();
    for (int place = 0; place < 4; ++place) {
      double sum = front_.bias[filter];
      for (int i = 0; i < K * K; ++i) {
        const int row = 2 * y + place / 2 + i / K;
        const int column = 2 * x + place % 2 + i % K;
        sum += double{front_.weights[filter * K * K + i]} *
               image[row * front_.size + column];
      }
      most = std::max(most, sum);
    }
    return front_.activation == Activation::kTanh   ? std::tanh(most)
           : front_.activation == Activation::kRelu ? std::max(most, 0.0)
                                                    : most;
  }

  void ExpectDefinition(const std::vector<float>& found, int64_t images,
                        int64_t begin = 0) {
    const int pooled = front_.pooled;
    size_t i = 0;
    for (int64_t n = 0; n < images; ++n) {
      const float* const image =
          &images_[begin + n * front_.size * front_.size];
      for (int f = 0; f < front_.filters; ++f) {
        for (int place = 0; place < pooled * pooled; ++place, ++i) {
          ASSERT_NEAR(found[i],
                      Expected(image, f, place / pooled, place % pooled), 1e-5)
              << "image " << n << ", filter " << f << ", place " << place;
        }
      }
    }
  }

  std::mt19937 random_;
  FloatFront front_;
  DeviceBuffer packed_;
  std::vector<float> images_;
};

TEST_F(FloatFrontTest, IsWhatTheDefinitionGivesInAnyBatch) {
  struct Case {
    int size, filters, kernel_size;
    Activation activation;
  };
  for (const Case& one :
       {Case{32, 6, 5, Activation::kRelu},  // lenet5
        Case{48, 6, 5, Activation::kTanh},  // sp19
        Case{14, 4, 3, Activation::kNone}, Case{6, 5, 5, Activation::kNone},
        Case{110, 5, 3, Activation::kRelu}}) {
    SCOPED_TRACE(::testing::Message() << one.size << ", " << one.kernel_size);
    constexpr int64_t kImages = 11;
    ASSERT_NO_FATAL_FAILURE(
        Make(one.size, one.filters, one.kernel_size, one.activation, kImages));
    const std::vector<float> all = Run(kImages);
    ExpectDefinition(all, kImages);
    for (const int64_t images : {1, 2, 5}) {
      const std::vector<float> some = Run(images);
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()))
          << images << " images";
    }
    // At no multiple of 16 bytes, where multiply-adds compute, which are right
    // without packed filters, too.
    ExpectDefinition(Run(3, 1), 3, 1);
    front_.packed = nullptr;
    ExpectDefinition(Run(3), 3);
  }
}

// Small integers are exact in any way to compute them.
TEST_F(FloatFrontTest, IsExactOnIntegers) {
  for (const int kernel_size : {3, 5}) {
    constexpr int64_t kImages = 700;
    ASSERT_NO_FATAL_FAILURE(
        Make(32, 6, kernel_size, Activation::kNone, kImages));
    for (float& v : images_) v = std::round(100 * v);
    for (float& v : front_.weights) v = std::round(8 * v);
    for (float& v : front_.bias) v = std::round(8 * v);
    ASSERT_NO_FATAL_FAILURE(Pack());
    const std::vector<float> found = Run(kImages);
    front_.packed = nullptr;
    EXPECT_EQ(Run(kImages), found);
  }
}

// Images that halves keep, and others among them that they do not: each output
// is as exact as the contract of class fp32 asks, and an image's do not depend
// on its neighbours.
TEST_F(FloatFrontTest, KeepsTheContractOnAnyScales) {
  constexpr int64_t kImages = 40;
  constexpr int kSize = 32, kPixels = kSize * kSize;
  for (const int kernel_size : {3, 5}) {
    ASSERT_NO_FATAL_FAILURE(
        Make(kSize, 6, kernel_size, Activation::kNone, kImages));
    std::fill(front_.bias, front_.bias + 6, 0.0f);
    for (int i = 0; i < kernel_size * kernel_size; ++i) {
      front_.weights[i] *= 0x1p-40f;  // a filter with a scale of its own
    }
    for (int64_t n = 0; n < kImages; ++n) {
      float* const own = &images_[n * kPixels];
      std::uniform_int_distribution<int> any(0, kPixels - 1);
      const int kind = n % 9;
      for (int i = 0; i < kPixels; ++i) {
        if (kind == 1) own[i] = std::ldexp(own[i], -140);
        if (kind == 2) own[i] = std::ldexp(own[i], 100);
        if (kind == 3 && i % kSize > 15) own[i] *= 0x1p-30f;
        if (kind == 4 || kind == 8) own[i] = 0;
        if (kind == 5) own[i] = std::abs(own[i]);
        if (kind == 6) own[i] = std::ldexp(own[i], any(random_) % 40);
      }
      if (kind == 7) own[any(random_)] = 0x1p25f;
      // No window sees both, and the scale of the large one takes the other to
      // zero.
      if (kind == 8) own[0] = 0x1p50f, own[kPixels / 2] = 0x1p-115f;
    }
    ASSERT_NO_FATAL_FAILURE(Pack());
    ASSERT_NE(front_.packed, nullptr);
    const std::vector<float> all = Run(kImages);
    EXPECT_LE(WorstOfContract(all, kImages), 16);
    EXPECT_EQ(Run(kImages), all);
    for (int64_t n = 0; n < kImages; ++n) {
      const std::vector<float> images = images_;
      images_.assign(images.begin() + n * kPixels,
                     images.begin() + (n + 1) * kPixels);
      const std::vector<float> alone = Run(1);
      images_ = images;
      EXPECT_TRUE(
          std::equal(alone.begin(), alone.end(), all.begin() + n * results()))
          << "image " << n;
    }
  }
}

TEST_F(FloatFrontTest, LeavesFiltersThatHalvesDoNotKeepToMultiplyAdds) {
  ASSERT_NO_FATAL_FAILURE(Make(32, 6, 5, Activation::kNone, 3));
  std::fill(front_.bias, front_.bias + 6, 0.0f);
  const auto expect_lossy = [&](float weight) {
    const float before = front_.weights[7];
    front_.weights[7] = weight;
    EXPECT_FALSE(FloatFrontKeepsFilters(front_)) << weight;
    ASSERT_NO_FATAL_FAILURE(Pack());
    if (std::isfinite(weight)) {
      EXPECT_LE(WorstOfContract(Run(3), 3), 16);
    }
    front_.weights[7] = before;
  };
  EXPECT_TRUE(FloatFrontKeepsFilters(front_));
  expect_lossy(1.2345678e-9f);
  expect_lossy(0x1p90f);
  expect_lossy(std::numeric_limits<float>::infinity());
  front_.weights[7] = 0;
  EXPECT_TRUE(FloatFrontKeepsFilters(front_));
}

// So many that a block has several images, and the last one fewer.
TEST_F(FloatFrontTest, IsWhatTheDefinitionGivesForManyImages) {
  constexpr int64_t kImages = 3001;
  ASSERT_NO_FATAL_FAILURE(Make(14, 4, 3, Activation::kNone, kImages));
  const std::vector<float> all = Run(kImages);
  ExpectDefinition(all, kImages);
  EXPECT_EQ(Run(kImages), all);
  ExpectDefinition(Run(kImages, 1), kImages, 1);
}

// Multiply-adds compute an image with a NaN, so that its other results may have
// other last bits.
TEST_F(FloatFrontTest, NanStaysInItsWindows) {
  ASSERT_NO_FATAL_FAILURE(Make(32, 6, 5, Activation::kRelu, 2));
  const std::vector<float> before = Run(2);
  // Of the first image's last window alone.
  images_[32 * 32 - 1] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> after = Run(2);
  const int64_t plane = int64_t{front_.pooled} * front_.pooled;
  for (int64_t i = 0; i < 2 * results(); ++i) {
    if (i >= results()) {
      EXPECT_EQ(after[i], before[i]) << i;
    } else if (i % plane == plane - 1) {
      EXPECT_TRUE(std::isnan(after[i])) << i;
    } else {
      EXPECT_NEAR(after[i], before[i], 1e-5) << i;
    }
  }
}

TEST(FloatFront, LeavesOthersToTheVariants) {
  FloatFront front;
  const auto takes = [&](int size, int filters, int kernel_size,
                         const MaxPool& pool) {
    return MakeFloatFront(size, filters, kernel_size, pool, Activation::kRelu,
                          &front);
  };
  EXPECT_TRUE(takes(32, 6, 5, kHalve));
  EXPECT_EQ(front.pooled, 14);
  EXPECT_TRUE(takes(32, 6, 5, {2, 2, true}));
  EXPECT_TRUE(takes(33 + 1, 4, 3, kHalve));
  EXPECT_FALSE(takes(32, 12, 5, kHalve));
  EXPECT_FALSE(takes(32, 3, 5, kHalve));
  EXPECT_FALSE(takes(32, 6, 4, kHalve));
  EXPECT_FALSE(takes(33, 6, 5, kHalve));
  EXPECT_FALSE(takes(112, 6, 5, kHalve));
  EXPECT_FALSE(takes(4, 6, 5, kHalve));
  EXPECT_FALSE(takes(32, 6, 5, {}));
  EXPECT_FALSE(takes(32, 6, 5, {3, 2, false}));
}

}  // namespace
}  // namespace convlab::cuda
