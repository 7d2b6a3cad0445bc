// What records say of the GPU that a run used.
#ifndef KERNELS_MEASURE_GPU_FACTS_H_
#define KERNELS_MEASURE_GPU_FACTS_H_

#include "common/record/run_record.h"
#include "kernels/cuda/device.h"

namespace convlab {

// The facts of `device` that are recorded, without libraries.
inline GpuFacts FactsOf(const cuda::DeviceFacts& device) {
  GpuFacts facts;
  facts.name = device.name;
  facts.compute_capability = device.compute_capability;
  facts.multiprocessors = device.multiprocessors;
  facts.memory_bytes = device.memory_bytes;
  facts.driver_version = device.driver_version;
  facts.runtime_version = device.runtime_version;
  facts.multiprocessor_clock_khz = device.multiprocessor_clock_khz;
  facts.memory_clock_khz = device.memory_clock_khz;
  return facts;
}

}  // namespace convlab

#endif  // KERNELS_MEASURE_GPU_FACTS_H_
