// tanh in fewer instructions than tanhf takes.
#ifndef KERNELS_CUDA_TANH_CUH_
#define KERNELS_CUDA_TANH_CUH_

namespace convlab::cuda {

// 2^x and 1 / x, with an error of about one in the last place.
__device__ __forceinline__ float FastPowerOf2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
__device__ __forceinline__ float FastInverse(float x) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  return inverse;
}

// The bits of tanhf, but for magnitudes above 9, where tanhf is 1 and this may
// be 1 - 2^-24: it does not ask whether the value is so large.
__device__ __forceinline__ float Tanh(float value) {
  constexpr float kTwiceLog2E = 2.88539004f;
  const float power = FastPowerOf2(fabsf(value) * kTwiceLog2E);
  const float far = copysignf(fmaf(-2, FastInverse(power + 1), 1), value);
  // That has too few digits near 0.
  const float square = value * value;
  float series = fmaf(square, 0x1.01e104p-6f, -0x1.ac795cp-5f);
  series = fmaf(square, series, 0x1.10b282p-3f);
  series = fmaf(square, series, -0x1.5553dap-2f);
  const float near = fmaf(series * square, value, value);
  return fabsf(value) < 0.6f ? near : far;
}

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_TANH_CUH_
