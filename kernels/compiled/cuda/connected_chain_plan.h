// How fully connected layers run one after another as one kernel by the
// products of warpgroups (connected_chain_stream.cuh). Free of CUDA, so that it
// can be tested without a GPU.
#ifndef KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_PLAN_H_
#define KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/layers/cuda/matrix_plan.h"

namespace convlab::cuda {

constexpr int kMostChainLayers = 4;
// Of the first layer, and of all of them: larger ones fill the GPU as single
// products do (LaunchMatrix).
constexpr int kMostChainInputs = 2048, kMostChainOutputs = 128;
// Floats between a layer's values of two images in shared memory.
constexpr int kChainValuePitch = kMostChainOutputs + 4;

// Outputs of a warpgroup that multiplies.
constexpr int kStreamOutputs = 64;
constexpr int kStreamMostStages = 8;
// Chunks of images that are on their way from device memory.
constexpr int kStreamAhead = 3;
// Images of a block, of which the kernels are compiled for two numbers.
constexpr int kStreamRows[] = {32, 40};

// A launch. Chunks of weights, and of images as halves, take turns in `stages`
// places in shared memory.
struct ChainStream {
  int groups;  // warpgroups of a block that multiply: 1 or 2
  int rows;    // images of a block
  int parts;   // halves of a weight: 2, or 1 where the low ones are all zero
  int stages;
  int weight_bytes;  // of a stage: what the products of the widest layer read

  // Behind the multipliers stand warps that split eight images each, and one
  // that has the copy engine load weights.
  static constexpr int Threads(int groups, int rows) {
    return 128 * groups + 4 * rows + 32;
  }
  // The weights of 8 outputs for a step.
  static constexpr int TileBytes(int parts) { return parts * kTileWords * 2; }
  // A stage's halves, of which each 8 images take kTileWords for a step, as
  // each 8 outputs of two parts do (matrix_plan.h); the weights stand behind
  // them.
  static constexpr int HalvesBytes(int rows) {
    return kChunkSteps * rows / 8 * kTileWords * 4;
  }
  constexpr int stage_bytes() const { return HalvesBytes(rows) + weight_bytes; }

  // What lies before the stages: two layers' values, the columns' factors and
  // biases, the images' factors in each stage, and chunks of images that are on
  // their way.
  static constexpr int ColumnsAt(int rows) {
    return 2 * rows * kChainValuePitch * 4;
  }
  static constexpr int FactorsAt(int rows) {
    return ColumnsAt(rows) + kMostChainLayers * kMostChainOutputs * 8;
  }
  static constexpr int StagingAt(int rows) {
    return (FactorsAt(rows) + kStreamMostStages * rows * 4 + 127) / 128 * 128;
  }
  static constexpr int StagesAt(int rows) {
    return StagingAt(rows) + kStreamAhead * rows * kMatrixChunk * 4;
  }
  constexpr int shared_bytes() const {
    return StagesAt(rows) + stages * stage_bytes();
  }
};

// The launch for `count` layers of these shapes, whose weights have that many
// parts. False if shared memory has no room for two stages.
bool MakeChainStream(const MatrixShape* shapes, int count, int parts,
                     int64_t images, const DeviceLimits& limits,
                     ChainStream* stream);

}  // namespace convlab::cuda

#endif  // KERNELS_COMPILED_CUDA_CONNECTED_CHAIN_PLAN_H_
