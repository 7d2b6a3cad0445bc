// Packing the weights of a fully connected layer for tensor cores.
#ifndef KERNELS_LAYERS_CUDA_MATRIX_PACK_CUH_
#define KERNELS_LAYERS_CUDA_MATRIX_PACK_CUH_

#include <cstdint>

#include "kernels/cuda/split.cuh"
#include "kernels/layers/cuda/matrix_plan.h"

namespace convlab::cuda {

// Packs the weights [outputs, inputs] (matrix_plan.h). A block packs a column.
__global__ void PackMatrixKernel(const float* weight, float* packed,
                                 const __grid_constant__ MatrixShape shape) {
#if __CUDA_ARCH__ >= 800
  __shared__ uint32_t largest;
  const int64_t output = blockIdx.x;
  const float* const own =
      weight + min(output, shape.outputs - 1) * shape.inputs;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  uint32_t most = 0;
  for (int64_t i = threadIdx.x; i < shape.inputs; i += blockDim.x) {
    most = LargerMagnitude(most, own[i]);
  }
  atomicMax(&largest, most);
  __syncthreads();
  // The rows' factors have taken 2^14.
  if (threadIdx.x == 0) {
    packed[output] =
        IsFiniteMagnitude(largest) ? PowerOf2(PowerOf(largest)) : NotANumber();
  }
  auto* const words = reinterpret_cast<uint32_t*>(packed + shape.columns());
  const int64_t pairs = shape.chunks * kMatrixChunk / 2;
  for (int64_t i = threadIdx.x; i < pairs; i += blockDim.x) {
    const bool exists = output < shape.outputs;
    const float a = exists && 2 * i < shape.inputs ? own[2 * i] : 0;
    const float b = exists && 2 * i + 1 < shape.inputs ? own[2 * i + 1] : 0;
    const SplitPair split = SplitWeights(largest, a, b);
    const int64_t step = i / (kMatrixStep / 2);
    const int in_step = i % (kMatrixStep / 2);
    const int64_t lane = output % kMatrixTile * 4 + in_step % 4;
    uint32_t* const to =
        words + (step * shape.tiles + output / kMatrixTile) * kTileWords + lane;
    to[in_step / 4 * 32] = split.high;
    to[(in_step / 4 + 2) * 32] = split.low;
  }
#endif
}

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_MATRIX_PACK_CUH_
