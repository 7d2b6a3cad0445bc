// The compiled instances of direct_tiled: one table, which the variant and the
// sweep over all of them share. Free of CUDA types.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_H_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_H_

#include <cstdint>

#include "kernels/convolution/problem.h"

namespace convlab::cuda {

struct Error;
class Kernel;

// What is fixed when an instance is compiled.
struct DirectTiledParameters {
  int kernel_size;  // K; 0: any
  // The outputs of one thread.
  int filters;
  int rows;
  int columns;
  int threads;            // of a block, at most
  bool constant_filters;  // in constant memory, not in shared memory
};

int DirectTiledInstances();
DirectTiledParameters DirectTiledInstance(
    int instance);  // below DirectTiledInstances()

// Whether the instance takes the problem: K is its own, and its tiles fit into
// the current device's shared memory.
bool DirectTiledInstanceTakes(int instance, const Problem& problem);

// The instance that the variant takes for the problem; -1 if there is none.
int ChooseDirectTiledInstance(const Problem& problem);

// For a problem that the instance takes. Never null; the caller deletes it. On
// failure `error` is set.
Kernel* MakeDirectTiledInstance(int instance, const Problem& problem,
                                Error* error);

// What the instance's launch uses.
struct DirectTiledUsage {
  int threads = 0;           // of a block
  int registers = 0;         // of a thread
  int64_t spill_bytes = 0;   // of a thread, in local memory
  int64_t shared_bytes = 0;  // of a block
  int blocks = 0;            // on a multiprocessor
  double occupancy = 0;      // share of a multiprocessor's threads
  double padding = 0;        // multiply-adds done for one that counts
};
Error AskDirectTiledUsage(int instance, const Problem& problem,
                          DirectTiledUsage* usage);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_H_
