#include "kernels/measure/sm_clock.h"

#include <dlfcn.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/cuda/library.h"

namespace convlab {
namespace {

// Not every toolkit has NVML's header. These declarations are the part of its
// stable interface that is used here: nvmlReturn_t and nvmlClockType_t are
// enumerations, nvmlDevice_t is a pointer.
using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlClockSm = 1;

struct Nvml {
  int (*init)();
  int (*get_handle)(const char* pci_bus_id, NvmlDevice* device);
  int (*get_clock)(NvmlDevice device, int type, unsigned* megahertz);
  const char* (*error_string)(int code);
};

// Returns the driver's version: NVML's own has another major number.
cuda::LibraryVersion Version(void* handle) {
  cuda::LibraryVersion version = {};
  const auto init = reinterpret_cast<int (*)()>(dlsym(handle, "nvmlInit_v2"));
  const auto get_version = reinterpret_cast<int (*)(char*, unsigned)>(
      dlsym(handle, "nvmlSystemGetDriverVersion"));
  char text[80] = "";
  if (init != nullptr && get_version != nullptr && init() == kNvmlSuccess &&
      get_version(text, sizeof(text)) == kNvmlSuccess) {
    // NOLINTNEXTLINE(cert-err34-c): text that is not a number leaves 0.
    std::sscanf(text, "%d.%d.%d", &version[0], &version[1], &version[2]);
  }
  return version;
}

absl::Status CheckNvml(const Nvml& nvml, int code, const char* call) {
  if (code == kNvmlSuccess) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(call, ": ", nvml.error_string(code)));
}

absl::StatusOr<const Nvml*> LoadNvml() {
  ASSIGN_OR_RETURN(
      const cuda::Library* library,
      cuda::OpenLibrary({"NVML", "libnvidia-ml.so.1", Version, {}}));
  static Nvml nvml;
  RETURN_IF_ERROR(LoadFunction(*library, "nvmlInit_v2", nvml.init));
  RETURN_IF_ERROR(LoadFunction(*library, "nvmlDeviceGetHandleByPciBusId_v2",
                               nvml.get_handle));
  RETURN_IF_ERROR(
      LoadFunction(*library, "nvmlDeviceGetClockInfo", nvml.get_clock));
  RETURN_IF_ERROR(LoadFunction(*library, "nvmlErrorString", nvml.error_string));
  RETURN_IF_ERROR(CheckNvml(nvml, nvml.init(), "nvmlInit"));
  return &nvml;
}

// Opens NVML once; a failure is permanent.
const absl::StatusOr<const Nvml*>& OpenNvml() {
  static const auto* const nvml = new absl::StatusOr<const Nvml*>(LoadNvml());
  return *nvml;
}

}  // namespace

absl::StatusOr<SmClock> SmClock::Open(const std::string& pci_bus_id) {
  ASSIGN_OR_RETURN(const Nvml* nvml, OpenNvml());
  NvmlDevice device = nullptr;
  RETURN_IF_ERROR(CheckNvml(*nvml,
                            nvml->get_handle(pci_bus_id.c_str(), &device),
                            "nvmlDeviceGetHandleByPciBusId"));
  SmClock clock(device);
  RETURN_IF_ERROR(clock.Megahertz().status());
  return clock;
}

absl::StatusOr<int> SmClock::Megahertz() const {
  ASSIGN_OR_RETURN(const Nvml* nvml, OpenNvml());
  unsigned megahertz = 0;
  RETURN_IF_ERROR(CheckNvml(*nvml,
                            nvml->get_clock(device_, kNvmlClockSm, &megahertz),
                            "nvmlDeviceGetClockInfo"));
  return static_cast<int>(megahertz);
}

}  // namespace convlab
