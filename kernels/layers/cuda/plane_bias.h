// A bias that another kernel adds. This header is small because nvcc parses it
// once per architecture.
#ifndef KERNELS_LAYERS_CUDA_PLANE_BIAS_H_
#define KERNELS_LAYERS_CUDA_PLANE_BIAS_H_

namespace convlab::cuda {

// One value in device memory for each channel; an image's planes are its
// channels, one after another.
struct PlaneBias {
  const float* values = nullptr;  // null: none
  int channels = 1;
};

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_PLANE_BIAS_H_
