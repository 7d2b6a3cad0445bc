// The one table of networks. A network is one or two convolution stages
//
//   convolution (stride 1, no padding, no bias) -> activation -> max pooling
//
// then flatten -> fully connected -> activation -> fully connected -> softmax
// over ten classes. Adding a network is adding a row in network.cc.
#ifndef COMMON_NETWORK_NETWORK_H_
#define COMMON_NETWORK_NETWORK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/network/layer.h"

namespace convlab {

inline constexpr int kClasses = 10;

struct ConvolutionStage {
  int input_channels;   // C
  int output_channels;  // M
  int kernel_size;      // K
  Activation activation = Activation::kNone;
  MaxPool pool;
};

// Heights and widths are equal throughout: images and kernels are square.
struct StageShape {
  int64_t input_size;   // H = W of the stage's input
  int64_t output_size;  // after the convolution
  int64_t pooled_size;  // after pooling
};

struct Network {
  std::string name;
  std::vector<std::string> aliases;  // what the course called it
  int image_size;                    // the images are enlarged to this
  std::vector<ConvolutionStage> stages;
  int hidden;  // outputs of the first fully connected layer
  Activation hidden_activation;
  // The oldest term's program announced the inference before it loaded.
  bool announces_first = false;

  // One per stage, in order.
  std::vector<StageShape> StageShapes() const;
  // Inputs of the first fully connected layer.
  int64_t Flattened() const;
};

// All networks, in the order of the terms.
const std::vector<Network>& Networks();

// The network of that name or alias. The error lists the names there are.
absl::StatusOr<const Network*> FindNetwork(absl::string_view name);

}  // namespace convlab

#endif  // COMMON_NETWORK_NETWORK_H_
