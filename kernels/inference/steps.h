// The steps in which a network runs: one layer each, or several as one.
#ifndef KERNELS_INFERENCE_STEPS_H_
#define KERNELS_INFERENCE_STEPS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "common/network/network.h"
#include "kernels/convolution/convolution.h"

namespace convlab {

// A layer's weights in the machine's memory; null if it has none.
struct PlacedLayer {
  std::shared_ptr<const float> weight;
  std::shared_ptr<const float> bias;
};

// Layers `first` to `end` - 1 of a network: an activation and the pooling after
// it, a convolution and its epilogue, or a single layer.
struct Step {
  size_t first, end;
  // What a convolution fuses: its bias, and the activation and the pooling that
  // follow it. Empty for all others, and where the variant does not fuse them.
  Epilogue epilogue;

  // Whether the step works in place instead of writing another tensor.
  bool in_place(const Network& network) const;
};

// The steps of a network that CheckNetwork accepts. With `variants`, one for
// each convolution, a convolution takes the layers after it if its variant
// fuses all of them; without, none does.
std::vector<Step> MakeSteps(const Network& network,
                            const std::vector<PlacedLayer>& weights,
                            const std::vector<const Variant*>& variants,
                            const Resources& resources);

}  // namespace convlab

#endif  // KERNELS_INFERENCE_STEPS_H_
