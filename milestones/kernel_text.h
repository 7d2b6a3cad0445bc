// The lines of a verdict that tell what the compiler and the clocks found.
#ifndef MILESTONES_KERNEL_TEXT_H_
#define MILESTONES_KERNEL_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/judge/source/compile.h"
#include "kernels/judge/verdict.h"

namespace convlab {

// "conv_forward_kernel: 32 registers, 4096 bytes of shared memory, no spills"
std::string Describe(const DeviceFunction& function);

// The medians of one kind of samples over the layers; empty if a layer has
// none.
std::vector<double> Medians(const std::vector<LayerTimes>& layers,
                            const std::vector<int64_t> LayerTimes::*samples);

// Op time, kernel time, time of the whole operation, and memory: the larger of
// `device_bytes` and what the layers took. Empty if a layer was not timed.
std::vector<std::string> DescribeTimes(const std::vector<LayerTimes>& layers,
                                       int64_t device_bytes);

}  // namespace convlab

#endif  // MILESTONES_KERNEL_TEXT_H_
