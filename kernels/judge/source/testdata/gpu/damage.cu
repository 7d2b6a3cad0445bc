// Writes three floats behind its memory, reads what nobody wrote, and does not
// free it.
#include <cuda_runtime.h>

__global__ void damage(float* scratch, float* y, int size) {
  scratch[100 + 3] = 1;
  for (int i = 0; i < size; ++i) y[i] = scratch[5];
}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  float* scratch;
  cudaMalloc(&scratch, 100 * sizeof(float));
  damage<<<1, 1, 0, stream>>>(scratch, y, B * M * (H - K + 1) * (W - K + 1));
}
