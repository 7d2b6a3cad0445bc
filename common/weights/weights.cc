#include "common/weights/weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/files.h"
#include "common/status/status.h"
#include "common/weights/byte_reader.h"
#include "common/weights/mini_dnn.h"
#include "common/weights/mxnet_params.h"
#include "common/weights/parameters.h"
#include "common/weights/safetensors.h"

namespace convlab {
namespace {

struct ExpectedTensor {
  std::vector<std::string> names;  // ours, then MXNet's
  std::vector<int64_t> shape;
  size_t layer;
  std::vector<float> LayerWeights::*values;  // where the values are stored
};

// Each layer's weight, then its bias.
std::vector<ExpectedTensor> ExpectedTensors(const Network& network) {
  std::vector<ExpectedTensor> tensors;
  for (const LayerParameters& parameters : ParametersOf(network)) {
    std::vector<std::string> weight = {parameters.name + ".weight"};
    std::vector<std::string> bias = {parameters.name + ".bias"};
    for (const std::string& name : parameters.other_names) {
      weight.push_back(name + "_weight");
      bias.push_back(name + "_bias");
    }
    tensors.push_back({weight, parameters.weight_shape, parameters.layer,
                       &LayerWeights::weight});
    if (!parameters.has_bias) continue;
    tensors.push_back(
        {bias, parameters.bias_shape(), parameters.layer, &LayerWeights::bias});
  }
  return tensors;
}

// The first eight bytes are a safetensors file's header length, MXNet's magic
// number, or mini-dnn's layer count and first layer's length. The brace is
// checked first, because a header may be as long as the magic number.
absl::StatusOr<TensorFile> ParseAnyFormat(absl::string_view content,
                                          const Network& network) {
  const auto first = ByteReader(content).Integer<uint64_t>("");
  if (first.ok()) {
    const uint64_t low = *first & 0xffffffff;
    const uint64_t high = *first >> 32;
    constexpr uint64_t kMostLayers = 1000;
    if (high == 0 && content.substr(8, 1) == "{") {
      return ParseSafetensors(content);
    }
    if (*first == kMxnetMagic) return ParseMxnetParams(content);
    if (high != 0 && low > 0 && low <= kMostLayers) {
      return ParseMiniDnn(content, network);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "begins with ", Quoted(content.substr(0, 9)),
      ", expected a safetensors, MXNet .params or mini-dnn .bin file"));
}

// The file's tensors in the order of `expected`.
absl::StatusOr<std::vector<Tensor*>> MatchNames(
    std::vector<Tensor>& tensors, const std::vector<ExpectedTensor>& expected) {
  std::vector<Tensor*> matched(expected.size(), nullptr);
  std::vector<std::string> unexpected;
  for (Tensor& tensor : tensors) {
    const auto found =
        std::find_if(expected.begin(), expected.end(), [&](const auto& wanted) {
          return std::count(wanted.names.begin(), wanted.names.end(),
                            tensor.name) > 0;
        });
    if (found != expected.end() && !matched[found - expected.begin()]) {
      matched[found - expected.begin()] = &tensor;
    } else {
      unexpected.push_back(Quoted(tensor.name));
    }
  }
  std::vector<std::string> missing;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (matched[i] != nullptr) continue;
    missing.push_back(absl::StrJoin(expected[i].names, " or "));
  }
  std::vector<std::string> problems;
  if (!missing.empty()) {
    problems.push_back(absl::StrCat("lacks ", absl::StrJoin(missing, ", ")));
  }
  if (!unexpected.empty()) {
    constexpr size_t kMostNamed = 8;
    const size_t more =
        unexpected.size() - std::min(unexpected.size(), kMostNamed);
    unexpected.resize(unexpected.size() - more);
    problems.push_back(
        absl::StrCat("has unexpected ", absl::StrJoin(unexpected, ", "),
                     more > 0 ? absl::StrCat(" and ", more, " more") : ""));
  }
  if (!problems.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(problems, "; "));
  }
  return matched;
}

absl::Status CheckTensor(const Tensor& tensor,
                         const std::vector<int64_t>& shape) {
  if (tensor.shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", Quoted(tensor.name), " has shape ",
        ShapeString(tensor.shape), ", expected ", ShapeString(shape)));
  }
  const auto bad = std::find_if(tensor.values.begin(), tensor.values.end(),
                                [](float x) { return !std::isfinite(x); });
  if (bad == tensor.values.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", Quoted(tensor.name), " is ", *bad, " at index ",
                   bad - tensor.values.begin(), ", expected a finite number"));
}

// Files for networks of the table with the same shapes differ only in their
// metadata. The user's own network may have any name.
absl::Status CheckMetadata(const TensorFile& file, const Network& network) {
  const auto named = file.metadata.find("network");
  if (named == file.metadata.end() || named->second == network.name ||
      !FindNetwork(network.name).ok()) {
    return absl::OkStatus();
  }
  const auto found = FindNetwork(named->second);
  if (found.ok() && (*found)->name == network.name) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the metadata names network ",
                                                 Quoted(named->second),
                                                 ", expected ", network.name));
}

absl::StatusOr<NetworkWeights> ParseWeights(absl::string_view content,
                                            const Network& network) {
  ASSIGN_OR_RETURN(TensorFile file, ParseAnyFormat(content, network));
  const std::vector<ExpectedTensor> expected = ExpectedTensors(network);
  const std::string where = absl::StrCat("for network ", network.name);
  const auto matched = MatchNames(file.tensors, expected);
  RETURN_IF_ERROR(Annotate(matched.status(), where));
  for (size_t i = 0; i < expected.size(); ++i) {
    RETURN_IF_ERROR(
        Annotate(CheckTensor(*(*matched)[i], expected[i].shape), where));
  }
  RETURN_IF_ERROR(CheckMetadata(file, network));
  NetworkWeights weights;
  weights.layers.resize(network.layers.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    LayerWeights& layer = weights.layers[expected[i].layer];
    layer.*expected[i].values = std::move((*matched)[i]->values);
  }
  weights.metadata = std::move(file.metadata);
  return weights;
}

}  // namespace

absl::Status CheckWeights(const Network& network,
                          const NetworkWeights& weights) {
  if (weights.layers.size() != network.layers.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights of ", weights.layers.size(), " layers, expected ",
                     network.layers.size(), " as in network ", network.name));
  }
  struct Counts {
    size_t weights = 0, biases = 0;
  };
  std::vector<Counts> expected(network.layers.size());
  for (const LayerParameters& parameters : ParametersOf(network)) {
    Counts& counts = expected[parameters.layer];
    ASSIGN_OR_RETURN(counts.weights, ElementCount(parameters.weight_shape));
    if (parameters.has_bias) counts.biases = parameters.weight_shape[0];
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const Counts found = {weights.layers[i].weight.size(),
                          weights.layers[i].bias.size()};
    if (found.weights == expected[i].weights &&
        found.biases == expected[i].biases) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("for network ", network.name, ": layer ", i + 1, " of ",
                     expected.size(), " has ", found.weights, " weights and ",
                     found.biases, " biases, expected ", expected[i].weights,
                     " and ", expected[i].biases));
  }
  return absl::OkStatus();
}

absl::StatusOr<NetworkWeights> LoadWeights(const std::string& path,
                                           const Network& network) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  absl::StatusOr<NetworkWeights> weights = ParseWeights(content, network);
  RETURN_IF_ERROR(Annotate(weights.status(), path));
  return weights;
}

}  // namespace convlab
