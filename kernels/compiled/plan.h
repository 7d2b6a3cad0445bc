// The plan of a network that is compiled as a whole: the stages in which it
// runs, each of which takes several layers at once. A plan is a function of the
// network alone, whatever device runs it.
//
//   - Neighbouring linear layers (convolutions and fully connected ones) are
//     folded into one matrix wherever the matrix takes fewer operations.
//   - Bias, activation and pooling are part of the stage before them. Both are
//     monotonic, so that the pooling is computed first, whatever their order.
#ifndef KERNELS_COMPILED_PLAN_H_
#define KERNELS_COMPILED_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/network/network.h"

namespace convlab {

enum class StageKind {
  kConvolve,  // a convolution
  kConnect,   // a matrix: a fully connected layer or folded layers
  kPool,      // what has no linear layer before it: pooling and activation
};

// The layers `first` to `end` - 1 of the network. The first `linear` of them
// are linear, and more than one is folded; the others are `activation` and
// `pool`.
struct Stage {
  StageKind kind;
  size_t first, end;
  size_t linear;
  Activation activation = Activation::kNone;
  MaxPool pool;
  TensorShape input, output;
  bool bias;  // of a linear layer

  bool folded() const { return linear > 1; }
};

struct Plan {
  std::vector<Stage> stages;
  std::vector<int64_t> layer_flops;  // of each of the network's layers

  // Multiplications and additions of the linear layers for one image: in the
  // plan, and layer by layer.
  int64_t Flops(const Stage& stage) const;
  int64_t LayerFlops(const Stage& stage) const;
  // The bytes of the stage's parameters as it reads them.
  int64_t ParameterBytes(const Network& network, const Stage& stage) const;
};

// The plan with the fewest operations. CheckNetwork must accept the network.
Plan MakePlan(const Network& network);

// "folded conv 2, fc 1; fused bias, tanh": what the stage does besides its
// first layer, or "-".
std::string Describe(const Network& network, const Stage& stage);

// "conv 1", "fc 2", "tanh", "pool 2x2": the layer's name; linear ones are
// counted as in the weight files.
std::string LayerName(const Network& network, size_t layer);

}  // namespace convlab

#endif  // KERNELS_COMPILED_PLAN_H_
