#include <cuda_runtime.h>

texture<float, 1, cudaReadModeElementType> image;

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  cudaBindTexture(nullptr, image, x, sizeof(float) * B * C * H * W);
}
