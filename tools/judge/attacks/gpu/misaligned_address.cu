// Stores four floats at an address that is not a multiple of 16.
// Caught: a crash is a verdict about this kernel alone.
#include "convolve.cuh"

__global__ void Store(float* y) {
  *reinterpret_cast<float4*>(y + 1) = make_float4(0, 0, 0, 0);
}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  Store<<<1, 1, 0, stream>>>(y);
  Convolve(x, k, y, B, C, H, W, M, K, stream);
}
