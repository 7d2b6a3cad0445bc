// The launch of the kernel that adds up the partial sums of a matrix product
// (matrix_finish.cuh). Free of CUDA.
#ifndef KERNELS_LAYERS_CUDA_FINISH_PLAN_H_
#define KERNELS_LAYERS_CUDA_FINISH_PLAN_H_

#include <cstdint>

#include "kernels/layers/cuda/connected_layers.h"
#include "kernels/layers/cuda/matrix_plan.h"

namespace convlab::cuda {

// The most images of a block.
constexpr int kFinishImages = 8;

struct FinishLaunch {
  int64_t rows, columns, outputs;
  int units, units_per_group, groups;
  int images;        // of a block
  int width;         // outputs of a block, all of them if layers follow: where
                     // there are several blocks, a multiple of 4
  int sum_floats;    // in shared memory: the groups' sums of its images
  int value_floats;  // likewise: a layer's outputs; there are two of these
  int threads;

  // Floats between two groups' sums in shared memory.
  constexpr int padded_width() const { return (width + 3) / 4 * 4; }
  constexpr int64_t image_blocks() const {
    return (rows + images - 1) / images;
  }
  constexpr int64_t output_blocks() const {
    return (outputs + width - 1) / width;
  }
  constexpr int shared_bytes() const {
    return 4 * (sum_floats + 2 * value_floats);
  }
};

// Whether `layers` may follow a layer with that many outputs in the same
// kernel.
bool CanFollow(int64_t outputs, const ConnectedLayers& layers);

// For layers that can follow. False if an image's sums do not fit into 48 KiB.
bool MakeFinishLaunch(const MatrixLaunch& product,
                      const ConnectedLayers& layers, int multiprocessors,
                      FinishLaunch* launch);

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_FINISH_PLAN_H_
