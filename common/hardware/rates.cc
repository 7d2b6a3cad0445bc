#include "common/hardware/rates.h"

#include "absl/strings/match.h"

namespace convlab {
namespace {

struct DataSheet {
  absl::string_view name;  // the driver's name of the GPU, or a prefix of it
  Rates rates;
};

// From NVIDIA's data sheets; where these give a rate of the tensor cores with
// sparsity, half of it. A longer name precedes its prefixes.
constexpr DataSheet kDataSheets[] = {
    {"NVIDIA H200", {4800, 67, 494.5, 989.5}},
    {"NVIDIA H100 PCIe", {2000, 51, 378, 756.5}},
    {"NVIDIA H100 80GB HBM3", {3350, 67, 494.5, 989.5}},
    {"NVIDIA A100-SXM4-80GB", {2039, 19.5, 156, 312}},
    {"NVIDIA A100 80GB PCIe", {1935, 19.5, 156, 312}},
    {"NVIDIA A100", {1555, 19.5, 156, 312}},
    {"NVIDIA A40", {696, 37.4, 74.8, 149.7}},
    {"NVIDIA L40S", {864, 91.6, 183, 362}},
    {"NVIDIA L4", {300, 30.3, 60, 121}},
    {"Tesla V100-SXM2", {900, 15.7, {}, 125}},
    {"Tesla V100-PCIE", {900, 14, {}, 112}},
    {"Tesla T4", {320, 8.1, {}, 65}},
};

}  // namespace

std::optional<Rates> DataSheetRates(absl::string_view gpu_name) {
  for (const auto& [name, rates] : kDataSheets) {
    if (!absl::StartsWith(gpu_name, name)) continue;
    // "NVIDIA L4" must not match "NVIDIA L40S".
    const absl::string_view rest = gpu_name.substr(name.size());
    if (rest.empty() || rest[0] == ' ' || rest[0] == '-') return rates;
  }
  return std::nullopt;
}

std::optional<double> MemoryGbs(int64_t clock_khz, int64_t bus_bits) {
  if (clock_khz <= 0 || bus_bits <= 0) return std::nullopt;
  // Two transfers per clock.
  return 2e-6 * static_cast<double>(clock_khz) * static_cast<double>(bus_bits) /
         8;
}

}  // namespace convlab
