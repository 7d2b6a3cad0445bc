// Whether an operation on the GPU runs in the stream that it is given. One in a
// stream of its own that waits for no other would run before or beside the
// events that time it.
#ifndef KERNELS_MEASURE_STREAM_ORDER_H_
#define KERNELS_MEASURE_STREAM_ORDER_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace convlab {

// Holds the default stream, calls `run`, which queues an operation there whose
// output is `y`, and looks at parts of y meanwhile. DataLoss if any was written
// although the stream is held. An operation that waits for its stream before it
// returns is not judged. The operation has run before, so that its code is
// loaded; y is poisoned, and the device is idle when this returns.
absl::Status CheckStreamOrder(const std::function<absl::Status()>& run, void* y,
                              int64_t bytes);

}  // namespace convlab

#endif  // KERNELS_MEASURE_STREAM_ORDER_H_
