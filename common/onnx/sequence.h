// An ONNX graph as a sequence of layers.
#ifndef COMMON_ONNX_SEQUENCE_H_
#define COMMON_ONNX_SEQUENCE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/onnx/onnx.h"
#include "onnx/onnx.pb.h"

namespace convlab {

// `opset` is the version of the operators. The sizes of each layer are checked,
// those of the whole network and the network's name are left to the caller.
absl::StatusOr<OnnxNetwork> ReadSequence(const onnx::GraphProto& graph,
                                         int64_t opset);

}  // namespace convlab

#endif  // COMMON_ONNX_SEQUENCE_H_
