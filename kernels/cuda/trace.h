// Traces the GPU's work from within the program: kernels, copies, memsets and
// the calls of the CUDA runtime and driver, by CUPTI, which is opened at run
// time. It needs no right to hardware counters and no other program.
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

// To be called before the process first uses the GPU, so that nothing is
// missed. Unavailable, with the reason, where tracing cannot be had: CUPTI is
// missing, there is no driver, or another profiler (nsys, ncu,
// compute-sanitizer) is attached, since there can be but one; the program can
// go on without.
absl::Status StartTrace();

// Waits for the GPU and returns all that happened since StartTrace, which may
// then be called again. What was lost on the way is said in
// Activities::missing. The error of an earlier launch comes out here.
absl::StatusOr<Activities> StopTrace();

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_TRACE_H_
