#include "common/weights/weights.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/weights/parameters.h"
#include "common/weights/safetensors.h"
#include "common/weights/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

const Network& Find(absl::string_view name) { return **FindNetwork(name); }

std::string Write(absl::string_view content) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/weights");
  EXPECT_TRUE(WriteFileAtomically(path, content).ok());
  return path;
}

// The tensors of `network` under our own names; each begins its counting at
// another number. Fully connected layers are in halves, as in our files.
std::vector<Tensor> OurTensors(const Network& network) {
  std::vector<Tensor> tensors;
  for (const LayerParameters& layer : ParametersOf(network)) {
    const auto add = [&](const std::string& name,
                         const std::vector<int64_t>& shape) {
      const DataType type = layer.weight_shape.size() == 4 ? DataType::kFloat32
                                                           : DataType::kFloat16;
      const int begin = static_cast<int>(tensors.size());
      std::vector<float> values = Counting(*ElementCount(shape), begin);
      // Halves hold no integers above 2048.
      for (float& value : values) value = std::min(value, 2048.0f);
      tensors.push_back({layer.name + name, type, shape, values});
    };
    add(".weight", layer.weight_shape);
    if (layer.has_bias) add(".bias", layer.bias_shape());
  }
  return tensors;
}

std::vector<std::string> Names(const std::vector<Tensor>& tensors) {
  std::vector<std::string> names;
  for (const Tensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

// The same under MXNet's names, back to front.
std::vector<Tensor> MxnetTensors(const Network& network,
                                 const std::string& convolution) {
  std::vector<Tensor> tensors = OurTensors(network);
  for (Tensor& tensor : tensors) {
    const size_t dot = tensor.name.find('.');
    const bool convolves = tensor.name.rfind("conv", 0) == 0;
    const size_t number = convolves ? 4 : 2;
    tensor.name =
        absl::StrCat("arg:", convolves ? convolution : "fullyconnected",
                     std::stoi(tensor.name.substr(number, dot - number)) - 1,
                     "_", tensor.name.substr(dot + 1));
  }
  std::reverse(tensors.begin(), tensors.end());
  return tensors;
}

void ExpectWeights(const absl::StatusOr<NetworkWeights>& weights,
                   const Network& network) {
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_TRUE(CheckWeights(network, *weights).ok());
  const std::vector<Tensor> expected = OurTensors(network);
  ASSERT_EQ(weights->layers.size(), network.layers.size());
  size_t next = 0;
  for (const LayerWeights& layer : weights->layers) {
    if (!layer.weight.empty()) {
      EXPECT_EQ(layer.weight, expected[next++].values);
    }
    if (!layer.bias.empty()) {
      EXPECT_EQ(layer.bias, expected[next++].values);
    }
  }
  EXPECT_EQ(next, expected.size());
}

void ExpectError(absl::string_view content, const Network& network,
                 const std::string& message) {
  const std::string path = Write(content);
  const absl::Status status = LoadWeights(path, network).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": " + message));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
}

void ExpectError(const std::vector<Tensor>& tensors, const Network& network,
                 const std::string& message) {
  ExpectError(*SerializeSafetensors({tensors, {}}), network, message);
}

// Those of the table, and others that have more or fewer parameters.
std::vector<Network> AllNetworks() {
  std::vector<Network> networks = Networks();
  networks.push_back({"connected", {}, 3, 4, {FullyConnectedLayer{5, false}}});
  return networks;
}

TEST(LoadWeights, SafetensorsOfEveryNetwork) {
  for (const Network& network : AllNetworks()) {
    SCOPED_TRACE(network.name);
    const auto weights =
        LoadWeights(Write(*SerializeSafetensors(
                        {OurTensors(network), {{"network", network.name}}})),
                    network);
    ExpectWeights(weights, network);
    EXPECT_THAT(weights->metadata, ElementsAre(Pair("network", network.name)));
  }
}

TEST(LoadWeights, MxnetParamsOfEveryNetwork) {
  for (const Network& network : AllNetworks()) {
    SCOPED_TRACE(network.name);
    for (const char* convolution : {"new", "convolution"}) {
      ExpectWeights(
          LoadWeights(Write(MxnetFile(MxnetHeader::kMagic,
                                      MxnetTensors(network, convolution))),
                      network),
          network);
    }
  }
}

TEST(LoadWeights, MiniDnnOfFa20) {
  const auto weights =
      LoadWeights(Write(MiniDnnFile(Fa20Layers())), Find("fa20"));
  ASSERT_TRUE(weights.ok()) << weights.status();
  // Convolution, ReLU, pooling, twice; fully connected, ReLU, fully connected.
  ASSERT_EQ(weights->layers.size(), 9u);
  EXPECT_EQ(weights->layers[0].weight, Counting(196));
  EXPECT_EQ(weights->layers[3].weight, Counting(3136));
  EXPECT_EQ(weights->layers[6].weight, Counting(41472));
  EXPECT_EQ(weights->layers[6].bias, Counting(32, 41472));
  EXPECT_EQ(weights->layers[8].weight, Counting(320));
  EXPECT_EQ(weights->layers[8].bias, Counting(10, 320));
  for (const size_t i : {0, 1, 2, 3, 4, 5, 7}) {
    EXPECT_EQ(weights->layers[i].bias, std::vector<float>());
  }
}

// Files are named by these, so they may not change.
TEST(LoadWeights, NamesOfTheTensors) {
  EXPECT_THAT(Names(OurTensors(Find("fa17-low"))),
              ElementsAre("conv1.weight", "fc1.weight", "fc1.bias",
                          "fc2.weight", "fc2.bias"));
  EXPECT_THAT(
      Names(MxnetTensors(Find("fa19"), "new")),
      ElementsAre("arg:fullyconnected1_bias", "arg:fullyconnected1_weight",
                  "arg:fullyconnected0_bias", "arg:fullyconnected0_weight",
                  "arg:new1_weight", "arg:new0_weight"));
  EXPECT_THAT(Names(OurTensors(Find("lenet5"))),
              ElementsAre("conv1.weight", "conv1.bias", "conv2.weight",
                          "conv2.bias", "fc1.weight", "fc1.bias", "fc2.weight",
                          "fc2.bias", "fc3.weight", "fc3.bias"));
}

TEST(CheckWeights, NamesTheWrongLayer) {
  const Network& network = Find("sp19");
  NetworkWeights weights = *LoadWeights(
      Write(*SerializeSafetensors({OurTensors(network), {}})), network);
  EXPECT_TRUE(CheckWeights(network, weights).ok());
  weights.layers.back().bias.pop_back();
  EXPECT_EQ(std::string(CheckWeights(network, weights).message()),
            "for network sp19: layer 7 of 7 has 1400 weights and 9 biases, "
            "expected 1400 and 10");
  // What a layer has not may not be given either.
  weights.layers.back().bias.push_back(0);
  weights.layers.front().bias.push_back(0);
  EXPECT_EQ(std::string(CheckWeights(network, weights).message()),
            "for network sp19: layer 1 of 7 has 150 weights and 1 biases, "
            "expected 150 and 0");
  weights.layers.pop_back();
  EXPECT_EQ(std::string(CheckWeights(network, weights).message()),
            "weights of 6 layers, expected 7 as in network sp19");
}

// A header as long as MXNet's magic number is large.
TEST(LoadWeights, SafetensorsThatBeginLikeMxnet) {
  std::string content =
      SafetensorsFile("{" + std::string(0x110, ' ') + "}", "");
  ExpectError(content, Find("fa19"), "for network fa19: lacks conv1.weight");
}

TEST(LoadWeights, OtherFormats) {
  const Network& network = Find("fa19");
  ExpectError("", network, "begins with ''");
  ExpectError("\x89PNG\r\n\x1a\n0000", network,
              "begins with '\\211PNG\\r\\n\\032\\n0', expected a safetensors, "
              "MXNet .params or mini-dnn .bin file");
}

TEST(LoadWeights, ErrorsOfEachFormatNameTheFile) {
  const Network& network = Find("fa19");
  ExpectError(Bytes(uint64_t{0x112}), network, "the file ends too early");
  ExpectError(Bytes(uint64_t{2}) + "{", network, "the file ends too early");
  ExpectError(Bytes(int32_t{10}) + Bytes(int32_t{5}), network,
              "layer 0 of 10: 5 numbers, expected 312: fa19's conv1 [12,1,5,5] "
              "and 12 biases");
  EXPECT_EQ(LoadWeights("/none", network).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(LoadWeights, MissingTensors) {
  const Network& network = Find("sp19");
  std::vector<Tensor> tensors = OurTensors(network);
  tensors.pop_back();
  tensors.erase(tensors.begin());
  ExpectError(tensors, network,
              "for network sp19: lacks conv1.weight or arg:new0_weight or "
              "arg:convolution0_weight, fc2.bias or arg:fullyconnected1_bias");
  tensors = OurTensors(Find("lenet5"));
  tensors.erase(tensors.begin() + 1);
  ExpectError(tensors, Find("lenet5"),
              "for network lenet5: lacks conv1.bias or arg:new0_bias or "
              "arg:convolution0_bias");
}

TEST(LoadWeights, UnexpectedTensors) {
  const Network& network = Find("sp19");
  std::vector<Tensor> tensors = OurTensors(network);
  tensors.push_back({"conv1.bias", DataType::kFloat32, {6}, Counting(6)});
  ExpectError(tensors, network,
              "for network sp19: has unexpected 'conv1.bias'");
  // One tensor under two of its names.
  tensors.back().name = "arg:new0_weight";
  ExpectError(tensors, network,
              "for network sp19: has unexpected 'arg:new0_weight'");
  // Two convolutions where the network has one.
  ExpectError(OurTensors(network), Find("fa17-low"),
              "for network fa17-low: has unexpected 'conv2.weight'");
  for (int i = 0; i < 10; ++i) {
    tensors.push_back({absl::StrCat("t", i), DataType::kFloat32, {0}, {}});
  }
  ExpectError(tensors, network,
              "for network sp19: has unexpected 'arg:new0_weight', 't0', "
              "'t1', 't2', 't3', 't4', 't5', 't6' and 3 more");
}

TEST(LoadWeights, WrongShapes) {
  ExpectError(OurTensors(Find("sp19")), Find("fa19"),
              "for network fa19: tensor 'conv1.weight' has shape [6,1,5,5], "
              "expected [12,1,5,5]");
  const Network& network = Find("sp19");
  std::vector<Tensor> tensors = MxnetTensors(network, "new");
  std::swap(tensors[3].shape[0], tensors[3].shape[1]);
  ExpectError(MxnetFile(MxnetHeader::kOldest, tensors), network,
              "for network sp19: tensor 'arg:fullyconnected0_weight' has shape "
              "[5184,140], expected [140,5184]");
}

TEST(LoadWeights, MetadataThatNameAnotherNetwork) {
  const std::vector<Tensor> tensors = OurTensors(Find("fa17-low"));
  const auto file = [&](const std::string& name) {
    return *SerializeSafetensors({tensors, {{"network", name}}});
  };
  // Both have the same shapes.
  ExpectError(file("fa17-low"), Find("fa17-high"),
              "the metadata names network 'fa17-low', expected fa17-high");
  ExpectError(file("my\nown"), Find("fa17-low"),
              "the metadata names network 'my\\nown', expected fa17-low");
  EXPECT_TRUE(LoadWeights(Write(file("ece408-low")), Find("fa17-low")).ok());
  EXPECT_TRUE(
      LoadWeights(Write(*SerializeSafetensors({tensors, {{"by", "me"}}})),
                  Find("fa17-low"))
          .ok());
}

TEST(LoadWeights, NumbersThatAreNotFinite) {
  const Network& network = Find("sp19");
  std::vector<Tensor> tensors = OurTensors(network);
  tensors[1].values[17] = std::numeric_limits<float>::quiet_NaN();
  ExpectError(tensors, network,
              "for network sp19: tensor 'conv2.weight' is nan at index 17, "
              "expected a finite number");
  tensors[1].values[17] = 0;
  tensors[5].values[9] = -std::numeric_limits<float>::infinity();
  ExpectError(tensors, network,
              "for network sp19: tensor 'fc2.bias' is -inf at index 9");
}

}  // namespace
}  // namespace convlab
