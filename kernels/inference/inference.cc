#include "kernels/inference/inference.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/math/rounding.h"
#include "common/status/status.h"
#include "kernels/inference/machine.h"
#include "kernels/inference/pipeline.h"
#include "kernels/inference/steps.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

absl::Status CheckVariants(const Network& network,
                           const InferenceOptions& options) {
  const size_t convolutions = network.Convolutions().size();
  if (options.convolver != nullptr && options.variants.empty()) {
    return absl::OkStatus();
  }
  if (options.variants.size() != convolutions) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.variants.size(), " variants, expected ",
                     convolutions, " for the convolutions of ", network.name));
  }
  for (const Variant* variant : options.variants) {
    if (variant->backend != options.backend) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variant ", variant->name, " is of the ", Name(variant->backend),
          ", but the network runs on the ", Name(options.backend)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Pipeline>> CreateAndPrepare(
    const Network& network, const std::vector<PlacedLayer>& weights,
    const std::vector<Step>& steps, Machine& machine,
    const InferenceOptions& options, const Resources& resources, int64_t size,
    int64_t slice, int64_t piece) {
  const std::vector<const Variant*>& variants = options.variants;
  ASSIGN_OR_RETURN(auto pipeline,
                   Pipeline::Create(network, weights, steps, machine, slice,
                                    piece, options.convolver));
  RETURN_IF_ERROR(pipeline->Prepare(slice, variants, resources));
  // The remainder after the last whole slice.
  if (size % slice > 0) {
    RETURN_IF_ERROR(pipeline->Prepare(size % slice, variants, resources));
  }
  return pipeline;
}

struct Prepared {
  std::unique_ptr<Pipeline> pipeline;
  int64_t slice;  // images
};

// Creates the pipeline with the largest slices that fit into the machine's
// memory.
absl::StatusOr<Prepared> PrepareForMemory(
    const Network& network, const std::vector<PlacedLayer>& weights,
    const std::vector<Step>& steps, Machine& machine, int64_t size,
    const InferenceOptions& options, const Resources& resources) {
  const auto [first, second] = BufferFloats(network, steps);
  const int64_t layers_bytes = sizeof(float) * (first + second);
  const int64_t image_bytes =
      machine.ImageBytes(first + second, network.Features());
  ASSIGN_OR_RETURN(const int64_t bytes, machine.ActivationBytes(options));
  int64_t slices =
      CeilDivide(size, std::clamp<int64_t>(bytes / image_bytes, 1, size));
  while (true) {
    const int64_t slice = CeilDivide(size, slices);
    auto pipeline = CreateAndPrepare(
        network, weights, steps, machine, options, resources, size, slice,
        machine.PieceOf(slice, layers_bytes, options));
    if (pipeline.ok()) return Prepared{*std::move(pipeline), slice};
    if (!absl::IsResourceExhausted(pipeline.status()) || slice == 1) {
      return pipeline.status();
    }
    // The convolutions' workspaces did not fit in addition to the activations.
    slices = std::min(size, 2 * slices);
  }
}

// Runs the network over as many images as there are labels of the last
// repetition, slice by slice. `progress` is called with the completed share.
absl::StatusOr<std::vector<OpTime>> RunSlices(
    const Network& network, Pipeline& pipeline, const ImageSet& images,
    InferenceResult& result, const std::function<void(double)>& progress) {
  std::vector<uint8_t>& labels = result.labels.back();
  const int64_t size = static_cast<int64_t>(labels.size());
  const int64_t pixels = int64_t{images.height} * images.width;
  std::vector<OpTime> times(network.layers.size());
  for (int64_t begin = 0; begin < size; begin += result.slice) {
    const int64_t batch = std::min(result.slice, size - begin);
    RETURN_IF_ERROR(
        pipeline.Run(images.pixels.data() + begin * pixels, images.height,
                     batch, labels.data() + begin,
                     result.logits.empty()
                         ? nullptr
                         : result.logits.data() + begin * network.Classes(),
                     times));
    progress(static_cast<double>(begin + batch) / size);
  }
  return times;
}

}  // namespace

absl::Status CheckImages(const Network& network, const ImageSet& images) {
  if (network.image_channels != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the images have 1 channel, expected ",
                     network.image_channels, " for ", network.name));
  }
  if (images.height == images.width &&
      (images.height == 28 || images.height == network.image_size)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the images are ", images.height, "x", images.width, ", expected 28x28",
      network.image_size == 28
          ? ""
          : absl::StrCat(" or ", network.image_size, "x", network.image_size),
      " for ", network.name));
}

Problem ConvolutionProblem(const Network& network, size_t index,
                           int64_t batch) {
  const NetworkConvolution convolution = network.Convolutions()[index];
  return {batch,
          convolution.input.channels,
          convolution.input.size,
          convolution.input.size,
          convolution.output.channels,
          convolution.kernel_size};
}

absl::StatusOr<InferenceResult> RunInference(const Network& network,
                                             const NetworkWeights& weights,
                                             const ImageSet& images,
                                             int64_t size,
                                             const InferenceOptions& options,
                                             Workers& workers) {
  const Clock::time_point called = Clock::now();
  RETURN_IF_ERROR(CheckNetwork(network));
  RETURN_IF_ERROR(CheckWeights(network, weights));
  RETURN_IF_ERROR(CheckImages(network, images));
  RETURN_IF_ERROR(CheckVariants(network, options));
  const bool on_gpu = options.backend == Backend::kCuda;
  std::unique_ptr<Machine> machine;
  if (on_gpu) {
    ASSIGN_OR_RETURN(machine, MakeGpuMachine(options.library_layers));
  } else {
    machine = MakeCpuMachine(workers);
  }
  ASSIGN_OR_RETURN(const std::vector<PlacedLayer> placed,
                   PlaceWeights(network, weights, *machine));
  Resources resources;
  resources.workers = &workers;
  const std::vector<Step> steps =
      MakeSteps(network, placed,
                options.fuse && options.convolver == nullptr
                    ? options.variants
                    : std::vector<const Variant*>(),
                resources);
  ASSIGN_OR_RETURN(const Prepared prepared,
                   PrepareForMemory(network, placed, steps, *machine, size,
                                    options, resources));

  InferenceResult result;
  for (const Step& step : steps) {
    if (std::holds_alternative<ConvolutionLayer>(network.layers[step.first])) {
      result.fused.push_back(step.epilogue.empty() ? ""
                                                   : ToString(step.epilogue));
    }
  }
  if (options.logits) result.logits.resize(size * network.Classes());
  result.slice = prepared.slice;
  const int64_t slices = CeilDivide(size, result.slice);
  if (on_gpu && slices > 1) {
    result.note = absl::StrCat("memory for ", result.slice,
                               " images at a time; the batch was cut into ",
                               slices, " slices");
  }
  const std::vector<NetworkConvolution> convolutions = network.Convolutions();
  result.op_time_ns.resize(convolutions.size());
  result.kernel_time_ns.resize(convolutions.size());
  result.threads.resize(convolutions.size());
  result.prepare_ns = std::chrono::nanoseconds(Clock::now() - called).count();
  for (int repetition = 0; repetition < options.repeat; ++repetition) {
    result.labels.emplace_back(size);
    const Clock::time_point start = Clock::now();
    ASSIGN_OR_RETURN(
        const std::vector<OpTime> times,
        RunSlices(network, *prepared.pipeline, images, result,
                  [&](double share) {
                    if (!options.progress) return;
                    options.progress((repetition + share) / options.repeat);
                  }));
    // Kernels and libraries may allocate memory when they first run.
    ASSIGN_OR_RETURN(const int64_t in_use, machine->MemoryInUse());
    result.device_memory_peak_bytes =
        std::max(result.device_memory_peak_bytes, in_use);
    result.inference_ns.push_back(
        std::chrono::nanoseconds(Clock::now() - start).count());
    for (size_t i = 0; i < convolutions.size(); ++i) {
      const OpTime& time = times[convolutions[i].layer];
      result.op_time_ns[i].push_back(time.op_ns);
      if (on_gpu) result.kernel_time_ns[i].push_back(time.kernel_ns);
      result.threads[i] = std::max(result.threads[i], time.threads);
    }
  }
  return result;
}

}  // namespace convlab
