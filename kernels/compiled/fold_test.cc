#include "kernels/compiled/fold.h"

#include <cmath>
#include <random>
#include <vector>

#include "common/weights/parameters.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

std::vector<float> Random(int64_t count, std::mt19937& generator) {
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

NetworkWeights RandomWeights(const Network& network, std::mt19937& generator) {
  NetworkWeights weights;
  weights.layers.resize(network.layers.size());
  for (const LayerParameters& parameters : ParametersOf(network)) {
    int64_t count = 1;
    for (const int64_t n : parameters.weight_shape) count *= n;
    LayerWeights& layer = weights.layers[parameters.layer];
    layer.weight = Random(count, generator);
    if (parameters.has_bias) {
      layer.bias = Random(parameters.weight_shape[0], generator);
    }
  }
  return weights;
}

// A linear layer by its definition.
std::vector<double> Apply(const Layer& layer, const TensorShape& in,
                          const TensorShape& out, const LayerWeights& weights,
                          const std::vector<double>& x) {
  std::vector<double> y;
  for (int64_t i = 0; i < out.values(); ++i) {
    const int64_t area = out.size * out.size;
    const int64_t m = i / area, h = i % area / out.size, w = i % out.size;
    double sum = weights.bias.empty() ? 0 : weights.bias[m];
    if (const auto* convolution = std::get_if<ConvolutionLayer>(&layer)) {
      const int64_t K = convolution->kernel_size;
      for (int64_t tap = 0; tap < in.channels * K * K; ++tap) {
        const int64_t c = tap / (K * K), p = tap / K % K, q = tap % K;
        sum += x[(c * in.size + h + p) * in.size + w + q] *
               weights.weight[m * in.channels * K * K + tap];
      }
    } else {
      for (int64_t j = 0; j < in.values(); ++j) {
        sum += x[j] * weights.weight[i * in.values() + j];
      }
    }
    y.push_back(sum);
  }
  return y;
}

// The folded matrix gives what the layers give, but for one rounding of each
// factor.
void ExpectFolded(const Network& network) {
  SCOPED_TRACE(network.name);
  ASSERT_TRUE(CheckNetwork(network).ok()) << CheckNetwork(network);
  std::mt19937 generator(5);
  const NetworkWeights weights = RandomWeights(network, generator);
  const Plan plan = MakePlan(network);
  ASSERT_EQ(plan.stages.size(), 1u);
  ASSERT_TRUE(plan.stages[0].folded());
  Workers workers(2);
  const LayerWeights folded =
      FoldLayers(network, weights, plan.stages[0], workers);
  const std::vector<TensorShape> shapes = network.Shapes();
  const std::vector<float> image = Random(shapes[0].values(), generator);
  std::vector<double> values(image.begin(), image.end());
  for (size_t i = 0; i < network.layers.size(); ++i) {
    values = Apply(network.layers[i], shapes[i], shapes[i + 1],
                   weights.layers[i], values);
  }
  ASSERT_EQ(folded.weight.size(), image.size() * values.size());
  EXPECT_EQ(folded.bias.size(), plan.stages[0].bias ? values.size() : 0);
  for (size_t o = 0; o < values.size(); ++o) {
    double sum = folded.bias.empty() ? 0 : folded.bias[o];
    double magnitudes = std::fabs(sum);
    for (size_t i = 0; i < image.size(); ++i) {
      const double product =
          static_cast<double>(folded.weight[o * image.size() + i]) * image[i];
      sum += product;
      magnitudes += std::fabs(product);
    }
    EXPECT_NEAR(sum, values[o], 0x1p-24 * magnitudes) << "output " << o;
  }
}

TEST(Fold, ConvolutionAndFullyConnected) {
  for (const bool bias : {false, true}) {
    ExpectFolded(
        {bias ? "with biases" : "without",
         {},
         3,
         9,
         {ConvolutionLayer{50, 4, bias}, FullyConnectedLayer{7, bias}}});
  }
}

TEST(Fold, TwoConvolutions) {
  ExpectFolded({"convolutions",
                {},
                2,
                6,
                {ConvolutionLayer{60, 3, true}, ConvolutionLayer{2, 3, true}}});
}

TEST(Fold, ThreeLayersOfWhichOneHasABias) {
  ExpectFolded(
      {"three",
       {},
       1,
       8,
       {FullyConnectedLayer{300, true}, FullyConnectedLayer{200, false},
        FullyConnectedLayer{5, false}}});
  ExpectFolded(
      {"convolution first",
       {},
       1,
       8,
       {ConvolutionLayer{40, 3, false}, FullyConnectedLayer{200, false},
        FullyConnectedLayer{5, true}}});
}

}  // namespace
}  // namespace convlab
