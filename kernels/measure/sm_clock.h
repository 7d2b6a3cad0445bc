// The clock of a GPU's multiprocessors, read through NVML, which comes with the
// driver.
#ifndef KERNELS_MEASURE_SM_CLOCK_H_
#define KERNELS_MEASURE_SM_CLOCK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace convlab {

class SmClock {
 public:
  // Opens NVML for the GPU with that PCI address (DeviceFacts::pci_bus_id).
  // Returns Unavailable, with the reason, if NVML cannot be used.
  static absl::StatusOr<SmClock> Open(const std::string& pci_bus_id);

  // The current clock in MHz. Takes some microseconds and does not wait for the
  // GPU's work.
  absl::StatusOr<int> Megahertz() const;

 private:
  explicit SmClock(void* device) : device_(device) {}
  void* device_;  // nvmlDevice_t
};

}  // namespace convlab

#endif  // KERNELS_MEASURE_SM_CLOCK_H_
