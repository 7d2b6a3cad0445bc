// FA22: the CPU's loops.
#include "cpu-new-forward.h"

void conv_forward_cpu(float* output, const float* input, const float* mask,
                      const int Batch, const int Map_out, const int Channel,
                      const int Height, const int Width, const int K) {
  const int H_out = Height - K + 1;
  const int W_out = Width - K + 1;
#pragma omp parallel for
  for (int b = 0; b < Batch; ++b) {
    for (int m = 0; m < Map_out; ++m) {
      for (int h = 0; h < H_out; ++h) {
        for (int w = 0; w < W_out; ++w) {
          float sum = 0;
          for (int c = 0; c < Channel; ++c) {
            for (int p = 0; p < K; ++p) {
              for (int q = 0; q < K; ++q) {
                sum += input[((b * Channel + c) * Height + h + p) * Width + w +
                             q] *
                       mask[((m * Channel + c) * K + p) * K + q];
              }
            }
          }
          output[((b * Map_out + m) * H_out + h) * W_out + w] = sum;
        }
      }
    }
  }
}
