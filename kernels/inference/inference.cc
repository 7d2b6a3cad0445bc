#include "kernels/inference/inference.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/dataset/resize.h"
#include "common/status/status.h"
#include "kernels/layers/layers.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

int64_t NanosecondsSince(Clock::time_point start) {
  return std::chrono::nanoseconds(Clock::now() - start).count();
}

// The network made ready for slices of one number of images. Activations
// alternate between two buffers: a layer reads the one and writes the other.
class Pipeline {
 public:
  static absl::StatusOr<Pipeline> Create(const Network& network,
                                         const NetworkWeights& weights,
                                         const InferenceOptions& options,
                                         int64_t batch, Workers& workers) {
    Pipeline pipeline(network, weights, batch, workers);
    Resources resources;
    resources.workers = &workers;
    for (size_t i = 0; i < network.stages.size(); ++i) {
      auto convolution = options.variants[i]->Create(
          ConvolutionProblem(network, i, batch), resources);
      if (!convolution.ok()) {
        return Annotate(convolution.status(),
                        absl::StrCat("variant ", options.variants[i]->name,
                                     " on convolution ", i + 1));
      }
      pipeline.convolutions_.push_back(*std::move(convolution));
    }
    return pipeline;
  }

  // Floats that the two buffers hold for one image.
  static std::pair<int64_t, int64_t> BufferFloats(const Network& network) {
    const std::vector<StageShape> shapes = network.StageShapes();
    int64_t even = 0;  // inputs of convolutions, and what leaves the last stage
    int64_t odd = 0;   // outputs of convolutions
    for (size_t i = 0; i < shapes.size(); ++i) {
      const ConvolutionStage& stage = network.stages[i];
      const auto floats = [](int64_t channels, int64_t size) {
        return channels * size * size;
      };
      even = std::max({even, floats(stage.input_channels, shapes[i].input_size),
                       floats(stage.output_channels, shapes[i].pooled_size)});
      odd = std::max(odd, floats(stage.output_channels, shapes[i].output_size));
    }
    return {even, std::max<int64_t>(odd, network.hidden)};
  }

  // Classifies `batch` images of `size` x `size` bytes and adds the
  // convolutions' times to op_time_ns.
  absl::Status Run(const uint8_t* images, int size, uint8_t* labels,
                   std::vector<int64_t>& op_time_ns) {
    Load(images, size);
    const std::vector<StageShape> shapes = network_.StageShapes();
    for (size_t i = 0; i < shapes.size(); ++i) {
      const ConvolutionStage& stage = network_.stages[i];
      const Clock::time_point start = Clock::now();
      RETURN_IF_ERROR(convolutions_[i]->Run(
          even_.data(), weights_.convolutions[i].data(), odd_.data()));
      op_time_ns[i] += NanosecondsSince(start);
      const int64_t planes = batch_ * stage.output_channels;
      Activate(stage.activation,
               planes * shapes[i].output_size * shapes[i].output_size,
               odd_.data(), workers_);
      if (stage.pool.size > 0) {
        PoolMax(stage.pool, planes, shapes[i].output_size, odd_.data(),
                even_.data(), workers_);
      } else {
        std::swap(even_, odd_);
      }
    }
    Classify(labels);
    return absl::OkStatus();
  }

 private:
  Pipeline(const Network& network, const NetworkWeights& weights, int64_t batch,
           Workers& workers)
      : network_(network), weights_(weights), batch_(batch), workers_(workers) {
    const auto [even, odd] = BufferFloats(network);
    // Either may come to play the other's part when a stage has no pooling.
    even_.resize(batch * std::max(even, odd));
    odd_.resize(batch * std::max(even, odd));
  }

  // Enlarges the images to the network's size and makes floats of them.
  void Load(const uint8_t* images, int size) {
    const int64_t in = int64_t{size} * size;
    const int64_t out = int64_t{network_.image_size} * network_.image_size;
    workers_.For(batch_, 16, [&](int, int64_t begin, int64_t end) {
      std::vector<uint8_t> enlarged((end - begin) * out);
      EnlargeImages(images + begin * in, end - begin, size, network_.image_size,
                    enlarged.data());
      std::copy(enlarged.begin(), enlarged.end(), even_.data() + begin * out);
    });
  }

  // From the flattened activations in even_ to the most probable class.
  void Classify(uint8_t* labels) {
    const FullyConnectedWeights& hidden = weights_.hidden;
    FullyConnected(batch_, hidden.inputs, hidden.outputs, even_.data(),
                   hidden.weight.data(), hidden.bias.data(), odd_.data(),
                   workers_);
    Activate(network_.hidden_activation, batch_ * hidden.outputs, odd_.data(),
             workers_);
    const FullyConnectedWeights& output = weights_.output;
    FullyConnected(batch_, output.inputs, output.outputs, odd_.data(),
                   output.weight.data(), output.bias.data(), even_.data(),
                   workers_);
    Softmax(batch_, output.outputs, even_.data());
    for (int64_t b = 0; b < batch_; ++b) {
      const float* row = even_.data() + b * output.outputs;
      labels[b] = std::max_element(row, row + output.outputs) - row;
    }
  }

  const Network& network_;
  const NetworkWeights& weights_;
  const int64_t batch_;
  Workers& workers_;
  std::vector<std::unique_ptr<Convolution>> convolutions_;
  std::vector<float> even_;
  std::vector<float> odd_;
};

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
  RETURN_IF_ERROR(CheckImages(network, images));
  const auto [even, odd] = Pipeline::BufferFloats(network);
  const int64_t image_bytes = 2 * sizeof(float) * std::max(even, odd);
  InferenceResult result;
  result.slice =
      std::clamp<int64_t>(options.activation_bytes / image_bytes, 1, size);
  ASSIGN_OR_RETURN(Pipeline slices, Pipeline::Create(network, weights, options,
                                                     result.slice, workers));
  // What is left after the last whole slice.
  const int64_t rest = size % result.slice;
  ASSIGN_OR_RETURN(Pipeline remainder,
                   Pipeline::Create(network, weights, options,
                                    std::max<int64_t>(rest, 1), workers));
  result.labels.resize(size);
  result.op_time_ns.resize(network.stages.size());
  const int64_t pixels = int64_t{images.height} * images.width;
  for (int repetition = 0; repetition < options.repeat; ++repetition) {
    std::vector<int64_t> op_time_ns(network.stages.size());
    const Clock::time_point start = Clock::now();
    for (int64_t first = 0; first < size; first += result.slice) {
      Pipeline& pipeline = size - first >= result.slice ? slices : remainder;
      RETURN_IF_ERROR(pipeline.Run(images.pixels.data() + first * pixels,
                                   images.height, result.labels.data() + first,
                                   op_time_ns));
      if (options.progress) {
        const int64_t done = std::min(size, first + result.slice);
        options.progress((repetition + static_cast<double>(done) / size) /
                         options.repeat);
      }
    }
    result.inference_ns.push_back(NanosecondsSince(start));
    for (size_t i = 0; i < op_time_ns.size(); ++i) {
      result.op_time_ns[i].push_back(op_time_ns[i]);
    }
  }
  return result;
}

}  // namespace convlab
