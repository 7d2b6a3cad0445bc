#include "kernels/judge/process/kernel_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/judge/process/fault.h"
#include "kernels/measure/gpu_loads.h"
#include "kernels/measure/guarded_buffer.h"

namespace convlab {
namespace {

// A float of these bytes is NaN.
constexpr uint8_t kNan = 0xff;

// An error that appears after the kernel's code has run is the kernel's.
absl::Status KernelStatus(cudaError_t code) {
  if (code == cudaSuccess) return absl::OkStatus();
  return absl::AbortedError(cudaGetErrorString(code));
}

absl::Status OwnStatus(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(call, ": ", cudaGetErrorString(code)));
}

class Device : public KernelDevice {
 public:
  ~Device() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  absl::Status Initialize(int device) {
    const cudaError_t code = cudaSetDevice(device);
    if (code != cudaSuccess) {
      return absl::UnavailableError(absl::StrCat("no NVIDIA GPU can be used: ",
                                                 cudaGetErrorString(code)));
    }
    // The context is created by the first call that needs it.
    RETURN_IF_ERROR(OwnStatus(cudaFree(nullptr), "cudaFree"));
    RETURN_IF_ERROR(OwnStatus(cudaStreamCreate(&stream_), "cudaStreamCreate"));
    ASSIGN_OR_RETURN(cuda::Event begin, cuda::Event::Create());
    begin_ = std::make_unique<cuda::Event>(std::move(begin));
    ASSIGN_OR_RETURN(cuda::Event end, cuda::Event::Create());
    end_ = std::make_unique<cuda::Event>(std::move(end));
    ASSIGN_OR_RETURN(words_, cuda::WordSums::Create());
    return Settle();
  }

  absl::Status Settle() override {
    RETURN_IF_ERROR(KernelStatus(cudaDeviceSynchronize()));
    cuda::DropPersistingLines();
    return absl::OkStatus();
  }

  absl::Status Allocate(const Problem& problem, ConvlabCall& call) override {
    const std::pair<const char*, int64_t> sizes[] = {
        {"x", 4 * problem.input_elements()},
        {"k", 4 * problem.kernel_elements()},
        {"y", 4 * problem.output_elements()}};
    // The old tensors go first: the new ones may need their memory.
    tensors_.clear();
    inputs_.reset();
    for (const auto& [name, bytes] : sizes) {
      ASSIGN_OR_RETURN(cuda::GuardedBuffer tensor,
                       cuda::GuardedBuffer::Allocate(name, bytes));
      tensors_.push_back(std::move(tensor));
    }
    call.device_x = tensors_[0].floats();
    call.device_k = tensors_[1].floats();
    call.device_y = tensors_[2].floats();
    // A stream that waits for the default stream, and for which that waits, as
    // the courses' frameworks gave it: some files use both.
    call.stream = stream_;
    return cuda::Synchronize();
  }

  absl::Status PrepareOp(bool zeros) override {
    if (!inputs_) {
      inputs_.emplace();
      for (int i = 0; i < 2; ++i) {
        ASSIGN_OR_RETURN((*inputs_)[i], Fingerprint(tensors_[i]));
      }
    }
    RETURN_IF_ERROR(cuda::FillBytes(tensors_[2].data(), zeros ? 0 : kNan,
                                    tensors_[2].bytes()));
    return cuda::Synchronize();
  }

  absl::Status Upload(const ConvlabCall& call) override {
    RETURN_IF_ERROR(
        cuda::CopyToDevice(call.device_x, call.host_x, tensors_[0].bytes()));
    return cuda::CopyToDevice(call.device_k, call.host_k, tensors_[1].bytes());
  }

  absl::Status Download(const ConvlabCall& call) override {
    const int64_t rows = (call.height - call.kernel_size) / call.stride + 1;
    const int64_t columns = (call.width - call.kernel_size) / call.stride + 1;
    return KernelStatus(
        cudaMemcpy(call.host_y, call.device_y,
                   sizeof(float) * call.batch * call.filters * rows * columns,
                   cudaMemcpyDeviceToHost));
  }

  absl::Status CheckInputs() override {
    for (int i = 0; i < 2 && inputs_; ++i) {
      ASSIGN_OR_RETURN(const uint64_t now, Fingerprint(tensors_[i]));
      if (now == (*inputs_)[i]) continue;
      return KernelFault(Fault::kBrokeRule,
                         absl::StrCat("changed its input ", i == 0 ? "x" : "k",
                                      " in device memory"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> CheckZones() override {
    for (const cuda::GuardedBuffer& tensor : tensors_) {
      ASSIGN_OR_RETURN(std::string damage, tensor.CheckZones(words_));
      if (!damage.empty()) return damage;
    }
    return std::string();
  }

  int64_t allocated_bytes() const override {
    int64_t bytes = 0;
    for (const cuda::GuardedBuffer& tensor : tensors_)
      bytes += tensor.allocated_bytes();
    return bytes;
  }

  absl::Status Time(const ConvlabCall& call, const std::function<void()>& op,
                    int64_t (*clock)(), int64_t* op_ns,
                    int64_t* event_ns) override {
    auto* const stream = static_cast<cudaStream_t>(call.stream);
    const int64_t start = clock();
    RETURN_IF_ERROR(begin_->Record(stream));
    op();
    const absl::Status recorded = end_->Record(stream);
    const cudaError_t waited = cudaDeviceSynchronize();
    *op_ns = clock() - start;
    RETURN_IF_ERROR(KernelStatus(waited));
    RETURN_IF_ERROR(recorded);
    ASSIGN_OR_RETURN(*event_ns, end_->Since(*begin_));
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<uint64_t> Fingerprint(const cuda::GuardedBuffer& tensor) {
    return words_.Fingerprint(tensor.data(), tensor.bytes());
  }

  cudaStream_t stream_ = nullptr;
  std::unique_ptr<cuda::Event> begin_, end_;
  cuda::WordSums words_;
  std::vector<cuda::GuardedBuffer> tensors_;
  // Fingerprints of x and k before the first op.
  std::optional<std::array<uint64_t, 2>> inputs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KernelDevice>> KernelDevice::Create(int device) {
  auto result = std::make_unique<Device>();
  RETURN_IF_ERROR(result->Initialize(device));
  return result;
}

}  // namespace convlab
