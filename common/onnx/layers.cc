#include "common/onnx/layers.h"

#include <climits>
#include <map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "common/weights/tensor_file.h"

namespace convlab {
namespace {

using onnx::NodeProto;

// Of the operators' versions, the first in which Softmax has one axis.
constexpr int64_t kSoftmaxOfOneAxis = 13;

absl::Status Refused(const std::string& text) {
  return absl::InvalidArgumentError(text);
}

absl::Status ExpectInputs(const NodeProto& node, int least, int most) {
  bool given = node.input_size() >= least && node.input_size() <= most;
  for (int i = 0; given && i < least; ++i) given = !node.input(i).empty();
  if (given) return absl::OkStatus();
  return Refused(absl::StrCat(
      "it has ", node.input_size(), " inputs, expected ",
      least == most ? absl::StrCat(least) : absl::StrCat(least, " to ", most)));
}

absl::Status ExpectNoPadding(Attributes& attributes) {
  ASSIGN_OR_RETURN(const std::string automatic,
                   attributes.Text("auto_pad", "NOTSET"));
  if (automatic != "NOTSET" && automatic != "VALID") {
    return Refused(absl::StrCat("attribute auto_pad is ", Quoted(automatic),
                                ", expected NOTSET or VALID: no padding"));
  }
  return attributes.Expect("pads", std::vector<int64_t>{0, 0, 0, 0});
}

// The index of the value [channel, row, column] in an image's vector whose
// order was [row, column, channel].
std::vector<int64_t> ChannelsFirst(const TensorShape& shape) {
  const int64_t pixels = shape.size * shape.size;
  std::vector<int64_t> from;
  from.reserve(shape.values());
  for (int64_t channel = 0; channel < shape.channels; ++channel) {
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      from.push_back(pixel * shape.channels + channel);
    }
  }
  return from;
}

}  // namespace

std::string NodeName(const NodeProto& node) {
  std::string text = "node";
  if (!node.name().empty()) absl::StrAppend(&text, " ", Quoted(node.name()));
  absl::StrAppend(&text, " (", Quoted(node.op_type()));
  if (node.name().empty() && node.output_size() > 0) {
    absl::StrAppend(&text, ", which writes ", Quoted(node.output(0)));
  }
  return text + ")";
}

LayerReader::LayerReader(const Images& input, int64_t opset,
                         Constants& constants)
    : opset_(opset), constants_(constants), images_(input) {
  result_.network.image_channels = static_cast<int>(input.shape.channels);
  result_.network.image_size = static_cast<int>(input.shape.size);
}

absl::StatusOr<LayerReader::Handler> LayerReader::FindHandler(
    const std::string& op_type) {
  static const auto* const handlers = new std::map<std::string, Handler>{
      {"Add", &LayerReader::AddBias},
      {"Conv", &LayerReader::Convolve},
      {"Dropout", &LayerReader::DropOut},
      {"Flatten", &LayerReader::Flatten},
      {"Gemm", &LayerReader::Gemm},
      {"Identity", &LayerReader::Nothing},
      {"LogSoftmax", &LayerReader::DropSoftmax},
      {"MatMul", &LayerReader::MatMul},
      {"MaxPool", &LayerReader::Pool},
      {"Relu", &LayerReader::Activate},
      {"Reshape", &LayerReader::Reshape},
      {"Softmax", &LayerReader::DropSoftmax},
      {"Tanh", &LayerReader::Activate},
      {"Transpose", &LayerReader::Transpose},
  };
  const auto found = handlers->find(op_type);
  if (found != handlers->end()) return found->second;
  return Refused(absl::StrCat(
      "this operator is not run, expected one of ",
      absl::StrJoin(*handlers, ", ", [](std::string* out, const auto& one) {
        out->append(one.first);
      })));
}

absl::Status LayerReader::Take(const NodeProto& node, int images) {
  ASSIGN_OR_RETURN(const Handler handler, FindHandler(node.op_type()));
  if (!softmax_.empty() && node.op_type() != "Identity") {
    return Refused(
        absl::StrCat("it follows ", softmax_, ", expected that at the end"));
  }
  // A bias may stand before the images, nothing else.
  if (images > 0 && node.op_type() != "Add") {
    return Refused(absl::StrCat("it reads ", Quoted(node.input(0)),
                                " first, expected ",
                                Quoted(node.input(images))));
  }
  Attributes attributes(node);
  RETURN_IF_ERROR((this->*handler)(node, attributes));
  return attributes.ExpectNoOthers();
}

absl::Status LayerReader::ExpectPicture() const {
  if (!images_.flat && !images_.channels_last) return absl::OkStatus();
  return Refused(absl::StrCat("its input has shape ", images_.ToString(),
                              ", expected [N,C,H,H]"));
}

absl::Status LayerReader::ExpectVector() const {
  if (images_.flat) return absl::OkStatus();
  return Refused(absl::StrCat(
      "its input has shape ", images_.ToString(),
      ", expected two dimensions: a Flatten or Reshape before it"));
}

void LayerReader::Append(const Layer& layer, LayerWeights weights) {
  result_.network.layers.push_back(layer);
  result_.weights.layers.push_back(std::move(weights));
}

absl::Status LayerReader::Convolve(const NodeProto& node,
                                   Attributes& attributes) {
  RETURN_IF_ERROR(ExpectInputs(node, 2, 3));
  RETURN_IF_ERROR(ExpectPicture());
  RETURN_IF_ERROR(attributes.Expect("group", int64_t{1}));
  RETURN_IF_ERROR(attributes.Expect("strides", std::vector<int64_t>{1, 1}));
  RETURN_IF_ERROR(attributes.Expect("dilations", std::vector<int64_t>{1, 1}));
  RETURN_IF_ERROR(ExpectNoPadding(attributes));
  ASSIGN_OR_RETURN(Constant filters, constants_.Weights(node.input(1), 4));
  const std::vector<int64_t>& shape = filters.shape;
  const int64_t kernel = shape[2];
  if (shape[0] < 1 || shape[0] > INT_MAX ||
      shape[1] != images_.shape.channels || kernel < 1 || kernel != shape[3] ||
      kernel > images_.shape.size) {
    return Refused(absl::StrCat(
        "the filters ", Quoted(node.input(1)), " have shape ",
        ShapeString(shape), ", expected [M,", images_.shape.channels,
        ",K,K] with K of at most ", images_.shape.size));
  }
  RETURN_IF_ERROR(
      attributes.Expect("kernel_shape", std::vector<int64_t>{kernel, kernel}));
  LayerWeights weights;
  weights.weight = std::move(filters.floats);
  const bool bias = node.input_size() == 3 && !node.input(2).empty();
  if (bias) {
    ASSIGN_OR_RETURN(weights.bias, Bias(node.input(2), {shape[0]}));
  }
  images_.shape = {shape[0], images_.shape.size - kernel + 1};
  Append(ConvolutionLayer{static_cast<int>(shape[0]), static_cast<int>(kernel),
                          bias},
         std::move(weights));
  return absl::OkStatus();
}

absl::Status LayerReader::Pool(const NodeProto& node, Attributes& attributes) {
  RETURN_IF_ERROR(ExpectInputs(node, 1, 1));
  RETURN_IF_ERROR(ExpectPicture());
  ASSIGN_OR_RETURN(const std::vector<int64_t> window,
                   attributes.Integers("kernel_shape", {}));
  const int64_t most = images_.shape.size;
  if (window.size() != 2 || window[0] != window[1] || window[0] < 1 ||
      window[0] > most) {
    return Refused(absl::StrCat("attribute kernel_shape is ",
                                ShapeString(window),
                                ", expected [K,K] with K of 1 to ", most));
  }
  // Absent strides are 1.
  ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                   attributes.Integers("strides", {1, 1}));
  if (strides != window) {
    return Refused(absl::StrCat("attribute strides is ", ShapeString(strides),
                                ", expected ", ShapeString(window),
                                ", as kernel_shape"));
  }
  RETURN_IF_ERROR(attributes.Expect("dilations", std::vector<int64_t>{1, 1}));
  RETURN_IF_ERROR(ExpectNoPadding(attributes));
  ASSIGN_OR_RETURN(const int64_t ceil, attributes.Integer("ceil_mode", 0));
  // It orders the second output, which nobody reads.
  RETURN_IF_ERROR(attributes.Integer("storage_order", 0).status());
  const int size = static_cast<int>(window[0]);
  const MaxPool pool = {size, size, ceil != 0};
  images_.shape.size = pool.Output(images_.shape.size);
  Append(pool);
  return absl::OkStatus();
}

absl::Status LayerReader::Activate(const NodeProto& node, Attributes&) {
  RETURN_IF_ERROR(ExpectInputs(node, 1, 1));
  Append(node.op_type() == "Relu" ? Activation::kRelu : Activation::kTanh);
  return absl::OkStatus();
}

absl::Status LayerReader::Flatten(const NodeProto& node,
                                  Attributes& attributes) {
  RETURN_IF_ERROR(ExpectInputs(node, 1, 1));
  ASSIGN_OR_RETURN(const int64_t axis, attributes.Integer("axis", 1));
  if (axis != 1 && axis != (images_.flat ? -1 : -3)) {
    return Refused(absl::StrCat("attribute axis is ", axis, ", expected 1"));
  }
  images_.flat = true;
  return absl::OkStatus();
}

absl::Status LayerReader::Reshape(const NodeProto& node,
                                  Attributes& attributes) {
  RETURN_IF_ERROR(ExpectInputs(node, 2, 2));
  ASSIGN_OR_RETURN(const int64_t zero, attributes.Integer("allowzero", 0));
  ASSIGN_OR_RETURN(const Constant target, constants_.Get(node.input(1)));
  ASSIGN_OR_RETURN(images_, Reshaped(images_, target.integers, zero != 0));
  return absl::OkStatus();
}

absl::Status LayerReader::Transpose(const NodeProto& node,
                                    Attributes& attributes) {
  RETURN_IF_ERROR(ExpectInputs(node, 1, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> order,
                   attributes.Integers("perm", {}));
  const std::vector<int64_t> expected = images_.channels_last
                                            ? std::vector<int64_t>{0, 3, 1, 2}
                                            : std::vector<int64_t>{0, 2, 3, 1};
  if (images_.flat || order != expected) {
    return Refused(absl::StrCat(
        "its input has shape ", images_.ToString(), " and attribute perm is ",
        ShapeString(order), ", expected four dimensions and ",
        ShapeString(expected), ", to move the channels"));
  }
  images_.channels_last = !images_.channels_last;
  return absl::OkStatus();
}

absl::Status LayerReader::Gemm(const NodeProto& node, Attributes& attributes) {
  RETURN_IF_ERROR(ExpectInputs(node, 2, 3));
  RETURN_IF_ERROR(attributes.Expect("alpha", 1.0f));
  RETURN_IF_ERROR(attributes.Expect("beta", 1.0f));
  RETURN_IF_ERROR(attributes.Expect("transA", int64_t{0}));
  ASSIGN_OR_RETURN(const int64_t transposed, attributes.Integer("transB", 0));
  RETURN_IF_ERROR(Connect(node.input(1), transposed != 0));
  if (node.input_size() < 3 || node.input(2).empty()) return absl::OkStatus();
  const int64_t outputs = images_.shape.channels;
  ASSIGN_OR_RETURN(result_.weights.layers.back().bias,
                   Bias(node.input(2), {outputs}));
  std::get<FullyConnectedLayer>(result_.network.layers.back()).bias = true;
  return absl::OkStatus();
}

absl::Status LayerReader::MatMul(const NodeProto& node, Attributes&) {
  RETURN_IF_ERROR(ExpectInputs(node, 2, 2));
  return Connect(node.input(1), /*transposed=*/false);
}

absl::Status LayerReader::Connect(const std::string& name, bool transposed) {
  RETURN_IF_ERROR(ExpectVector());
  ASSIGN_OR_RETURN(const Constant matrix, constants_.Weights(name, 2));
  const int64_t inputs = images_.shape.values();
  const int64_t outputs = matrix.shape[transposed ? 0 : 1];
  if (matrix.shape[transposed ? 1 : 0] != inputs || outputs < 1 ||
      outputs > INT_MAX) {
    return Refused(absl::StrCat("the matrix ", Quoted(name), " has shape ",
                                ShapeString(matrix.shape), ", expected ",
                                transposed ? "[outputs," : "[", inputs,
                                transposed ? "]" : ",outputs]"));
  }
  // The layer takes its inputs channel by channel.
  std::vector<int64_t> from;
  if (images_.channels_last) from = ChannelsFirst(images_.shape);
  LayerWeights weights;
  weights.weight.resize(matrix.floats.size());
  for (int64_t output = 0; output < outputs; ++output) {
    for (int64_t input = 0; input < inputs; ++input) {
      const int64_t row = from.empty() ? input : from[input];
      weights.weight[output * inputs + input] =
          matrix.floats[transposed ? output * inputs + row
                                   : row * outputs + output];
    }
  }
  images_.shape = {outputs, 1};
  images_.channels_last = false;
  Append(FullyConnectedLayer{static_cast<int>(outputs), false},
         std::move(weights));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> LayerReader::Bias(
    const std::string& name, const std::vector<int64_t>& shape) {
  ASSIGN_OR_RETURN(Constant bias, constants_.Weights(name, /*rank=*/-1));
  std::vector<int64_t> found = bias.shape;
  while (found.size() > shape.size() && found.front() == 1) {
    found.erase(found.begin());
  }
  if (found == shape) return std::move(bias.floats);
  return Refused(absl::StrCat("the bias ", Quoted(name), " has shape ",
                              ShapeString(bias.shape), ", expected ",
                              ShapeString(shape)));
}

absl::Status LayerReader::AddBias(const NodeProto& node, Attributes&) {
  RETURN_IF_ERROR(ExpectInputs(node, 2, 2));
  const std::string& name = node.input(constants_.Has(node.input(0)) ? 0 : 1);
  std::vector<Layer>& layers = result_.network.layers;
  auto* const convolution =
      layers.empty() ? nullptr : std::get_if<ConvolutionLayer>(&layers.back());
  auto* const connected =
      layers.empty() ? nullptr
                     : std::get_if<FullyConnectedLayer>(&layers.back());
  const bool without = (convolution != nullptr && !convolution->bias) ||
                       (connected != nullptr && !connected->bias);
  if (!without || (convolution != nullptr && images_.flat)) {
    return Refused(
        "expected a bias, behind a Conv, MatMul or Gemm that has none");
  }
  const int64_t count = images_.shape.channels;
  const bool behind = convolution != nullptr && !images_.channels_last;
  ASSIGN_OR_RETURN(result_.weights.layers.back().bias,
                   Bias(name, behind ? std::vector<int64_t>{count, 1, 1}
                                     : std::vector<int64_t>{count}));
  (convolution != nullptr ? convolution->bias : connected->bias) = true;
  return absl::OkStatus();
}

absl::Status LayerReader::Nothing(const NodeProto& node, Attributes&) {
  return ExpectInputs(node, 1, 1);
}

// Does nothing unless it trains.
absl::Status LayerReader::DropOut(const NodeProto& node,
                                  Attributes& attributes) {
  RETURN_IF_ERROR(ExpectInputs(node, 1, 3));
  RETURN_IF_ERROR(attributes.Float("ratio", 0).status());
  RETURN_IF_ERROR(attributes.Integer("seed", 0).status());
  if (node.input_size() < 3 || node.input(2).empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Constant training, constants_.Get(node.input(2)));
  if (training.integers == std::vector<int64_t>{0}) return absl::OkStatus();
  return Refused("training_mode is true, expected false");
}

// A label is the largest logit's, and these keep the order.
absl::Status LayerReader::DropSoftmax(const NodeProto& node,
                                      Attributes& attributes) {
  RETURN_IF_ERROR(ExpectInputs(node, 1, 1));
  RETURN_IF_ERROR(ExpectVector());
  ASSIGN_OR_RETURN(
      const int64_t axis,
      attributes.Integer("axis", opset_ < kSoftmaxOfOneAxis ? 1 : -1));
  if (axis != 1 && axis != -1) {
    return Refused(absl::StrCat("attribute axis is ", axis, ", expected 1"));
  }
  softmax_ = NodeName(node);
  result_.notes.push_back(absl::StrCat(
      softmax_, " is left out: labels are the same, and logits are its input"));
  return absl::OkStatus();
}

}  // namespace convlab
