#include "kernels/baseline/network.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/baseline/convolution.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/device.h"
#include "kernels/inference/inference.h"
#include "kernels/layers/cuda/layers.h"

namespace convlab {
namespace {

using cuda::DeviceBuffer;

constexpr int64_t kFloat = sizeof(float);

absl::StatusOr<DeviceBuffer> Upload(const std::vector<float>& values) {
  if (values.empty()) return DeviceBuffer();
  const int64_t bytes = static_cast<int64_t>(values.size()) * kFloat;
  ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::Allocate(bytes));
  RETURN_IF_ERROR(cuda::CopyToDevice(buffer.data(), values.data(), bytes));
  return buffer;
}

// What a layer has besides its sizes.
struct Parameters {
  std::unique_ptr<Convolution> convolution;
  DeviceBuffer weight, bias;  // empty: none
};

class BaselineNetwork : public DeviceNetwork {
 public:
  BaselineNetwork(const Network& network, int image_size, Pixels pixels,
                  int64_t count)
      : network_(network),
        shapes_(network.Shapes()),
        image_size_(image_size),
        pixels_(pixels),
        count_(count) {}

  absl::Status Init(const NetworkWeights& weights,
                    const std::vector<std::string>& plans) {
    if (const char* const reason = cuda::WhyNoCublas()) {
      return absl::UnavailableError(reason);
    }
    RETURN_IF_ERROR(cuda::ToStatus(cublas_.Create()));
    int64_t widest = 0;
    for (const TensorShape& shape : shapes_) {
      widest = std::max(widest, shape.values());
    }
    for (DeviceBuffer& buffer : values_) {
      ASSIGN_OR_RETURN(buffer,
                       DeviceBuffer::Allocate(count_ * widest * kFloat));
    }
    size_t convolution = 0;
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      Parameters& own = parameters_.emplace_back();
      ASSIGN_OR_RETURN(own.weight, Upload(weights.layers[i].weight));
      ASSIGN_OR_RETURN(own.bias, Upload(weights.layers[i].bias));
      if (!std::holds_alternative<ConvolutionLayer>(network_.layers[i])) {
        continue;
      }
      const Problem problem = ConvolutionProblem(network_, convolution, count_);
      ASSIGN_OR_RETURN(own.convolution,
                       CreateCudnnPlan(problem, plans.at(convolution++)));
    }
    return absl::OkStatus();
  }

  absl::Status Prepare(int64_t count) override {
    if (count == count_) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "the baseline was made for ", count_, " images and not ", count));
  }

  absl::Status Queue(const void* images, int64_t count, float* logits,
                     uint8_t* labels, Stream stream) override {
    RETURN_IF_ERROR(Prepare(count));
    const auto* in = static_cast<const float*>(images);
    size_t turn = 0;
    if (pixels_ == Pixels::kBytes) {
      float* const out = values_[turn].floats();
      RETURN_IF_ERROR(cuda::EnlargeToFloats(static_cast<const uint8_t*>(images),
                                            count, image_size_,
                                            network_.image_size, out, stream));
      in = out;
      turn = 1;
    }
    size_t next = 0;
    for (size_t i = 0; i < network_.layers.size(); i = next) {
      next = i + LayersAt(i);
      float* const out =
          next == network_.layers.size() ? logits : values_[turn].floats();
      RETURN_IF_ERROR(QueueLayers(i, next, in, out, stream));
      in = out;
      turn = 1 - turn;
    }
    if (labels == nullptr) return absl::OkStatus();
    return cuda::Label(count, network_.Classes(), logits, labels, stream);
  }

 private:
  template <typename Kind>
  const Kind* LayerAt(size_t i) const {
    return i < network_.layers.size() ? std::get_if<Kind>(&network_.layers[i])
                                      : nullptr;
  }

  // The layers from `i` on that are computed together: an activation and the
  // pooling behind it, or what is computed in place behind a layer.
  size_t LayersAt(size_t i) const {
    const bool activation = LayerAt<Activation>(i + 1) != nullptr;
    if (LayerAt<Activation>(i) != nullptr) {
      return LayerAt<MaxPool>(i + 1) != nullptr ? 2 : 1;
    }
    if (LayerAt<MaxPool>(i) != nullptr) return activation ? 2 : 1;
    // Pooling takes the activation that it follows.
    return activation && LayerAt<MaxPool>(i + 2) == nullptr ? 2 : 1;
  }

  absl::Status QueueLayers(size_t first, size_t end, const float* in,
                           float* out, Stream stream) {
    const TensorShape& from = shapes_[first];
    const TensorShape& to = shapes_[end];
    Activation activation = Activation::kNone;
    const MaxPool* pool = nullptr;
    for (size_t i = first; i < end; ++i) {
      if (LayerAt<Activation>(i) != nullptr)
        activation = *LayerAt<Activation>(i);
      if (LayerAt<MaxPool>(i) != nullptr) pool = LayerAt<MaxPool>(i);
    }
    if (pool != nullptr) {
      return cuda::PoolMax(*pool, activation, count_ * from.channels, from.size,
                           in, out, stream);
    }
    const Parameters& own = parameters_[first];
    if (own.convolution != nullptr) {
      RETURN_IF_ERROR(
          own.convolution->Run(in, own.weight.floats(), out, stream));
    } else if (LayerAt<FullyConnectedLayer>(first) != nullptr) {
      cuda::MatrixProduct product{count_, to.values(), from.values()};
      product.b_transposed = true;
      RETURN_IF_ERROR(cuda::ToStatus(
          cublas_.Multiply(product, in, own.weight.floats(), out, stream)));
    } else {
      RETURN_IF_ERROR(
          cuda::QueueCopy(out, in, count_ * to.values() * kFloat, stream));
    }
    if (own.bias.floats() != nullptr) {
      RETURN_IF_ERROR(cuda::AddBias(count_, to.channels, to.size * to.size,
                                    own.bias.floats(), out, stream));
    }
    return cuda::Activate(activation, count_ * to.values(), out, stream);
  }

  const Network network_;
  const std::vector<TensorShape> shapes_;
  const int image_size_;
  const Pixels pixels_;
  const int64_t count_;
  cuda::Cublas cublas_;
  DeviceBuffer values_[2];
  std::vector<Parameters> parameters_;  // by layer
};

}  // namespace

absl::StatusOr<std::vector<std::string>> FindBaselinePlans(
    const Network& network, int64_t count, Workers& workers) {
  CudnnSearch search;
  search.nhwc = search.label = false;
  search.rule.min_samples = search.rule.max_samples = 10;
  std::vector<std::string> plans;
  for (size_t i = 0; i < network.Convolutions().size(); ++i) {
    const Problem problem = ConvolutionProblem(network, i, count);
    ASSIGN_OR_RETURN(
        const CudnnMeasurement measured,
        MeasureCudnn(problem, AccuracyClass::kFp32, workers, search));
    const CudnnPlan* const best = measured.best(AccuracyClass::kFp32Normwise);
    if (best == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("cuDNN has no plan for ", ToString(problem)));
    }
    plans.push_back(best->algorithm);
  }
  return plans;
}

absl::StatusOr<std::unique_ptr<DeviceNetwork>> MakeBaselineNetwork(
    const Network& network, const NetworkWeights& weights, int image_size,
    Pixels pixels, int64_t count, const std::vector<std::string>& plans) {
  RETURN_IF_ERROR(CheckNetwork(network));
  RETURN_IF_ERROR(CheckWeights(network, weights));
  const int size = pixels == Pixels::kFloats ? network.image_size : image_size;
  RETURN_IF_ERROR(CheckImages(network, {1, size, size, {}}));
  RETURN_IF_ERROR(cuda::FindDevice().status());
  auto made = std::make_unique<BaselineNetwork>(network, size, pixels, count);
  RETURN_IF_ERROR(made->Init(weights, plans));
  return made;
}

}  // namespace convlab
