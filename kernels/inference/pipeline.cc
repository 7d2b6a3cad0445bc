#include "kernels/inference/pipeline.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/math/rounding.h"
#include "common/status/status.h"
#include "kernels/inference/inference.h"

namespace convlab {
namespace {

// The largest number of values per image in the layers after the features.
int64_t WidestVector(const Network& network) {
  int64_t widest = 1;
  for (const Layer& layer : network.layers) {
    if (const auto* connected = std::get_if<FullyConnectedLayer>(&layer)) {
      widest = std::max<int64_t>(widest, connected->outputs);
    }
  }
  return widest;
}

}  // namespace

absl::StatusOr<std::vector<PlacedLayer>> PlaceWeights(
    const Network& network, const NetworkWeights& weights, Machine& machine) {
  const std::vector<TensorShape> shapes = network.Shapes();
  std::vector<PlacedLayer> placed(network.layers.size());
  for (size_t i = 0; i < placed.size(); ++i) {
    const LayerWeights& layer = weights.layers[i];
    if (layer.weight.empty()) continue;
    if (std::holds_alternative<FullyConnectedLayer>(network.layers[i])) {
      ASSIGN_OR_RETURN(
          placed[i].weight,
          machine.PlaceMatrix(shapes[i].values(), shapes[i + 1].values(),
                              layer.weight));
    } else {
      ASSIGN_OR_RETURN(placed[i].weight, machine.Place(layer.weight));
    }
    if (layer.bias.empty()) continue;
    ASSIGN_OR_RETURN(placed[i].bias, machine.Place(layer.bias));
  }
  return placed;
}

std::array<int64_t, 2> BufferFloats(const Network& network,
                                    const std::vector<Step>& steps) {
  const std::vector<TensorShape> shapes = network.Shapes();
  const int64_t pixels = shapes.front().values();
  // The second buffer first holds the images' bytes, before they are enlarged.
  constexpr int64_t kBytes = sizeof(float);
  std::array<int64_t, 2> floats = {pixels, CeilDivide(pixels, kBytes)};
  int in = 0;
  for (const Step& step : steps) {
    if (step.in_place(network)) continue;
    in = 1 - in;
    floats[in] = std::max(floats[in], shapes[step.end].values());
  }
  return floats;
}

Pipeline::Pipeline(const Network& network,
                   const std::vector<PlacedLayer>& weights,
                   const std::vector<Step>& steps, Machine& machine,
                   int64_t piece, Convolver* convolver)
    : network_(network),
      weights_(weights),
      steps_(steps),
      machine_(machine),
      convolver_(convolver),
      piece_(piece),
      shapes_(network.Shapes()),
      feature_layers_(network.FeatureLayers()) {
  while (feature_steps_ < steps.size() &&
         steps[feature_steps_].end <= feature_layers_) {
    const Step& step = steps[feature_steps_++];
    if (!step.in_place(network)) steps_before_features_ = feature_steps_;
  }
}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Create(
    const Network& network, const std::vector<PlacedLayer>& weights,
    const std::vector<Step>& steps, Machine& machine, int64_t slice,
    int64_t piece, Convolver* convolver) {
  auto pipeline = std::unique_ptr<Pipeline>(
      new Pipeline(network, weights, steps, machine, piece, convolver));
  const std::array<int64_t, 2> floats = BufferFloats(network, steps);
  for (int i = 0; i < 2; ++i) {
    pipeline->floats_[i] =
        std::max(piece * floats[i], slice * WidestVector(network));
    ASSIGN_OR_RETURN(pipeline->buffers_[i],
                     machine.Allocate(pipeline->floats_[i]));
  }
  if (piece < slice) {
    ASSIGN_OR_RETURN(pipeline->features_,
                     machine.Allocate(slice * network.Features()));
  }
  return pipeline;
}

absl::Status Pipeline::Prepare(int64_t batch,
                               const std::vector<const Variant*>& variants,
                               const Resources& resources) {
  if (batch >= piece_) {
    RETURN_IF_ERROR(PreparePiece(piece_, variants, resources));
  }
  if (batch % piece_ == 0) return absl::OkStatus();
  return PreparePiece(batch % piece_, variants, resources);
}

absl::Status Pipeline::PreparePiece(int64_t batch,
                                    const std::vector<const Variant*>& variants,
                                    const Resources& resources) {
  if (convolver_ != nullptr || Find(batch) != convolutions_.end()) {
    return absl::OkStatus();
  }
  Convolutions& ready = convolutions_.emplace_back();
  ready.batch = batch;
  ready.layers.resize(network_.layers.size());
  size_t i = 0;  // of the convolutions
  for (const Step& step : steps_) {
    if (!std::holds_alternative<ConvolutionLayer>(
            network_.layers[step.first])) {
      continue;
    }
    auto convolution = variants[i]->Create(
        ConvolutionProblem(network_, i, batch), resources, step.epilogue);
    if (!convolution.ok()) {
      return Annotate(convolution.status(),
                      absl::StrCat("variant ", variants[i]->name,
                                   " on convolution ", i + 1));
    }
    ready.layers[step.first] = *std::move(convolution);
    ++i;
  }
  return absl::OkStatus();
}

std::vector<Pipeline::Convolutions>::const_iterator Pipeline::Find(
    int64_t batch) const {
  return std::find_if(
      convolutions_.begin(), convolutions_.end(),
      [&](const Convolutions& ready) { return ready.batch == batch; });
}

absl::Status Pipeline::Run(const uint8_t* images, int size, int64_t batch,
                           uint8_t* labels, float* logits,
                           std::vector<OpTime>& times) {
  Reached reached = {};
  for (int64_t first = 0; first < batch; first += piece_) {
    ASSIGN_OR_RETURN(reached,
                     Extract(images + first * size * size, size,
                             std::min(piece_, batch - first), first, times));
  }
  if (features_ != nullptr) reached.values = features_.get();
  for (size_t i = feature_steps_; i < steps_.size(); ++i) {
    RETURN_IF_ERROR(RunStep(steps_[i], batch, nullptr, reached, times));
  }
  const int64_t classes = shapes_.back().values();
  if (logits != nullptr) {
    RETURN_IF_ERROR(machine_.Download(reached.values, batch * classes, logits));
  }
  return machine_.Classify(batch, static_cast<int>(classes), reached.values,
                           buffers_[1 - reached.buffer].get(), labels);
}

absl::StatusOr<Pipeline::Reached> Pipeline::Extract(
    const uint8_t* images, int size, int64_t batch, int64_t first,
    std::vector<OpTime>& times) {
  float* const features =
      features_ == nullptr
          ? nullptr
          : features_.get() + first * shapes_[feature_layers_].values();
  Reached reached = {buffers_[0].get(), 0};
  if (steps_before_features_ == 0 && features != nullptr) {
    reached.values = features;
  }
  RETURN_IF_ERROR(machine_.Load(images, batch, size, network_.image_size,
                                buffers_[1].get(), reached.values));
  for (size_t i = 0; i < feature_steps_; ++i) {
    float* const out = i + 1 == steps_before_features_ ? features : nullptr;
    RETURN_IF_ERROR(RunStep(steps_[i], batch, out, reached, times));
  }
  return reached;
}

absl::Status Pipeline::RunStep(const Step& step, int64_t batch, float* out,
                               Reached& reached, std::vector<OpTime>& times) {
  const size_t i = step.first;
  const Layer& layer = network_.layers[i];
  float* const in = reached.values;
  if (step.in_place(network_)) {
    return machine_.Activate(std::get<Activation>(layer),
                             batch * shapes_[i].values(), in);
  }
  reached.buffer = 1 - reached.buffer;
  reached.values = out != nullptr ? out : buffers_[reached.buffer].get();
  if (std::holds_alternative<FullyConnectedLayer>(layer)) {
    return Connect(i, batch, in, reached.buffer);
  }
  if (!std::holds_alternative<ConvolutionLayer>(layer)) {
    return Pool(step, batch, in, reached.values);
  }
  RETURN_IF_ERROR(Convolve(i, batch, in, reached.values, times[i]));
  const float* const bias = weights_[i].bias.get();
  if (bias == nullptr || !step.epilogue.empty()) return absl::OkStatus();
  const TensorShape& to = shapes_[step.end];
  return machine_.AddBias(batch, to.channels, to.size * to.size, bias,
                          reached.values);
}

absl::Status Pipeline::Pool(const Step& step, int64_t batch, float* in,
                            float* out) {
  const auto* activation =
      std::get_if<Activation>(&network_.layers[step.first]);
  const TensorShape& from = shapes_[step.first];
  return machine_.ActivateAndPool(
      activation == nullptr ? Activation::kNone : *activation,
      std::get<MaxPool>(network_.layers[step.end - 1]), batch * from.channels,
      from.size, in, out);
}

absl::Status Pipeline::Convolve(size_t i, int64_t batch, const float* x,
                                float* y, OpTime& time) {
  const float* const k = weights_[i].weight.get();
  if (convolver_ == nullptr) {
    return machine_.Convolve(*Find(batch)->layers[i], x, k, y, time);
  }
  const std::vector<NetworkConvolution> convolutions = network_.Convolutions();
  size_t index = 0;
  while (convolutions[index].layer != i) ++index;
  return convolver_->Convolve(index, ConvolutionProblem(network_, index, batch),
                              x, k, y, time);
}

absl::Status Pipeline::Connect(size_t i, int64_t batch, const float* in,
                               int buffer) {
  float* const out = buffers_[buffer].get();
  const int64_t outputs = shapes_[i + 1].values();
  const int64_t used = batch * outputs;
  return machine_.FullyConnected(
      batch, shapes_[i].values(), outputs, in, weights_[i].weight.get(),
      weights_[i].bias.get(), out, out + used, floats_[buffer] - used);
}

}  // namespace convlab
