#include "tools/faults/fake_gpus.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "tools/faults/fake_devices.h"

namespace convlab::fake {
namespace {

// As cudaFuncGetAttributes of fake_cuda.cc tells.
constexpr int kRegisters = 64;

struct Known {
  std::mutex mutex;
  std::map<int, Gpu> gpus;
  std::map<const void*, size_t> shared;
};

Known& TheKnown() {
  static Known* const known = new Known;
  return *known;
}

}  // namespace

void SetGpu(int device, const Gpu& gpu) {
  Known& known = TheKnown();
  const std::lock_guard<std::mutex> lock(known.mutex);
  known.gpus[device] = gpu;
}

const Gpu& GpuOf(int device) {
  Known& known = TheKnown();
  const std::lock_guard<std::mutex> lock(known.mutex);
  return known.gpus.emplace(device, kH200).first->second;
}

int Attribute(cudaDeviceAttr attribute, int device) {
  const Gpu& gpu = GpuOf(device);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      return gpu.capability / 10;
    case cudaDevAttrComputeCapabilityMinor:
      return gpu.capability % 10;
    case cudaDevAttrMultiProcessorCount:
      return gpu.multiprocessors;
    case cudaDevAttrClockRate:
      return gpu.clock_khz;
    case cudaDevAttrMemoryClockRate:
      return gpu.memory_khz;
    case cudaDevAttrGlobalMemoryBusWidth:
      return gpu.bus_bits;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return gpu.shared_per_block;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return gpu.shared_per_multiprocessor;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return gpu.threads_per_multiprocessor;
    default:
      return 0;
  }
}

int ResidentBlocks(int threads, size_t dynamic_shared) {
  constexpr int kAllRegisters = 65536, kWarp = 32, kMostBlocks = 32;
  constexpr int kSystemShared = 1024;  // of a block
  const Gpu& gpu = GpuOf(CurrentDevice());
  const int used = (threads + kWarp - 1) / kWarp * kWarp;
  const int shared = static_cast<int>(dynamic_shared) + kSystemShared;
  return std::min({kMostBlocks, gpu.threads_per_multiprocessor / used,
                   kAllRegisters / (kRegisters * used),
                   gpu.shared_per_multiprocessor / shared});
}

bool AllowShared(const void* function, int bytes) {
  if (bytes > GpuOf(CurrentDevice()).shared_per_block) {
    return false;
  }
  Known& known = TheKnown();
  const std::lock_guard<std::mutex> lock(known.mutex);
  known.shared[function] = bytes + kStaticShared;
  return true;
}

bool TakesLaunch(const void* function, dim3 grid, dim3 block, size_t shared) {
  constexpr unsigned kMostThreads = 1024, kMostYZ = 65535;
  constexpr size_t kUnlessAllowed = 48 << 10;
  const auto counts = [](dim3 d) { return d.x > 0 && d.y > 0 && d.z > 0; };
  if (!counts(grid) || !counts(block) || grid.x > 0x7fffffff ||
      grid.y > kMostYZ || grid.z > kMostYZ ||
      size_t{block.x} * block.y * block.z > kMostThreads) {
    return false;
  }
  Known& known = TheKnown();
  const std::lock_guard<std::mutex> lock(known.mutex);
  const auto found = known.shared.find(function);
  return shared <= std::max(found == known.shared.end() ? 0 : found->second,
                            kUnlessAllowed);
}

}  // namespace convlab::fake
