// How the steps of a plan on the GPU are made: which kernels they are, and
// their parameters in device memory.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "common/math/rounding.h"
#include "common/status/status.h"
#include "kernels/compiled/cuda/connected_chain.h"
#include "kernels/compiled/cuda/convolve_pool.h"
#include "kernels/compiled/cuda/float_front.h"
#include "kernels/compiled/cuda/front.h"
#include "kernels/compiled/fold.h"
#include "kernels/compiled/gpu_stages.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/error.h"
#include "kernels/layers/cuda/launches.h"
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

// Whether one sign has most of the magnitude of some filter. Its sums may grow
// with every term, so that tensor cores cut off too much (docs/numerics.md).
bool HasOneSign(const std::vector<float>& weight, int filters) {
  const size_t terms = weight.size() / filters;
  for (int m = 0; m < filters; ++m) {
    double sum = 0, magnitude = 0;
    for (size_t i = m * terms; i < (m + 1) * terms; ++i) {
      sum += weight[i];
      magnitude += std::fabs(weight[i]);
    }
    if (!(std::fabs(sum) <= magnitude * 0.75)) return true;
  }
  return false;
}

// The high halves of packed weights if the low ones are all zero, as those of
// weights are that F16 holds; otherwise nothing.
absl::StatusOr<cuda::DeviceBuffer> HighHalves(const cuda::MatrixShape& shape,
                                              const float* packed) {
  constexpr int64_t kWord = sizeof(uint32_t);
  ASSIGN_OR_RETURN(cuda::DeviceBuffer high,
                   cuda::DeviceBuffer::Allocate(shape.words() / 2 * kWord));
  ASSIGN_OR_RETURN(const cuda::DeviceBuffer lost,
                   cuda::DeviceBuffer::Allocate(kWord));
  uint32_t bits = 0;
  RETURN_IF_ERROR(cuda::CopyToDevice(lost.data(), &bits, kWord));
  RETURN_IF_ERROR(cuda::ToStatus(cuda::LaunchKeepHighHalves(
      shape, packed, static_cast<uint32_t*>(high.data()),
      static_cast<uint32_t*>(lost.data()))));
  RETURN_IF_ERROR(cuda::CopyToHost(&bits, lost.data(), kWord));
  return bits == 0 ? std::move(high) : cuda::DeviceBuffer();
}

// The weights and the bias of a matrix.
LayerWeights MatrixOf(const Network& network, const NetworkWeights& weights,
                      const Stage& stage, Workers& workers) {
  return stage.folded() ? FoldLayers(network, weights, stage, workers)
                        : weights.layers[stage.first];
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuStages>> GpuStages::Create(
    const Network& network, const Plan& plan, const NetworkWeights& weights,
    int image_size, Workers& workers, Pixels pixels) {
  std::unique_ptr<GpuStages> stages(new GpuStages(network, plan, image_size));
  ASSIGN_OR_RETURN(stages->device_, cuda::CurrentDeviceNumber());
  RETURN_IF_ERROR(cuda::ToStatus(cuda::AskLimits(&stages->limits_)));
  std::vector<Step>& steps = stages->steps_;
  if (pixels == Pixels::kFloats) {
    steps.push_back({Kind::kFloats, 0, 0});
    ASSIGN_OR_RETURN(Step front, stages->MakeFloatFront(weights));
    if (front.end > 0) steps.push_back(std::move(front));
  } else {
    ASSIGN_OR_RETURN(steps.emplace_back(), stages->MakeFront(weights));
  }
  for (size_t next = steps.back().end; next < plan.stages.size();
       next = steps.back().end) {
    switch (plan.stages[next].kind) {
      case StageKind::kConvolve: {
        ASSIGN_OR_RETURN(steps.emplace_back(),
                         stages->MakeConvolve(next, weights));
        break;
      }
      case StageKind::kConnect: {
        ASSIGN_OR_RETURN(Step chain, stages->MakeChain(next, weights, workers));
        if (chain.end == plan.stages.size()) steps.push_back(std::move(chain));
        for (size_t i = next; i < plan.stages.size() &&
                              plan.stages[i].kind == StageKind::kConnect;
             i = steps.back().end) {
          ASSIGN_OR_RETURN(steps.emplace_back(),
                           stages->MakeConnect(i, weights, workers));
        }
        break;
      }
      case StageKind::kPool:
        steps.push_back({Kind::kPool, next, next + 1});
    }
  }
  stages->AlignImages();
  return stages;
}

void GpuStages::AlignImages() {
  constexpr int64_t kLineFloats = 32;
  if (steps_.size() < 2 || steps_[0].kind != Kind::kFront ||
      steps_[1].kind != Kind::kConnect) {
    return;
  }
  const Stage& stage = plan_.stages[steps_[1].first];
  const int64_t inputs = stage.input.values();
  if (!cuda::TakesLayers(inputs, stage.output.values(), {})) return;
  const int64_t pitch = RoundUp(inputs, kLineFloats);
  steps_[0].front.shape.pitch = pitch;
  steps_[0].warpgroup_front.shape.pitch = pitch;
  steps_[1].pitch = pitch;
}

absl::StatusOr<GpuStages::Step> GpuStages::MakeFront(
    const NetworkWeights& weights) {
  const Stage& stage = plan_.stages[0];
  Step step = {Kind::kEnlarge, 0, 0};
  if (stage.kind != StageKind::kConvolve || stage.input.channels != 1) {
    return step;
  }
  bool runs = false;
  RETURN_IF_ERROR(cuda::ToStatus(cuda::AskFront(&runs)));
  if (!runs) return step;
  const auto& layer = std::get<ConvolutionLayer>(network_.layers[stage.first]);
  const cuda::FrontProblem problem = {image_size_,   network_.image_size,
                                      layer.filters, layer.kernel_size,
                                      stage.pool,    stage.activation};
  std::vector<Front*> fronts;
  for (Front* const front : {&step.front, &step.warpgroup_front}) {
    const bool warpgroups = front == &step.warpgroup_front;
    if (warpgroups && !cuda::RunsFrontOfWarpgroups()) continue;
    if (cuda::MakeFrontShape(problem, warpgroups, &front->shape) &&
        front->shape.warpgroups == warpgroups) {
      fronts.push_back(front);
    }
  }
  if (fronts.empty()) return step;
  step.kind = Kind::kFront;
  step.end = 1;
  const LayerWeights& own = weights.layers[stage.first];
  ASSIGN_OR_RETURN(const cuda::DeviceBuffer filters, Upload(own.weight));
  ASSIGN_OR_RETURN(const cuda::DeviceBuffer bias, Upload(own.bias));
  for (Front* const front : fronts) {
    ASSIGN_OR_RETURN(front->filters, cuda::DeviceBuffer::Allocate(
                                         cuda::PackedFrontBytes(front->shape)));
    RETURN_IF_ERROR(cuda::ToStatus(cuda::LaunchPackFront(
        front->shape, filters.floats(), bias.floats(), front->filters.data())));
  }
  // Before the unpacked ones are freed.
  RETURN_IF_ERROR(cuda::Synchronize());
  return step;
}

absl::StatusOr<GpuStages::Step> GpuStages::MakeFloatFront(
    const NetworkWeights& weights) const {
  Step step = {Kind::kFloatFront, 0, 0};
  const Stage& stage = plan_.stages[0];
  // For larger images a variant is faster: sp19's 10,000 of 48 x 48 take 218 us
  // with it, and 240 with this kernel (H200).
  constexpr int64_t kMostSize = 32;
  if (stage.kind != StageKind::kConvolve || stage.input.channels != 1 ||
      stage.input.size > kMostSize) {
    return step;
  }
  const auto& layer = std::get<ConvolutionLayer>(network_.layers[stage.first]);
  cuda::FloatFront& front = step.float_front;
  if (!cuda::RunsFloatFront() ||
      !cuda::MakeFloatFront(static_cast<int>(stage.input.size), layer.filters,
                            layer.kernel_size, stage.pool, stage.activation,
                            &front)) {
    return step;
  }
  const LayerWeights& own = weights.layers[stage.first];
  std::copy(own.weight.begin(), own.weight.end(), front.weights);
  std::copy(own.bias.begin(), own.bias.end(), front.bias);
  step.end = 1;
  if (!cuda::FloatFrontKeepsFilters(front)) return step;
  ASSIGN_OR_RETURN(const cuda::DeviceBuffer filters, Upload(own.weight));
  ASSIGN_OR_RETURN(const cuda::DeviceBuffer bias, Upload(own.bias));
  ASSIGN_OR_RETURN(step.packed, cuda::DeviceBuffer::Allocate(
                                    cuda::PackedFloatFrontBytes(front)));
  front.packed = step.packed.data();
  RETURN_IF_ERROR(cuda::ToStatus(cuda::PackFloatFront(
      front, filters.floats(), bias.floats(), step.packed.data())));
  // Before the unpacked ones are freed.
  RETURN_IF_ERROR(cuda::Synchronize());
  return step;
}

absl::StatusOr<GpuStages::Step> GpuStages::MakeConvolve(
    size_t stage, const NetworkWeights& weights) {
  Step step = {Kind::kConvolve, stage, stage + 1};
  const Stage& own = plan_.stages[stage];
  const LayerWeights& parameters = weights.layers[own.first];
  ASSIGN_OR_RETURN(step.weight, Upload(parameters.weight));
  ASSIGN_OR_RETURN(step.bias, Upload(parameters.bias));
  const auto& layer = std::get<ConvolutionLayer>(network_.layers[own.first]);
  cuda::ConvolvePoolLaunch launch;
  if (HasOneSign(parameters.weight, layer.filters) ||
      !cuda::MakeConvolvePoolShape(
          {static_cast<int>(own.input.channels),
           static_cast<int>(own.input.size), layer.filters, layer.kernel_size,
           own.pool, own.activation},
          &step.convolve_pool) ||
      !cuda::RunsConvolvePool(step.convolve_pool) ||
      !cuda::MakeConvolvePoolLaunch(step.convolve_pool, 1, limits_, &launch)) {
    return step;
  }
  step.kind = Kind::kConvolvePool;
  ASSIGN_OR_RETURN(step.packed,
                   cuda::DeviceBuffer::Allocate(
                       cuda::PackedConvolvePoolBytes(step.convolve_pool)));
  RETURN_IF_ERROR(cuda::ToStatus(
      cuda::LaunchPackConvolvePool(step.convolve_pool, step.weight.floats(),
                                   step.bias.floats(), step.packed.data())));
  RETURN_IF_ERROR(cuda::Synchronize());
  const Problem problem = ProblemOf(own, /*images=*/1);
  for (const Variant* const variant : Variants()) {
    if (variant->backend != Backend::kCuda ||
        variant->fewest_pooled_images == 0) {
      continue;
    }
    const absl::Status takes =
        variant->Check(problem, resources(), EpilogueOf(step));
    if (takes.ok()) {
      step.pooling = variant;
      break;
    }
    // One that could not be asked is no reason to take a slower one.
    if (!absl::IsUnimplemented(takes)) return takes;
  }
  return step;
}

// All matrices from this one on, if one kernel takes them; otherwise none.
absl::StatusOr<GpuStages::Step> GpuStages::MakeChain(
    size_t stage, const NetworkWeights& weights, Workers& workers) {
  Step step = {Kind::kChain, stage, stage};
  cuda::Chain& chain = step.chain;
  for (size_t i = stage; i < plan_.stages.size(); ++i) {
    const Stage& own = plan_.stages[i];
    if (own.kind != StageKind::kConnect) break;
    if (chain.count == cuda::kMostChainLayers || !cuda::RunsChain() ||
        !cuda::TakesChainLayer(own.input.values(), own.output.values(),
                               &chain.layers[chain.count++].shape)) {
      return Step{Kind::kChain, stage, stage};
    }
    step.end = i + 1;
  }
  for (int i = 0; i < chain.count; ++i) {
    cuda::ChainLayer& layer = chain.layers[i];
    const Stage& own = plan_.stages[stage + i];
    const LayerWeights matrix = MatrixOf(network_, weights, own, workers);
    ASSIGN_OR_RETURN(const cuda::DeviceBuffer weight, Upload(matrix.weight));
    ASSIGN_OR_RETURN(cuda::DeviceBuffer bias, Upload(matrix.bias));
    ASSIGN_OR_RETURN(
        cuda::DeviceBuffer packed,
        cuda::DeviceBuffer::Allocate(layer.shape.packed_floats() * kFloat));
    RETURN_IF_ERROR(cuda::ToStatus(
        cuda::LaunchPackMatrix(layer.shape, weight.floats(), packed.floats())));
    // Waits for the packing, so that the unpacked ones may be freed.
    ASSIGN_OR_RETURN(cuda::DeviceBuffer high,
                     HighHalves(layer.shape, packed.floats()));
    layer.packed = packed.floats();
    layer.high = static_cast<const uint32_t*>(high.data());
    layer.bias = bias.floats();
    layer.activation = own.activation;
    step.small.push_back(std::move(packed));
    step.small.push_back(std::move(high));
    step.small.push_back(std::move(bias));
  }
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
  ASSIGN_OR_RETURN(const int64_t packed, cuda::PackedFloats(inputs, outputs));
  ASSIGN_OR_RETURN(step.weight, cuda::DeviceBuffer::Allocate(packed * kFloat));
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

}  // namespace convlab
