#include "gpu-new-forward.h"
void GPUInterface::conv_forward_gpu_prolog(const float* y, const float* x,
                                           const float* k, float** dy,
                                           float** dx, float** dk, const int B,
                                           const int M, const int C,
                                           const int H, const int W,
                                           const int K) {}
void GPUInterface::conv_forward_gpu(float* y, const float* x, const float* k,
                                    const int B, const int M, const int C,
                                    const int H, const int W, const int K) {}
