#include "kernels/compiled/gpu_stages.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "common/math/rounding.h"
#include "common/status/status.h"
#include "kernels/compiled/cuda/convolve_pool.h"
#include "kernels/compiled/cuda/front.h"
#include "kernels/convolution/fastest.h"
#include "kernels/cuda/error.h"
#include "kernels/layers/cuda/layers.h"

namespace convlab {
namespace {

constexpr int64_t kFloat = sizeof(float);
// For fewer images the blocks of a chain of matrices are fewer than those of
// single ones, one of which each of its layers would wait for.
constexpr int64_t kFewestChainImages = 256;

// The floats that one image has between two steps, at most, and what its
// convolutions compute before they are pooled.
int64_t WidestValues(const Network& network) {
  int64_t widest = 1;
  for (const TensorShape& shape : network.Shapes()) {
    widest = std::max(widest, shape.values());
  }
  return widest;
}

}  // namespace

absl::StatusOr<int64_t> GpuStages::PieceImages(const Network& network,
                                               int64_t most) {
  ASSIGN_OR_RETURN(const int64_t free, cuda::FreeMemory());
  // Half of it for all pieces.
  return std::clamp<int64_t>(
      free / (int64_t{2} * kPieces) / ImageBytes(network), 1, most);
}

int64_t GpuStages::EvenPiece(int64_t count, int64_t most) {
  return CeilDivide(count, CeilDivide(count, most));
}

Resources GpuStages::resources() const {
  Resources resources;
  resources.device = device_;
  resources.recorded = true;
  return resources;
}

bool GpuStages::convolves() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
    return step.kind == Kind::kConvolve;
  });
}

bool GpuStages::WritesLogitsOnce() const {
  return std::all_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    if (step.end < plan_.stages.size() || step.kind == Kind::kChain) {
      return true;
    }
    // Where there are no tensor cores for it, a bias or an activation is
    // applied in place.
    const Stage& stage = plan_.stages[step.first];
    return step.kind == Kind::kConnect &&
           cuda::TakesLayers(stage.input.values(), stage.output.values(),
                             step.layers);
  });
}

int64_t GpuStages::ImageBytes(const Network& network) {
  return std::tuple_size_v<decltype(Memory::values)> * WidestValues(network) *
         kFloat;
}

std::vector<size_t> GpuStages::StepsFor(int64_t count) const {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const bool chain = steps_[i].kind == Kind::kChain;
    if (chain && count < kFewestChainImages) continue;
    numbers.push_back(i);
    // What stands behind it does the same for few images.
    if (chain) break;
  }
  return numbers;
}

absl::StatusOr<GpuStages::Memory> GpuStages::Allocate(int64_t images) const {
  const std::vector<TensorShape> shapes = network_.Shapes();
  std::array<int64_t, 3> floats = {};  // of an image
  int64_t scratch = 0;
  for (const int64_t most : {int64_t{1}, images}) {
    size_t out = 0;
    for (const size_t number : StepsFor(most)) {
      const Step& step = steps_[number];
      const TensorShape& shape =
          step.end == 0 ? shapes.front() : plan_.stages[step.end - 1].output;
      if (step.kind != Kind::kFloats) {
        floats[out] =
            std::max({floats[out], shape.values(), step.front.shape.pitch});
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
        ASSIGN_OR_RETURN(const int64_t sums, cuda::FullyConnectedScratch(
                                                 count, stage.input.values(),
                                                 stage.output.values()));
        scratch = std::max(scratch, sums);
      }
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
    const Variant* variant = step.pooling;
    if (step.kind != Kind::kConvolve &&
        (variant == nullptr || images < variant->fewest_pooled_images)) {
      continue;
    }
    const Problem problem = ProblemOf(plan_.stages[step.first], images);
    if (step.kind == Kind::kConvolve) {
      ASSIGN_OR_RETURN(variant,
                       FastestVariant(Backend::kCuda, problem, resources()));
    }
    const Epilogue epilogue = EpilogueOf(step);
    const bool fused = epilogue.empty() ||
                       (variant->fuses != nullptr &&
                        variant->fuses(problem, epilogue, resources()).ok());
    Chosen& chosen = convolutions[i];
    ASSIGN_OR_RETURN(
        chosen.convolution,
        variant->Create(problem, resources(), fused ? epilogue : Epilogue()));
    chosen.fused = fused;
    chosen.variant = variant->name;
    const int64_t bytes = chosen.convolution->filter_bytes();
    if (bytes == 0) continue;
    ASSIGN_OR_RETURN(chosen.filters, cuda::DeviceBuffer::Allocate(bytes));
    RETURN_IF_ERROR(chosen.convolution->PrepareFilters(
        step.weight.floats(), chosen.filters.data(), /*stream=*/nullptr));
    RETURN_IF_ERROR(cuda::Synchronize());
  }
  return convolutions;
}

std::vector<std::string> GpuStages::Kernels(
    int64_t count, const Convolutions& convolutions) const {
  std::vector<std::string> kernels(plan_.stages.size() + 1);
  for (const size_t number : StepsFor(count)) {
    const std::string kernel = KernelOf(number, convolutions);
    // The first step has no stage, or enlarges for its own.
    if (number == 0) kernels[0] = kernel;
    const Step& step = steps_[number];
    for (size_t i = step.first; i < step.end; ++i) kernels[i + 1] = kernel;
  }
  return kernels;
}

std::string GpuStages::KernelOf(size_t step,
                                const Convolutions& convolutions) const {
  switch (steps_[step].kind) {
    case Kind::kFront:
      return "front";
    case Kind::kEnlarge:
      return "enlarge";
    case Kind::kFloats:
      return "";
    case Kind::kFloatFront:
      return "float_front";
    case Kind::kConvolvePool:
      return convolutions[step].convolution == nullptr
                 ? "convolve_pool"
                 : convolutions[step].variant;
    case Kind::kConvolve:
      return convolutions[step].variant;
    case Kind::kPool:
      return "pooling";
    case Kind::kChain:
      return "connected_chain";
    case Kind::kConnect:
      break;
  }
  return "matrix";
}

absl::Status GpuStages::Queue(
    int64_t count, const void* images, float* logits, const Memory& memory,
    const Convolutions& convolutions, Stream stream,
    const std::function<absl::Status(size_t stage)>& passed) const {
  const auto* const bytes = static_cast<const uint8_t*>(images);
  const auto* in = static_cast<const float*>(images);
  const std::vector<size_t> numbers = StepsFor(count);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Step& step = steps_[numbers[i]];
    float* const out =
        i + 1 == numbers.size() ? logits : memory.values[i % 2].floats();
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
        if (i + 1 == numbers.size()) {
          queued = cuda::QueueCopy(
              out, in, count * network_.Shapes()[0].values() * kFloat, stream);
        }
        break;
      case Kind::kFloatFront:
        queued = cuda::ToStatus(
            cuda::LaunchFloatFront(step.float_front, count, in, out, stream));
        break;
      case Kind::kConvolvePool:
        queued = convolutions[numbers[i]].convolution == nullptr
                     ? QueueConvolvePool(step, count, in, out, stream)
                     : QueueConvolve(step, count, convolutions[numbers[i]], in,
                                     /*raw=*/nullptr, out, stream);
        break;
      case Kind::kConvolve:
        queued = QueueConvolve(step, count, convolutions[numbers[i]], in,
                               memory.values[2].floats(), out, stream);
        break;
      case Kind::kPool:
        queued = QueuePool(step, count, in, out, stream);
        break;
      case Kind::kChain:
        queued = cuda::ToStatus(
            cuda::LaunchChain(step.chain, count, in, out, stream));
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
  // A block of warpgroups computes whole images. Fewer of them than keep the
  // GPU busy are done sooner by warps, in strips.
  const bool warpgroups = step.warpgroup_front.shape.warpgroups &&
                          count >= int64_t{2} * limits_.multiprocessors;
  const Front& front = warpgroups ? step.warpgroup_front : step.front;
  return cuda::ToStatus(cuda::LaunchFront(
      cuda::MakeFrontLaunch(front.shape, count, limits_.multiprocessors),
      images, front.filters.data(), out, stream));
}

absl::Status GpuStages::QueueConvolvePool(const Step& step, int64_t count,
                                          const float* in, float* out,
                                          Stream stream) const {
  cuda::ConvolvePoolLaunch launch;
  // It fitted when the step was made.
  cuda::MakeConvolvePoolLaunch(step.convolve_pool, count, limits_, &launch);
  return cuda::ToStatus(
      cuda::LaunchConvolvePool(launch, in, step.packed.data(), out, stream));
}

absl::Status GpuStages::QueueConvolve(const Step& step, int64_t count,
                                      const Chosen& chosen, const float* in,
                                      float* raw, float* out,
                                      Stream stream) const {
  const Stage& stage = plan_.stages[step.first];
  const auto convolve = [&](float* to) {
    return chosen.filters.bytes() > 0
               ? chosen.convolution->RunPrepared(in, chosen.filters.data(), to,
                                                 stream)
               : chosen.convolution->Run(in, step.weight.floats(), to, stream);
  };
  if (chosen.fused) return convolve(out);
  const bool pools = stage.pool.size > 0;
  float* const values = pools ? raw : out;
  const TensorShape shape = network_.Shapes()[stage.first + 1];
  RETURN_IF_ERROR(convolve(values));
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
  return cuda::FullyConnected(
      count, stage.input.values(), stage.output.values(), in,
      step.weight.floats(), step.layers, out, memory.scratch.floats(),
      memory.scratch.bytes() / kFloat, stream, step.pitch);
}

}  // namespace convlab
