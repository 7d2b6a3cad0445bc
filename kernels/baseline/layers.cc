#include "kernels/baseline/layers.h"

#include <algorithm>
#include <utility>

#include "common/status/status.h"
#include "kernels/baseline/cudnn_library.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

using cuda::ToStatus;

constexpr float kOne = 1, kZero = 0;

// cuDNN counts a tensor's elements in 32 bits; larger tensors are processed in
// pieces.
constexpr int64_t kPieceElements = int64_t{1} << 30;

// cuDNN 9.19 refuses to pool 150,000 planes of 24 x 24.
constexpr int64_t kPiecePlanes = 32768;

absl::StatusOr<cuda::TensorDescriptor> Describe(int64_t n, int64_t c, int64_t h,
                                                int64_t w) {
  return cuda::MakeTensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w);
}

class Layers : public BaselineLayers {
 public:
  static absl::StatusOr<std::unique_ptr<BaselineLayers>> Create() {
    auto layers = std::make_unique<Layers>();
    ASSIGN_OR_RETURN(layers->cudnn_, cuda::OpenCudnn());
    if (const char* const reason = cuda::WhyNoCublas()) {
      return absl::UnavailableError(reason);
    }
    RETURN_IF_ERROR(ToStatus(layers->cublas_.Create()));
    return layers;
  }

  absl::Status AddBias(int64_t batch, int64_t channels, int64_t area,
                       const float* bias, float* values) override {
    ASSIGN_OR_RETURN(const auto one, Describe(1, channels, 1, 1));
    const int64_t image = channels * area;
    const int64_t piece = std::max<int64_t>(1, kPieceElements / image);
    for (int64_t first = 0; first < batch; first += piece) {
      ASSIGN_OR_RETURN(const auto all, Describe(std::min(piece, batch - first),
                                                channels, area, 1));
      RETURN_IF_CUDNN_ERROR(cudnn_->add_tensor(cudnn_->handle, &kOne, one.get(),
                                               bias, &kOne, all.get(),
                                               values + first * image));
    }
    return absl::OkStatus();
  }

  absl::Status Activate(Activation activation, int64_t count,
                        float* values) override {
    if (activation == Activation::kNone) return absl::OkStatus();
    ASSIGN_OR_RETURN(const auto descriptor,
                     cuda::MakeActivation(activation == Activation::kTanh
                                              ? CUDNN_ACTIVATION_TANH
                                              : CUDNN_ACTIVATION_RELU));
    for (int64_t first = 0; first < count; first += kPieceElements) {
      ASSIGN_OR_RETURN(
          const auto piece,
          Describe(1, 1, 1, std::min(kPieceElements, count - first)));
      RETURN_IF_CUDNN_ERROR(cudnn_->activation_forward(
          cudnn_->handle, descriptor.get(), &kOne, piece.get(), values + first,
          &kZero, piece.get(), values + first));
    }
    return absl::OkStatus();
  }

  absl::Status PoolMax(const MaxPool& pool, int64_t planes, int64_t size,
                       const float* in, float* out) override {
    ASSIGN_OR_RETURN(const auto descriptor,
                     cuda::MakePooling(pool.size, pool.stride));
    const int64_t pooled = pool.Output(size);
    const int64_t piece =
        std::clamp<int64_t>(kPieceElements / (size * size), 1, kPiecePlanes);
    for (int64_t first = 0; first < planes; first += piece) {
      const int64_t count = std::min(piece, planes - first);
      ASSIGN_OR_RETURN(const auto x, Describe(count, 1, size, size));
      // With `ceil` this is one more than cuDNN's formula gives; cuDNN clips
      // windows at the edge of the image.
      ASSIGN_OR_RETURN(const auto y, Describe(count, 1, pooled, pooled));
      RETURN_IF_CUDNN_ERROR(
          cudnn_->pooling_forward(cudnn_->handle, descriptor.get(), &kOne,
                                  x.get(), in + first * size * size, &kZero,
                                  y.get(), out + first * pooled * pooled));
    }
    return absl::OkStatus();
  }

  absl::Status FullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                              const float* in, const float* weight,
                              const float* bias, float* out) override {
    cuda::MatrixProduct product{batch, outputs, inputs};
    product.b_transposed = true;
    RETURN_IF_ERROR(ToStatus(
        cublas_.Multiply(product, in, weight, out, /*stream=*/nullptr)));
    if (bias == nullptr) return absl::OkStatus();
    return AddBias(batch, outputs, 1, bias, out);
  }

  absl::Status Softmax(int64_t batch, int64_t classes, float* values) override {
    ASSIGN_OR_RETURN(const auto rows, Describe(batch, classes, 1, 1));
    RETURN_IF_CUDNN_ERROR(cudnn_->softmax_forward(
        cudnn_->handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE,
        &kOne, rows.get(), values, &kZero, rows.get(), values));
    return absl::OkStatus();
  }

 private:
  const cuda::Cudnn* cudnn_ = nullptr;
  cuda::Cublas cublas_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BaselineLayers>> MakeBaselineLayers() {
  return Layers::Create();
}

}  // namespace convlab
