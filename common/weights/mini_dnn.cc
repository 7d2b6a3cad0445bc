#include "common/weights/mini_dnn.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "common/weights/byte_reader.h"
#include "common/weights/parameters.h"

namespace convlab {

absl::StatusOr<TensorFile> ParseMiniDnn(absl::string_view content,
                                        const Network& network) {
  // mini-dnn's matrices are [inputs, outputs] in column-major order, which is
  // our [outputs, inputs] in row-major order.
  const std::vector<LayerParameters> layers = ParametersOf(network);
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
          where, ": ", *length, " numbers, expected none after the ",
          layers.size(), " layers of ", network.name));
    }
    const LayerParameters& layer = layers[next++];
    ASSIGN_OR_RETURN(const int64_t weights, ElementCount(layer.weight_shape));
    const int64_t biases = layer.weight_shape[0];
    if (*length != weights + biases) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": ", *length, " numbers, expected ", weights + biases, ": ",
          network.name, "'s ", layer.name, " ", ShapeString(layer.weight_shape),
          " and ", biases, " biases"));
    }
    auto values = reader.Floats(*length, "its numbers");
    RETURN_IF_ERROR(Annotate(values.status(), where));
    const auto middle = values->begin() + weights;
    file.tensors.push_back({layer.name + ".weight",
                            DataType::kFloat32,
                            layer.weight_shape,
                            {values->begin(), middle}});
    if (layer.has_bias) {
      file.tensors.push_back({layer.name + ".bias",
                              DataType::kFloat32,
                              layer.bias_shape(),
                              {middle, values->end()}});
    }
  }
  RETURN_IF_ERROR(reader.ExpectEnd());
  if (next < layers.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(next, " of ", count, " layers have numbers, expected ",
                     layers.size(), " as in ", network.name));
  }
  return file;
}

}  // namespace convlab
