// Compares the GPU's layers with the CPU's, but for the fully connected one.
#include "kernels/layers/cuda/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "common/dataset/fashion_mnist.h"
#include "common/dataset/resize.h"
#include "common/network/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/layers/cuda/layers_testing.h"
#include "kernels/layers/layers.h"

namespace convlab::cuda {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class LayersTest : public CudaLayersTest {
 protected:
  std::vector<float> Activated(Activation activation,
                               const std::vector<float>& values) {
    const Tensor<float> tensor(values);
    EXPECT_TRUE(Activate(activation, values.size(), tensor.data()).ok());
    return tensor.Read();
  }

  // Enlarges on both and compares every byte.
  void ExpectSameEnlarged(const std::vector<uint8_t>& images, int64_t count,
                          int size, int enlarged) {
    SCOPED_TRACE(::testing::Message() << size << " to " << enlarged);
    const int64_t pixels = count * enlarged * enlarged;
    std::vector<uint8_t> expected(pixels);
    EnlargeImages(images.data(), count, size, enlarged, expected.data());
    const Tensor<uint8_t> in(images);
    const Tensor<float> out(pixels);
    ASSERT_TRUE(
        EnlargeToFloats(in.data(), count, size, enlarged, out.data()).ok());
    const std::vector<float> result = out.Read();
    for (int64_t i = 0; i < pixels; ++i) {
      ASSERT_EQ(result[i], expected[i]) << "pixel " << i;
    }
  }
};

TEST_F(LayersTest, AllTestImagesAreEnlargedAsOnTheCpu) {
  const auto dataset = LoadFashionMnist(FashionMnistFolder(), "t10k");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const ImageSet& images = dataset->images;
  std::set<int> sizes;
  for (const Network& network : Networks()) sizes.insert(network.image_size);
  for (const int size : sizes) {
    ExpectSameEnlarged(images.pixels, images.count, images.height, size);
  }
}

TEST_F(LayersTest, EnlargesFromAndToAnySize) {
  for (const auto& [size, enlarged] :
       std::vector<std::pair<int, int>>{{1, 1},
                                        {1, 5},
                                        {3, 2},
                                        {5, 9},
                                        {28, 13},
                                        {28, 29},
                                        {31, 300},
                                        {40, 2048},
                                        {300, 7}}) {
    ExpectSameEnlarged(Bytes(3 * size * size), 3, size, enlarged);
  }
  // The largest sums that occur.
  ExpectSameEnlarged(std::vector<uint8_t>(28 * 28, 255), 1, 28, 2048);
  // More images than a grid may have in y and z.
  ExpectSameEnlarged(Bytes(70000 * 2 * 2), 70000, 2, 3);
}

TEST_F(LayersTest, TanhIsAccurate) {
  std::vector<float> values;
  for (float x = -20; x <= 20; x += 1e-4f) values.push_back(x);
  for (float x = 1e-30f; x < 1; x *= 1.01f) values.push_back(x);
  const std::vector<float> results = Activated(Activation::kTanh, values);
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double exact = std::tanh(double{values[i]});
    if (exact == 0) continue;
    worst = std::max(worst, std::abs((results[i] - exact) / exact));
  }
  // 2 ulp
  EXPECT_LT(worst, 2.5e-7);
}

TEST_F(LayersTest, ActivationsPropagateNan) {
  const std::vector<float> values = {-2, -0.0f, 0, 3, kInfinity, -kInfinity};
  EXPECT_THAT(Activated(Activation::kRelu, values),
              ::testing::ElementsAre(0, 0, 0, 3, kInfinity, 0));
  EXPECT_EQ(Activated(Activation::kNone, values), values);
  EXPECT_EQ(Activated(Activation::kTanh, values)[4], 1);
  EXPECT_EQ(Activated(Activation::kTanh, values)[5], -1);
  EXPECT_TRUE(std::isnan(Activated(Activation::kRelu, {kNan})[0]));
  EXPECT_TRUE(std::isnan(Activated(Activation::kTanh, {kNan})[0]));
}

TEST_F(LayersTest, AddsBiasAsOnTheCpu) {
  struct Case {
    int64_t batch, channels, area;
  };
  for (const auto& [batch, channels, area] : std::vector<Case>{
           {300, 6, 28 * 28},  // LeNet-5's convolutions
           {300, 16, 10 * 10},
           {1, 1, 1},
           {5, 3, 1},       // planes of one value: several in a thread block
           {2, 700, 3},     // and more channels than a thread block has values
           {1, 2, 100003},  // planes of many thread blocks
           {70001, 5, 7}}) {
    SCOPED_TRACE(::testing::Message()
                 << batch << " x " << channels << " x " << area);
    std::vector<float> values = Random(batch * channels * area);
    const std::vector<float> bias = Random(channels);
    const Tensor<float> device(values), device_bias(bias);
    ASSERT_TRUE(
        AddBias(batch, channels, area, device_bias.data(), device.data()).ok());
    convlab::AddBias(batch, channels, area, bias.data(), values.data(),
                     workers_);
    EXPECT_EQ(device.Read(), values);
  }
}

TEST_F(LayersTest, PoolsAsOnTheCpu) {
  struct Case {
    MaxPool pool;
    int64_t planes, size;
  };
  for (const auto& [pool, planes, size] : std::vector<Case>{
           {{2, 2, false}, 24, 66},  // fa19's
           {{2, 2, false}, 7, 33},   // odd: the last row and column are dropped
           {{2, 2, true}, 7, 33},    // or kept
           {{4, 4, true}, 37, 34},   // fa20's second
           {{4, 4, false}, 37, 34},
           {{2, 1, false}, 5, 9},  // windows overlap
           {{3, 2, true}, 5, 12},
           {{2, 5, false}, 5, 23},         // or leave gaps
           {{2, 2, false}, 1, 2},          // one window
           {{1, 1, false}, 3, 1},          // of one pixel
           {{2, 2, false}, 100000, 4}}) {  // many planes
    for (const Activation activation :
         {Activation::kNone, Activation::kRelu, Activation::kTanh}) {
      SCOPED_TRACE(::testing::Message()
                   << planes << " planes of " << size << ", windows of "
                   << pool.size << " every " << pool.stride);
      const int64_t pooled = pool.Output(size);
      std::vector<float> in = Random(planes * size * size);
      const Tensor<float> device_in(in), out(planes * pooled * pooled);
      ASSERT_TRUE(
          PoolMax(pool, activation, planes, size, device_in.data(), out.data())
              .ok());
      std::vector<float> expected(planes * pooled * pooled);
      convlab::Activate(activation, in.size(), in.data(), workers_);
      convlab::PoolMax(pool, Activation::kNone, planes, size, in.data(),
                       expected.data(), workers_);
      const std::vector<float> result = out.Read();
      for (size_t i = 0; i < expected.size(); ++i) {
        // The error of the CPU's tanh; comparisons are exact.
        const double bound = activation == Activation::kTanh ? 7e-7 : 0;
        ASSERT_NEAR(result[i], expected[i], bound) << "at " << i;
      }
    }
  }
}

// To the bit as if the bias were added before.
TEST_F(LayersTest, PoolingAddsTheBiasOfAChannel) {
  const int64_t images = 300;
  const int channels = 7;
  const std::vector<float> bias = Random(channels);
  const Tensor<float> device_bias(bias);
  for (const auto& [pool, size] : std::vector<std::pair<MaxPool, int64_t>>{
           {{2, 2, false}, 10}, {{4, 4, true}, 34}, {{3, 2, true}, 9}}) {
    const int64_t planes = images * channels, pooled = pool.Output(size);
    std::vector<float> in = Random(planes * size * size);
    const Tensor<float> device_in(in), out(planes * pooled * pooled);
    ASSERT_TRUE(PoolMax(pool, Activation::kRelu, planes, size, device_in.data(),
                        out.data(), nullptr, {device_bias.data(), channels})
                    .ok());
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] += bias[i / (size * size) % channels];
    }
    std::vector<float> expected(planes * pooled * pooled);
    convlab::PoolMax(pool, Activation::kRelu, planes, size, in.data(),
                     expected.data(), workers_);
    EXPECT_EQ(out.Read(), expected) << "windows of " << pool.size;
  }
}

TEST_F(LayersTest, PoolingPropagatesNan) {
  for (const int64_t size : {4, 5}) {  // both kernels
    const int64_t pooled = size / 2;
    for (int64_t position = 0; position < 2; ++position) {
      std::vector<float> image(size * size, 1);
      image[position * size + 1 - position] = kNan;
      const Tensor<float> in(image), out(pooled * pooled);
      ASSERT_TRUE(PoolMax({2, 2, false}, Activation::kRelu, 1, size, in.data(),
                          out.data())
                      .ok());
      EXPECT_TRUE(std::isnan(out.Read()[0]));
      EXPECT_EQ(out.Read()[1], 1);
    }
  }
}

TEST_F(LayersTest, ClassifiesAsOnTheCpu) {
  const int64_t batch = 70001;
  const int classes = 10;
  std::vector<float> values = Random(batch * classes);
  for (float& value : values) value *= 50;
  // Equal values: the first one wins. And no overflow.
  std::fill_n(values.begin(), classes, 1000.0f);
  std::fill_n(values.begin() + classes, classes, -1000.0f);
  values[classes + 3] = values[classes + 7] = 0;
  const Tensor<float> probabilities(values);
  const Tensor<uint8_t> labels(batch);
  ASSERT_TRUE(Softmax(batch, classes, probabilities.data()).ok());
  ASSERT_TRUE(Label(batch, classes, probabilities.data(), labels.data()).ok());
  convlab::Softmax(batch, classes, values.data());
  const std::vector<float> result = probabilities.Read();
  const std::vector<uint8_t> found = labels.Read();
  EXPECT_EQ(found[0], 0);
  EXPECT_EQ(found[1], 3);
  for (int64_t b = 0; b < batch; ++b) {
    const float* const row = values.data() + b * classes;
    ASSERT_EQ(found[b], std::max_element(row, row + classes) - row);
    for (int i = 0; i < classes; ++i) {
      ASSERT_NEAR(result[b * classes + i], row[i], 1e-6);
    }
  }
}

}  // namespace
}  // namespace convlab::cuda
