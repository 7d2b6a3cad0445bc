// The second kernel of a fully connected layer on tensor cores: it adds up the
// partial sums, adds the bias, applies the activation, and computes the small
// fully connected layers that follow.
#ifndef KERNELS_LAYERS_CUDA_MATRIX_FINISH_CUH_
#define KERNELS_LAYERS_CUDA_MATRIX_FINISH_CUH_

#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/cuda/activation.cuh"
#include "kernels/layers/cuda/connected_layers.h"
#include "kernels/layers/cuda/finish_plan.h"

namespace convlab::cuda {

// The images of a block.
class FinishBlock {
 public:
  __device__ FinishBlock(float* shared, const FinishLaunch& launch)
      : launch_(launch),
        width_(static_cast<int>(
            min(int64_t{launch.width}, launch.outputs - first_output()))),
        images_(static_cast<int>(
            min(int64_t{launch.images}, launch.rows - first_image()))),
        sums_(shared) {}

  __device__ void Run(const float* partial, const float* factors,
                      const ConnectedLayers& layers, float* out) {
    AddChunks(partial);
    __syncthreads();
    const int64_t outputs = launch_.outputs;
    float* values = sums_ + launch_.sum_floats;
    const bool last = layers.count == 0;
    AddGroups(factors, layers.bias, layers.activation,
              last ? out + first_image() * outputs + first_output() : values,
              last ? outputs : width_);
    float* next = values + launch_.value_floats;
    int inputs = width_;
    for (int i = 0; i < layers.count; ++i) {
      __syncthreads();
      const ConnectedLayer& layer = layers.layers[i];
      const bool ends = i + 1 == layers.count;
      Connect(layer, inputs, values,
              ends ? out + first_image() * layer.outputs : next);
      inputs = layer.outputs;
      float* const used = values;
      values = next, next = used;
    }
  }

 private:
  // The grid is [image block][output block].
  __device__ int64_t output_blocks() const { return launch_.output_blocks(); }
  __device__ int64_t first_image() const {
    return blockIdx.x / output_blocks() * launch_.images;
  }
  __device__ int64_t first_output() const {
    return blockIdx.x % output_blocks() * launch_.width;
  }

  // sums_[image][group][output]: each group's sum of its units.
  __device__ void AddChunks(const float* partial) {
    const int of_image = launch_.groups * width_;
    const int64_t unit = launch_.rows * launch_.columns;
    const int own = threadIdx.x, threads = blockDim.x;
    for (int i = own; i < images_ * of_image; i += threads) {
      const int image = i / of_image;
      const int group = i % of_image / width_;
      const int first = group * launch_.units_per_group;
      const int end = min(first + launch_.units_per_group, launch_.units);
      const float* from = partial + first * unit +
                          (first_image() + image) * launch_.columns +
                          first_output() + i % width_;
      float sum = 0;
#pragma unroll 8
      for (int j = first; j < end; ++j, from += unit) sum += *from;
      sums_[i] = sum;
    }
  }

  __device__ void AddGroups(const float* factors, const float* bias,
                            Activation activation, float* to, int64_t pitch) {
    const int own = threadIdx.x, threads = blockDim.x;
    for (int i = own; i < images_ * width_; i += threads) {
      const int image = i / width_, output = i % width_;
      const float* from = sums_ + image * launch_.groups * width_ + output;
      float sum = 0;
      for (int j = 0; j < launch_.groups; ++j, from += width_) sum += *from;
      sum *= factors[first_output() + output];
      if (bias != nullptr) sum += bias[first_output() + output];
      to[image * pitch + output] = Apply(activation, sum);
    }
  }

  // A warp computes an output of an image.
  __device__ void Connect(const ConnectedLayer& layer, int inputs,
                          const float* in, float* out) const {
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int lane = threadIdx.x % 32;
    for (int i = warp; i < images_ * layer.outputs; i += warps) {
      const float* const values = in + i / layer.outputs * inputs;
      const float* const weights =
          layer.weight + int64_t{i % layer.outputs} * inputs;
      float sum = 0;
      for (int j = lane; j < inputs; j += 32) sum += values[j] * weights[j];
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
      }
      if (lane != 0) continue;
      if (layer.bias != nullptr) sum += layer.bias[i % layer.outputs];
      out[i] = Apply(layer.activation, sum);
    }
  }

  const FinishLaunch& launch_;
  const int width_, images_;
  float* const sums_;
};

__global__ void FinishMatrixKernel(
    const float* partial, const float* factors, float* out,
    const __grid_constant__ FinishLaunch launch,
    const __grid_constant__ ConnectedLayers layers) {
  extern __shared__ __align__(16) float finish_shared[];
  WaitForKernelBefore();
  FinishBlock(finish_shared, launch).Run(partial, factors, layers, out);
}

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_MATRIX_FINISH_CUH_
