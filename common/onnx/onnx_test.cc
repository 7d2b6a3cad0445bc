#include "common/onnx/onnx.h"

#include <cstdlib>
#include <functional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/files.h"
#include "common/onnx/refusals.h"
#include "common/onnx/test_models.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The network in one line.
std::string Text(const Network& network) {
  struct Visitor {
    std::string operator()(const ConvolutionLayer& layer) const {
      return absl::StrCat("conv ", layer.filters, "@", layer.kernel_size,
                          layer.bias ? "+bias" : "");
    }
    std::string operator()(Activation layer) const {
      return layer == Activation::kRelu ? "relu" : "tanh";
    }
    std::string operator()(const MaxPool& layer) const {
      return absl::StrCat("pool ", layer.size, "/", layer.stride,
                          layer.ceil ? " ceil" : "");
    }
    std::string operator()(const FullyConnectedLayer& layer) const {
      return absl::StrCat("fc ", layer.outputs, layer.bias ? "+bias" : "");
    }
  };
  std::vector<std::string> layers = {
      absl::StrCat(network.image_channels, "x", network.image_size)};
  for (const Layer& layer : network.layers) {
    layers.push_back(std::visit(Visitor(), layer));
  }
  return absl::StrJoin(layers, ", ");
}

constexpr char kLeNet5[] =
    "1x32, conv 6@5+bias, relu, pool 2/2, conv 16@5+bias, relu, pool 2/2, "
    "fc 120+bias, relu, fc 84+bias, relu, fc 10+bias";

void ExpectSameWeights(const NetworkWeights& found,
                       const NetworkWeights& expected) {
  ASSERT_EQ(found.layers.size(), expected.layers.size());
  for (size_t i = 0; i < found.layers.size(); ++i) {
    EXPECT_EQ(found.layers[i].weight, expected.layers[i].weight) << i;
    EXPECT_EQ(found.layers[i].bias, expected.layers[i].bias) << i;
  }
}

TEST(Onnx, EveryNetworkOfTheTable) {
  for (const Network& network : Networks()) {
    SCOPED_TRACE(network.name);
    const NetworkWeights weights = CountingWeights(network);
    const auto read = ParseOnnx(ModelOf(network, weights).File(), "a name");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->network.name, "a name");
    EXPECT_EQ(Text(read->network), Text(network));
    EXPECT_THAT(read->notes, IsEmpty());
    ExpectSameWeights(read->weights, weights);
  }
  EXPECT_EQ(Text(**FindNetwork("lenet5")), kLeNet5);
}

constexpr char kSmall[] = "1x6, conv 2@3+bias, relu, pool 2/2, fc 3+bias";

// SmallModel() after `change` has these layers.
void ExpectLayers(const std::string& layers,
                  const std::function<void(OnnxModel&)>& change,
                  size_t notes = 0) {
  OnnxModel model = SmallModel();
  change(model);
  const auto read = ParseOnnx(model.File(), "small");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Text(read->network), layers);
  EXPECT_THAT(read->notes, SizeIs(notes));
}

TEST(Onnx, WhatDoesNothingIsLeftOut) {
  const auto insert = [](OnnxModel& model) -> onnx::NodeProto& {
    model.Node("fc").set_input(0, "between");
    model.Add("Dropout", {"flat"}, "between");
    model.graph().mutable_node()->SwapElements(4, 5);
    return model.Node("between");
  };
  ExpectLayers(kSmall, [](OnnxModel&) {});
  ExpectLayers(kSmall, [&](OnnxModel& model) { insert(model); });
  ExpectLayers(kSmall, [&](OnnxModel& model) {
    onnx::NodeProto& node = insert(model);
    SetAttribute(node, "ratio", 0.5f);
    node.add_output("mask");
  });
  ExpectLayers(kSmall, [&](OnnxModel& model) {
    onnx::NodeProto& node = insert(model);
    node.add_input("ratio");
    node.add_input("training");
    model.Floats("ratio", {}, {0.5f});
    onnx::TensorProto& training = *model.graph().add_initializer();
    training.set_name("training");
    training.set_data_type(onnx::TensorProto::BOOL);
    training.set_raw_data(std::string(1, '\0'));
  });
  ExpectLayers(
      kSmall, [&](OnnxModel& model) { insert(model).set_op_type("Identity"); });
  for (const char* type : {"Softmax", "LogSoftmax"}) {
    ExpectLayers(
        kSmall, [&](OnnxModel& model) { model.Add(type, {"fc"}, "softmax"); },
        /*notes=*/1);
  }
}

TEST(Onnx, SaysWhatIsLeftOut) {
  OnnxModel model = SmallModel();
  model.Add("LogSoftmax", {"fc"}, "y");
  const auto read = ParseOnnx(model.File(), "small");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->notes,
              ElementsAre("node 'node_y' ('LogSoftmax') is left out: labels "
                          "are the same, and logits are its input"));
}

TEST(Onnx, FormsOfLayers) {
  const auto reshape = [](const std::vector<int64_t>& shape) {
    return [shape](OnnxModel& model) {
      onnx::TensorProto& tensor = *model.graph().mutable_initializer(2);
      tensor.Clear();
      tensor.set_name("shape");
      tensor.set_data_type(onnx::TensorProto::INT64);
      tensor.add_dims(static_cast<int64_t>(shape.size()));
      for (const int64_t size : shape) tensor.add_int64_data(size);
    };
  };
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{-1, 8}, {0, 8}, {0, -1}}) {
    ExpectLayers(kSmall, reshape(shape));
  }
  ExpectLayers(kSmall, [&](OnnxModel& model) {  // a batch of a fixed size
    model.graph()
        .mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_value(4);
    reshape({4, -1})(model);
  });
  ExpectLayers(kSmall, [](OnnxModel& model) {
    onnx::NodeProto& node = model.Node("flat");
    node.set_op_type("Flatten");
    node.mutable_input()->RemoveLast();
  });
  ExpectLayers("1x6, conv 2@3, relu, pool 2/2, fc 3+bias",
               [](OnnxModel& model) {
                 model.Node("conv").mutable_input()->RemoveLast();
               });
  ExpectLayers("1x6, conv 2@3+bias, tanh, pool 2/2 ceil, fc 3",
               [](OnnxModel& model) {
                 model.Node("relu").set_op_type("Tanh");
                 SetAttribute(model.Node("pool"), "ceil_mode", int64_t{1});
                 model.Node("fc").mutable_input()->RemoveLast();
               });
  ExpectLayers(kSmall, [](OnnxModel& model) {  // a bias by itself
    model.Node("fc").set_op_type("MatMul");
    model.Node("fc").mutable_input()->RemoveLast();
    model.Add("Add", {"c", "fc"}, "sum");
  });
  ExpectLayers(kSmall, [](OnnxModel& model) {
    SetAttribute(model.Node("conv"), "auto_pad", "VALID");
    SetAttribute(model.Node("pool"), "auto_pad", "NOTSET");
  });
  // Before version 4 of the format, initializers were inputs too.
  ExpectLayers(kSmall, [](OnnxModel& model) {
    for (const char* name : {"w", "b", "m"}) {
      model.graph().add_input()->set_name(name);
    }
  });
  // Values one by one.
  ExpectLayers(kSmall, [](OnnxModel& model) {
    onnx::TensorProto& bias = *model.graph().mutable_initializer(1);
    bias.clear_raw_data();
    bias.add_float_data(1);
    bias.add_float_data(2);
  });
}

// As PyTorch writes x.view(x.size(0), -1) and a matrix that it transposes,
// where it does not fold constants.
TEST(Onnx, ConstantsAreComputed) {
  OnnxModel model({1, 6, 6});
  const auto constant = [&](const std::string& name,
                            const std::vector<int64_t>& shape,
                            std::vector<int64_t> values) {
    onnx::NodeProto& node = model.Add("Constant", {}, name);
    onnx::AttributeProto& value = *node.add_attribute();
    value.set_name("value");
    value.set_type(onnx::AttributeProto::TENSOR);
    value.mutable_t()->set_data_type(onnx::TensorProto::INT64);
    for (const int64_t size : shape) value.mutable_t()->add_dims(size);
    for (const int64_t one : values) value.mutable_t()->add_int64_data(one);
  };
  model.Floats("w", {2, 1, 3, 3}, std::vector<float>(18, 1));
  model.Add("Conv", {"x", "w"}, "conv");
  model.Add("Shape", {"conv"}, "sizes");
  constant("zero", {}, {0});
  model.Add("Gather", {"sizes", "zero"}, "batch");
  constant("axes", {1}, {0});
  model.Add("Unsqueeze", {"batch", "axes"}, "batch_1");
  constant("rest", {1}, {-1});
  model.Add("Concat", {"batch_1", "rest"}, "shape");
  SetAttribute(model.Node("shape"), "axis", int64_t{0});
  model.Add("Reshape", {"conv", "shape"}, "flat");
  std::vector<float> values(3 * 32);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  model.Floats("m", {3, 32}, values);
  model.Add("Transpose", {"m"}, "t");
  SetAttribute(model.Node("t"), "perm", {1, 0});
  model.Add("MatMul", {"flat", "t"}, "y");
  const auto read = ParseOnnx(model.File(), "computed");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Text(read->network), "1x6, conv 2@3, fc 3");
  EXPECT_EQ(read->weights.layers[1].weight, values);
}

// Keras has the channels last.
TEST(Onnx, ChannelsLast) {
  constexpr int kChannels = 2, kSize = 4, kOutputs = 3;
  constexpr int kValues = kChannels * kSize * kSize;
  OnnxModel model({6, 6, 1});
  model.Floats("w", {kChannels, 1, 3, 3}, std::vector<float>(18, 1));
  model.Floats("b", {1, kChannels, 1, 1}, {5, 6});
  std::vector<float> matrix(kValues * kOutputs);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i);
  model.Floats("m", {kValues, kOutputs}, matrix);
  model.Floats("c", {kOutputs}, {7, 8, 9});
  SetAttribute(model.Add("Transpose", {"x"}, "first"), "perm", {0, 3, 1, 2});
  model.Add("Conv", {"first", "w"}, "conv");
  model.Add("Add", {"conv", "b"}, "biased");
  SetAttribute(model.Add("Transpose", {"biased"}, "last"), "perm",
               {0, 2, 3, 1});
  model.Integers("shape", {-1, kValues});
  model.Add("Reshape", {"last", "shape"}, "flat");
  model.Add("MatMul", {"flat", "m"}, "product");
  model.Add("Add", {"product", "c"}, "logits");
  model.Add("Softmax", {"logits"}, "y");
  const auto read = ParseOnnx(model.File(), "keras");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Text(read->network), "1x6, conv 2@3+bias, fc 3+bias");
  EXPECT_THAT(read->weights.layers[0].bias, ElementsAre(5, 6));
  EXPECT_THAT(read->weights.layers[1].bias, ElementsAre(7, 8, 9));
  const std::vector<float>& weight = read->weights.layers[1].weight;
  ASSERT_EQ(weight.size(), matrix.size());
  for (int output = 0; output < kOutputs; ++output) {
    for (int channel = 0; channel < kChannels; ++channel) {
      for (int pixel = 0; pixel < kSize * kSize; ++pixel) {
        EXPECT_EQ(weight[output * kValues + channel * kSize * kSize + pixel],
                  matrix[(pixel * kChannels + channel) * kOutputs + output]);
      }
    }
  }
}

// Files of PyTorch itself: testdata/README.md.
TEST(Onnx, FilesOfPyTorch) {
  for (const char* name : {"torch_folded", "torch_unfolded"}) {
    SCOPED_TRACE(name);
    const auto read =
        ReadOnnx(absl::StrCat(std::getenv("TEST_SRCDIR"),
                              "/convlab/common/onnx/testdata/", name, ".onnx"));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->network.name, name);
    EXPECT_EQ(Text(read->network),
              "1x28, conv 3@5+bias, relu, pool 2/2, conv 4@5, tanh, pool 3/3 "
              "ceil, fc 12+bias, relu, fc 10");
    EXPECT_THAT(read->notes, ElementsAre(HasSubstr("LogSoftmax")));
    EXPECT_EQ(read->weights.layers[0].bias,
              (std::vector<float>{0.25f, -0.5f, 0.75f}));
    // 3 x 3 values of each of 4 channels; see README.md for the numbers.
    EXPECT_EQ(read->weights.layers[6].weight[36 + 2], 1.0f / 64);
  }
}

// Those of the other files.
TEST_P(OnnxRefusals, SayWhatIsWrong) {
  OnnxModel model = SmallModel();
  GetParam().change(model);
  const auto read = ParseOnnx(model.File(), "small");
  ASSERT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& word : GetParam().words) {
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(word));
  }
}

TEST(Onnx, CutOffAnywhere) {
  const std::string file = SmallModel().File();
  for (size_t size = 0; size < file.size(); ++size) {
    const auto read = ParseOnnx(file.substr(0, size), "small");
    ASSERT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
  EXPECT_THAT(
      std::string(ParseOnnx(file.substr(0, 300), "").status().message()),
      HasSubstr("damaged or cut off"));
  EXPECT_THAT(std::string(ParseOnnx("", "").status().message()),
              HasSubstr("no graph"));
}

// Half a million empty nodes, two bytes each, would be 100 MB of messages.
TEST(Onnx, MemoryIsBoundedByTheFile) {
  const size_t bytes = 1 << 20;
  std::string graph(bytes, '\0');
  for (size_t i = 0; i < bytes; i += 2) graph[i] = 0x0a;
  onnx::ModelProto head;
  std::string file = "\x3a";  // field 7, the graph
  for (size_t length = bytes; length > 0; length >>= 7) {
    file += static_cast<char>((length & 0x7f) | (length >= 128 ? 0x80 : 0));
  }
  EXPECT_THAT(std::string(ParseOnnx(file + graph, "").status().message()),
              HasSubstr("far more memory"));
}

TEST(ReadOnnx, ErrorsNameTheFile) {
  const std::string folder = std::string(std::getenv("TEST_TMPDIR"));
  EXPECT_TRUE(absl::IsNotFound(ReadOnnx(folder + "/no.onnx").status()));
  EXPECT_FALSE(ReadOnnx(folder).ok());
  const std::string path = folder + "/bad.onnx";
  ASSERT_TRUE(WriteFileAtomically(path, "not a model").ok());
  EXPECT_THAT(std::string(ReadOnnx(path).status().message()),
              ::testing::StartsWith(path + ": the file is damaged"));
  // Two bytes more than the format can have; the file takes no room.
  FilePointer file(std::fopen(path.c_str(), "w"));
  ASSERT_EQ(std::fseek(file.get(), (int64_t{1} << 31), SEEK_SET), 0);
  std::fputc(0, file.get());
  file.reset();
  EXPECT_THAT(std::string(ReadOnnx(path).status().message()),
              HasSubstr("bad.onnx: the file has 2147483649 bytes, expected "
                        "fewer than 2^31"));
}

}  // namespace
}  // namespace convlab
