#include "milestones/kernel_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/record/statistics.h"

namespace convlab {
namespace {

// "1.5 + 2 = 3.5 ms"
std::string Milliseconds(const std::vector<double>& parts_ns) {
  std::vector<std::string> parts;
  double sum = 0;
  for (const double ns : parts_ns) {
    parts.push_back(absl::StrFormat("%.4g", ns * 1e-6));
    sum += ns;
  }
  if (parts.size() == 1) return absl::StrCat(parts[0], " ms");
  return absl::StrCat(absl::StrJoin(parts, " + "), " = ",
                      absl::StrFormat("%.4g ms", sum * 1e-6));
}

}  // namespace

std::string Describe(const DeviceFunction& function) {
  std::string text =
      absl::StrCat(function.name, ": ", function.registers, " registers");
  if (function.shared_bytes > 0) {
    absl::StrAppend(&text, ", ", function.shared_bytes,
                    " bytes of shared memory");
  }
  if (function.constant_bytes > 0) {
    absl::StrAppend(&text, ", ", function.constant_bytes,
                    " bytes of constant memory");
  }
  if (function.stack_bytes > 0) {
    absl::StrAppend(&text, ", ", function.stack_bytes,
                    " bytes of local memory");
  }
  const int64_t spills = function.spill_store_bytes + function.spill_load_bytes;
  return absl::StrCat(text, spills > 0
                                ? absl::StrCat(", spills ", spills, " bytes")
                                : std::string(", no spills"));
}

std::vector<double> Medians(const std::vector<LayerTimes>& layers,
                            const std::vector<int64_t> LayerTimes::*samples) {
  std::vector<double> medians;
  for (const LayerTimes& layer : layers) {
    if ((layer.*samples).empty()) return {};
    medians.push_back(Median(layer.*samples));
  }
  return medians;
}

std::vector<std::string> DescribeTimes(const std::vector<LayerTimes>& layers,
                                       int64_t device_bytes) {
  std::vector<std::string> lines;
  const std::vector<double> op = Medians(layers, &LayerTimes::op_ns);
  if (op.empty()) return lines;
  std::vector<double> range;
  range.reserve(layers.size());
  for (const LayerTimes& layer : layers) {
    range.push_back(InterquartileRange(layer.op_ns));
  }
  lines.push_back(absl::StrCat("op time ", Milliseconds(op),
                               ", interquartile range ", Milliseconds(range),
                               ", ", layers[0].op_ns.size(),
                               " verified runs each"));
  const std::vector<double> kernel = Medians(layers, &LayerTimes::kernel_ns);
  if (!kernel.empty()) {
    lines.push_back(absl::StrCat("kernel time ", Milliseconds(kernel)));
  }
  const std::vector<double> whole = Medians(layers, &LayerTimes::whole_ns);
  if (!whole.empty()) {
    lines.push_back(absl::StrCat("whole operation, from and to host memory ",
                                 Milliseconds(whole)));
  }
  int64_t bytes = device_bytes;
  for (const LayerTimes& layer : layers) {
    bytes = std::max(bytes, layer.device_bytes);
  }
  if (bytes > 0) {
    lines.push_back(absl::StrFormat("%.1f MB of device memory", bytes * 1e-6));
  }
  return lines;
}

}  // namespace convlab
