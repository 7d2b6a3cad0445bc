// The trace of a kernel's process on its way to the judge, in a file. Both
// sides are the same program, so that the records need no encoding; but a
// contributed kernel can write to the file too, so that the reader checks all
// of it.
#ifndef KERNELS_JUDGE_PROCESS_PACKED_TRACE_H_
#define KERNELS_JUDGE_PROCESS_PACKED_TRACE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/activities.h"

namespace convlab {

// Writes to an empty file. Names longer than 255 bytes are cut.
absl::Status WriteActivities(const Activities& activities, int file);

// DataLoss if the file is not one that WriteActivities can have written, or
// larger than 256 MiB.
absl::StatusOr<Activities> ReadActivities(int file);

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_PACKED_TRACE_H_
