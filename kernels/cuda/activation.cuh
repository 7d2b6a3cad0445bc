// Activations and the maximum of max pooling in device code.
#ifndef KERNELS_CUDA_ACTIVATION_CUH_
#define KERNELS_CUDA_ACTIVATION_CUH_

#include <type_traits>

#include "common/network/layer.h"

namespace convlab::cuda {

// fmaxf would drop a NaN. From compute capability 8.0 on one instruction does
// not.
__device__ __forceinline__ float MaxOrNan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
#else
  return a > b || a != a ? a : b;
#endif
}

template <Activation kActivation>
__device__ inline float Apply(float value) {
  if (kActivation == Activation::kTanh) return tanhf(value);
  if (kActivation == Activation::kRelu) return MaxOrNan(value, 0);
  return value;
}

// Calls function(activation), its type a std::integral_constant, so that the
// activation is chosen once for all values.
template <typename Function>
__device__ __forceinline__ void WithActivation(Activation activation,
                                               const Function& function) {
  switch (activation) {
    case Activation::kNone:
      return function(std::integral_constant<Activation, Activation::kNone>());
    case Activation::kTanh:
      return function(std::integral_constant<Activation, Activation::kTanh>());
    case Activation::kRelu:
      return function(std::integral_constant<Activation, Activation::kRelu>());
  }
}

// Apply for an activation that is known at run time.
__device__ inline float Apply(Activation activation, float value) {
  if (activation == Activation::kTanh) return Apply<Activation::kTanh>(value);
  if (activation == Activation::kRelu) return Apply<Activation::kRelu>(value);
  return value;
}

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_ACTIVATION_CUH_
