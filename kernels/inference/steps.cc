#include "kernels/inference/steps.h"

#include <variant>

#include "kernels/inference/inference.h"

namespace convlab {
namespace {

// Layer `i` if there is one of that kind, or null.
template <typename Kind>
const Kind* Find(const Network& network, size_t i) {
  return i < network.layers.size() ? std::get_if<Kind>(&network.layers[i])
                                   : nullptr;
}

// The convolution that is layer `i`, with all that may be its epilogue.
Step WithEpilogue(const Network& network, size_t i, const float* bias) {
  Step step = {i, i + 1, {}};
  step.epilogue.bias = bias;
  if (const auto* activation = Find<Activation>(network, step.end)) {
    step.epilogue.activation = *activation;
    ++step.end;
  }
  if (const auto* pool = Find<MaxPool>(network, step.end)) {
    step.epilogue.pool = *pool;
    ++step.end;
  }
  return step;
}

}  // namespace

bool Step::in_place(const Network& network) const {
  return end == first + 1 &&
         std::holds_alternative<Activation>(network.layers[first]);
}

std::vector<Step> MakeSteps(const Network& network,
                            const std::vector<PlacedLayer>& weights,
                            const std::vector<const Variant*>& variants,
                            const Resources& resources) {
  std::vector<Step> steps;
  size_t convolutions = 0;
  for (size_t i = 0; i < network.layers.size(); i = steps.back().end) {
    Step step = {i, i + 1, {}};
    if (Find<ConvolutionLayer>(network, i) != nullptr) {
      const size_t index = convolutions++;
      const Step fused = WithEpilogue(network, i, weights[i].bias.get());
      // What a variant fuses is the same for every batch.
      if (!variants.empty() &&
          variants[index]
              ->Check(ConvolutionProblem(network, index, 1), resources,
                      fused.epilogue)
              .ok()) {
        step = fused;
      }
    } else if (Find<Activation>(network, i) != nullptr &&
               Find<MaxPool>(network, i + 1) != nullptr) {
      step.end = i + 2;
    }
    steps.push_back(step);
  }
  return steps;
}

}  // namespace convlab
