// All blocks wait for one another, and there are more than fit.
// Caught: calls have a limit of time.
#include "convolve.cuh"

__device__ unsigned arrived;

__global__ void Meet(unsigned blocks) {
  if (threadIdx.x == 0) {
    atomicAdd(&arrived, 1);
    while (*reinterpret_cast<volatile unsigned*>(&arrived) % blocks != 0) {
    }
  }
  __syncthreads();
}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  Meet<<<1000000, 1024, 0, stream>>>(1000000);
  Convolve(x, k, y, B, C, H, W, M, K, stream);
}
