// FA19: a specialization before the template, and sums in the zeroed output.
#include <mxnet/base.h>

namespace mxnet {
namespace op {

__global__ void add_channel(float* y, const float* x, const float* k, int M,
                            int C, int H, int W, int K, int c) {
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  const int b = blockIdx.x;
  const int m = blockIdx.y;
  for (int i = threadIdx.x; i < H_out * W_out; i += blockDim.x) {
    const int h = i / W_out;
    const int w = i % W_out;
    float sum = 0;
    for (int p = 0; p < K; ++p) {
      for (int q = 0; q < K; ++q) {
        sum += x[((b * C + c) * H + h + p) * W + w + q] *
               k[((m * C + c) * K + p) * K + q];
      }
    }
    atomicAdd(&y[(b * M + m) * H_out * W_out + i], sum);
  }
}

template <>
void forward<gpu, float>(mshadow::Tensor<gpu, 4, float>& y,
                         const mshadow::Tensor<gpu, 4, float>& x,
                         const mshadow::Tensor<gpu, 4, float>& w) {
  const int B = x.size(0);
  const int C = x.size(1);
  mshadow::Stream<gpu>* stream = y.stream_;
  for (int c = 0; c < C; ++c) {
    add_channel<<<dim3(B, y.size(1)), 256, 0,
                  mshadow::Stream<gpu>::GetStream(stream)>>>(
        y.dptr_, x.dptr_, w.dptr_, y.size(1), C, x.size(2), x.size(3),
        w.size(3), c);
  }
  MSHADOW_CUDA_CALL(cudaGetLastError());
}

template <typename gpu, typename DType>
void forward(mshadow::Tensor<gpu, 4, DType>& y,
             const mshadow::Tensor<gpu, 4, DType>& x,
             const mshadow::Tensor<gpu, 4, DType>& w) {
  CHECK_EQ(0, 1) << "Remove this line and replace with your implementation.";
}

}  // namespace op
}  // namespace mxnet
