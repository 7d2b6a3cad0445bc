// The GPU in a kernel's process. A build without the CUDA Toolkit has none.
#ifndef KERNELS_JUDGE_PROCESS_KERNEL_DEVICE_H_
#define KERNELS_JUDGE_PROCESS_KERNEL_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/problem.h"
#include "kernels/judge/source/abi.h"

namespace convlab {

class KernelDevice {
 public:
  // Makes the device the current one and creates its context, after which the
  // driver starts no more processes. Unavailable without a GPU.
  static absl::StatusOr<std::unique_ptr<KernelDevice>> Create(int device);
  virtual ~KernelDevice() = default;

  // Waits for all work of the device and takes persisting lines out of its L2
  // cache. Aborted with CUDA's name of the error if work failed.
  virtual absl::Status Settle() = 0;

  // Allocates device memory for a call's tensors, between red zones, and sets
  // the pointers and the stream of `call`.
  virtual absl::Status Allocate(const Problem& problem, ConvlabCall& call) = 0;
  // Fills the output with zeros or NaN. Before the first op of a call it also
  // remembers what the inputs hold.
  virtual absl::Status PrepareOp(bool zeros) = 0;
  // Copy the inputs to the device, and the output back.
  virtual absl::Status Upload(const ConvlabCall& call) = 0;
  virtual absl::Status Download(const ConvlabCall& call) = 0;
  // Aborted if the inputs on the device are not what they were.
  virtual absl::Status CheckInputs() = 0;
  // What happened to the red zones, or empty.
  virtual absl::StatusOr<std::string> CheckZones() = 0;
  virtual int64_t allocated_bytes() const = 0;

  // Runs `op` between two events in the call's stream, and waits for the
  // device. Sets `op_ns` by `clock`, from an idle device to an idle device, and
  // `event_ns`.
  virtual absl::Status Time(const ConvlabCall& call,
                            const std::function<void()>& op, int64_t (*clock)(),
                            int64_t* op_ns, int64_t* event_ns) = 0;
};

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_KERNEL_DEVICE_H_
