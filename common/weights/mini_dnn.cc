#include "common/weights/mini_dnn.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/network/network.h"
#include "common/status/status.h"
#include "common/weights/byte_reader.h"

namespace convlab {
namespace {

// A layer with parameters: weights of this shape, then one bias for each of
// the shape's first dimension.
struct Layer {
  std::string name;
  std::vector<int64_t> shape;
  bool adds_bias;
};

absl::StatusOr<std::vector<Layer>> Fa20Layers() {
  ASSIGN_OR_RETURN(const Network* const network, FindNetwork("fa20"));
  std::vector<Layer> layers;
  for (const ConvolutionStage& stage : network->stages) {
    layers.push_back({absl::StrCat("conv", layers.size() + 1),
                      {stage.output_channels, stage.input_channels,
                       stage.kernel_size, stage.kernel_size},
                      false});
  }
  // mini-dnn's matrices are [inputs, outputs], column by column: in memory
  // that is our [outputs, inputs], row by row.
  layers.push_back({"fc1", {network->hidden, network->Flattened()}, true});
  layers.push_back({"fc2", {kClasses, network->hidden}, true});
  return layers;
}

}  // namespace

absl::StatusOr<TensorFile> ParseMiniDnn(absl::string_view content) {
  ASSIGN_OR_RETURN(const std::vector<Layer> layers, Fa20Layers());
  ByteReader reader(content);
  ASSIGN_OR_RETURN(const int32_t count,
                   reader.Integer<int32_t>("the layer count"));
  if (count < 0) {
    return absl::InvalidArgumentError(absl::StrCat(count, " layers"));
  }
  TensorFile file;
  size_t next = 0;
  for (int32_t i = 0; i < count; ++i) {
    const std::string where = absl::StrCat("layer ", i, " of ", count);
    const auto length = reader.Integer<int32_t>("its length");
    RETURN_IF_ERROR(Annotate(length.status(), where));
    if (*length == 0) continue;
    if (next == layers.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": ", *length, " numbers, expected none behind fa20's ",
          layers.back().name));
    }
    const Layer& layer = layers[next++];
    ASSIGN_OR_RETURN(const int64_t weights, ElementCount(layer.shape));
    const int64_t biases = layer.shape[0];
    if (*length != weights + biases) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", *length, " numbers, expected ",
                       weights + biases, ": fa20's ", layer.name, " ",
                       ShapeString(layer.shape), " and ", biases, " biases"));
    }
    auto values = reader.Floats(*length, "its numbers");
    RETURN_IF_ERROR(Annotate(values.status(), where));
    const auto middle = values->begin() + weights;
    file.tensors.push_back({layer.name + ".weight",
                            DataType::kFloat32,
                            layer.shape,
                            {values->begin(), middle}});
    if (layer.adds_bias) {
      file.tensors.push_back({layer.name + ".bias",
                              DataType::kFloat32,
                              {biases},
                              {middle, values->end()}});
    }
  }
  RETURN_IF_ERROR(reader.ExpectEnd());
  if (next < layers.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(next, " of ", count, " layers have numbers, expected ",
                     layers.size(), " as in fa20"));
  }
  return file;
}

}  // namespace convlab
