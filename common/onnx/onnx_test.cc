#include "common/onnx/onnx.h"

#include <cstdlib>
#include <functional>
#include <limits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/files.h"
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

// A small network, whose nodes the tests change: 1x6x6 to 2x4x4, 2x2x2, 3.
OnnxModel Small() {
  OnnxModel model({1, 6, 6});
  model.Floats("w", {2, 1, 3, 3}, std::vector<float>(18, 1));
  model.Floats("b", {2}, {1, 2});
  model.Add("Conv", {"x", "w", "b"}, "conv");
  model.Add("Relu", {"conv"}, "relu");
  onnx::NodeProto& pool = model.Add("MaxPool", {"relu"}, "pool");
  SetAttribute(pool, "kernel_shape", {2, 2});
  SetAttribute(pool, "strides", {2, 2});
  model.Integers("shape", {-1, 8});
  model.Add("Reshape", {"pool", "shape"}, "flat");
  model.Floats("m", {8, 3}, std::vector<float>(24, 1));
  model.Floats("c", {3}, {1, 2, 3});
  model.Add("Gemm", {"flat", "m", "c"}, "fc");
  return model;
}
constexpr char kSmall[] = "1x6, conv 2@3+bias, relu, pool 2/2, fc 3+bias";

// Small() after `change` has these layers.
void ExpectLayers(const std::string& layers,
                  const std::function<void(OnnxModel&)>& change,
                  size_t notes = 0) {
  OnnxModel model = Small();
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
  OnnxModel model = Small();
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

struct Refusal {
  const char* name;
  std::function<void(OnnxModel&)> change;  // of Small()
  std::vector<std::string> words;
};

class OnnxRefusals : public ::testing::TestWithParam<Refusal> {};

TEST_P(OnnxRefusals, NameTheNode) {
  OnnxModel model = Small();
  GetParam().change(model);
  const auto read = ParseOnnx(model.File(), "small");
  ASSERT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& word : GetParam().words) {
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(word));
  }
}

using M = OnnxModel;

void SetDimension(M& model, int index, int64_t size) {
  model.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(index)
      ->set_dim_value(size);
}

const Refusal kRefusals[] = {
    // Attributes.
    {"Padding",
     [](M& m) {
       SetAttribute(m.Node("conv"), "pads", {2, 2, 2, 2});
     },
     {"node 'node_conv' ('Conv'): attribute pads is [2,2,2,2], expected "
      "[0,0,0,0]"}},
    {"Same",
     [](M& m) { SetAttribute(m.Node("conv"), "auto_pad", "SAME_UPPER"); },
     {"node_conv", "auto_pad is 'SAME_UPPER', expected NOTSET or VALID"}},
    {"Stride",
     [](M& m) {
       SetAttribute(m.Node("conv"), "strides", {2, 2});
     },
     {"node_conv", "strides is [2,2], expected [1,1]"}},
    {"Dilation",
     [](M& m) {
       SetAttribute(m.Node("conv"), "dilations", {2, 2});
     },
     {"node_conv", "dilations is [2,2], expected [1,1]"}},
    {"Group",
     [](M& m) { SetAttribute(m.Node("conv"), "group", int64_t{2}); },
     {"node_conv", "group is 2, expected 1"}},
    {"KernelShape",
     [](M& m) {
       SetAttribute(m.Node("conv"), "kernel_shape", {5, 5});
     },
     {"node_conv", "kernel_shape is [5,5], expected [3,3]"}},
    {"TypeOfAttribute",
     [](M& m) { SetAttribute(m.Node("conv"), "group", 1.0f); },
     {"node_conv", "attribute group is of type 1, expected 2, an integer"}},
    {"UnknownAttribute",
     [](M& m) { SetAttribute(m.Node("relu"), "slope", 0.1f); },
     {"node_relu", "attribute 'slope' is not one"}},
    {"PoolStride",
     [](M& m) {
       SetAttribute(m.Node("pool"), "strides", {1, 1});
     },
     {"node_pool", "strides is [1,1], expected [2,2], as kernel_shape"}},
    {"PoolPadding",
     [](M& m) {
       SetAttribute(m.Node("pool"), "pads", {0, 0, 1, 1});
     },
     {"node_pool", "pads is [0,0,1,1]"}},
    {"PoolWindow",
     [](M& m) {
       SetAttribute(m.Node("pool"), "kernel_shape", {2, 3});
     },
     {"node_pool", "kernel_shape is [2,3], expected [K,K] with K of 1 to 4"}},
    {"PoolTooLarge",
     [](M& m) {
       SetAttribute(m.Node("pool"), "kernel_shape", {5, 5});
     },
     {"node_pool", "kernel_shape is [5,5], expected [K,K] with K of 1 to 4"}},
    {"Alpha",
     [](M& m) { SetAttribute(m.Node("fc"), "alpha", 0.5f); },
     {"node_fc", "alpha is 0.5, expected 1"}},
    {"TransposedInput",
     [](M& m) { SetAttribute(m.Node("fc"), "transA", int64_t{1}); },
     {"node_fc", "transA is 1, expected 0"}},
    {"FlattenAxis",
     [](M& m) {
       onnx::NodeProto& node = m.Node("flat");
       node.set_op_type("Flatten");
       node.mutable_input()->RemoveLast();
       SetAttribute(node, "axis", int64_t{2});
     },
     {"node_flat", "axis is 2, expected 1"}},
    {"SoftmaxAxis",
     [](M& m) {
       SetAttribute(m.Add("Softmax", {"fc"}, "y"), "axis", int64_t{0});
     },
     {"node_y", "axis is 0, expected 1"}},
    {"Training",
     [](M& m) {
       m.Add("Dropout", {"fc", "", "training"}, "y");
       m.Integers("training", {1});
     },
     {"node_y", "training_mode is true, expected false"}},
    {"Perm",
     [](M& m) {
       onnx::NodeProto& node = m.Node("relu");
       node.set_op_type("Transpose");
       SetAttribute(node, "perm", {0, 1, 3, 2});
     },
     {"node_relu", "[N,2,4,4]", "perm is [0,1,3,2]", "[0,2,3,1]"}},
    // The graph.
    {"Operator",
     [](M& m) { m.Node("relu").set_op_type("Sigmoid"); },
     {"node 'node_relu' ('Sigmoid'): this operator is not run", "Conv, ",
      "Tanh"}},
    {"WithoutName",
     [](M& m) {
       m.Node("relu").set_op_type("Sigmoid");
       m.Node("relu").clear_name();
     },
     {"node ('Sigmoid', which writes 'relu'): "}},
    {"Domain",
     [](M& m) { m.Node("relu").set_domain("com.microsoft"); },
     {"node_relu", "domain is 'com.microsoft'"}},
    {"Branch",
     [](M& m) { m.Add("Relu", {"conv"}, "side"); },
     {"node_side", "reads 'conv', expected only 'fc'", "without branches"}},
    {"Residual",
     [](M& m) {
       m.Node("relu").set_op_type("Add");
       m.Node("relu").add_input("conv");
     },
     {"node_relu", "reads 'conv' too"}},
    {"UnknownInput",
     [](M& m) { m.Node("relu").set_input(0, "nowhere"); },
     {"node_relu", "reads 'nowhere', which nothing before it writes"}},
    {"WrittenTwice",
     [](M& m) { m.Node("relu").set_output(0, "conv"); },
     {"writes 'conv', which is there already"}},
    {"WritesNothing",
     [](M& m) { m.Node("relu").clear_output(); },
     {"node_relu", "writes nothing"}},
    {"Inputs",
     [](M& m) { *m.graph().add_input() = m.graph().input(0); },
     {"the graph has 2 inputs, 'x', 'x', expected one"}},
    {"NoInput",
     [](M& m) { m.graph().clear_input(); },
     {"the graph has 0 inputs, expected one"}},
    {"Outputs",
     [](M& m) {
       m.graph().add_output()->set_name("conv");
       m.graph().add_output()->set_name("fc");
     },
     {"the graph has 2 outputs, expected one"}},
    {"OtherOutput",
     [](M& m) { m.graph().add_output()->set_name("relu"); },
     {"output is 'relu', expected 'fc'"}},
    {"NoLayers",
     [](M& m) {
       m.graph().clear_node();
       m.graph().add_output()->set_name("x");
     },
     {"no layer"}},
    {"BehindSoftmax",
     [](M& m) {
       m.Add("Softmax", {"fc"}, "softmax");
       m.Add("Relu", {"softmax"}, "y");
     },
     {"node_y", "it follows node 'node_softmax'"}},
    {"MatrixFirst",
     [](M& m) {
       m.Node("fc").set_op_type("MatMul");
       m.Node("fc").mutable_input()->RemoveLast();
       m.Node("fc").mutable_input()->SwapElements(0, 1);
     },
     {"node_fc", "reads 'm' first, expected 'flat'"}},
    {"TooFewInputs",
     [](M& m) {
       while (m.Node("conv").input_size() > 1) {
         m.Node("conv").mutable_input()->RemoveLast();
       }
     },
     {"node_conv", "it has 1 inputs, expected 2 to 3"}},
    {"AddOfNoBias",
     [](M& m) {
       m.Node("relu").set_op_type("Add");
       m.Node("relu").add_input("b");
     },
     {"node_relu", "expected a bias, behind a Conv, MatMul or Gemm"}},
    {"WithoutFlatten",
     [](M& m) {
       m.Node("fc").set_input(0, "pool");
       m.graph().mutable_node()->SwapElements(3, 4);
       m.graph().mutable_node()->RemoveLast();
     },
     {"node_fc", "input has shape [N,2,2,2], expected two dimensions"}},
    {"ConvBehindFlatten",
     [](M& m) {
       m.Add("Conv", {"fc", "w"}, "y");
     },
     {"node_y", "input has shape [N,3], expected [N,C,H,H]"}},
    {"SparseInitializer",
     [](M& m) { m.graph().add_sparse_initializer(); },
     {"sparse"}},
    // Shapes.
    {"Oblong",
     [](M& m) { SetDimension(m, 2, 7); },
     {"input 'x' has shape ['batch',1,7,6], expected [N,1,H,H]"}},
    {"Colour",
     [](M& m) { SetDimension(m, 1, 3); },
     {"['batch',3,6,6], expected [N,1,H,H]"}},
    {"Dynamic",
     [](M& m) {
       m.graph()
           .mutable_input(0)
           ->mutable_type()
           ->mutable_tensor_type()
           ->mutable_shape()
           ->mutable_dim(2)
           ->set_dim_param("height");
     },
     {"['batch',1,'height',6]"}},
    {"NegativeSize", [](M& m) { SetDimension(m, 2, -6); }, {"-6"}},
    {"Overflow",
     [](M& m) {
       SetDimension(m, 2, int64_t{1} << 33);
       SetDimension(m, 3, int64_t{1} << 33);
     },
     {"8589934592", "at most 46340"}},
    {"HalfInput",
     [](M& m) {
       m.graph()
           .mutable_input(0)
           ->mutable_type()
           ->mutable_tensor_type()
           ->set_elem_type(onnx::TensorProto::FLOAT16);
     },
     {"input 'x' has elements of type 10, expected FLOAT (1)"}},
    {"FiltersTooLarge",
     [](M& m) {
       SetDimension(m, 2, 2);
       SetDimension(m, 3, 2);
     },
     {"node_conv",
      "filters 'w' have shape [2,1,3,3], expected [M,1,K,K] with "
      "K of at most 2"}},
    {"Matrix",
     [](M& m) { SetAttribute(m.Node("fc"), "transB", int64_t{1}); },
     {"node_fc", "matrix 'm' has shape [8,3], expected [outputs,8]"}},
    {"Bias",
     [](M& m) { m.Node("fc").set_input(2, "b"); },
     {"node_fc", "bias 'b' has shape [2], expected [3]"}},
    {"Reshape",
     [](M& m) {
       m.Node("flat").set_input(1, "s");
       m.Integers("s", {-1, 4});
     },
     {"node_flat", "shape [N,2,2,2], and it makes [-1,4], expected [N,8]"}},
    {"ReshapeToNothing",
     [](M& m) {
       m.Node("flat").set_input(1, "s");
       m.Integers("s", {});
     },
     {"node_flat", "it makes []"}},
    {"ReshapeOfTheBatch",
     [](M& m) {
       m.Node("flat").set_input(1, "s");
       m.Integers("s", {2, -1});
     },
     {"node_flat", "it makes [2,-1]"}},
    {"ReshapeOverflow",
     [](M& m) {
       m.Node("flat").set_input(1, "s");
       m.Integers("s", {0, INT64_MAX, INT64_MAX, -1});
     },
     {"node_flat", "expected [N,8]"}},
    {"Classes",
     [](M& m) {
       m.Floats("wide", {8, 300}, std::vector<float>(2400, 1));
       m.Node("fc").set_input(1, "wide");
       m.Node("fc").mutable_input()->RemoveLast();
     },
     {"300", "expected at most 256 values"}},
    // Tensors.
    {"Half",
     [](M& m) {
       m.graph().mutable_initializer(0)->set_data_type(
           onnx::TensorProto::FLOAT16);
     },
     {"node_conv", "initializer 'w'", "FLOAT16 (10), expected FLOAT (1)"}},
    {"UnknownType",
     [](M& m) { m.graph().mutable_initializer(0)->set_data_type(99); },
     {"initializer 'w'", "unknown (99)"}},
    {"External",
     [](M& m) {
       onnx::TensorProto& tensor = *m.graph().mutable_initializer(0);
       tensor.set_data_location(onnx::TensorProto::EXTERNAL);
       auto& entry = *tensor.add_external_data();
       entry.set_key("location");
       entry.set_value("weights.bin");
     },
     {"initializer 'w'", "in another file 'weights.bin'"}},
    {"Segment",
     [](M& m) {
       m.graph().mutable_initializer(0)->mutable_segment()->set_begin(3);
     },
     {"initializer 'w'", "segment"}},
    {"TooFewValues",
     [](M& m) { m.graph().mutable_initializer(0)->set_dims(0, 3); },
     {"initializer 'w'", "shape [3,1,3,3] is 27 values", "72 raw bytes"}},
    {"ShapeOverflow",
     [](M& m) {
       m.graph().mutable_initializer(0)->set_dims(0, int64_t{1} << 62);
     },
     {"initializer 'w'", "impossible shape"}},
    {"NotFinite",
     [](M& m) {
       m.graph().mutable_initializer(1)->clear_raw_data();
       m.graph().mutable_initializer(1)->add_float_data(1);
       m.graph().mutable_initializer(1)->add_float_data(
           std::numeric_limits<float>::quiet_NaN());
     },
     {"node_conv", "'b' is nan at index 1, expected a finite number"}},
    {"IntegersForWeights",
     [](M& m) { m.Node("conv").set_input(1, "shape"); },
     {"node_conv", "'shape' has integers, expected float32"}},
    {"Rank",
     [](M& m) { m.Node("conv").set_input(1, "b"); },
     {"node_conv", "'b' has shape [2], expected 4 dimensions"}},
    // Constants.
    {"ConstantOperator",
     [](M& m) { m.Add("Sqrt", {"w"}, "y"); },
     {"node_y", "operator 'Sqrt' is not computed for constants"}},
    {"EmptyConstant",
     [](M& m) { m.Add("Constant", {}, "y"); },
     {"node_y", "no value"}},
    {"GatherOutside",
     [](M& m) {
       m.Integers("index", {4});
       m.Add("Gather", {"shape", "index"}, "y");
     },
     {"node_y", "an index is outside of 2 values"}},
    {"Growth",
     [](M& m) {
       std::string last = "shape";
       for (int i = 0; i < 100; ++i) {
         const std::string next = absl::StrCat("twice", i);
         m.Add("Concat", {last, last}, next);
         last = next;
       }
     },
     {"used again and again"}},
    // Versions.
    {"Opset",
     [](M& m) { m.model().mutable_opset_import(0)->set_version(99); },
     {"of version 99, expected 7 to 23"}},
    {"OldOpset",
     [](M& m) { m.model().mutable_opset_import(0)->set_version(6); },
     {"of version 6, expected 7"}},
    {"NoOpset",
     [](M& m) { m.model().mutable_opset_import(0)->set_domain("ai.onnx.ml"); },
     {"does not say the operators' version"}},
};

INSTANTIATE_TEST_SUITE_P(All, OnnxRefusals, ::testing::ValuesIn(kRefusals),
                         [](const auto& refusal) {
                           return std::string(refusal.param.name);
                         });

TEST(Onnx, CutOffAnywhere) {
  const std::string file = Small().File();
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
