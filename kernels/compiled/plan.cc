#include "kernels/compiled/plan.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace convlab {
namespace {

template <typename Kind>
bool Is(const Layer& layer) {
  return std::holds_alternative<Kind>(layer);
}

bool IsLinear(const Layer& layer) {
  return Is<ConvolutionLayer>(layer) || Is<FullyConnectedLayer>(layer);
}

int64_t FlopsOf(const Layer& layer, const TensorShape& in,
                const TensorShape& out) {
  if (const auto* convolution = std::get_if<ConvolutionLayer>(&layer)) {
    return 2 * out.values() * in.channels * convolution->kernel_size *
           convolution->kernel_size;
  }
  return Is<FullyConnectedLayer>(layer) ? 2 * in.values() * out.values() : 0;
}

int64_t MatrixFlops(const TensorShape& in, const TensorShape& out) {
  return 2 * in.values() * out.values();
}

// Where the linear layers `first` to `end` - 1, which follow each other, are
// best cut: the ends of the parts.
std::vector<size_t> BestCuts(const std::vector<TensorShape>& shapes,
                             const std::vector<int64_t>& flops, size_t first,
                             size_t end) {
  // Of the layers up to each one: the fewest operations, and where the last
  // part begins.
  std::vector<double> least(end - first + 1, 0);
  std::vector<size_t> begin(end - first + 1, first);
  for (size_t to = first + 1; to <= end; ++to) {
    least[to - first] = std::numeric_limits<double>::infinity();
    // The shortest part first: layers are not folded where it gains nothing.
    for (size_t from = to; from-- > first;) {
      const bool alone = from + 1 == to;
      const double matrix = MatrixFlops(shapes[from], shapes[to]);
      if (!alone && matrix / 2 >= 0x1p31) continue;  // too many weights
      const double all = least[from - first] +
                         (alone ? static_cast<double>(flops[from]) : matrix);
      if (all >= least[to - first]) continue;
      least[to - first] = all;
      begin[to - first] = from;
    }
  }
  std::vector<size_t> cuts;
  for (size_t to = end; to > first; to = begin[to - first]) cuts.push_back(to);
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

// Lets the stage take the activation and the pooling that follow it, at most
// one of each; a matrix takes no pooling.
void TakeEpilogue(const Network& network, Stage& stage) {
  bool activated = false;
  for (; stage.end < network.layers.size(); ++stage.end) {
    const Layer& layer = network.layers[stage.end];
    if (const auto* activation = std::get_if<Activation>(&layer);
        activation != nullptr && !activated) {
      stage.activation = *activation;
      activated = true;
    } else if (const auto* pool = std::get_if<MaxPool>(&layer);
               pool != nullptr && stage.pool.size == 0 &&
               stage.kind != StageKind::kConnect) {
      stage.pool = *pool;
    } else {
      return;
    }
  }
}

bool HasBias(const Layer& layer) {
  if (const auto* convolution = std::get_if<ConvolutionLayer>(&layer)) {
    return convolution->bias;
  }
  const auto* connected = std::get_if<FullyConnectedLayer>(&layer);
  return connected != nullptr && connected->bias;
}

Stage MakeStage(const Network& network, const std::vector<TensorShape>& shapes,
                size_t first, size_t linear) {
  Stage stage = {};
  stage.kind = linear == 0 ? StageKind::kPool
               : linear == 1 && Is<ConvolutionLayer>(network.layers[first])
                   ? StageKind::kConvolve
                   : StageKind::kConnect;
  stage.first = first;
  stage.end = first + linear;
  stage.linear = linear;
  stage.input = shapes[first];
  stage.bias = std::any_of(network.layers.begin() + first,
                           network.layers.begin() + first + linear, HasBias);
  TakeEpilogue(network, stage);
  stage.output = shapes[stage.end];
  return stage;
}

}  // namespace

int64_t Plan::LayerFlops(const Stage& stage) const {
  int64_t flops = 0;
  for (size_t i = stage.first; i < stage.end; ++i) flops += layer_flops[i];
  return flops;
}

int64_t Plan::Flops(const Stage& stage) const {
  return stage.folded() ? MatrixFlops(stage.input, stage.output)
                        : LayerFlops(stage);
}

int64_t Plan::ParameterBytes(const Network& network, const Stage& stage) const {
  int64_t floats = 0;
  if (stage.kind == StageKind::kConnect) {
    floats = stage.input.values() * stage.output.values() +
             (stage.bias ? stage.output.values() : 0);
  } else if (stage.kind == StageKind::kConvolve) {
    const auto& layer = std::get<ConvolutionLayer>(network.layers[stage.first]);
    floats = layer.filters *
             (stage.input.channels * layer.kernel_size * layer.kernel_size +
              (stage.bias ? 1 : 0));
  }
  return floats * static_cast<int64_t>(sizeof(float));
}

Plan MakePlan(const Network& network) {
  const std::vector<TensorShape> shapes = network.Shapes();
  Plan plan;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    plan.layer_flops.push_back(
        FlopsOf(network.layers[i], shapes[i], shapes[i + 1]));
  }
  for (size_t i = 0; i < network.layers.size(); i = plan.stages.back().end) {
    size_t end = i;
    while (end < network.layers.size() && IsLinear(network.layers[end])) ++end;
    if (end == i) {
      plan.stages.push_back(MakeStage(network, shapes, i, 0));
      continue;
    }
    size_t first = i;
    for (const size_t cut : BestCuts(shapes, plan.layer_flops, i, end)) {
      plan.stages.push_back(MakeStage(network, shapes, first, cut - first));
      first = cut;
    }
  }
  return plan;
}

std::string LayerName(const Network& network, size_t layer) {
  const Layer& named = network.layers[layer];
  if (const auto* pool = std::get_if<MaxPool>(&named)) {
    return absl::StrCat("pool ", pool->size, "x", pool->size);
  }
  if (const auto* activation = std::get_if<Activation>(&named)) {
    return *activation == Activation::kTanh   ? "tanh"
           : *activation == Activation::kRelu ? "relu"
                                              : "identity";
  }
  const auto same = std::count_if(
      network.layers.begin(), network.layers.begin() + layer + 1,
      [&](const Layer& other) { return other.index() == named.index(); });
  return absl::StrCat(Is<ConvolutionLayer>(named) ? "conv " : "fc ", same);
}

std::string Describe(const Network& network, const Stage& stage) {
  std::vector<std::string> folded, fused;
  for (size_t i = stage.first; i < stage.end; ++i) {
    (i < stage.first + stage.linear ? folded : fused)
        .push_back(LayerName(network, i));
  }
  if (stage.bias) fused.insert(fused.begin(), "bias");
  std::vector<std::string> parts;
  if (stage.folded()) {
    parts.push_back(absl::StrCat("folded ", absl::StrJoin(folded, ", ")));
  }
  if (stage.linear > 0 && !fused.empty()) {
    parts.push_back(absl::StrCat("fused ", absl::StrJoin(fused, ", ")));
  }
  return parts.empty() ? "-" : absl::StrJoin(parts, "; ");
}

}  // namespace convlab
