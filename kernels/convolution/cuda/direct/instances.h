// What `direct_tiled` and `half2` are compiled for, and which of their
// instances a problem takes on a device. Free of CUDA, as plan.h is.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_INSTANCES_H_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_INSTANCES_H_

#include "kernels/convolution/cuda/direct/plan.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

struct DirectInstance {
  int kernel_size;  // K; 0: any
  DirectTile tile;
  // TFLOP/s of all multiply-adds on an H200, padding included, about what
  // //tools/sweep measured on layers that suit the instance. 0: not measured.
  double rate;
};

// Floats in the largest vector that divides `count` of them.
constexpr int VectorFloats(int count) {
  return count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1;
}

// The numbers of a row in the tables below, named by their types.
struct KernelSize {
  int taps;  // 0: any
};
struct Outputs {  // of a thread
  int filters, rows, columns;
};
struct Threads {  // of a block, at most
  int count;
};
struct Rate {
  double tflops;
};

// direct_tiled keeps the filters in shared memory,
constexpr DirectInstance SharedFilters(KernelSize kernel_size, Outputs outputs,
                                       Threads threads, Rate rate) {
  return {kernel_size.taps,
          {outputs.filters, outputs.rows, outputs.columns, threads.count,
           /*element_bytes=*/4,
           /*vector=*/kernel_size.taps > 0 ? VectorFloats(outputs.columns) : 1,
           /*buffers=*/2, /*constant_filters=*/false},
          rate.tflops};
}
// or in constant memory.
constexpr DirectInstance ConstantFilters(KernelSize kernel_size,
                                         Outputs outputs, Threads threads,
                                         Rate rate) {
  DirectInstance instance = SharedFilters(kernel_size, outputs, threads, rate);
  instance.tile.constant_filters = true;
  return instance;
}

inline constexpr DirectInstance kDirectTiledInstances[] = {
    SharedFilters(KernelSize{5}, Outputs{4, 2, 4}, Threads{256}, Rate{36}),
    SharedFilters(KernelSize{5}, Outputs{6, 2, 4}, Threads{256}, Rate{41}),
    SharedFilters(KernelSize{5}, Outputs{8, 2, 4}, Threads{128}, Rate{33}),
    SharedFilters(KernelSize{5}, Outputs{8, 1, 6}, Threads{128}, Rate{40}),
    SharedFilters(KernelSize{5}, Outputs{8, 1, 8}, Threads{256}, Rate{40}),
    SharedFilters(KernelSize{5}, Outputs{12, 1, 4}, Threads{256}, Rate{40}),
    ConstantFilters(KernelSize{5}, Outputs{4, 2, 4}, Threads{256}, Rate{38}),
    ConstantFilters(KernelSize{5}, Outputs{6, 2, 4}, Threads{128}, Rate{35}),
    ConstantFilters(KernelSize{5}, Outputs{6, 4, 2}, Threads{256}, Rate{30}),
    ConstantFilters(KernelSize{5}, Outputs{6, 1, 6}, Threads{256}, Rate{34}),
    ConstantFilters(KernelSize{5}, Outputs{10, 1, 4}, Threads{256}, Rate{33}),
    ConstantFilters(KernelSize{5}, Outputs{12, 2, 2}, Threads{256}, Rate{30}),
    SharedFilters(KernelSize{7}, Outputs{4, 2, 8}, Threads{256}, Rate{42}),
    SharedFilters(KernelSize{7}, Outputs{6, 2, 4}, Threads{256}, Rate{38}),
    SharedFilters(KernelSize{7}, Outputs{8, 2, 4}, Threads{256}, Rate{36}),
    SharedFilters(KernelSize{7}, Outputs{8, 1, 6}, Threads{256}, Rate{39}),
    SharedFilters(KernelSize{7}, Outputs{8, 1, 8}, Threads{128}, Rate{44}),
    SharedFilters(KernelSize{7}, Outputs{8, 1, 10}, Threads{256}, Rate{38}),
    SharedFilters(KernelSize{7}, Outputs{12, 1, 4}, Threads{256}, Rate{37}),
    ConstantFilters(KernelSize{7}, Outputs{4, 2, 4}, Threads{256}, Rate{39}),
    ConstantFilters(KernelSize{7}, Outputs{4, 4, 2}, Threads{128}, Rate{37}),
    ConstantFilters(KernelSize{7}, Outputs{6, 1, 6}, Threads{256}, Rate{34}),
    ConstantFilters(KernelSize{7}, Outputs{12, 2, 2}, Threads{256}, Rate{37}),
    SharedFilters(KernelSize{0}, Outputs{4, 2, 4}, Threads{128}, Rate{24}),
    SharedFilters(KernelSize{0}, Outputs{8, 2, 4}, Threads{128}, Rate{33}),
};
inline constexpr int kDirectTiledInstanceCount =
    sizeof(kDirectTiledInstances) / sizeof(kDirectTiledInstances[0]);

// half2 rounds to halves in shared memory, before which inputs wait in
// registers; one buffer is enough.
constexpr DirectInstance HalfFilters(KernelSize kernel_size, Outputs outputs,
                                     Threads threads) {
  return {kernel_size.taps,
          {outputs.filters, outputs.rows, outputs.columns, threads.count,
           /*element_bytes=*/2, /*vector=*/kernel_size.taps > 0 ? 4 : 1,
           /*buffers=*/1, /*constant_filters=*/false},
          /*rate=*/0};
}

inline constexpr DirectInstance kHalf2Instances[] = {
    HalfFilters(KernelSize{0}, Outputs{4, 2, 4}, Threads{128}),
    HalfFilters(KernelSize{0}, Outputs{8, 2, 4}, Threads{128}),
    HalfFilters(KernelSize{5}, Outputs{4, 2, 4}, Threads{128}),
    HalfFilters(KernelSize{5}, Outputs{6, 2, 4}, Threads{128}),
    HalfFilters(KernelSize{5}, Outputs{8, 2, 4}, Threads{128}),
    HalfFilters(KernelSize{7}, Outputs{4, 2, 4}, Threads{128}),
    HalfFilters(KernelSize{7}, Outputs{6, 2, 4}, Threads{128}),
    HalfFilters(KernelSize{7}, Outputs{8, 2, 4}, Threads{128}),
};
inline constexpr int kHalf2InstanceCount =
    sizeof(kHalf2Instances) / sizeof(kHalf2Instances[0]);

// The constant memory that a program may declare, all of it for filters.
inline constexpr int kConstantFloats = 16384;

// Cuts the problem for an instance of direct_tiled; false if the instance does
// not take it: K must be its own, its tiles must fit into shared memory, and
// constant filters into constant memory.
bool MakeDirectTiledPlan(const DirectInstance& instance, const Problem& problem,
                         const DeviceLimits& limits, DirectPlan* plan);

// The index of the instance that the variant runs for the problem, and its
// plan; -1 if none takes it.
int ChooseDirectTiled(const Problem& problem, const DeviceLimits& limits,
                      DirectPlan* plan);
int ChooseHalf2(const Problem& problem, const DeviceLimits& limits,
                DirectPlan* plan);

// Threads of direct_tiled that a multiprocessor should hold, by the registers
// that the sums leave to each: 80 registers for up to 32 sums, 128 for up to
// 80.
constexpr int ResidentThreads(int sums) { return sums <= 32 ? 768 : 512; }

// The time of direct_tiled in nanoseconds; negative if it does not take the
// problem.
double EstimateDirectTiledNs(const Problem& problem,
                             const DeviceLimits& limits);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_INSTANCES_H_
