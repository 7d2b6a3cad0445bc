// Compares the GPU's fully connected layer with the CPU's, and with double
// precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
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
  // Runs the layer on `batch` images; `weight` is [outputs, inputs].
  std::vector<float> Run(int64_t batch, const std::vector<float>& in,
                         const std::vector<float>& weight, int64_t outputs,
                         const ConnectedLayers& layers, int64_t scratch_floats,
                         int64_t pitch = 0) {
    const int64_t inputs = weight.size() / outputs;
    const Tensor<float> device_in(in), device_weight(weight);
    const Tensor<float> packed(*PackedFloats(inputs, outputs));
    EXPECT_TRUE(
        PackWeights(inputs, outputs, device_weight.data(), packed.data()).ok());
    const Tensor<float> scratch(scratch_floats);
    const int64_t results =
        layers.count == 0 ? outputs : layers.layers[layers.count - 1].outputs;
    const Tensor<float> out(batch * results);
    const absl::Status status =
        FullyConnected(batch, inputs, outputs, device_in.data(), packed.data(),
                       layers, out.data(), scratch.data(), scratch_floats,
                       /*stream=*/nullptr, pitch);
    EXPECT_TRUE(status.ok()) << status;
    return out.Read();
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
        convlab::PackWeights(inputs, outputs, weight.data(), workers_).get(),
        has_bias ? bias.data() : nullptr, expected.data(), workers_);
    const Tensor<float> device_bias(bias);
    ConnectedLayers layers;
    if (has_bias) layers.bias = device_bias.data();
    EXPECT_EQ(Run(batch, in, weight, outputs, layers, scratch_floats),
              expected);
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

// With anything between the images, which is not read.
TEST_F(FullyConnectedTest, ImagesMayLieApart) {
  for (const int64_t batch : {1, 40, 300}) {
    for (const auto& [inputs, pitch] :
         {std::pair<int64_t, int64_t>{2904, 2912}, {333, 352}, {1028, 1029}}) {
      constexpr int64_t kOutputs = 140;
      SCOPED_TRACE(::testing::Message() << batch << " x " << inputs);
      if (!TakesLayers(inputs, kOutputs, {})) GTEST_SKIP() << "no tensor cores";
      const std::vector<float> in = Random(batch * inputs);
      const std::vector<float> weight = Random(kOutputs * inputs);
      const auto scratch_floats =
          FullyConnectedScratch(batch, inputs, kOutputs);
      ASSERT_TRUE(scratch_floats.ok()) << scratch_floats.status();
      const std::vector<float> expected =
          Run(batch, in, weight, kOutputs, {}, *scratch_floats);
      std::vector<float> apart(batch * pitch,
                               std::numeric_limits<float>::quiet_NaN());
      for (int64_t i = 0; i < batch; ++i) {
        std::copy_n(in.begin() + i * inputs, inputs, apart.begin() + i * pitch);
      }
      EXPECT_EQ(Run(batch, apart, weight, kOutputs, {}, *scratch_floats, pitch),
                expected);
    }
  }
}

// A relative error in the L2 norm.
double ErrorOf(int64_t batch, const std::vector<float>& in,
               const std::vector<float>& weight, const std::vector<float>& bias,
               const std::vector<float>& result) {
  const int64_t outputs = bias.size(), inputs = weight.size() / outputs;
  double error = 0, norm = 0;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t o = 0; o < outputs; ++o) {
      double expected = bias[o];
      for (int64_t i = 0; i < inputs; ++i) {
        expected += double{in[b * inputs + i]} * weight[o * inputs + i];
      }
      error += std::pow(result[b * outputs + o] - expected, 2);
      norm += expected * expected;
    }
  }
  return std::sqrt(error / norm);
}

TEST_F(FullyConnectedTest, IsCloseToDoublePrecision) {
  const int64_t batch = 129, inputs = 20184, outputs = 160;
  for (const bool positive : {false, true}) {
    std::vector<float> in = Random(batch * inputs);
    std::vector<float> weight = Random(outputs * inputs);
    if (positive) {
      for (float& value : in) value = std::fabs(value);
      for (float& value : weight) value = std::fabs(value);
    }
    const std::vector<float> bias = Random(outputs);
    const Tensor<float> device_bias(bias);
    ConnectedLayers layers;
    layers.bias = device_bias.data();
    const int64_t scratch = *FullyConnectedScratch(batch, inputs, outputs);
    const std::vector<float> first =
        Run(batch, in, weight, outputs, layers, scratch);
    EXPECT_EQ(Run(batch, in, weight, outputs, layers, scratch), first);
    const double error = ErrorOf(batch, in, weight, bias, first);
    EXPECT_LT(error, 2e-6);
    RecordProperty(positive ? "error_positive" : "error",
                   std::to_string(error * 1e9) + "e-9");
  }
}

// Each image and each output has its own scale.
TEST_F(FullyConnectedTest, TakesValuesOfAnyScale) {
  const int64_t inputs = 700, outputs = 20;
  for (const int64_t batch : {30, 150}) {
    std::vector<float> in = Random(batch * inputs);
    std::vector<float> weight = Random(outputs * inputs);
    for (int64_t i = 0; i < batch * inputs; ++i) {
      in[i] = std::ldexp(in[i], static_cast<int>(i / inputs * 7 % 120) - 60);
    }
    for (int64_t i = 0; i < outputs * inputs; ++i) {
      weight[i] = std::ldexp(weight[i], static_cast<int>(i / inputs * 6) - 60);
    }
    const std::vector<float> result =
        Run(batch, in, weight, outputs, {},
            *FullyConnectedScratch(batch, inputs, outputs));
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t o = 0; o < outputs; ++o) {
        double expected = 0, magnitudes = 0;
        for (int64_t i = 0; i < inputs; ++i) {
          const double product =
              double{in[b * inputs + i]} * weight[o * inputs + i];
          expected += product;
          magnitudes += std::fabs(product);
        }
        ASSERT_NEAR(result[b * outputs + o], expected, 0x1p-20 * magnitudes)
            << "image " << b << ", output " << o;
      }
    }
  }
}

// However many there are, and however little room there is.
TEST_F(FullyConnectedTest, AnImagesOutputsDoNotDependOnTheOthers) {
  if (FindDevice()->compute_capability < 80) {
    GTEST_SKIP() << "without tensor cores the sums depend on the sizes";
  }
  const int64_t most = 1000, inputs = 2500, outputs = 140;
  const std::vector<float> in = Random(most * inputs);
  const std::vector<float> weight = Random(outputs * inputs);
  const std::vector<float> all =
      Run(most, in, weight, outputs, {},
          *FullyConnectedScratch(most, inputs, outputs));
  for (const int64_t batch : {1, 17, 48, 49, 128, 300, 700}) {
    const std::vector<float> first(all.begin(), all.begin() + batch * outputs);
    for (const int64_t scratch :
         {*FullyConnectedScratch(batch, inputs, outputs), int64_t{200000}}) {
      EXPECT_EQ(Run(batch, in, weight, outputs, {}, scratch), first)
          << batch << " images, scratch for " << scratch;
    }
  }
}

TEST_F(FullyConnectedTest, ComputesTheLayersBehindIt) {
  const int64_t inputs = 400, outputs = 120;  // LeNet-5's
  const std::vector<float> weight[] = {
      Random(outputs * inputs), Random(84 * outputs), Random(int64_t{20} * 84)};
  const std::vector<float> bias[] = {Random(outputs), Random(84), Random(20)};
  const Tensor<float> device_weight[] = {Tensor<float>(weight[1]),
                                         Tensor<float>(weight[2])};
  const Tensor<float> device_bias[] = {
      Tensor<float>(bias[0]), Tensor<float>(bias[1]), Tensor<float>(bias[2])};
  ConnectedLayers layers;
  layers.bias = device_bias[0].data();
  layers.activation = Activation::kTanh;
  layers.count = 2;
  layers.layers[0] = {device_weight[0].data(), device_bias[1].data(), 84,
                      Activation::kRelu};
  layers.layers[1] = {device_weight[1].data(), device_bias[2].data(), 20,
                      Activation::kNone};
  if (!TakesLayers(inputs, outputs, layers)) GTEST_SKIP() << "no tensor cores";
  for (const int64_t batch : {1, 7, 5000}) {
    const std::vector<float> in = Random(batch * inputs);
    const std::vector<float> result =
        Run(batch, in, weight[0], outputs, layers,
            *FullyConnectedScratch(batch, inputs, outputs));
    for (int64_t b = 0; b < batch; ++b) {
      std::vector<double> values(&in[b * inputs], &in[b * inputs] + inputs);
      for (int i = 0; i < 3; ++i) {
        std::vector<double> next(bias[i].begin(), bias[i].end());
        for (size_t o = 0; o < next.size(); ++o) {
          for (size_t j = 0; j < values.size(); ++j) {
            next[o] += values[j] * weight[i][o * values.size() + j];
          }
          if (i == 0) next[o] = std::tanh(next[o]);
          if (i == 1) next[o] = std::max(next[o], 0.0);
        }
        values = next;
      }
      for (int o = 0; o < 20; ++o) {
        ASSERT_NEAR(result[b * 20 + o], values[o], 1e-4)
            << "image " << b << " of " << batch << ", output " << o;
      }
    }
  }
}

TEST_F(FullyConnectedTest, ValuesThatAreNotFiniteStayInTheirImage) {
  const int64_t batch = 50, inputs = 70, outputs = 10;
  std::vector<float> in = Random(batch * inputs);
  in[3 * inputs + 5] = std::numeric_limits<float>::infinity();
  in[40 * inputs + 69] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> result =
      Run(batch, in, Random(outputs * inputs), outputs, {},
          *FullyConnectedScratch(batch, inputs, outputs));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t o = 0; o < outputs; ++o) {
      EXPECT_EQ(std::isfinite(result[b * outputs + o]), b != 3 && b != 40);
    }
  }
}

}  // namespace
}  // namespace convlab::cuda
