// The MXNet era: adds to the output, which the course's program had cleared.
// Nothing to catch: the output is cleared for these files.
#include <mxnet/base.h>

namespace mxnet {
namespace op {

template <typename cpu, typename DType>
void forward(mshadow::Tensor<cpu, 4, DType>& y,
             const mshadow::Tensor<cpu, 4, DType>& x,
             const mshadow::Tensor<cpu, 4, DType>& k) {
  const int B = x.shape_[0];
  const int M = y.shape_[1];
  const int C = x.shape_[1];
  const int K = k.shape_[3];
  CHECK_EQ(k.shape_[1], x.shape_[1]) << "channels differ";
  for (int b = 0; b < B; ++b)
    for (int m = 0; m < M; ++m)
      for (int h = 0; h < int(y.size(2)); ++h)
        for (int w = 0; w < int(y.size(3)); ++w)
          for (int c = 0; c < C; ++c)
            for (int p = 0; p < K; ++p)
              for (int q = 0; q < K; ++q)
                y[b][m][h][w] += x[b][c][h + p][w + q] * k[m][c][p][q];
}

}  // namespace op
}  // namespace mxnet
