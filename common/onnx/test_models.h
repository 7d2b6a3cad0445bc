// ONNX models for tests.
#ifndef COMMON_ONNX_TEST_MODELS_H_
#define COMMON_ONNX_TEST_MODELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/network/network.h"
#include "common/weights/weights.h"
#include "onnx/onnx.pb.h"

namespace convlab {

// A model that is built node by node. Names are the callers'.
class OnnxModel {
 public:
  // With a float32 input "x" of shape [N, ...], N open, without an output.
  explicit OnnxModel(const std::vector<int64_t>& image, int64_t opset = 14);

  // Appends a node that writes `output`; its name is "node_" and that.
  onnx::NodeProto& Add(const std::string& type,
                       const std::vector<std::string>& inputs,
                       const std::string& output);

  // Appends an initializer.
  onnx::TensorProto& Floats(const std::string& name,
                            const std::vector<int64_t>& shape,
                            const std::vector<float>& values);
  onnx::TensorProto& Integers(const std::string& name,
                              const std::vector<int64_t>& values);

  // The file, whose graph has the output of the last node.
  std::string File();

  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  // The node that writes `output`.
  onnx::NodeProto& Node(const std::string& output);

 private:
  onnx::ModelProto model_;
};

void SetAttribute(onnx::NodeProto& node, const std::string& name,
                  int64_t value);
void SetAttribute(onnx::NodeProto& node, const std::string& name, float value);
void SetAttribute(onnx::NodeProto& node, const std::string& name,
                  const char* value);
void SetAttribute(onnx::NodeProto& node, const std::string& name,
                  const std::vector<int64_t>& values);

// The network as PyTorch exports it.
OnnxModel ModelOf(const Network& network, const NetworkWeights& weights);

// A small network, which tests change: 1x6x6, "conv" with weights "w" and bias
// "b" to 2x4x4, "relu", "pool" to 2x2x2, "flat" to "shape", "fc" with "m" and
// "c" to 3. Nodes are called by what they write.
OnnxModel SmallModel();

// Weights for the network, each of them another small number.
NetworkWeights CountingWeights(const Network& network);

}  // namespace convlab

#endif  // COMMON_ONNX_TEST_MODELS_H_
