// The CPU's way through a plan. A worker takes a batch of images through the
// whole network on its own, so that no worker waits for another between two
// stages, and what it computes stays in its caches: the stages before the first
// matrix go over a few images at a time, whose values the nearest caches hold,
// and the others over the whole batch, since a matrix is read once for all of
// its images.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/math/rounding.h"
#include "common/status/status.h"
#include "kernels/compiled/compiled.h"
#include "kernels/compiled/fold.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/fastest.h"
#include "kernels/inference/inference.h"
#include "kernels/layers/layers.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

// The values of a piece, between two stages and behind them: half of the cache
// of a core, which holds the convolution's planes too.
constexpr int64_t kPieceBytes = 512 << 10;
// The inputs of the first matrix for a batch.
constexpr int64_t kBatchBytes = 6 << 20;
// A matrix is read from memory for each batch, which should have this many
// images at least for it, and needs no more than the most.
constexpr int64_t kFewestImages = 64, kMostImages = 512;
// All workers' batches together.
constexpr int64_t kAllBatchesBytes = 256 << 20;

// What a stage reads besides its input.
struct Parameters {
  const Variant* variant = nullptr;     // of a convolution
  std::vector<float> filters;           // likewise
  std::shared_ptr<const float> matrix;  // by PackWeights
  std::vector<float> bias;

  const float* bias_or_null() const {
    return bias.empty() ? nullptr : bias.data();
  }
};

Problem ProblemOf(const Stage& stage, const Network& network, int64_t batch) {
  const auto& layer = std::get<ConvolutionLayer>(network.layers[stage.first]);
  const TensorShape& in = stage.input;
  return {batch,   in.channels,   in.size,
          in.size, layer.filters, layer.kernel_size};
}

absl::StatusOr<Parameters> Prepare(const Network& network,
                                   const NetworkWeights& weights,
                                   const Stage& stage, Workers& workers) {
  Parameters parameters;
  if (stage.kind == StageKind::kPool) return parameters;
  const LayerWeights& layer = weights.layers[stage.first];
  parameters.bias = layer.bias;
  if (stage.kind == StageKind::kConvolve) {
    ASSIGN_OR_RETURN(parameters.variant,
                     FastestVariant(Backend::kCpu,
                                    ProblemOf(stage, network, kFewestImages)));
    parameters.filters = layer.weight;
    return parameters;
  }
  LayerWeights folded;
  if (stage.folded()) {
    folded = FoldLayers(network, weights, stage, workers);
    parameters.bias = folded.bias;
  }
  parameters.matrix =
      PackWeights(stage.input.values(), stage.output.values(),
                  (stage.folded() ? folded : layer).weight.data(), workers);
  return parameters;
}

// The convolution of a stage for `batch` images.
using ConvolutionKey = std::pair<size_t, int64_t>;  // stage, batch

// What one worker has for itself.
struct Worker {
  Workers alone{1};
  std::map<ConvolutionKey, std::unique_ptr<Convolution>> convolutions;
  std::vector<float> features;    // the first matrix's inputs
  std::vector<float> buffers[2];  // values between two stages
  std::vector<int64_t> ns;        // enlarging, then each stage
  absl::Status status;
};

class CpuCompiled : public CompiledNetwork {
 public:
  CpuCompiled(const Network& network, Plan plan,
              std::vector<Parameters> parameters, int image_size,
              Workers& workers)
      : network_(network),
        plan_(std::move(plan)),
        parameters_(std::move(parameters)),
        image_size_(image_size),
        workers_(workers),
        states_(workers.count()) {
    const std::vector<Stage>& stages = plan_.stages;
    while (features_end_ < stages.size() &&
           stages[features_end_].kind != StageKind::kConnect) {
      ++features_end_;
    }
    features_ = ValuesBefore(features_end_);
    int64_t widest = ValuesBefore(0);
    for (size_t i = 1; i < features_end_; ++i) {
      widest = std::max(widest, ValuesBefore(i));
    }
    piece_values_ = widest;
    constexpr int64_t kFloat = sizeof(float);
    piece_ =
        std::max<int64_t>(1, kPieceBytes / (kFloat * (2 * widest + features_)));
    const int64_t fitting = std::clamp<int64_t>(
        kBatchBytes / (kFloat * features_), kFewestImages, kMostImages);
    batch_ = std::clamp<int64_t>(
        kAllBatchesBytes / (kFloat * features_ * workers.count()), 1, fitting);
    for (size_t i = features_end_; i < stages.size(); ++i) {
      batch_values_ = std::max(batch_values_, stages[i].output.values());
    }
  }

  absl::Status Run(const uint8_t* images, int64_t count,
                   float* logits) override {
    const auto start = Clock::now();
    // All workers are to end at about the same time.
    const int64_t rounds =
        std::max<int64_t>(1, CeilDivide(count, workers_.count() * batch_));
    const int64_t batch = CeilDivide(count, rounds * workers_.count());
    workers_.For(count, batch, [&](int worker, int64_t begin, int64_t end) {
      Worker& state = states_[worker];
      if (!state.status.ok()) return;
      state.status = RunBatch(state, images + begin * image_size_ * image_size_,
                              end - begin, logits + begin * network_.Classes());
    });
    run_ns_ += Since(start);
    absl::Status status;
    for (Worker& state : states_)
      status.Update(std::exchange(state.status, {}));
    return status;
  }

  const Plan& plan() const override { return plan_; }

  // Each stage's share of the workers' time, of the time of Run.
  std::vector<int64_t> StageNs() const override {
    std::vector<double> shares(plan_.stages.size() + 1, 0);
    double all = 0;
    for (const Worker& state : states_) {
      for (size_t i = 0; i < state.ns.size(); ++i) {
        shares[i] += state.ns[i];
        all += state.ns[i];
      }
    }
    std::vector<int64_t> ns;
    ns.reserve(shares.size());
    for (const double share : shares) {
      ns.push_back(all == 0 ? 0 : std::llround(run_ns_ * share / all));
    }
    return ns;
  }

 private:
  static int64_t Since(Clock::time_point start) {
    return std::chrono::nanoseconds(Clock::now() - start).count();
  }

  // The values of one image that stage `i` reads, or that are the result.
  int64_t ValuesBefore(size_t i) const {
    return i < plan_.stages.size() ? plan_.stages[i].input.values()
                                   : network_.Classes();
  }

  // A vector of that size at least.
  static float* Room(std::vector<float>& values, int64_t count) {
    if (static_cast<int64_t>(values.size()) < count) values.resize(count);
    return values.data();
  }

  absl::Status RunBatch(Worker& state, const uint8_t* images, int64_t count,
                        float* logits) {
    state.ns.resize(plan_.stages.size() + 1);
    const bool connected = features_end_ < plan_.stages.size();
    float* const features =
        connected ? Room(state.features, count * features_) : logits;
    for (int64_t i = 0; i < count; i += piece_) {
      RETURN_IF_ERROR(Extract(state, images + i * image_size_ * image_size_,
                              std::min(piece_, count - i),
                              features + i * features_));
    }
    const float* in = features;
    for (size_t i = features_end_; i < plan_.stages.size(); ++i) {
      float* const out =
          i + 1 == plan_.stages.size()
              ? logits
              : Room(state.buffers[i % 2], count * batch_values_);
      RETURN_IF_ERROR(RunStage(state, i, count, in, out));
      in = out;
    }
    return absl::OkStatus();
  }

  // The features of a piece.
  absl::Status Extract(Worker& state, const uint8_t* images, int64_t count,
                       float* features) {
    const auto start = Clock::now();
    float* in = features_end_ == 0
                    ? features
                    : Room(state.buffers[1], count * piece_values_);
    EnlargeToFloats(images, count, image_size_, network_.image_size, in,
                    state.alone);
    state.ns[0] += Since(start);
    for (size_t i = 0; i < features_end_; ++i) {
      float* const out = i + 1 == features_end_ ? features
                                                : Room(state.buffers[i % 2],
                                                       count * piece_values_);
      RETURN_IF_ERROR(RunStage(state, i, count, in, out));
      in = out;
    }
    return absl::OkStatus();
  }

  absl::Status RunStage(Worker& state, size_t i, int64_t count, const float* in,
                        float* out) {
    const auto start = Clock::now();
    const Stage& stage = plan_.stages[i];
    const Parameters& parameters = parameters_[i];
    const int64_t outputs = stage.output.values();
    if (stage.kind == StageKind::kConvolve) {
      ASSIGN_OR_RETURN(Convolution* const convolution, Find(state, i, count));
      RETURN_IF_ERROR(convolution->Run(in, parameters.filters.data(), out,
                                       /*stream=*/nullptr));
    } else if (stage.kind == StageKind::kConnect) {
      FullyConnected(count, stage.input.values(), outputs, in,
                     parameters.matrix.get(), parameters.bias_or_null(), out,
                     state.alone);
      Activate(stage.activation, count * outputs, out, state.alone);
    } else if (stage.pool.size > 0) {
      PoolMax(stage.pool, stage.activation, count * stage.input.channels,
              stage.input.size, in, out, state.alone);
    } else {
      std::copy_n(in, count * outputs, out);
      Activate(stage.activation, count * outputs, out, state.alone);
    }
    state.ns[i + 1] += Since(start);
    return absl::OkStatus();
  }

  // The worker's convolution of stage `i` for `count` images, which it may have
  // from an earlier piece.
  absl::StatusOr<Convolution*> Find(Worker& state, size_t i, int64_t count) {
    std::unique_ptr<Convolution>& found =
        state.convolutions[ConvolutionKey(i, count)];
    if (found == nullptr) {
      const Stage& stage = plan_.stages[i];
      Resources resources;
      resources.workers = &state.alone;
      ASSIGN_OR_RETURN(found, parameters_[i].variant->Create(
                                  ProblemOf(stage, network_, count), resources,
                                  {parameters_[i].bias_or_null(),
                                   stage.activation, stage.pool}));
    }
    return found.get();
  }

  const Network network_;
  const Plan plan_;
  const std::vector<Parameters> parameters_;
  const int image_size_;
  Workers& workers_;
  std::vector<Worker> states_;
  size_t features_end_ = 0;        // the first matrix among the stages
  int64_t features_ = 0;           // its inputs for one image
  int64_t piece_ = 1, batch_ = 1;  // images
  int64_t piece_values_ = 0, batch_values_ = 0;  // of one image, at most
  int64_t run_ns_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledNetwork>> CompileForCpu(
    const Network& network, const NetworkWeights& weights, int image_size,
    Workers& workers) {
  RETURN_IF_ERROR(CheckNetwork(network));
  RETURN_IF_ERROR(CheckWeights(network, weights));
  RETURN_IF_ERROR(CheckImages(network, {1, image_size, image_size, {}}));
  Plan plan = MakePlan(network);
  std::vector<Parameters> parameters;
  for (const Stage& stage : plan.stages) {
    ASSIGN_OR_RETURN(parameters.emplace_back(),
                     Prepare(network, weights, stage, workers));
  }
  return std::make_unique<CpuCompiled>(
      network, std::move(plan), std::move(parameters), image_size, workers);
}

}  // namespace convlab
