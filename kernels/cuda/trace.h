// Traces the GPU's work from within the program: kernels, copies, memsets and
// calls of the CUDA runtime and driver. It uses CUPTI, which is opened at run
// time, and needs neither access to hardware counters nor another program.
//
//   RETURN_IF_ERROR(StartTrace());
//   ...                                    // the work
//   ASSIGN_OR_RETURN(const Activities activities, StopTrace());
#ifndef KERNELS_CUDA_TRACE_H_
#define KERNELS_CUDA_TRACE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/activities.h"

namespace convlab::cuda {

// Must be called before the process first uses the GPU, so that nothing is
// missed. Returns Unavailable, with the reason, if tracing is not possible:
// CUPTI is missing, there is no driver, or another profiler (nsys, ncu,
// compute-sanitizer) is attached, of which there can be only one. The program
// can continue without a trace.
absl::Status StartTrace();

// Waits for the GPU and returns all activities since StartTrace, which may then
// be called again. Activities::missing describes lost records. The error of an
// earlier launch is returned here.
absl::StatusOr<Activities> StopTrace();

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_TRACE_H_
