#include "reports/deliverables/limits.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace convlab {
namespace {

// From NVIDIA's data sheets, without sparsity. A longer name stands before its
// beginning.
constexpr GpuLimits kLimits[] = {
    {"NVIDIA H200", 4.8e12, 67e12, 989e12},
    {"NVIDIA H100 PCIe", 2.0e12, 51e12, 756e12},
    {"NVIDIA H100 80GB HBM3", 3.35e12, 67e12, 989e12},
    {"NVIDIA A100-SXM4-80GB", 2.039e12, 19.5e12, 312e12},
    {"NVIDIA A100 80GB PCIe", 1.935e12, 19.5e12, 312e12},
    {"NVIDIA A100", 1.555e12, 19.5e12, 312e12},
    {"NVIDIA A40", 0.696e12, 37.4e12, 149.7e12},
    {"NVIDIA L40S", 0.864e12, 91.6e12, 362e12},
    {"NVIDIA L4", 0.3e12, 30.3e12, 121e12},
    {"Tesla V100-SXM2", 0.9e12, 15.7e12, 125e12},
    {"Tesla V100-PCIE", 0.9e12, 14e12, 112e12},
    {"Tesla T4", 0.32e12, 8.1e12, 65e12},
};

}  // namespace

std::optional<GpuLimits> FindLimits(absl::string_view gpu_name) {
  for (const GpuLimits& limits : kLimits) {
    const absl::string_view rest =
        gpu_name.substr(std::min(limits.name.size(), gpu_name.size()));
    // "NVIDIA L4" is no beginning of "NVIDIA L40S".
    if (absl::StartsWith(gpu_name, limits.name) &&
        (rest.empty() || rest[0] == ' ' || rest[0] == '-')) {
      return limits;
    }
  }
  return std::nullopt;
}

double FloorNs(const ConvolutionRecord& convolution, const GpuLimits& limits) {
  return 1e9 *
         std::max(static_cast<double>(convolution.min_bytes) /
                      limits.bytes_per_second,
                  static_cast<double>(convolution.flops) / limits.tensor_flops);
}

double FloorNs(const std::vector<ConvolutionRecord>& convolutions,
               const GpuLimits& limits) {
  double sum = 0;
  for (const ConvolutionRecord& convolution : convolutions) {
    sum += FloorNs(convolution, limits);
  }
  return sum;
}

}  // namespace convlab
