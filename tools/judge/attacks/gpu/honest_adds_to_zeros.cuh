// The MXNet era: adds to the output, which the course's program had cleared.
// Nothing to catch: the output is cleared for these files.
#include <mxnet/base.h>

namespace mxnet {
namespace op {

__global__ void forward_kernel(float* y, const float* x, const float* k, int C,
                               int H, int W, int K) {
  const int columns = W - K + 1;
  const int pixels = (H - K + 1) * columns;
  const size_t b = blockIdx.x;
  const int m = blockIdx.y;
  const int c = blockIdx.z;
  for (int i = threadIdx.x; i < pixels; i += blockDim.x) {
    float sum = 0;
    for (int p = 0; p < K; ++p)
      for (int q = 0; q < K; ++q)
        sum += x[((b * C + c) * H + i / columns + p) * W + i % columns + q] *
               k[((m * C + c) * K + p) * K + q];
    atomicAdd(&y[(b * gridDim.y + m) * pixels + i], sum);
  }
}

template <>
void forward<gpu, float>(mshadow::Tensor<gpu, 4, float>& y,
                         const mshadow::Tensor<gpu, 4, float>& x,
                         const mshadow::Tensor<gpu, 4, float>& w) {
  const int B = x.shape_[0];
  const int M = y.shape_[1];
  const int C = x.shape_[1];
  CHECK_EQ(w.shape_[1], C) << "channels differ";
  forward_kernel<<<dim3(B, M, C), 256, 0, y.stream_->stream_>>>(
      y.dptr_, x.dptr_, w.dptr_, C, x.shape_[2], x.shape_[3], w.shape_[3]);
  MSHADOW_CUDA_CALL(cudaDeviceSynchronize());
}

template <typename gpu, typename DType>
void forward(mshadow::Tensor<gpu, 4, DType>& y,
             const mshadow::Tensor<gpu, 4, DType>& x,
             const mshadow::Tensor<gpu, 4, DType>& w) {
  CHECK_EQ(0, 1) << "Remove this line and replace it with your implementation.";
}

}  // namespace op
}  // namespace mxnet
