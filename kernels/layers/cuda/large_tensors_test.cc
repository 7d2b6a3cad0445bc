// Tensors of more than 2^31 elements: their ends are where they should be.
#include <algorithm>
#include <vector>

#include "common/dataset/resize.h"
#include "gtest/gtest.h"
#include "kernels/layers/cuda/layers.h"
#include "kernels/layers/cuda/layers_testing.h"
#include "kernels/layers/layers.h"

namespace convlab::cuda {
namespace {

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
  const Tensor<float> packed(*PackedFloats(inputs, outputs));
  ASSERT_TRUE(
      PackWeights(inputs, outputs, device_weight.data(), packed.data()).ok());
  std::vector<float> expected(outputs);
  convlab::FullyConnected(
      1, inputs, outputs, image.data(),
      convlab::PackWeights(inputs, outputs, weight.data(), workers_).get(),
      bias.data(), expected.data(), workers_);
  ConnectedLayers layers;
  layers.bias = device_bias.data();
  const Tensor<float> scratch(*FullyConnectedScratch(batch, inputs, outputs));
  for (const int64_t scratch_floats : {int64_t{0}, scratch.count()}) {
    out.Fill(0xff);
    ASSERT_TRUE(FullyConnected(batch, inputs, outputs, in.data(), packed.data(),
                               layers, out.data(), scratch.data(),
                               scratch_floats)
                    .ok());
    EXPECT_EQ(out.Read((batch - 1) * outputs, outputs), expected);
  }
}

}  // namespace
}  // namespace convlab::cuda
