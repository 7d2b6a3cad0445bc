// Compares the GPU's layers with the CPU's. Outputs are filled with NaN first,
// so that unwritten elements are found.
#include "kernels/layers/cuda/layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <variant>
#include <vector>

#include "common/dataset/fashion_mnist.h"
#include "common/dataset/resize.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "kernels/layers/layers.h"

namespace convlab::cuda {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A tensor in device memory.
template <typename T>
class Tensor {
 public:
  explicit Tensor(int64_t count) : count_(count) {
    auto buffer = DeviceBuffer::Allocate(std::max<int64_t>(count, 1) *
                                         static_cast<int64_t>(sizeof(T)));
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    if (buffer.ok()) buffer_ = *std::move(buffer);
    Fill(0xff);
  }
  explicit Tensor(const std::vector<T>& values) : Tensor(values.size()) {
    EXPECT_TRUE(
        CopyToDevice(data(), values.data(), values.size() * sizeof(T)).ok());
  }
  void Fill(uint8_t byte) const {
    EXPECT_TRUE(FillBytes(data(), byte, count_ * sizeof(T)).ok());
  }
  T* data() const { return static_cast<T*>(buffer_.data()); }
  std::vector<T> Read() const { return Read(0, count_); }
  std::vector<T> Read(int64_t first, int64_t count) const {
    std::vector<T> values(count);
    const absl::Status status =
        CopyToHost(values.data(), data() + first, count * sizeof(T));
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

 private:
  const int64_t count_;
  DeviceBuffer buffer_;
};

class CudaLayersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto facts = FindDevice();
    if (!facts.ok()) GTEST_SKIP() << facts.status().message();
  }

  std::vector<float> Random(int64_t count) {
    std::uniform_real_distribution<float> distribution(-1, 1);
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }
  std::vector<float> Integers(int64_t count, int largest) {
    std::uniform_int_distribution<int> distribution(-largest, largest);
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }
  std::vector<uint8_t> Bytes(int64_t count) {
    std::uniform_int_distribution<int> distribution(0, 255);
    std::vector<uint8_t> values(count);
    for (uint8_t& value : values) value = distribution(generator_);
    return values;
  }

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

  // Integers have exact sums, so that both must give the same bits.
  void ExpectSameProducts(int64_t batch, int64_t inputs, int64_t outputs,
                          int64_t scratch_floats, bool has_bias = true) {
    SCOPED_TRACE(::testing::Message()
                 << batch << " x " << inputs << " x " << outputs
                 << " with scratch for " << scratch_floats);
    const std::vector<float> in = Integers(batch * inputs, 8);
    const std::vector<float> weight = Integers(outputs * inputs, 8);
    const std::vector<float> bias = Integers(outputs, 100);
    std::vector<float> expected(batch * outputs);
    convlab::FullyConnected(
        batch, inputs, outputs, in.data(),
        PackWeights(inputs, outputs, weight.data(), workers_).get(),
        has_bias ? bias.data() : nullptr, expected.data(), workers_);
    const Tensor<float> device_in(in), device_weight(weight), device_bias(bias);
    const Tensor<float> out(batch * outputs), scratch(scratch_floats);
    ASSERT_TRUE(FullyConnected(batch, inputs, outputs, device_in.data(),
                               device_weight.data(),
                               has_bias ? device_bias.data() : nullptr,
                               out.data(), scratch.data(), scratch_floats)
                    .ok());
    EXPECT_EQ(out.Read(), expected);
  }

  Workers workers_{Workers::Available()};
  std::mt19937 generator_{20261122};
};

TEST_F(CudaLayersTest, AllTestImagesAreEnlargedAsOnTheCpu) {
  const auto dataset = LoadFashionMnist(FashionMnistFolder(), "t10k");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const ImageSet& images = dataset->images;
  std::set<int> sizes;
  for (const Network& network : Networks()) sizes.insert(network.image_size);
  for (const int size : sizes) {
    ExpectSameEnlarged(images.pixels, images.count, images.height, size);
  }
}

TEST_F(CudaLayersTest, EnlargesFromAndToAnySize) {
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

TEST_F(CudaLayersTest, TanhIsAccurate) {
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

TEST_F(CudaLayersTest, ActivationsPropagateNan) {
  const std::vector<float> values = {-2, -0.0f, 0, 3, kInfinity, -kInfinity};
  EXPECT_THAT(Activated(Activation::kRelu, values),
              ::testing::ElementsAre(0, 0, 0, 3, kInfinity, 0));
  EXPECT_EQ(Activated(Activation::kNone, values), values);
  EXPECT_EQ(Activated(Activation::kTanh, values)[4], 1);
  EXPECT_EQ(Activated(Activation::kTanh, values)[5], -1);
  EXPECT_TRUE(std::isnan(Activated(Activation::kRelu, {kNan})[0]));
  EXPECT_TRUE(std::isnan(Activated(Activation::kTanh, {kNan})[0]));
}

TEST_F(CudaLayersTest, AddsBiasAsOnTheCpu) {
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

TEST_F(CudaLayersTest, PoolsAsOnTheCpu) {
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

TEST_F(CudaLayersTest, PoolingPropagatesNan) {
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

TEST_F(CudaLayersTest, FullyConnectedIsExactOnIntegers) {
  for (const int64_t batch : {1, 2, 127, 130, 257}) {
    for (const int64_t inputs : {1, 3, 4, 8, 333, 2052}) {
      for (const int64_t outputs : {1, 10, 32, 129, 140, 160, 161, 500}) {
        ExpectSameProducts(batch, inputs, outputs, 0);
        ExpectSameProducts(batch, inputs, outputs, 3 * batch * outputs + 1);
      }
    }
  }
  // The networks' own, a slice of one image among them.
  for (const Network& network : Networks()) {
    for (const int64_t batch : {1, 300}) {
      const std::vector<TensorShape> shapes = network.Shapes();
      for (size_t i = network.FeatureLayers(); i < network.layers.size(); ++i) {
        const bool connects =
            std::holds_alternative<FullyConnectedLayer>(network.layers[i]);
        if (!connects) continue;
        ExpectSameProducts(batch, shapes[i].values(), shapes[i + 1].values(),
                           1 << 22);
      }
    }
  }
  // Without a bias, as one sum and as several.
  for (const int64_t scratch_floats : {0, 1 << 20}) {
    ExpectSameProducts(130, 2052, 160, scratch_floats, false);
  }
  // More images, and more outputs, than a grid has blocks in y and z.
  ExpectSameProducts(70000, 5, 2, 0);
  ExpectSameProducts(2, 5, 70000, 1 << 20);
}

TEST_F(CudaLayersTest, FullyConnectedIsCloseToDoublePrecision) {
  const int64_t batch = 129, inputs = 20184, outputs = 160;
  const std::vector<float> in = Random(batch * inputs);
  const std::vector<float> weight = Random(outputs * inputs);
  const std::vector<float> bias = Random(outputs);
  const Tensor<float> device_in(in), device_weight(weight), device_bias(bias);
  const Tensor<float> out(batch * outputs), scratch(1 << 22);
  std::vector<float> first;
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(FullyConnected(batch, inputs, outputs, device_in.data(),
                               device_weight.data(), device_bias.data(),
                               out.data(), scratch.data(), 1 << 22)
                    .ok());
    if (run == 0) first = out.Read();
  }
  EXPECT_EQ(out.Read(), first);
  double error = 0, norm = 0;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t o = 0; o < outputs; ++o) {
      double expected = bias[o];
      for (int64_t i = 0; i < inputs; ++i) {
        expected += double{in[b * inputs + i]} * weight[o * inputs + i];
      }
      error += std::pow(first[b * outputs + o] - expected, 2);
      norm += expected * expected;
    }
  }
  EXPECT_LT(std::sqrt(error / norm), 2e-6);
}

TEST_F(CudaLayersTest, ClassifiesAsOnTheCpu) {
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

// Tensors of more than 2^31 elements: their ends are where they should be.
class LargeCudaLayersTest : public CudaLayersTest {
 protected:
  void SetUp() override {
    CudaLayersTest::SetUp();
    if (IsSkipped()) return;
    constexpr int64_t kNeeded = int64_t{12} << 30;
    if (*FreeMemory() < kNeeded) {
      GTEST_SKIP() << "needs " << kNeeded << " bytes of device memory, "
                   << *FreeMemory() << " are free";
    }
  }
};

TEST_F(LargeCudaLayersTest, EnlargeAndActivate) {
  const int64_t count = 70000, size = 2, enlarged = 180;
  const int64_t area = enlarged * enlarged;
  const std::vector<uint8_t> images = Bytes(count * size * size);
  const Tensor<uint8_t> in(images);
  const Tensor<float> out(count * area);
  ASSERT_TRUE(
      EnlargeToFloats(in.data(), count, size, enlarged, out.data()).ok());
  std::vector<uint8_t> expected(area);
  EnlargeImages(images.data() + (count - 1) * size * size, 1, size, enlarged,
                expected.data());
  const std::vector<float> last = out.Read((count - 1) * area, area);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), expected.begin()));
  ASSERT_TRUE(Activate(Activation::kTanh, count * area, out.data()).ok());
  EXPECT_EQ(out.Read((count - 1) * area + area / 2, 1)[0], 1);
}

TEST_F(LargeCudaLayersTest, AddBias) {
  const int64_t batch = 50000, channels = 5, area = 10000;
  const Tensor<float> values(batch * channels * area);
  values.Fill(0);
  const std::vector<float> bias = {1, 2, 3, 4, 5};
  const Tensor<float> device_bias(bias);
  ASSERT_TRUE(
      AddBias(batch, channels, area, device_bias.data(), values.data()).ok());
  const std::vector<float> last =
      values.Read((batch * channels - 2) * area, 2 * area);
  EXPECT_EQ(std::count(last.begin(), last.begin() + area, 4), area);
  EXPECT_EQ(std::count(last.begin() + area, last.end(), 5), area);
}

TEST_F(LargeCudaLayersTest, Pool) {
  const int64_t planes = 40000, size = 232, area = size * size;
  const std::vector<float> plane = Random(area);
  const Tensor<float> in(planes * area), out(planes * area / 4);
  ASSERT_TRUE(CopyToDevice(in.data() + (planes - 1) * area, plane.data(),
                           area * sizeof(float))
                  .ok());
  std::vector<float> expected(area / 4);
  convlab::PoolMax({2, 2, false}, Activation::kNone, 1, size, plane.data(),
                   expected.data(), workers_);
  ASSERT_TRUE(PoolMax({2, 2, false}, Activation::kNone, planes, size, in.data(),
                      out.data())
                  .ok());
  EXPECT_EQ(out.Read((planes - 1) * area / 4, area / 4), expected);
}

TEST_F(LargeCudaLayersTest, FullyConnected) {
  const int64_t batch = 110000, inputs = 20000, outputs = 3;
  const std::vector<float> image = Integers(inputs, 8);
  const std::vector<float> weight = Integers(outputs * inputs, 8);
  const std::vector<float> bias = {1, 2, 3};
  const Tensor<float> in(batch * inputs), out(batch * outputs);
  ASSERT_TRUE(CopyToDevice(in.data() + (batch - 1) * inputs, image.data(),
                           inputs * sizeof(float))
                  .ok());
  const Tensor<float> device_weight(weight), device_bias(bias);
  std::vector<float> expected(outputs);
  convlab::FullyConnected(
      1, inputs, outputs, image.data(),
      PackWeights(inputs, outputs, weight.data(), workers_).get(), bias.data(),
      expected.data(), workers_);
  ASSERT_TRUE(cuda::FullyConnected(batch, inputs, outputs, in.data(),
                                   device_weight.data(), device_bias.data(),
                                   out.data(), nullptr, 0)
                  .ok());
  EXPECT_EQ(out.Read((batch - 1) * outputs, outputs), expected);
}

}  // namespace
}  // namespace convlab::cuda
