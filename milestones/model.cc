#include "milestones/model.h"

#include <utility>

#include "absl/strings/match.h"
#include "common/files/files.h"
#include "common/status/status.h"
#include "milestones/trained_weights.h"

namespace convlab {
namespace {

bool IsOnnxFile(absl::string_view text) {
  return absl::EndsWith(text, ".onnx");
}

}  // namespace

bool NamesModel(absl::string_view text) {
  return IsOnnxFile(text) || FindNetwork(text).ok();
}

absl::StatusOr<Model> FindModel(const std::string& text) {
  Model model;
  if (!IsOnnxFile(text)) {
    ASSIGN_OR_RETURN(model.network, FindNetwork(text));
    return model;
  }
  model.onnx_file = UserPath(text);
  ASSIGN_OR_RETURN(OnnxNetwork onnx, ReadOnnx(model.onnx_file));
  model.onnx = std::make_shared<const OnnxNetwork>(std::move(onnx));
  model.network = &model.onnx->network;
  return model;
}

absl::StatusOr<std::string> WeightsFile(const Model& model,
                                        const std::string& given,
                                        const std::string& program) {
  if (!given.empty()) return given;
  if (model.onnx != nullptr) return model.onnx_file;
  return TrainedWeights(program, *model.network);
}

absl::StatusOr<NetworkWeights> ReadWeights(const Model& model,
                                           const std::string& file) {
  if (model.onnx != nullptr && file == model.onnx_file) {
    return model.onnx->weights;
  }
  return LoadWeights(file, *model.network);
}

}  // namespace convlab
