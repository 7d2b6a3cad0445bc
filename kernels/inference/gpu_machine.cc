// All layers on the GPU: bytes of images are uploaded, labels are downloaded.
#include <algorithm>
#include <utility>

#include "common/math/rounding.h"
#include "common/status/status.h"
#include "kernels/baseline/layers.h"
#include "kernels/cuda/device.h"
#include "kernels/inference/machine.h"
#include "kernels/layers/cuda/layers.h"

namespace convlab {
namespace {

class GpuMachine : public Machine {
 public:
  static absl::StatusOr<std::unique_ptr<Machine>> Create(bool library_layers) {
    RETURN_IF_ERROR(cuda::FindDevice().status());
    std::unique_ptr<BaselineLayers> library;
    if (library_layers) {
      ASSIGN_OR_RETURN(library, MakeBaselineLayers());
    }
    ASSIGN_OR_RETURN(OpTimer timer, OpTimer::Create());
    // The first of these calls creates the CUDA context, whose memory is not
    // the network's.
    ASSIGN_OR_RETURN(const int64_t free, cuda::FreeMemory());
    return std::unique_ptr<Machine>(
        new GpuMachine(std::move(timer), free, std::move(library)));
  }

  absl::StatusOr<int64_t> ActivationBytes(
      const InferenceOptions& options) override {
    if (options.device_memory_bytes > 0) return options.device_memory_bytes;
    ASSIGN_OR_RETURN(const int64_t free, cuda::FreeMemory());
    // Reserve for the convolutions' small workspaces, the kernels' code and
    // other users.
    constexpr int64_t kReserve = int64_t{256} << 20;
    return free - std::min(kReserve, free / 8);
  }

  absl::StatusOr<std::shared_ptr<float>> Allocate(int64_t floats) override {
    ASSIGN_OR_RETURN(auto allocated,
                     cuda::DeviceBuffer::Allocate(
                         floats * static_cast<int64_t>(sizeof(float))));
    const auto buffer =
        std::make_shared<cuda::DeviceBuffer>(std::move(allocated));
    return std::shared_ptr<float>(buffer, buffer->floats());
  }

  absl::StatusOr<std::shared_ptr<const float>> Place(
      const std::vector<float>& host) override {
    ASSIGN_OR_RETURN(const auto placed, Allocate(host.size()));
    RETURN_IF_ERROR(cuda::CopyToDevice(placed.get(), host.data(),
                                       host.size() * sizeof(float)));
    return placed;
  }

  absl::StatusOr<std::shared_ptr<const float>> PlaceMatrix(
      int64_t inputs, int64_t outputs,
      const std::vector<float>& host) override {
    ASSIGN_OR_RETURN(const auto placed, Place(host));
    if (library_ != nullptr) return placed;
    ASSIGN_OR_RETURN(const int64_t floats, cuda::PackedFloats(inputs, outputs));
    ASSIGN_OR_RETURN(const auto packed, Allocate(floats));
    RETURN_IF_ERROR(
        cuda::PackWeights(inputs, outputs, placed.get(), packed.get()));
    return packed;
  }

  absl::StatusOr<int64_t> MemoryInUse() override {
    ASSIGN_OR_RETURN(const int64_t free, cuda::FreeMemory());
    return std::max<int64_t>(0, free_at_first_ - free);
  }

  absl::Status Load(const uint8_t* host_images, int64_t count, int size,
                    int enlarged, float* scratch, float* out) override {
    RETURN_IF_ERROR(
        cuda::CopyToDevice(scratch, host_images, count * size * size));
    return cuda::EnlargeToFloats(reinterpret_cast<const uint8_t*>(scratch),
                                 count, size, enlarged, out);
  }

  // The first run of a kernel loads its code, which its op time includes. The
  // course measured in the same way; --repeat shows the difference.
  absl::Status Convolve(Convolution& convolution, const float* x,
                        const float* k, float* y, OpTime& time) override {
    ASSIGN_OR_RETURN(const OpTime one, timer_.Time([&] {
      return convolution.Run(x, k, y, /*stream=*/nullptr);
    }));
    time.op_ns += one.op_ns;
    time.kernel_ns += one.kernel_ns;
    return absl::OkStatus();
  }

  absl::Status AddBias(int64_t batch, int64_t channels, int64_t area,
                       const float* bias, float* values) override {
    if (library_ != nullptr) {
      return library_->AddBias(batch, channels, area, bias, values);
    }
    return cuda::AddBias(batch, channels, area, bias, values);
  }

  absl::Status Activate(Activation activation, int64_t count,
                        float* values) override {
    if (library_ != nullptr) {
      return library_->Activate(activation, count, values);
    }
    return cuda::Activate(activation, count, values);
  }

  absl::Status ActivateAndPool(Activation activation, const MaxPool& pool,
                               int64_t planes, int64_t size, float* in,
                               float* out) override {
    if (library_ != nullptr) {
      RETURN_IF_ERROR(library_->Activate(activation, planes * size * size, in));
      return library_->PoolMax(pool, planes, size, in, out);
    }
    return cuda::PoolMax(pool, activation, planes, size, in, out);
  }

  absl::Status FullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                              const float* in, const float* weight,
                              const float* bias, float* out, float* scratch,
                              int64_t scratch_floats) override {
    if (library_ != nullptr) {
      return library_->FullyConnected(batch, inputs, outputs, in, weight, bias,
                                      out);
    }
    // The scratch memory follows the outputs.
    const int64_t skipped = RoundUp(batch * outputs, 4) - batch * outputs;
    cuda::ConnectedLayers layers;
    layers.bias = bias;
    return cuda::FullyConnected(batch, inputs, outputs, in, weight, layers, out,
                                scratch + skipped,
                                std::max<int64_t>(0, scratch_floats - skipped));
  }

  absl::Status Download(const float* values, int64_t count,
                        float* host) override {
    return cuda::CopyToHost(host, values,
                            count * static_cast<int64_t>(sizeof(float)));
  }

  absl::Status Classify(int64_t batch, int classes, float* values,
                        float* scratch, uint8_t* host_labels) override {
    auto* const labels = reinterpret_cast<uint8_t*>(scratch);
    RETURN_IF_ERROR(library_ != nullptr
                        ? library_->Softmax(batch, classes, values)
                        : cuda::Softmax(batch, classes, values));
    RETURN_IF_ERROR(cuda::Label(batch, classes, values, labels));
    return cuda::CopyToHost(host_labels, labels, batch);
  }

 private:
  GpuMachine(OpTimer timer, int64_t free,
             std::unique_ptr<BaselineLayers> library)
      : timer_(std::move(timer)),
        free_at_first_(free),
        library_(std::move(library)) {}

  OpTimer timer_;
  const int64_t free_at_first_;
  // Computes the layers instead of our own kernels, if not null.
  const std::unique_ptr<BaselineLayers> library_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Machine>> MakeGpuMachine(bool library_layers) {
  return GpuMachine::Create(library_layers);
}

}  // namespace convlab
