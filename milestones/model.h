// The network that a user names: one of the table, or that of an ONNX file.
#ifndef MILESTONES_MODEL_H_
#define MILESTONES_MODEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/network/network.h"
#include "common/onnx/onnx.h"
#include "common/weights/weights.h"

namespace convlab {

struct Model {
  const Network* network = nullptr;  // of the table, or of `onnx`
  std::shared_ptr<const OnnxNetwork> onnx;
  std::string onnx_file;  // empty: none
};

// Whether the text is a name in the table or ends with ".onnx".
bool NamesModel(absl::string_view text);

// Reads the file if the text ends with ".onnx". Errors of FindNetwork and
// ReadOnnx.
absl::StatusOr<Model> FindModel(const std::string& text);

// The file with the model's weights: `given` unless that is empty; otherwise
// the ONNX file, or the trained weights beside the program (TrainedWeights).
absl::StatusOr<std::string> WeightsFile(const Model& model,
                                        const std::string& given,
                                        const std::string& program);

// The weights of that file.
absl::StatusOr<NetworkWeights> ReadWeights(const Model& model,
                                           const std::string& file);

}  // namespace convlab

#endif  // MILESTONES_MODEL_H_
