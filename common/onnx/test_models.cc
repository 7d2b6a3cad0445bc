#include "common/onnx/test_models.h"

#include <cstring>
#include <numeric>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/weights/parameters.h"
#include "common/weights/tensor_file.h"

namespace convlab {
namespace {

onnx::AttributeProto& Attribute(onnx::NodeProto& node, const std::string& name,
                                onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto* found = nullptr;
  for (onnx::AttributeProto& one : *node.mutable_attribute()) {
    if (one.name() == name) found = &one;
  }
  if (found == nullptr) found = node.add_attribute();
  found->Clear();
  found->set_name(name);
  found->set_type(type);
  return *found;
}

template <typename Value>
std::string Raw(const std::vector<Value>& values) {
  std::string bytes(values.size() * sizeof(Value), '\0');
  if (!values.empty()) std::memcpy(&bytes[0], values.data(), bytes.size());
  return bytes;
}

}  // namespace

OnnxModel::OnnxModel(const std::vector<int64_t>& image, int64_t opset) {
  model_.set_ir_version(7);
  model_.set_producer_name("test");
  model_.add_opset_import()->set_version(opset);
  onnx::ValueInfoProto& input = *graph().add_input();
  input.set_name("x");
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const int64_t size : image) {
    type.mutable_shape()->add_dim()->set_dim_value(size);
  }
}

onnx::NodeProto& OnnxModel::Add(const std::string& type,
                                const std::vector<std::string>& inputs,
                                const std::string& output) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(type);
  node.set_name("node_" + output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

onnx::TensorProto& OnnxModel::Floats(const std::string& name,
                                     const std::vector<int64_t>& shape,
                                     const std::vector<float>& values) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t size : shape) tensor.add_dims(size);
  tensor.set_raw_data(Raw(values));
  return tensor;
}

onnx::TensorProto& OnnxModel::Integers(const std::string& name,
                                       const std::vector<int64_t>& values) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
  return tensor;
}

std::string OnnxModel::File() {
  const onnx::GraphProto& nodes = graph();
  if (nodes.output_size() == 0 && nodes.node_size() > 0) {
    graph().add_output()->set_name(nodes.node(nodes.node_size() - 1).output(0));
  }
  return model_.SerializeAsString();
}

onnx::NodeProto& OnnxModel::Node(const std::string& output) {
  for (onnx::NodeProto& node : *graph().mutable_node()) {
    if (node.output(0) == output) return node;
  }
  return Add("Missing", {}, output);
}

void SetAttribute(onnx::NodeProto& node, const std::string& name,
                  int64_t value) {
  Attribute(node, name, onnx::AttributeProto::INT).set_i(value);
}

void SetAttribute(onnx::NodeProto& node, const std::string& name, float value) {
  Attribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
}

void SetAttribute(onnx::NodeProto& node, const std::string& name,
                  const char* value) {
  Attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
}

void SetAttribute(onnx::NodeProto& node, const std::string& name,
                  const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute =
      Attribute(node, name, onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

OnnxModel ModelOf(const Network& network, const NetworkWeights& weights) {
  OnnxModel model(
      {network.image_channels, network.image_size, network.image_size});
  const std::vector<TensorShape> shapes = network.Shapes();
  std::string last = "x";
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    const std::string output = absl::StrCat("y", i + 1);
    if (i == network.FeatureLayers()) {
      SetAttribute(model.Add("Flatten", {last}, "flat"), "axis", int64_t{1});
      last = "flat";
    }
    std::vector<std::string> inputs = {last};
    for (const LayerParameters& parameters : ParametersOf(network)) {
      if (parameters.layer != i) continue;
      inputs.push_back(parameters.name + ".weight");
      model.Floats(inputs.back(), parameters.weight_shape,
                   weights.layers[i].weight);
      if (!parameters.has_bias) continue;
      inputs.push_back(parameters.name + ".bias");
      model.Floats(inputs.back(), parameters.bias_shape(),
                   weights.layers[i].bias);
    }
    if (const auto* convolution = std::get_if<ConvolutionLayer>(&layer)) {
      const int64_t size = convolution->kernel_size;
      onnx::NodeProto& node = model.Add("Conv", inputs, output);
      SetAttribute(node, "dilations", {1, 1});
      SetAttribute(node, "group", int64_t{1});
      SetAttribute(node, "kernel_shape", {size, size});
      SetAttribute(node, "pads", {0, 0, 0, 0});
      SetAttribute(node, "strides", {1, 1});
    } else if (const auto* pool = std::get_if<MaxPool>(&layer)) {
      onnx::NodeProto& node = model.Add("MaxPool", inputs, output);
      SetAttribute(node, "ceil_mode", int64_t{pool->ceil});
      SetAttribute(node, "kernel_shape", {pool->size, pool->size});
      SetAttribute(node, "pads", {0, 0, 0, 0});
      SetAttribute(node, "strides", {pool->stride, pool->stride});
    } else if (const auto* activation = std::get_if<Activation>(&layer)) {
      model.Add(*activation == Activation::kRelu ? "Relu" : "Tanh", inputs,
                output);
    } else {
      onnx::NodeProto& node = model.Add("Gemm", inputs, output);
      SetAttribute(node, "alpha", 1.0f);
      SetAttribute(node, "beta", 1.0f);
      SetAttribute(node, "transB", int64_t{1});
    }
    last = output;
  }
  return model;
}

OnnxModel SmallModel() {
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

NetworkWeights CountingWeights(const Network& network) {
  NetworkWeights weights;
  weights.layers.resize(network.layers.size());
  float next = 1;
  for (const LayerParameters& parameters : ParametersOf(network)) {
    LayerWeights& layer = weights.layers[parameters.layer];
    layer.weight.resize(*ElementCount(parameters.weight_shape));
    if (parameters.has_bias) layer.bias.resize(parameters.weight_shape[0]);
    for (std::vector<float>* values : {&layer.weight, &layer.bias}) {
      std::iota(values->begin(), values->end(), next);
      next += static_cast<float>(values->size());
    }
  }
  return weights;
}

}  // namespace convlab
