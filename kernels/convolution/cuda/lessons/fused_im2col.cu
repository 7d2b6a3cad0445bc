// The unrolled product without the unrolled matrix.
//
// Idea. im2col_shared writes a matrix and reads it back, though each of its
// elements is a copy of an input whose place is known. Here the block that
// multiplies gathers its tile of the matrix from the image itself (an implicit
// matrix product).
//
// Change from im2col_shared. One kernel instead of two, no workspace, and 30 GB
// less traffic on fa19's second layer. The price: every thread computes which
// input (channel, row and column of the filter) its element of the tile is, two
// integer divisions per 16 multiply-adds.
//
// Cost. The tensors' own bytes, for the caches serve the K*K reads of an input;
// two shared-memory loads per multiply-add, as before.
//
// Bound. Shared memory, as in im2col_shared, and the index arithmetic.
//
// Reached. Slower than im2col_shared: that did not wait for the traffic that is
// saved here, and the divisions come on top. The workspace is saved, and
// register_tiled makes the indices cheap (docs/journal/fused_im2col.md).
#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kTile = 16;

__global__ void FusedIm2colKernel(const float* x, const float* k, float* y,
                                  int64_t columns, int C, int H, int W, int M,
                                  int K, int tiles_m) {
  __shared__ float k_tile[kTile][kTile];
  __shared__ float column_tile[kTile][kTile];
  const int W_out = W - K + 1;
  const int64_t positions = int64_t{H - K + 1} * W_out;
  const int depth = C * K * K;
  const int m = blockIdx.x % tiles_m * kTile + threadIdx.y;
  // Columns are the output positions of the whole batch.
  const int64_t column = int64_t{blockIdx.x / tiles_m} * kTile + threadIdx.x;
  const int64_t b = column / positions;
  const int64_t position = column % positions;
  const float* in = x + (b * C * H + position / W_out) * W + position % W_out;
  float sum = 0;
  for (int d = 0; d < depth; d += kTile) {
    const int k_d = d + threadIdx.x;
    k_tile[threadIdx.y][threadIdx.x] =
        m < M && k_d < depth ? k[int64_t{m} * depth + k_d] : 0;
    // Row `column_d` of the unrolled matrix is the tap (c, p, q).
    const int column_d = d + threadIdx.y;
    const int c = column_d / (K * K);
    const int p = column_d / K % K;
    const int q = column_d % K;
    column_tile[threadIdx.y][threadIdx.x] =
        column < columns && column_d < depth ? in[(int64_t{c} * H + p) * W + q]
                                             : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += k_tile[threadIdx.y][i] * column_tile[i][threadIdx.x];
    }
    __syncthreads();
  }
  if (m < M && column < columns) y[(b * M + m) * positions + position] = sum;
}

class FusedIm2col : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    const int64_t columns = p.batch * p.output_height() * p.output_width();
    const int64_t tiles_m = CeilDivide(p.filters, kTile);
    FusedIm2colKernel<<<CeilDivide(columns, kTile) * tiles_m,
                        dim3(kTile, kTile), 0, stream>>>(
        x, k, y, columns, p.channels, p.height, p.width, p.filters,
        p.kernel_size, tiles_m);
    return CheckLaunch("FusedIm2colKernel");
  }
};

}  // namespace

extern const KernelVariant kFusedIm2col;
const KernelVariant kFusedIm2col = {
    "fused_im2col",
    AccuracyClass::kFp32,
    Track::kLesson,
    "Multiplies the filters by the unrolled input in 16 x 16 tiles of shared "
    "memory, gathering the tiles from the images as they are needed.",
    "The unrolled matrix is neither written nor read: only the tensors "
    "themselves move.",
    TakeAll,
    Make<FusedIm2col>,
    /*estimate_ns=*/nullptr,
    /*detour=*/
    "It shows that the unrolled matrix is not needed; register_tiled makes "
    "this way of gathering fast.",
};

}  // namespace convlab::cuda
