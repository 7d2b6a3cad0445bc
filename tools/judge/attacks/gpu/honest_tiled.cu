// Tiles of the input in shared memory.
// Nothing to catch.
#include "convolve.cuh"

constexpr int kTile = 16;

__global__ void Tiled(const float* x, const float* k, float* y, int C, int H,
                      int W, int M, int K) {
  extern __shared__ float tile[];
  const int width = kTile + K - 1;
  const int columns = W - K + 1;
  const int rows = H - K + 1;
  const size_t b = blockIdx.z;
  const int h0 = blockIdx.y * kTile, w0 = blockIdx.x * kTile;
  const int h = h0 + threadIdx.y, w = w0 + threadIdx.x;
  for (int m = 0; m < M; ++m) {
    float sum = 0;
    for (int c = 0; c < C; ++c) {
      __syncthreads();
      for (int i = threadIdx.y * kTile + threadIdx.x; i < width * width;
           i += kTile * kTile) {
        const int p = h0 + i / width, q = w0 + i % width;
        tile[i] = p < H && q < W ? x[((b * C + c) * H + p) * W + q] : 0;
      }
      __syncthreads();
      for (int p = 0; p < K; ++p)
        for (int q = 0; q < K; ++q)
          sum += tile[(threadIdx.y + p) * width + threadIdx.x + q] *
                 k[((m * C + c) * K + p) * K + q];
    }
    if (h < rows && w < columns)
      y[((b * M + m) * rows + h) * columns + w] = sum;
  }
}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  const dim3 grid((W - K) / kTile + 1, (H - K) / kTile + 1, B);
  const size_t shared = sizeof(float) * (kTile + K - 1) * (kTile + K - 1);
  Tiled<<<grid, dim3(kTile, kTile), shared, stream>>>(x, k, y, C, H, W, M, K);
}
