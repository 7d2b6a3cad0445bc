#include "kernels/inference/inference.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/inference/machine.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Activations alternate between two buffers: a layer reads the one and writes
// the other, and the images come into the first. Floats that each holds for one
// image.
std::array<int64_t, 2> BufferFloats(const Network& network) {
  std::array<int64_t, 2> floats = {};
  int in = 0;
  const auto grow = [&](int buffer, int64_t count) {
    floats[buffer] = std::max(floats[buffer], count);
  };
  const int64_t pixels = int64_t{network.image_size} * network.image_size;
  grow(0, pixels);
  // The images' bytes, before they are enlarged.
  grow(1, CeilDivide(pixels, sizeof(float)));
  const std::vector<StageShape> shapes = network.StageShapes();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int64_t channels = network.stages[i].output_channels;
    grow(1 - in, channels * shapes[i].output_size * shapes[i].output_size);
    if (network.stages[i].pool.size > 0) {
      grow(in, channels * shapes[i].pooled_size * shapes[i].pooled_size);
    } else {
      in = 1 - in;
    }
  }
  grow(1 - in, network.hidden);
  grow(in, kClasses);
  return floats;
}

// The weights where the machine reads them.
struct PlacedWeights {
  struct FullyConnected {
    int64_t inputs, outputs;
    std::shared_ptr<const float> weight, bias;
  };
  std::vector<std::shared_ptr<const float>> convolutions;
  FullyConnected hidden, output;
};

absl::StatusOr<PlacedWeights::FullyConnected> PlaceLayer(
    Machine& machine, const FullyConnectedWeights& layer) {
  ASSIGN_OR_RETURN(auto weight, machine.PlaceMatrix(layer.inputs, layer.outputs,
                                                    layer.weight));
  ASSIGN_OR_RETURN(auto bias, machine.Place(layer.bias));
  return PlacedWeights::FullyConnected{layer.inputs, layer.outputs, weight,
                                       bias};
}

absl::StatusOr<PlacedWeights> PlaceWeights(Machine& machine,
                                           const NetworkWeights& weights) {
  PlacedWeights placed;
  for (const std::vector<float>& kernel : weights.convolutions) {
    ASSIGN_OR_RETURN(auto values, machine.Place(kernel));
    placed.convolutions.push_back(std::move(values));
  }
  ASSIGN_OR_RETURN(placed.hidden, PlaceLayer(machine, weights.hidden));
  ASSIGN_OR_RETURN(placed.output, PlaceLayer(machine, weights.output));
  return placed;
}

// The network made ready for slices of up to `slice` images, which go through
// the convolutions `piece` at a time.
class Pipeline {
 public:
  // ResourceExhausted where the slice is too large for the machine's memory.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Create(
      const Network& network, const PlacedWeights& weights, Machine& machine,
      int64_t slice, int64_t piece) {
    auto pipeline = std::unique_ptr<Pipeline>(
        new Pipeline(network, weights, machine, piece));
    const std::array<int64_t, 2> floats = BufferFloats(network);
    for (int i = 0; i < 2; ++i) {
      pipeline->floats_[i] =
          std::max(piece * floats[i], slice * network.hidden);
      ASSIGN_OR_RETURN(pipeline->buffers_[i],
                       machine.Allocate(pipeline->floats_[i]));
    }
    if (piece < slice) {
      ASSIGN_OR_RETURN(pipeline->features_,
                       machine.Allocate(slice * network.Flattened()));
    }
    return pipeline;
  }

  // Must be called before the first Run on that many images.
  absl::Status Prepare(int64_t batch,
                       const std::vector<const Variant*>& variants,
                       const Resources& resources) {
    if (batch >= piece_) {
      RETURN_IF_ERROR(PreparePiece(piece_, variants, resources));
    }
    if (batch % piece_ == 0) return absl::OkStatus();
    return PreparePiece(batch % piece_, variants, resources);
  }

  // Classifies `batch` images of `size` x `size` bytes and adds the
  // convolutions' times to `times`.
  absl::Status Run(const uint8_t* images, int size, int64_t batch,
                   uint8_t* labels, std::vector<OpTime>& times) {
    int in = 0;  // the buffer to read; the other is to be written
    for (int64_t begin = 0; begin < batch; begin += piece_) {
      ASSIGN_OR_RETURN(in,
                       Convolve(images + begin * size * size, size,
                                std::min(piece_, batch - begin), begin, times));
    }
    const float* const features =
        features_ == nullptr ? buffers_[in].get() : features_.get();
    RETURN_IF_ERROR(Connect(weights_.hidden, batch, features, 1 - in));
    float* const hidden = buffers_[1 - in].get();
    RETURN_IF_ERROR(machine_.Activate(network_.hidden_activation,
                                      batch * network_.hidden, hidden));
    RETURN_IF_ERROR(Connect(weights_.output, batch, hidden, in));
    return machine_.Classify(batch, kClasses, buffers_[in].get(), hidden,
                             labels);
  }

 private:
  struct Convolutions {
    int64_t batch;
    std::vector<std::unique_ptr<Convolution>> layers;
  };

  Pipeline(const Network& network, const PlacedWeights& weights,
           Machine& machine, int64_t piece)
      : network_(network),
        weights_(weights),
        machine_(machine),
        piece_(piece) {}

  absl::Status PreparePiece(int64_t batch,
                            const std::vector<const Variant*>& variants,
                            const Resources& resources) {
    if (Find(batch) != convolutions_.end()) return absl::OkStatus();
    Convolutions& convolutions = convolutions_.emplace_back();
    convolutions.batch = batch;
    for (size_t i = 0; i < network_.stages.size(); ++i) {
      auto convolution = variants[i]->Create(
          ConvolutionProblem(network_, i, batch), resources);
      if (!convolution.ok()) {
        return Annotate(convolution.status(),
                        absl::StrCat("variant ", variants[i]->name,
                                     " on convolution ", i + 1));
      }
      convolutions.layers.push_back(*std::move(convolution));
    }
    return absl::OkStatus();
  }

  std::vector<Convolutions>::const_iterator Find(int64_t batch) const {
    return std::find_if(
        convolutions_.begin(), convolutions_.end(),
        [&](const Convolutions& ready) { return ready.batch == batch; });
  }

  // Everything before the fully connected layers on a piece of `batch` images,
  // which begins at image `first` of its slice. What comes out stands in
  // features_ or, where there is none, in the buffer that is returned.
  absl::StatusOr<int> Convolve(const uint8_t* images, int size, int64_t batch,
                               int64_t first, std::vector<OpTime>& times) {
    const auto prepared = Find(batch);
    int in = 0;
    const auto at = [&](int buffer) { return buffers_[buffer].get(); };
    RETURN_IF_ERROR(
        machine_.Load(images, batch, size, network_.image_size, at(1), at(0)));
    const std::vector<StageShape> shapes = network_.StageShapes();
    for (size_t i = 0; i < shapes.size(); ++i) {
      const ConvolutionStage& stage = network_.stages[i];
      const bool pools = stage.pool.size > 0;
      // Where the stage's outputs go, and before they are pooled.
      float* out = at(pools ? in : 1 - in);
      if (i + 1 == shapes.size() && features_ != nullptr) {
        out = features_.get() + first * network_.Flattened();
      }
      float* const convolved = pools ? at(1 - in) : out;
      RETURN_IF_ERROR(machine_.Convolve(*prepared->layers[i], at(in),
                                        weights_.convolutions[i].get(),
                                        convolved, times[i]));
      const int64_t planes = batch * stage.output_channels;
      const int64_t size_out = shapes[i].output_size;
      if (pools) {
        RETURN_IF_ERROR(machine_.ActivateAndPool(
            stage.activation, stage.pool, planes, size_out, convolved, out));
      } else {
        RETURN_IF_ERROR(machine_.Activate(
            stage.activation, planes * size_out * size_out, convolved));
        in = 1 - in;
      }
    }
    return in;
  }

  // To buffer `to`, whose remaining room is scratch.
  absl::Status Connect(const PlacedWeights::FullyConnected& layer,
                       int64_t batch, const float* in, int to) {
    float* const out = buffers_[to].get();
    const int64_t used = batch * layer.outputs;
    return machine_.FullyConnected(batch, layer.inputs, layer.outputs, in,
                                   layer.weight.get(), layer.bias.get(), out,
                                   out + used, floats_[to] - used);
  }

  const Network& network_;
  const PlacedWeights& weights_;
  Machine& machine_;
  const int64_t piece_;  // images
  std::array<int64_t, 2> floats_ = {};
  std::array<std::shared_ptr<float>, 2> buffers_;
  // What the fully connected layers read, of a slice that comes in pieces.
  std::shared_ptr<float> features_;
  std::vector<Convolutions> convolutions_;
};

absl::StatusOr<std::unique_ptr<Pipeline>> CreateAndPrepare(
    const Network& network, const PlacedWeights& weights, Machine& machine,
    const std::vector<const Variant*>& variants, const Resources& resources,
    int64_t size, int64_t slice, int64_t piece) {
  ASSIGN_OR_RETURN(auto pipeline,
                   Pipeline::Create(network, weights, machine, slice, piece));
  RETURN_IF_ERROR(pipeline->Prepare(slice, variants, resources));
  // What is left after the last whole slice.
  if (size % slice > 0) {
    RETURN_IF_ERROR(pipeline->Prepare(size % slice, variants, resources));
  }
  return pipeline;
}

absl::StatusOr<std::unique_ptr<Machine>> MakeMachine(
    const InferenceOptions& options, Workers& workers) {
  const Backend backend = options.variants.front()->backend;
  for (const Variant* variant : options.variants) {
    if (variant->backend != backend) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variant ", variant->name, " is of the ", Name(variant->backend),
          ", but the network runs on the ", Name(backend)));
    }
  }
  if (backend == Backend::kCuda) return MakeGpuMachine(options.library_layers);
  return MakeCpuMachine(workers);
}

}  // namespace

absl::Status CheckImages(const Network& network, const ImageSet& images) {
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

Problem ConvolutionProblem(const Network& network, size_t stage,
                           int64_t batch) {
  const int64_t size = network.StageShapes()[stage].input_size;
  return {batch,
          network.stages[stage].input_channels,
          size,
          size,
          network.stages[stage].output_channels,
          network.stages[stage].kernel_size};
}

absl::StatusOr<InferenceResult> RunInference(const Network& network,
                                             const NetworkWeights& weights,
                                             const ImageSet& images,
                                             int64_t size,
                                             const InferenceOptions& options,
                                             Workers& workers) {
  const Clock::time_point called = Clock::now();
  RETURN_IF_ERROR(CheckImages(network, images));
  ASSIGN_OR_RETURN(const auto machine, MakeMachine(options, workers));
  const bool on_gpu = options.variants.front()->backend == Backend::kCuda;
  ASSIGN_OR_RETURN(const PlacedWeights placed, PlaceWeights(*machine, weights));
  Resources resources;
  resources.workers = &workers;

  InferenceResult result;
  const auto [first, second] = BufferFloats(network);
  const int64_t layers_bytes = sizeof(float) * (first + second);
  const int64_t image_bytes =
      machine->ImageBytes(first + second, network.Flattened());
  ASSIGN_OR_RETURN(const int64_t bytes, machine->ActivationBytes(options));
  int64_t slices =
      CeilDivide(size, std::clamp<int64_t>(bytes / image_bytes, 1, size));
  std::unique_ptr<Pipeline> pipeline;
  while (pipeline == nullptr) {
    result.slice = CeilDivide(size, slices);
    auto prepared = CreateAndPrepare(
        network, placed, *machine, options.variants, resources, size,
        result.slice, machine->PieceOf(result.slice, layers_bytes, options));
    if (prepared.ok()) {
      pipeline = *std::move(prepared);
    } else if (absl::IsResourceExhausted(prepared.status()) &&
               result.slice > 1) {
      // The convolutions' workspaces did not fit beside the activations.
      slices = std::min(size, 2 * slices);
    } else {
      return prepared.status();
    }
  }
  slices = CeilDivide(size, result.slice);
  if (on_gpu && slices > 1) {
    result.note = absl::StrCat("memory for ", result.slice,
                               " images at a time; the batch was cut into ",
                               slices, " slices");
  }
  result.labels.resize(size);
  const size_t convolutions = network.stages.size();
  result.op_time_ns.resize(convolutions);
  result.kernel_time_ns.resize(convolutions);
  const int64_t pixels = int64_t{images.height} * images.width;
  result.prepare_ns = std::chrono::nanoseconds(Clock::now() - called).count();
  for (int repetition = 0; repetition < options.repeat; ++repetition) {
    std::vector<OpTime> times(convolutions);
    const Clock::time_point start = Clock::now();
    for (int64_t begin = 0; begin < size; begin += result.slice) {
      const int64_t batch = std::min(result.slice, size - begin);
      RETURN_IF_ERROR(pipeline->Run(images.pixels.data() + begin * pixels,
                                    images.height, batch,
                                    result.labels.data() + begin, times));
      if (options.progress) {
        options.progress(
            (repetition + static_cast<double>(begin + batch) / size) /
            options.repeat);
      }
    }
    // Kernels and libraries may take memory when they first run.
    ASSIGN_OR_RETURN(const int64_t in_use, machine->MemoryInUse());
    result.device_memory_peak_bytes =
        std::max(result.device_memory_peak_bytes, in_use);
    result.inference_ns.push_back(
        std::chrono::nanoseconds(Clock::now() - start).count());
    for (size_t i = 0; i < convolutions; ++i) {
      result.op_time_ns[i].push_back(times[i].op_ns);
      if (on_gpu) result.kernel_time_ns[i].push_back(times[i].kernel_ns);
    }
  }
  return result;
}

}  // namespace convlab
