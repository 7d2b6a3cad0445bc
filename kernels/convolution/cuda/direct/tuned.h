// The compiled instances of the tuned kernel: one table, which the variant
// `tuned` and the sweep over all of them share. Free of CUDA types.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_TUNED_H_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_TUNED_H_

#include <cstdint>

#include "kernels/convolution/problem.h"

namespace convlab::cuda {

struct Error;
class Kernel;

// What is fixed when an instance is compiled.
struct TunedParameters {
  int kernel_size;  // K; 0: any
  // The outputs of one thread.
  int filters;
  int rows;
  int columns;
  int threads;            // of a block, at most
  bool constant_filters;  // in constant memory, not in shared memory
};

int TunedInstances();
TunedParameters TunedInstance(int instance);  // below TunedInstances()

// Whether the instance takes the problem: K is its own, and its tiles fit into
// the current device's shared memory.
bool TunedInstanceTakes(int instance, const Problem& problem);

// The instance that the variant takes for the problem; -1 if there is none.
int ChooseTunedInstance(const Problem& problem);

// For a problem that the instance takes. Never null; the caller deletes it. On
// failure `error` is set.
Kernel* MakeTunedInstance(int instance, const Problem& problem, Error* error);

// What the instance's launch uses.
struct TunedUsage {
  int threads = 0;           // of a block
  int registers = 0;         // of a thread
  int64_t spill_bytes = 0;   // of a thread, in local memory
  int64_t shared_bytes = 0;  // of a block
  int blocks = 0;            // on a multiprocessor
  double occupancy = 0;      // share of a multiprocessor's threads
  double padding = 0;        // multiply-adds done for one that counts
};
Error AskTunedUsage(int instance, const Problem& problem, TunedUsage* usage);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_TUNED_H_
