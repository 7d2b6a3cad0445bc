// What a GPU can do at most, as its maker's data sheet says, and the time below
// which no kernel of a convolution can end there.
#ifndef REPORTS_DELIVERABLES_LIMITS_H_
#define REPORTS_DELIVERABLES_LIMITS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/record/run_record.h"

namespace convlab {

struct GpuLimits {
  absl::string_view name;   // as the driver calls it, or its beginning
  double bytes_per_second;  // device memory
  double fp32_flops;        // per second, outside the tensor cores
  double tensor_flops;      // dense FP16 with FP32 sums
};

// Nothing for a GPU that the table lacks.
std::optional<GpuLimits> FindLimits(absl::string_view gpu_name);

// Every tensor read or written once at the memory's peak, or all FLOPs at the
// tensor cores' peak, whichever takes longer; in ns, summed over the
// convolutions.
double FloorNs(const ConvolutionRecord& convolution, const GpuLimits& limits);
double FloorNs(const std::vector<ConvolutionRecord>& convolutions,
               const GpuLimits& limits);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_LIMITS_H_
