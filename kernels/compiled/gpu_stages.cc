#include "kernels/compiled/gpu_stages.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "common/math/rounding.h"
#include "common/status/status.h"
#include "kernels/compiled/cuda/front.h"
#include "kernels/compiled/fold.h"
#include "kernels/convolution/fastest.h"
#include "kernels/cuda/error.h"
#include "kernels/layers/cuda/layers.h"

namespace convlab {
namespace {

constexpr int64_t kFloat = sizeof(float);

absl::StatusOr<cuda::DeviceBuffer> Upload(const std::vector<float>& values) {
  if (values.empty()) return cuda::DeviceBuffer();
  const int64_t bytes = static_cast<int64_t>(values.size()) * kFloat;
  ASSIGN_OR_RETURN(auto buffer, cuda::DeviceBuffer::Allocate(bytes));
  RETURN_IF_ERROR(cuda::CopyToDevice(buffer.data(), values.data(), bytes));
  return buffer;
}

// The weights and the bias of a matrix.
LayerWeights MatrixOf(const Network& network, const NetworkWeights& weights,
                      const Stage& stage, Workers& workers) {
  return stage.folded() ? FoldLayers(network, weights, stage, workers)
                        : weights.layers[stage.first];
}

// The floats that one image has between two steps, at most, and what its
// convolutions compute before they are pooled.
int64_t WidestValues(const Network& network) {
  int64_t widest = 1;
  for (const TensorShape& shape : network.Shapes()) {
    widest = std::max(widest, shape.values());
  }
  return widest;
}

Resources Recorded() {
  Resources resources;
  resources.recorded = true;
  return resources;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuStages>> GpuStages::Create(
    const Network& network, const Plan& plan, const NetworkWeights& weights,
    int image_size, Workers& workers, Pixels pixels) {
  ASSIGN_OR_RETURN(const cuda::DeviceFacts facts, cuda::FindDevice());
  std::unique_ptr<GpuStages> stages(new GpuStages(network, plan, image_size));
  stages->multiprocessors_ = facts.multiprocessors;
  std::vector<Step>& steps = stages->steps_;
  if (pixels == Pixels::kFloats) {
    steps.push_back({Kind::kFloats, 0, 0});
  } else {
    ASSIGN_OR_RETURN(steps.emplace_back(), stages->MakeFront(weights));
  }
  while (steps.back().end < plan.stages.size()) {
    const size_t next = steps.back().end;
    switch (plan.stages[next].kind) {
      case StageKind::kConvolve: {
        ASSIGN_OR_RETURN(steps.emplace_back(),
                         stages->MakeConvolve(next, weights));
        break;
      }
      case StageKind::kConnect: {
        ASSIGN_OR_RETURN(steps.emplace_back(),
                         stages->MakeConnect(next, weights, workers));
        break;
      }
      case StageKind::kPool:
        steps.push_back({Kind::kPool, next, next + 1});
    }
  }
  return stages;
}

absl::StatusOr<GpuStages::Step> GpuStages::MakeFront(
    const NetworkWeights& weights) {
  const Stage& stage = plan_.stages[0];
  Step step = {Kind::kEnlarge, 0, 0};
  if (stage.kind != StageKind::kConvolve || stage.input.channels != 1 ||
      !cuda::RunsFront()) {
    return step;
  }
  const auto& layer = std::get<ConvolutionLayer>(network_.layers[stage.first]);
  if (!cuda::MakeFrontShape({image_size_, network_.image_size, layer.filters,
                             layer.kernel_size, stage.pool, stage.activation},
                            &step.front)) {
    return step;
  }
  step.kind = Kind::kFront;
  step.end = 1;
  const LayerWeights& own = weights.layers[stage.first];
  ASSIGN_OR_RETURN(const cuda::DeviceBuffer filters, Upload(own.weight));
  ASSIGN_OR_RETURN(const cuda::DeviceBuffer bias, Upload(own.bias));
  ASSIGN_OR_RETURN(step.weight, cuda::DeviceBuffer::Allocate(
                                    cuda::PackedFrontBytes(step.front)));
  RETURN_IF_ERROR(cuda::ToStatus(cuda::LaunchPackFront(
      step.front, filters.floats(), bias.floats(), step.weight.data())));
  // Before the unpacked ones are freed.
  RETURN_IF_ERROR(cuda::Synchronize());
  return step;
}

absl::StatusOr<GpuStages::Step> GpuStages::MakeConvolve(
    size_t stage, const NetworkWeights& weights) {
  Step step = {Kind::kConvolve, stage, stage + 1};
  const LayerWeights& own = weights.layers[plan_.stages[stage].first];
  ASSIGN_OR_RETURN(step.weight, Upload(own.weight));
  ASSIGN_OR_RETURN(step.bias, Upload(own.bias));
  return step;
}

absl::StatusOr<GpuStages::Step> GpuStages::MakeConnect(
    size_t stage, const NetworkWeights& weights, Workers& workers) {
  Step step = {Kind::kConnect, stage, stage + 1};
  const Stage& own = plan_.stages[stage];
  const int64_t inputs = own.input.values(), outputs = own.output.values();
  const LayerWeights matrix = MatrixOf(network_, weights, own, workers);
  ASSIGN_OR_RETURN(const cuda::DeviceBuffer weight, Upload(matrix.weight));
  ASSIGN_OR_RETURN(step.bias, Upload(matrix.bias));
  ASSIGN_OR_RETURN(step.weight,
                   cuda::DeviceBuffer::Allocate(
                       cuda::PackedFloats(inputs, outputs) * kFloat));
  RETURN_IF_ERROR(cuda::PackWeights(inputs, outputs, weight.floats(),
                                    step.weight.floats()));
  step.layers.bias = step.bias.floats();
  step.layers.activation = own.activation;
  RETURN_IF_ERROR(AddFollowing(weights, workers, step));
  return step;
}

// As many of the matrices behind it as its kernels take.
absl::Status GpuStages::AddFollowing(const NetworkWeights& weights,
                                     Workers& workers, Step& step) {
  const Stage& first = plan_.stages[step.first];
  cuda::ConnectedLayers& layers = step.layers;
  for (; step.end < plan_.stages.size() &&
         layers.count < cuda::ConnectedLayers::kMost;
       ++step.end) {
    const Stage& next = plan_.stages[step.end];
    if (next.kind != StageKind::kConnect) break;
    cuda::ConnectedLayers more = layers;
    cuda::ConnectedLayer& layer = more.layers[more.count++];
    layer.outputs = static_cast<int>(next.output.values());
    layer.activation = next.activation;
    if (!cuda::TakesLayers(first.input.values(), first.output.values(), more)) {
      break;
    }
    const LayerWeights own = MatrixOf(network_, weights, next, workers);
    ASSIGN_OR_RETURN(cuda::DeviceBuffer weight, Upload(own.weight));
    ASSIGN_OR_RETURN(cuda::DeviceBuffer bias, Upload(own.bias));
    layer.weight = weight.floats();
    layer.bias = bias.floats();
    step.small.push_back(std::move(weight));
    step.small.push_back(std::move(bias));
    layers = more;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> GpuStages::PieceImages(const Network& network) {
  // Enough to fill the GPU, and few enough that a call with 10,000 images has
  // several.
  constexpr int64_t kMostImages = 2560;
  ASSIGN_OR_RETURN(const int64_t free, cuda::FreeMemory());
  // Half of it for all pieces.
  return std::clamp<int64_t>(
      free / (int64_t{2} * kPieces) / ImageBytes(network), 1, kMostImages);
}

int64_t GpuStages::EvenPiece(int64_t count, int64_t most) {
  return CeilDivide(count, CeilDivide(count, most));
}

bool GpuStages::convolves() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
    return step.kind == Kind::kConvolve;
  });
}

int64_t GpuStages::ImageBytes(const Network& network) {
  return std::tuple_size_v<decltype(Memory::values)> * WidestValues(network) *
         kFloat;
}

absl::StatusOr<GpuStages::Memory> GpuStages::Allocate(int64_t images) const {
  const std::vector<TensorShape> shapes = network_.Shapes();
  std::array<int64_t, 3> floats = {};  // of an image
  int64_t scratch = 0;
  size_t out = 0;
  for (const Step& step : steps_) {
    const TensorShape& shape =
        step.end == 0 ? shapes.front() : plan_.stages[step.end - 1].output;
    if (step.kind != Kind::kFloats) {
      floats[out] = std::max(floats[out], shape.values());
    }
    out = 1 - out;
    const Stage& stage = plan_.stages[step.first];
    // Not every number of images has a variant that pools.
    if (step.kind == Kind::kConvolve && stage.pool.size > 0) {
      floats[2] = std::max(floats[2], shapes[stage.first + 1].values());
    }
    if (step.kind != Kind::kConnect) continue;
    // Fewer images may have more sums.
    constexpr int64_t kEvery = 128;
    for (int64_t count = images; count > 0; count -= kEvery) {
      ASSIGN_OR_RETURN(const int64_t sums,
                       cuda::FullyConnectedScratch(count, stage.input.values(),
                                                   stage.output.values()));
      scratch = std::max(scratch, sums);
    }
  }
  Memory memory;
  for (size_t i = 0; i < floats.size(); ++i) {
    if (floats[i] == 0) continue;
    ASSIGN_OR_RETURN(memory.values[i],
                     cuda::DeviceBuffer::Allocate(images * floats[i] * kFloat));
  }
  if (scratch > 0) {
    ASSIGN_OR_RETURN(memory.scratch,
                     cuda::DeviceBuffer::Allocate(scratch * kFloat));
  }
  return memory;
}

absl::StatusOr<GpuStages::Convolutions> GpuStages::MakeConvolutions(
    int64_t images) const {
  Convolutions convolutions(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.kind != Kind::kConvolve) continue;
    const Problem problem = ProblemOf(plan_.stages[step.first], images);
    ASSIGN_OR_RETURN(const Variant* const variant,
                     FastestVariant(Backend::kCuda, problem, Recorded()));
    const Epilogue epilogue = EpilogueOf(step);
    const bool fused = epilogue.empty() ||
                       (variant->fuses != nullptr &&
                        variant->fuses(problem, epilogue, Recorded()).ok());
    ASSIGN_OR_RETURN(
        convolutions[i].convolution,
        variant->Create(problem, Recorded(), fused ? epilogue : Epilogue()));
    convolutions[i].fused = fused;
  }
  return convolutions;
}

absl::Status GpuStages::Queue(
    int64_t count, const void* images, float* logits, const Memory& memory,
    const Convolutions& convolutions, Stream stream,
    const std::function<absl::Status(size_t stage)>& passed) const {
  const auto* const bytes = static_cast<const uint8_t*>(images);
  const auto* in = static_cast<const float*>(images);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    float* const out =
        i + 1 == steps_.size() ? logits : memory.values[i % 2].floats();
    absl::Status queued;
    switch (step.kind) {
      case Kind::kFront:
        queued = QueueFront(step, count, bytes, out, stream);
        break;
      case Kind::kEnlarge:
        queued = cuda::EnlargeToFloats(bytes, count, image_size_,
                                       network_.image_size, out, stream);
        break;
      case Kind::kFloats:
        if (i + 1 == steps_.size()) {
          queued = cuda::QueueCopy(
              out, in, count * network_.Shapes()[0].values() * kFloat, stream);
        }
        break;
      case Kind::kConvolve:
        queued = QueueConvolve(step, count, convolutions[i], in,
                               memory.values[2].floats(), out, stream);
        break;
      case Kind::kPool:
        queued = QueuePool(step, count, in, out, stream);
        break;
      case Kind::kConnect:
        queued = QueueConnect(step, count, in, out, memory, stream);
        break;
    }
    RETURN_IF_ERROR(queued);
    if (passed) {
      RETURN_IF_ERROR(passed(step.end == 0 ? 0 : step.first + 1));
    }
    if (step.kind != Kind::kFloats) in = out;
  }
  return absl::OkStatus();
}

Problem GpuStages::ProblemOf(const Stage& stage, int64_t images) const {
  const auto& layer = std::get<ConvolutionLayer>(network_.layers[stage.first]);
  const TensorShape& in = stage.input;
  return {images,  in.channels,   in.size,
          in.size, layer.filters, layer.kernel_size};
}

Epilogue GpuStages::EpilogueOf(const Step& step) const {
  const Stage& stage = plan_.stages[step.first];
  return {step.bias.floats(), stage.activation, stage.pool};
}

absl::Status GpuStages::QueueFront(const Step& step, int64_t count,
                                   const uint8_t* images, float* out,
                                   Stream stream) const {
  return cuda::ToStatus(cuda::LaunchFront(
      cuda::MakeFrontLaunch(step.front, count, multiprocessors_), images,
      step.weight.data(), out, stream));
}

absl::Status GpuStages::QueueConvolve(const Step& step, int64_t count,
                                      const Chosen& chosen, const float* in,
                                      float* raw, float* out,
                                      Stream stream) const {
  const Stage& stage = plan_.stages[step.first];
  const float* const filters = step.weight.floats();
  Convolution& convolution = *chosen.convolution;
  if (chosen.fused) return convolution.Run(in, filters, out, stream);
  const bool pools = stage.pool.size > 0;
  float* const values = pools ? raw : out;
  const TensorShape shape = network_.Shapes()[stage.first + 1];
  RETURN_IF_ERROR(convolution.Run(in, filters, values, stream));
  if (pools) {
    const cuda::PlaneBias bias = {step.bias.floats(),
                                  static_cast<int>(shape.channels)};
    return cuda::PoolMax(stage.pool, stage.activation, count * shape.channels,
                         shape.size, values, out, stream, bias);
  }
  if (stage.bias) {
    RETURN_IF_ERROR(cuda::AddBias(count, shape.channels,
                                  shape.size * shape.size, step.bias.floats(),
                                  values, stream));
  }
  return cuda::Activate(stage.activation, count * shape.values(), values,
                        stream);
}

absl::Status GpuStages::QueuePool(const Step& step, int64_t count,
                                  const float* in, float* out,
                                  Stream stream) const {
  const Stage& stage = plan_.stages[step.first];
  if (stage.pool.size > 0) {
    return cuda::PoolMax(stage.pool, stage.activation,
                         count * stage.input.channels, stage.input.size, in,
                         out, stream);
  }
  const int64_t values = count * stage.output.values();
  RETURN_IF_ERROR(cuda::QueueCopy(out, in, values * kFloat, stream));
  return cuda::Activate(stage.activation, values, out, stream);
}

absl::Status GpuStages::QueueConnect(const Step& step, int64_t count,
                                     const float* in, float* out,
                                     const Memory& memory,
                                     Stream stream) const {
  const Stage& stage = plan_.stages[step.first];
  return cuda::FullyConnected(count, stage.input.values(),
                              stage.output.values(), in, step.weight.floats(),
                              step.layers, out, memory.scratch.floats(),
                              memory.scratch.bytes() / kFloat, stream);
}

}  // namespace convlab
