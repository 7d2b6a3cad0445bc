// Compares the GPU's fully connected layer with the CPU's, and with double
// precision.
#include <cmath>
#include <variant>
#include <vector>

#include "common/network/network.h"
#include "gtest/gtest.h"
#include "kernels/layers/cuda/layers.h"
#include "kernels/layers/cuda/layers_testing.h"
#include "kernels/layers/layers.h"

namespace convlab::cuda {
namespace {

class FullyConnectedTest : public CudaLayersTest {
 protected:
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
};

TEST_F(FullyConnectedTest, IsExactOnIntegers) {
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

TEST_F(FullyConnectedTest, IsCloseToDoublePrecision) {
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

}  // namespace
}  // namespace convlab::cuda
