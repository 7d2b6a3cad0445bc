#include "kernels/convolution/checking/host_run.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Runs on copies of the tensors in the backend's memory and reads them back.
class Tensors {
 public:
  Tensors(const Variant& variant, const std::vector<float>& x,
          const std::vector<float>& k, const std::vector<float>& bias,
          int64_t output_elements)
      : on_device_(variant.backend == Backend::kCuda),
        x_(x),
        k_(k),
        bias_(bias),
        y_(output_elements) {}

  absl::Status Load() {
    if (!on_device_) return absl::OkStatus();
    RETURN_IF_ERROR(cuda::FindDevice().status());
    ASSIGN_OR_RETURN(device_x_, Upload(x_));
    ASSIGN_OR_RETURN(device_k_, Upload(k_));
    if (!bias_.empty()) {
      ASSIGN_OR_RETURN(device_bias_, Upload(bias_));
    }
    ASSIGN_OR_RETURN(device_y_,
                     cuda::DeviceBuffer::Allocate(y_.size() * sizeof(float)));
    return absl::OkStatus();
  }

  absl::Status Run(Convolution& convolution) {
    const int64_t bytes = y_.size() * sizeof(float);
    if (!on_device_) {
      std::memset(y_.data(), kPoison, bytes);
      return convolution.Run(x_.data(), k_.data(), y_.data(),
                             /*stream=*/nullptr);
    }
    RETURN_IF_ERROR(cuda::FillBytes(device_y_.data(), kPoison, bytes));
    RETURN_IF_ERROR(convolution.Run(device_x_.floats(), device_k_.floats(),
                                    device_y_.floats(), /*stream=*/nullptr));
    RETURN_IF_ERROR(cuda::Synchronize());
    RETURN_IF_ERROR(cuda::CopyToHost(y_.data(), device_y_.data(), bytes));
    RETURN_IF_ERROR(cuda::CopyToHost(x_.data(), device_x_.data(),
                                     x_.size() * sizeof(float)));
    return cuda::CopyToHost(k_.data(), device_k_.data(),
                            k_.size() * sizeof(float));
  }

  // Null if it is empty.
  const float* bias() const {
    if (bias_.empty()) return nullptr;
    return on_device_ ? device_bias_.floats() : bias_.data();
  }
  const std::vector<float>& x() const { return x_; }
  const std::vector<float>& k() const { return k_; }
  const std::vector<float>& y() const { return y_; }

 private:
  static absl::StatusOr<cuda::DeviceBuffer> Upload(
      const std::vector<float>& values) {
    const int64_t bytes = values.size() * sizeof(float);
    ASSIGN_OR_RETURN(auto buffer, cuda::DeviceBuffer::Allocate(bytes));
    RETURN_IF_ERROR(cuda::CopyToDevice(buffer.data(), values.data(), bytes));
    return buffer;
  }

  const bool on_device_;
  std::vector<float> x_, k_, bias_, y_;
  cuda::DeviceBuffer device_x_, device_k_, device_bias_, device_y_;
};

}  // namespace

absl::StatusOr<std::vector<float>> RunOnHostTensors(
    const Variant& variant, const Problem& problem, const Resources& resources,
    const std::vector<float>& x, const std::vector<float>& k, int runs,
    bool deterministic, const Epilogue& epilogue) {
  std::vector<float> bias;
  if (epilogue.bias != nullptr) {
    bias.assign(epilogue.bias, epilogue.bias + problem.filters);
  }
  Tensors tensors(variant, x, k, bias, epilogue.output_elements(problem));
  RETURN_IF_ERROR(tensors.Load());
  Epilogue placed = epilogue;
  placed.bias = tensors.bias();
  ASSIGN_OR_RETURN(const auto convolution,
                   variant.Create(problem, resources, placed));
  std::vector<float> first;
  for (int run = 0; run < runs; ++run) {
    RETURN_IF_ERROR(tensors.Run(*convolution));
    if (run == 0) {
      first = tensors.y();
    } else if (deterministic && !SameBytes(first, tensors.y())) {
      return absl::InternalError(
          absl::StrCat(variant.name, " on ", ToString(problem), ": run ",
                       run + 1, " gave a different result than the first"));
    }
  }
  if (!SameBytes(tensors.x(), x) || !SameBytes(tensors.k(), k)) {
    return absl::InternalError(absl::StrCat(
        variant.name, " on ", ToString(problem), ": the input was changed"));
  }
  return tensors.y();
}

}  // namespace convlab
