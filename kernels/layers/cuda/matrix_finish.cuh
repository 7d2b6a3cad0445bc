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
    const int64_t outputs = launch_.outputs;
    float* values = sums_ + launch_.sum_floats;
    const bool last = layers.count == 0;
    const Layer layer = {
        factors, layers.bias, layers.activation,
        last ? out + first_image() * outputs + first_output() : values,
        last ? outputs : width_};
    if (launch_.units_per_group == 1) {
      AddGroups(layer, partial + At(0, 0, 0), launch_.columns, unit_floats());
    } else {
      AddUnits(partial);
      __syncthreads();
      AddGroups(layer, sums_, int64_t{launch_.groups} * launch_.padded_width(),
                launch_.padded_width());
    }
    int inputs = width_;
    for (int i = 0; i < layers.count; ++i) {
      float* const next =
          sums_ + launch_.sum_floats + (i + 1) % 2 * launch_.value_floats;
      __syncthreads();
      Connect(layers.layers[i], inputs, values, next);
      inputs = layers.layers[i].outputs;
      values = next;
    }
    if (last) return;
    // Together, since the memory may be the host's.
    __syncthreads();
    const int own = threadIdx.x, threads = blockDim.x;
    for (int i = own; i < images_ * inputs; i += threads) {
      out[first_image() * inputs + i] = values[i];
    }
  }

 private:
  // What follows the sums, and where the results go.
  struct Layer {
    const float *factors, *bias;
    Activation activation;
    float* to;
    int64_t pitch;
  };

  // The grid is [image block][output block].
  __device__ int64_t output_blocks() const { return launch_.output_blocks(); }
  __device__ int64_t first_image() const {
    return blockIdx.x / output_blocks() * launch_.images;
  }
  __device__ int64_t first_output() const {
    return blockIdx.x % output_blocks() * launch_.width;
  }
  __device__ int64_t unit_floats() const {
    return launch_.rows * launch_.columns;
  }
  __device__ int64_t At(int unit, int image, int output) const {
    return unit * unit_floats() + (first_image() + image) * launch_.columns +
           first_output() + output;
  }
  // Of four outputs. Those of the last one may be padding.
  __device__ int vectors() const { return CeilDivide(width_, 4); }

  // Adds the next number of units, or of groups, which lie `step` floats apart.
  static __device__ __forceinline__ float4 Add(const float* from, int64_t step,
                                               int count) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int i = 0; i < count; ++i, from += step) {
      const float4 v = *reinterpret_cast<const float4*>(from);
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    return sum;
  }

  // sums_[image][group][output]: each group's sum of its units.
  __device__ void AddUnits(const float* partial) {
    const int of_image = launch_.groups * vectors();
    const int own = threadIdx.x, threads = blockDim.x;
    for (int i = own; i < images_ * of_image; i += threads) {
      const int image = i / of_image, group = i % of_image / vectors();
      const int output = i % vectors() * 4;
      const int first = group * launch_.units_per_group;
      const int count = min(launch_.units_per_group, launch_.units - first);
      float* const to =
          sums_ + (image * launch_.groups + group) * launch_.padded_width();
      *reinterpret_cast<float4*>(to + output) =
          Add(partial + At(first, image, output), unit_floats(), count);
    }
  }

  // The groups' sums are at from[image * image_step + group * group_step].
  __device__ void AddGroups(const Layer& layer, const float* from,
                            int64_t image_step, int64_t group_step) {
    const int own = threadIdx.x, threads = blockDim.x;
    for (int i = own; i < images_ * vectors(); i += threads) {
      const int image = i / vectors(), output = i % vectors() * 4;
      const float4 sum =
          Add(from + image * image_step + output, group_step, launch_.groups);
      const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (output + j >= width_) break;
        const int64_t m = first_output() + output + j;
        float value = sums[j] * layer.factors[m];
        if (layer.bias != nullptr) value += layer.bias[m];
        layer.to[image * layer.pitch + output + j] =
            Apply(layer.activation, value);
      }
    }
  }

  // A warp computes an output of all images, so that it waits for weights once.
  __device__ void Connect(const ConnectedLayer& layer, int inputs,
                          const float* in, float* out) const {
    constexpr int kAtOnce = 8;  // weights of a lane
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int lane = threadIdx.x % 32;
    for (int output = warp; output < layer.outputs; output += warps) {
      const float* const weights = layer.weight + int64_t{output} * inputs;
      float sums[kFinishImages] = {};
      for (int first = lane; first < inputs; first += 32 * kAtOnce) {
        float own[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          own[j] =
              LoadIfBelow(first + 32 * j, inputs, weights + first + 32 * j);
        }
#pragma unroll
        for (int i = 0; i < kFinishImages; ++i) {
          if (i == images_) break;
#pragma unroll
          for (int j = 0; j < kAtOnce; ++j) {
            const int at = first + 32 * j;
            if (at < inputs) sums[i] += in[i * inputs + at] * own[j];
          }
        }
      }
      const float bias = layer.bias == nullptr ? 0 : layer.bias[output];
#pragma unroll
      for (int i = 0; i < kFinishImages; ++i) {
        if (i == images_) break;
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
          sums[i] += __shfl_xor_sync(0xffffffff, sums[i], distance);
        }
        if (lane == 0) {
          out[i * layer.outputs + output] =
              Apply(layer.activation, sums[i] + bias);
        }
      }
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
