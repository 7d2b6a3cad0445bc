#include "common/network/network.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// The course's own table, column by column, and what follows from it: sizes
// after each convolution and each pooling, the length of the flattened vector.
struct ExpectedStage {
  int channels, filters, kernel_size;
  int64_t output;
  std::vector<Layer> others;  // between it and the next convolution
  int64_t pooled;
};

struct Expected {
  const char* name;
  int image_size;
  std::vector<ExpectedStage> stages;
  int64_t flattened;
  int hidden;
  Activation hidden_activation;
  bool announces_first;
};

constexpr Activation kTanh = Activation::kTanh;
constexpr Activation kRelu = Activation::kRelu;
constexpr MaxPool kHalve{2, 2, false};

// One line per layer.
std::vector<std::string> Lines(const std::vector<Layer>& layers) {
  std::vector<std::string> lines;
  for (const Layer& layer : layers) {
    std::string& line = lines.emplace_back();
    if (const auto* convolution = std::get_if<ConvolutionLayer>(&layer)) {
      line = absl::StrCat("convolution ", convolution->filters, " ",
                          convolution->kernel_size, " ", convolution->bias);
    } else if (const auto* pool = std::get_if<MaxPool>(&layer)) {
      line =
          absl::StrCat("pool ", pool->size, " ", pool->stride, " ", pool->ceil);
    } else if (const auto* full = std::get_if<FullyConnectedLayer>(&layer)) {
      line = absl::StrCat("fully connected ", full->outputs, " ", full->bias);
    } else {
      line = absl::StrCat("activation ",
                          static_cast<int>(std::get<Activation>(layer)));
    }
  }
  return lines;
}

TEST(Network, TheTableHoldsTheCoursesNetworks) {
  const std::vector<Layer> tanh_halve = {kTanh, kHalve};
  const Expected table[] = {
      {"fa17-high",
       28,
       {{1, 50, 5, 24, tanh_halve, 12}},
       7200,
       500,
       kTanh,
       true},
      {"fa17-low",
       28,
       {{1, 50, 5, 24, tanh_halve, 12}},
       7200,
       500,
       kTanh,
       true},
      {"sp18",
       64,
       {{1, 6, 5, 60, tanh_halve, 30}, {6, 16, 5, 26, {}, 26}},
       10816,
       140,
       kTanh,
       false},
      {"fa18",
       72,
       {{1, 12, 7, 66, tanh_halve, 33}, {12, 24, 7, 27, {}, 27}},
       17496,
       160,
       kTanh,
       false},
      {"sp19",
       48,
       {{1, 6, 5, 44, tanh_halve, 22}, {6, 16, 5, 18, {}, 18}},
       5184,
       140,
       kTanh,
       false},
      {"sp19-final",
       72,
       {{1, 6, 5, 68, tanh_halve, 34}, {6, 16, 5, 30, {}, 30}},
       14400,
       140,
       kTanh,
       false},
      {"sp19-baseline",
       48,
       {{1, 12, 7, 42, tanh_halve, 21}, {12, 24, 7, 15, {}, 15}},
       5400,
       160,
       kTanh,
       false},
      {"fa19",
       70,
       {{1, 12, 5, 66, tanh_halve, 33}, {12, 24, 5, 29, {}, 29}},
       20184,
       160,
       kTanh,
       false},
      {"fa20",
       86,
       {{1, 4, 7, 80, {kRelu, kHalve}, 40},
        {4, 16, 7, 34, {kRelu, MaxPool{4, 4, true}}, 9}},
       1296,
       32,
       kRelu,
       false},
  };
  for (const Network& network : Networks()) {
    EXPECT_TRUE(CheckNetwork(network).ok()) << CheckNetwork(network);
  }
  // The course's networks come first.
  ASSERT_GE(Networks().size(), std::size(table));
  for (size_t row = 0; row < std::size(table); ++row) {
    const Expected& expected = table[row];
    SCOPED_TRACE(expected.name);
    const Network& network = Networks()[row];
    EXPECT_EQ(network.name, expected.name);
    EXPECT_EQ(*FindNetwork(expected.name), &network);
    EXPECT_EQ(network.image_channels, 1);
    EXPECT_EQ(network.image_size, expected.image_size);
    EXPECT_EQ(network.announces_first, expected.announces_first);
    const std::vector<NetworkConvolution> convolutions = network.Convolutions();
    const std::vector<TensorShape> shapes = network.Shapes();
    ASSERT_EQ(shapes.size(), network.layers.size() + 1);
    ASSERT_EQ(convolutions.size(), expected.stages.size());
    std::vector<Layer> layers;
    int64_t size = expected.image_size;
    for (size_t i = 0; i < convolutions.size(); ++i) {
      SCOPED_TRACE(i);
      const ExpectedStage& wanted = expected.stages[i];
      EXPECT_EQ(convolutions[i].layer, layers.size());
      EXPECT_EQ(convolutions[i].input.channels, wanted.channels);
      EXPECT_EQ(convolutions[i].input.size, size);
      EXPECT_EQ(convolutions[i].output.channels, wanted.filters);
      EXPECT_EQ(convolutions[i].output.size, wanted.output);
      EXPECT_EQ(convolutions[i].kernel_size, wanted.kernel_size);
      layers.push_back(
          ConvolutionLayer{wanted.filters, wanted.kernel_size, false});
      layers.insert(layers.end(), wanted.others.begin(), wanted.others.end());
      EXPECT_EQ(shapes[layers.size()].channels, wanted.filters);
      EXPECT_EQ(shapes[layers.size()].size, wanted.pooled);
      size = wanted.pooled;
    }
    EXPECT_EQ(network.FeatureLayers(), layers.size());
    EXPECT_EQ(network.Features(), expected.flattened);
    EXPECT_EQ(network.Classes(), 10);
    layers.push_back(FullyConnectedLayer{expected.hidden, true});
    layers.push_back(expected.hidden_activation);
    layers.push_back(FullyConnectedLayer{10, true});
    EXPECT_EQ(Lines(network.layers), Lines(layers));
  }
}

TEST(Network, ShapesOfLeNet5) {
  const Network& network = **FindNetwork("lenet5");
  ASSERT_TRUE(CheckNetwork(network).ok()) << CheckNetwork(network);
  std::vector<std::pair<int64_t, int64_t>> shapes;
  for (const TensorShape& shape : network.Shapes()) {
    shapes.emplace_back(shape.channels, shape.size);
  }
  EXPECT_THAT(shapes,
              ElementsAre(Pair(1, 32), Pair(6, 28), Pair(6, 28), Pair(6, 14),
                          Pair(16, 10), Pair(16, 10), Pair(16, 5), Pair(120, 1),
                          Pair(120, 1), Pair(84, 1), Pair(84, 1), Pair(10, 1)));
  EXPECT_EQ(network.Convolutions().size(), 2u);
  EXPECT_EQ(network.Convolutions()[1].layer, 3u);
  EXPECT_EQ(network.FeatureLayers(), 6u);
  EXPECT_EQ(network.Features(), 400);
  EXPECT_EQ(network.Classes(), 10);
}

TEST(Network, OfOneLayer) {
  const Network connected = {
      "connected", {}, 3, 4, {FullyConnectedLayer{5, false}}};
  EXPECT_TRUE(CheckNetwork(connected).ok()) << CheckNetwork(connected);
  EXPECT_EQ(connected.FeatureLayers(), 0u);
  EXPECT_EQ(connected.Features(), 48);
  EXPECT_EQ(connected.Classes(), 5);
  EXPECT_TRUE(connected.Convolutions().empty());
  const Network convolution = {
      "convolution", {}, 3, 7, {ConvolutionLayer{10, 7, false}}};
  EXPECT_TRUE(CheckNetwork(convolution).ok()) << CheckNetwork(convolution);
  EXPECT_EQ(convolution.FeatureLayers(), 1u);
  EXPECT_EQ(convolution.Features(), 10);
  EXPECT_EQ(convolution.Classes(), 10);
}

TEST(CheckNetwork, NamesTheWrongLayer) {
  const auto expect_error = [](int channels, int size,
                               const std::vector<Layer>& layers,
                               const std::string& message) {
    const absl::Status status = CheckNetwork({"n", {}, channels, size, layers});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()),
              absl::StrCat("network n: ", message));
  };
  expect_error(0, 28, {},
               "the images are 0x28x28, expected 1x1x1 or more, and fewer than "
               "2^31 values");
  expect_error(2, 1 << 15, {},
               "the images are 2x32768x32768, expected 1x1x1 or more, and "
               "fewer than 2^31 values");
  const FullyConnectedLayer connect{10, true};
  expect_error(1, 12, {kRelu, kHalve, ConvolutionLayer{6, 7, false}, connect},
               "layer 3 of 4, a convolution with 6 filters of 7x7, has an "
               "input of 1x6x6: the filters are larger");
  expect_error(1, 12, {ConvolutionLayer{0, 3, false}},
               "layer 1 of 1, a convolution with 0 filters of 3x3, has an "
               "input of 1x12x12: expected at least 1 filter of 1x1");
  expect_error(1, 14, {ConvolutionLayer{1 << 24, 3, false}},
               "layer 1 of 1, a convolution with 16777216 filters of 3x3, has "
               "an input of 1x14x14: expected fewer than 2^31 outputs");
  expect_error(1 << 10, 12, {ConvolutionLayer{1 << 20, 12, false}},
               "layer 1 of 1, a convolution with 1048576 filters of 12x12, has "
               "an input of 1024x12x12: expected fewer than 2^31 weights");
  expect_error(1, 12, {MaxPool{2, 0, false}},
               "layer 1 of 1, a pooling of 2x2 with stride 0, has an input of "
               "1x12x12: expected a window and a stride of at least 1");
  expect_error(1, 12, {MaxPool{13, 1, false}},
               "layer 1 of 1, a pooling of 13x13 with stride 1, has an input "
               "of 1x12x12: the windows are larger");
  expect_error(1, 5, {MaxPool{2, 5, true}},
               "layer 1 of 1, a pooling of 2x2 with stride 5, has an input of "
               "1x5x5: the last window begins outside of it");
  expect_error(1, 12, {connect, kRelu, ConvolutionLayer{6, 1, false}},
               "layer 3 of 3, a convolution with 6 filters of 1x1, has an "
               "input of 10x1x1: it follows a fully connected layer");
  expect_error(1, 12, {FullyConnectedLayer{-1, true}},
               "layer 1 of 1, a fully connected layer with -1 outputs, has an "
               "input of 1x12x12: expected at least 1 output");
  expect_error(1, 40000, {FullyConnectedLayer{10, true}},
               "layer 1 of 1, a fully connected layer with 10 outputs, has an "
               "input of 1x40000x40000: expected fewer than 2^31 weights");
  expect_error(1, 17, {kRelu},
               "the output is 1x17x17, expected at most 256 values, one for "
               "each class");
}

TEST(Network, AliasesAreTheCoursesNames) {
  EXPECT_EQ((*FindNetwork("ece408-high"))->name, "fa17-high");
  EXPECT_EQ((*FindNetwork("ece408-low"))->name, "fa17-low");
  EXPECT_EQ((*FindNetwork("ece408"))->name, "fa19");
}

TEST(Network, UnknownNameListsTheNames) {
  const absl::Status status = FindNetwork("fa21").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'fa21'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("sp19-baseline"));
}

TEST(MaxPool, FloorDropsAndCeilKeepsTheLastWindow) {
  EXPECT_EQ((MaxPool{4, 4, true}.Output(34)), 9);
  EXPECT_EQ((MaxPool{4, 4, false}.Output(34)), 8);
  EXPECT_EQ((MaxPool{2, 2, false}.Output(33)), 16);
  EXPECT_EQ((MaxPool{2, 2, true}.Output(33)), 17);
  EXPECT_EQ((MaxPool{2, 2, true}.Output(32)), 16);
  EXPECT_EQ(MaxPool{}.Output(29), 29);
}

}  // namespace
}  // namespace convlab
