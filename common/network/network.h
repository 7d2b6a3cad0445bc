// The one table of networks. A network is a sequence of layers
//
//   convolution (stride 1, no padding), activation, max pooling, fully
//   connected
//
// for square images. The first fully connected layer takes its input as one
// vector, in the order [channel, row, column]. The last layer's outputs are the
// logits of the classes. To add a network, add a row in network.cc.
#ifndef COMMON_NETWORK_NETWORK_H_
#define COMMON_NETWORK_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/network/layer.h"

namespace convlab {

struct ConvolutionLayer {
  int filters;      // M; the channels C are those of the input
  int kernel_size;  // K
  bool bias;        // one number for each filter
};

struct FullyConnectedLayer {
  int outputs;
  bool bias;  // one number for each output
};

using Layer =
    std::variant<ConvolutionLayer, Activation, MaxPool, FullyConnectedLayer>;

// The tensor of one image between two layers. Height and width are equal; a
// vector of N values has N channels and size 1.
struct TensorShape {
  int64_t channels;
  int64_t size;  // H = W

  int64_t values() const { return channels * size * size; }
};

// A convolution with its sizes in the network.
struct NetworkConvolution {
  size_t layer;  // index in the network's layers
  TensorShape input;
  TensorShape output;
  int kernel_size;
};

// The functions require that CheckNetwork accepts the network.
struct Network {
  std::string name;
  std::vector<std::string> aliases;  // the course's names
  int image_channels;
  int image_size;  // the images are enlarged to this height and width
  std::vector<Layer> layers;
  // The oldest term's program announced the inference before it loaded
  // anything.
  bool announces_first = false;

  // Shapes()[i] is the input of layer i and Shapes()[i + 1] its output.
  std::vector<TensorShape> Shapes() const;
  // The convolutions, in order.
  std::vector<NetworkConvolution> Convolutions() const;
  // The number of layers before the first fully connected one; all of them if
  // there is none.
  size_t FeatureLayers() const;
  // The number of values that these layers compute for an image, which are the
  // inputs of the first fully connected layer.
  int64_t Features() const;
  // The number of outputs of the last layer.
  int Classes() const;
};

// InvalidArgument, naming the first layer that is wrong, unless all sizes are
// positive, each layer fits its input, no convolution or pooling follows a
// fully connected layer, tensors and weights have fewer than 2^31 elements, and
// there are between 1 and 256 classes.
absl::Status CheckNetwork(const Network& network);

// All networks: the course's in the order of the terms, then LeNet-5.
const std::vector<Network>& Networks();

// The network of that name or alias. The error lists all names.
absl::StatusOr<const Network*> FindNetwork(absl::string_view name);

}  // namespace convlab

#endif  // COMMON_NETWORK_NETWORK_H_
