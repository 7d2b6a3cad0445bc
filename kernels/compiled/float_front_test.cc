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
    // At no multiple of 16 bytes.
    ExpectDefinition(Run(3, 1), 3, 1);
  }
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

TEST_F(FloatFrontTest, NanStaysInItsWindows) {
  ASSERT_NO_FATAL_FAILURE(Make(32, 6, 5, Activation::kRelu, 2));
  const std::vector<float> before = Run(2);
  // Of the first image's last window alone.
  images_[32 * 32 - 1] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> after = Run(2);
  const int64_t plane = int64_t{front_.pooled} * front_.pooled;
  for (int64_t i = 0; i < 2 * results(); ++i) {
    if (i < results() && i % plane == plane - 1) {
      EXPECT_TRUE(std::isnan(after[i])) << i;
    } else {
      EXPECT_EQ(after[i], before[i]) << i;
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
