// FA17: the naive kernel on the GPU.
#ifndef MXNET_OPERATOR_NEW_FORWARD_CUH_
#define MXNET_OPERATOR_NEW_FORWARD_CUH_

#include <mxnet/base.h>

namespace mxnet {
namespace op {

#define TILE 16

template <typename gpu, typename DType>
__global__ void forward_kernel(DType* y, const DType* x, const DType* k, int B,
                               int M, int C, int H, int W, int K) {
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  const int w = blockIdx.x * TILE + threadIdx.x;
  const int h = blockIdx.y * TILE + threadIdx.y;
  const int m = blockIdx.z % M;
  const int b = blockIdx.z / M;
  if (h >= H_out || w >= W_out) return;
  DType sum = 0;
  for (int c = 0; c < C; ++c) {
    for (int p = 0; p < K; ++p) {
      for (int q = 0; q < K; ++q) {
        sum += x[((b * C + c) * H + h + p) * W + w + q] *
               k[((m * C + c) * K + p) * K + q];
      }
    }
  }
  y[((b * M + m) * H_out + h) * W_out + w] = sum;
}

// Unlike the later terms', this file leaves the template to the compiler.
template <typename gpu, typename DType>
void forward(mshadow::Tensor<gpu, 4, DType>& y,
             const mshadow::Tensor<gpu, 4, DType>& x,
             const mshadow::Tensor<gpu, 4, DType>& w) {
  const int B = x.shape_[0];
  const int M = y.shape_[1];
  const int C = x.shape_[1];
  const int H = x.shape_[2];
  const int W = x.shape_[3];
  const int K = w.shape_[3];
  CHECK_EQ(w.shape_[1], x.shape_[1]) << "the channels differ";
  cudaStream_t s = y.stream_->stream_;
  // The grid's z holds so many images.
  const int most = 65535 / M;
  for (int b = 0; b < B; b += most) {
    const int images = B - b < most ? B - b : most;
    dim3 grid((W - K + TILE) / TILE, (H - K + TILE) / TILE, images * M);
    forward_kernel<gpu, DType><<<grid, dim3(TILE, TILE), 0, s>>>(
        y[b].dptr_, x[b].dptr_, w.dptr_, images, M, C, H, W, K);
  }
  MSHADOW_CUDA_CALL(cudaDeviceSynchronize());
}

}  // namespace op
}  // namespace mxnet

#endif
