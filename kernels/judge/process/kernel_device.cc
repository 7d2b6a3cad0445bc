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
#include "kernels/measure/gpu_loads.h"

namespace convlab {
namespace {

// Larger than the row or image by which a wrong index is off in most cases, and
// small beside the tensors.
constexpr int64_t kZoneBytes = int64_t{4} << 20;
// A float of these bytes is NaN.
constexpr uint8_t kNan = 0xff;
constexpr uint32_t kNanWord = 0xffffffff;

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

// A tensor in device memory, red zones round it.
class Guarded {
 public:
  static absl::StatusOr<Guarded> Allocate(const char* name, int64_t bytes) {
    Guarded guarded;
    guarded.name_ = name;
    guarded.bytes_ = bytes;
    const int64_t aligned = (bytes + 255) / 256 * 256;
    ASSIGN_OR_RETURN(guarded.buffer_,
                     cuda::DeviceBuffer::Allocate(aligned + 2 * kZoneBytes));
    RETURN_IF_ERROR(
        cuda::FillBytes(guarded.buffer_.data(), kNan, guarded.buffer_.bytes()));
    return guarded;
  }

  char* data() const { return static_cast<char*>(buffer_.data()) + kZoneBytes; }
  float* floats() const { return reinterpret_cast<float*>(data()); }
  int64_t bytes() const { return bytes_; }
  int64_t allocated_bytes() const { return buffer_.bytes(); }

  // Describes the damage that lies farthest out, or returns an empty text.
  absl::StatusOr<std::string> CheckZones(const cuda::WordSums& words) const {
    const int64_t behind = buffer_.bytes() - kZoneBytes - bytes_;
    ASSIGN_OR_RETURN(int64_t intact,
                     words.Count(data() + bytes_, behind, kNanWord));
    ASSIGN_OR_RETURN(const int64_t intact_before,
                     words.Count(buffer_.data(), kZoneBytes, kNanWord));
    intact += intact_before;
    if (intact * int64_t{sizeof(kNanWord)} == behind + kZoneBytes) {
      return std::string();
    }
    std::vector<uint8_t> zone(std::max(kZoneBytes, behind));
    RETURN_IF_ERROR(cuda::CopyToHost(zone.data(), data() + bytes_, behind));
    for (int64_t i = behind - 1; i >= 0; --i) {
      if (zone[i] != kNan) {
        return absl::StrCat("wrote ", i + 1, " bytes behind ", name_,
                            " in device memory");
      }
    }
    RETURN_IF_ERROR(cuda::CopyToHost(zone.data(), buffer_.data(), kZoneBytes));
    for (int64_t i = 0; i < kZoneBytes; ++i) {
      if (zone[i] != kNan) {
        return absl::StrCat("wrote ", kZoneBytes - i, " bytes before ", name_,
                            " in device memory");
      }
    }
    return std::string();
  }

  // Of the tensor.
  absl::StatusOr<uint64_t> Fingerprint(const cuda::WordSums& words) const {
    return words.Fingerprint(data(), bytes_);
  }

 private:
  const char* name_ = "";
  int64_t bytes_ = 0;
  cuda::DeviceBuffer buffer_;
};

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
    // Refused by devices whose L2 cache keeps no lines.
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
    cudaCtxResetPersistingL2Cache();
    cudaGetLastError();
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
      ASSIGN_OR_RETURN(Guarded tensor, Guarded::Allocate(name, bytes));
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
        ASSIGN_OR_RETURN((*inputs_)[i], tensors_[i].Fingerprint(words_));
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
      ASSIGN_OR_RETURN(const uint64_t now, tensors_[i].Fingerprint(words_));
      if (now == (*inputs_)[i]) continue;
      return absl::AbortedError(absl::StrCat(
          "changed its input ", i == 0 ? "x" : "k", " in device memory"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> CheckZones() override {
    for (const Guarded& tensor : tensors_) {
      ASSIGN_OR_RETURN(std::string damage, tensor.CheckZones(words_));
      if (!damage.empty()) return damage;
    }
    return std::string();
  }

  int64_t allocated_bytes() const override {
    int64_t bytes = 0;
    for (const Guarded& tensor : tensors_) bytes += tensor.allocated_bytes();
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
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<cuda::Event> begin_, end_;
  cuda::WordSums words_;
  std::vector<Guarded> tensors_;
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
