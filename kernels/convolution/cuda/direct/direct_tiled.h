// Single instances of direct_tiled, by their index in kDirectTiledInstances
// (instances.h). Free of CUDA types; instance_runner.h makes Convolutions of
// them.
#ifndef KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_H_
#define KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_H_

#include <cstdint>

#include "kernels/convolution/problem.h"

namespace convlab::cuda {

struct Error;
class Kernel;

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
  double padding = 0;        // multiply-adds done for one that is needed
};
Error AskDirectTiledUsage(int instance, const Problem& problem,
                          DirectTiledUsage* usage);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_DIRECT_DIRECT_TILED_H_
