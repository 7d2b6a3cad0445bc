#include "common/onnx/sequence.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/onnx/constants.h"
#include "common/onnx/layers.h"
#include "common/onnx/shapes.h"
#include "common/status/status.h"
#include "common/weights/tensor_file.h"

namespace convlab {
namespace {

using onnx::NodeProto;

absl::Status Refused(const std::string& text) {
  return absl::InvalidArgumentError(text);
}

// Walks along the graph's nodes, each of which either computes a constant or
// goes on with the images.
class Walk {
 public:
  Walk(const onnx::GraphProto& graph, int64_t opset)
      : graph_(graph), opset_(opset), constants_(graph) {}

  absl::StatusOr<OnnxNetwork> Run() {
    RETURN_IF_ERROR(Begin());
    for (const NodeProto& node : graph_.node()) {
      RETURN_IF_ERROR(Annotate(Take(node), NodeName(node)));
    }
    RETURN_IF_ERROR(End());
    return std::move(layers_->result());
  }

 private:
  // Finds the input among those that are not initializers.
  absl::Status Begin() {
    if (graph_.sparse_initializer_size() > 0) {
      return Refused("the graph has sparse initializers, expected none");
    }
    std::vector<const onnx::ValueInfoProto*> inputs;
    std::vector<std::string> names;
    for (const onnx::ValueInfoProto& input : graph_.input()) {
      if (constants_.Has(input.name())) continue;
      inputs.push_back(&input);
      if (names.size() < 8) names.push_back(Quoted(input.name()));
    }
    if (inputs.size() != 1) {
      return Refused(absl::StrCat(
          "the graph has ", inputs.size(), " inputs", names.empty() ? "" : ", ",
          absl::StrJoin(names, ", "), ", expected one, the images"));
    }
    ASSIGN_OR_RETURN(const Images images, InputImages(*inputs[0]));
    layers_.emplace(images, opset_, constants_);
    current_ = inputs[0]->name();
    seen_.emplace(current_, images);
    return absl::OkStatus();
  }

  absl::Status End() {
    if (graph_.output_size() != 1) {
      return Refused(absl::StrCat("the graph has ", graph_.output_size(),
                                  " outputs, expected one, the logits"));
    }
    const std::string& output = graph_.output(0).name();
    if (output != current_) {
      return Refused(absl::StrCat("the graph's output is ", Quoted(output),
                                  ", expected ", Quoted(current_),
                                  ", which the last node writes"));
    }
    if (layers_->result().network.layers.empty()) {
      return Refused("the graph has no layer, expected one at least");
    }
    if (layers_->images().channels_last && layers_->images().shape.size > 1) {
      return Refused("the output has its channels last, expected first");
    }
    return absl::OkStatus();
  }

  absl::Status Take(const NodeProto& node) {
    if (!node.domain().empty() && node.domain() != "ai.onnx") {
      return Refused(absl::StrCat("its domain is ", Quoted(node.domain()),
                                  ", expected the standard one"));
    }
    if (node.output_size() < 1 || node.output(0).empty()) {
      return Refused("it writes nothing");
    }
    for (const std::string& name : node.output()) {
      if (constants_.Has(name) || seen_.count(name) > 0) {
        return Refused(absl::StrCat("it writes ", Quoted(name),
                                    ", which is there already"));
      }
    }
    bool constant = true;
    for (const std::string& name : node.input()) {
      if (name.empty() || constants_.Has(name)) continue;
      constant = false;
      if (seen_.count(name) > 0) continue;
      return Refused(absl::StrCat("it reads ", Quoted(name),
                                  ", which nothing before it writes"));
    }
    if (constant) return constants_.Compute(node, {});
    if (node.op_type() == "Shape" && node.input_size() == 1) {
      return constants_.Compute(node, seen_.at(node.input(0)).Dimensions());
    }
    return Go(node);
  }

  // Goes on with the images through the node.
  absl::Status Go(const NodeProto& node) {
    int images = -1;
    for (int i = 0; i < node.input_size(); ++i) {
      const std::string& name = node.input(i);
      if (name.empty() || constants_.Has(name)) continue;
      if (images >= 0 || name != current_) {
        return Refused(absl::StrCat(
            "it reads ", Quoted(name), images >= 0 ? " too" : "",
            ", expected only ", Quoted(current_),
            ", which the node before it writes: a sequence without branches"));
      }
      images = i;
    }
    RETURN_IF_ERROR(layers_->Take(node, images));
    current_ = node.output(0);
    seen_.emplace(current_, layers_->images());
    return absl::OkStatus();
  }

  const onnx::GraphProto& graph_;
  const int64_t opset_;
  Constants constants_;
  std::optional<LayerReader> layers_;
  std::string current_;                 // what the last node writes
  std::map<std::string, Images> seen_;  // all names that were current
};

}  // namespace

absl::StatusOr<OnnxNetwork> ReadSequence(const onnx::GraphProto& graph,
                                         int64_t opset) {
  return Walk(graph, opset).Run();
}

}  // namespace convlab
