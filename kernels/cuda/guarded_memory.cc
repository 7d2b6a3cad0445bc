#include "kernels/cuda/guarded_memory.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "common/math/rounding.h"
#include "common/status/status.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {
namespace {

// Calls a function of the driver, which the runtime has opened.
template <typename... Arguments>
absl::Status Call(const char* name, CUresult (*)(Arguments...),
                  Arguments... arguments) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  using Function = CUresult (*)(Arguments...);
  const auto function = driver == nullptr
                            ? nullptr
                            : reinterpret_cast<Function>(dlsym(driver, name));
  if (function == nullptr) {
    return absl::UnavailableError(absl::StrCat("the driver has no ", name));
  }
  const CUresult result = function(arguments...);
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(name, " failed with error ", static_cast<int>(result)));
}
// decltype does not link the function.
#define CALL(function, ...) \
  RETURN_IF_ERROR(          \
      Call(#function, static_cast<decltype(&function)>(nullptr), __VA_ARGS__))

}  // namespace

absl::StatusOr<GuardedMemory> MapGuardedMemory(int64_t bytes) {
  RETURN_IF_ERROR(FindDevice().status());
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaFree(nullptr) != cudaSuccess)
    return absl::UnavailableError("the device has no context");
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  size_t page = 0;
  CALL(cuMemGetAllocationGranularity, &page,
       static_cast<const CUmemAllocationProp*>(&properties),
       CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  const size_t mapped = RoundUp(bytes, static_cast<int64_t>(page));
  CUdeviceptr reserved = 0;
  CALL(cuMemAddressReserve, &reserved, mapped + 2 * page, size_t{0},
       CUdeviceptr{0}, 0ULL);
  CUmemGenericAllocationHandle handle = 0;
  CALL(cuMemCreate, &handle, mapped,
       static_cast<const CUmemAllocationProp*>(&properties), 0ULL);
  const CUdeviceptr begin = reserved + page;
  CALL(cuMemMap, begin, mapped, size_t{0}, handle, 0ULL);
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CALL(cuMemSetAccess, begin, mapped,
       static_cast<const CUmemAccessDesc*>(&access), size_t{1});
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a CUdeviceptr is an address
  char* const address = reinterpret_cast<char*>(begin);
  return GuardedMemory{address, static_cast<int64_t>(mapped)};
}

}  // namespace convlab::cuda
