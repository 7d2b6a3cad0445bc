// The nodes of an ONNX graph through which the images go, as layers.
#ifndef COMMON_ONNX_LAYERS_H_
#define COMMON_ONNX_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/onnx/attributes.h"
#include "common/onnx/constants.h"
#include "common/onnx/onnx.h"
#include "common/onnx/shapes.h"
#include "onnx/onnx.pb.h"

namespace convlab {

// How errors call a node: by its name, or by what it writes.
std::string NodeName(const onnx::NodeProto& node);

class LayerReader {
 public:
  // `opset` is the version of the operators; `constants` must outlive the
  // object.
  LayerReader(const Images& input, int64_t opset, Constants& constants);

  // Goes on through the node, all of whose inputs but `images`, the index of
  // the one that it goes on with, are constants or absent.
  absl::Status Take(const onnx::NodeProto& node, int images);

  // What the last node writes.
  const Images& images() const { return images_; }
  // The layers, their weights and the notes; the network has no name.
  OnnxNetwork& result() { return result_; }

 private:
  using Handler = absl::Status (LayerReader::*)(const onnx::NodeProto&,
                                                Attributes&);
  static absl::StatusOr<Handler> FindHandler(const std::string& op_type);

  // Refuse what the images are.
  absl::Status ExpectPicture() const;
  absl::Status ExpectVector() const;

  absl::Status AddBias(const onnx::NodeProto& node, Attributes&);
  absl::Status Activate(const onnx::NodeProto& node, Attributes&);
  absl::Status Convolve(const onnx::NodeProto& node, Attributes& attributes);
  absl::Status DropOut(const onnx::NodeProto& node, Attributes& attributes);
  absl::Status DropSoftmax(const onnx::NodeProto& node, Attributes& attributes);
  absl::Status Flatten(const onnx::NodeProto& node, Attributes& attributes);
  absl::Status Gemm(const onnx::NodeProto& node, Attributes& attributes);
  absl::Status MatMul(const onnx::NodeProto& node, Attributes&);
  absl::Status Nothing(const onnx::NodeProto& node, Attributes&);
  absl::Status Pool(const onnx::NodeProto& node, Attributes& attributes);
  absl::Status Reshape(const onnx::NodeProto& node, Attributes& attributes);
  absl::Status Transpose(const onnx::NodeProto& node, Attributes& attributes);

  // A fully connected layer. The matrix is [outputs, inputs] if it is
  // transposed, as ours are.
  absl::Status Connect(const std::string& name, bool transposed);
  // A bias of this shape; dimensions of 1 may stand before it.
  absl::StatusOr<std::vector<float>> Bias(const std::string& name,
                                          const std::vector<int64_t>& shape);
  void Append(const Layer& layer, LayerWeights weights = {});

  const int64_t opset_;
  Constants& constants_;
  Images images_;
  OnnxNetwork result_;
  std::string softmax_;  // the node's name, if there was one
};

}  // namespace convlab

#endif  // COMMON_ONNX_LAYERS_H_
