// FA23: with a stride.
#include "./cpu-new-forward.h"

void conv_forward_cpu(float* output, const float* input, const float* mask,
                      const int Batch, const int Map_out, const int Channel,
                      const int Height, const int Width, const int K,
                      const int S) {
  const int H_out = (Height - K) / S + 1;
  const int W_out = (Width - K) / S + 1;
  for (int i = 0; i < Batch * Map_out * H_out * W_out; ++i) {
    const int w = i % W_out;
    const int h = i / W_out % H_out;
    const int m = i / W_out / H_out % Map_out;
    const int b = i / W_out / H_out / Map_out;
    float sum = 0;
    for (int c = 0; c < Channel; ++c) {
      for (int p = 0; p < K; ++p) {
        for (int q = 0; q < K; ++q) {
          sum += input[((b * Channel + c) * Height + h * S + p) * Width +
                       w * S + q] *
                 mask[((m * Channel + c) * K + p) * K + q];
        }
      }
    }
    output[i] = sum;
  }
}
