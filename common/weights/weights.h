// A network's trained weights, from a file of one of three formats.
// parameters.h lists the tensors that such a file holds.
#ifndef COMMON_WEIGHTS_WEIGHTS_H_
#define COMMON_WEIGHTS_WEIGHTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/network/network.h"

namespace convlab {

struct LayerWeights {
  // [M, C, K, K] of a convolution, [outputs, inputs] of a fully connected
  // layer; empty for layers that have none.
  std::vector<float> weight;
  // [M] or [outputs]; empty for layers that have none.
  std::vector<float> bias;
};

struct NetworkWeights {
  std::vector<LayerWeights> layers;  // one for each of the network's layers
  std::map<std::string, std::string> metadata;  // of a safetensors file
};

// InvalidArgument, naming the layer, unless `weights` has as many layers as
// `network` and each has the right number of values.
absl::Status CheckWeights(const Network& network,
                          const NetworkWeights& weights);

// Reads the file `path`: safetensors, MXNet .params or mini-dnn .bin,
// recognized by its content. Its tensors must be exactly those of `network`, in
// any order, and finite, and its metadata may not name another network. The
// error names the file and what is wrong in it: NotFound or PermissionDenied
// where it cannot be read, InvalidArgument otherwise.
absl::StatusOr<NetworkWeights> LoadWeights(const std::string& path,
                                           const Network& network);

}  // namespace convlab

#endif  // COMMON_WEIGHTS_WEIGHTS_H_
