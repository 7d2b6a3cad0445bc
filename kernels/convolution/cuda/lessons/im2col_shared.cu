// Unroll the input, then one matrix product with tiles in shared memory.
//
// Idea. Copy the C*K*K inputs of every output position into a column of a
// matrix. The convolution is then the product of the filters, an M x C*K*K
// matrix as they lie in memory, with that matrix, and the textbook's tiled
// product does it: a block copies a 16 x 16 tile of each factor to shared
// memory, and its threads read every element 16 times from there.
//
// Change from the direct kernels. The irregular part, the sliding window, is
// done once, in a kernel that only copies; the product is as regular as code on
// a GPU can be. A matrix of all columns would be K*K times the input (fa19's
// second layer on 10,000 images: 10 GB), so a bounded number of columns, 256
// MiB, is unrolled at a time, and the workspace is used again.
//
// Cost. 4*C*K*K bytes per output position written, and read once for every 16
// filters: fa19's second layer moves 10 + 20 GB, where the tensors themselves
// are 1.3 GB. Two shared-memory loads per multiply-add.
//
// Bound. Shared memory: a multiprocessor starts four warps' multiply-adds per
// clock, but one warp's load. With 12, 24 or 50 filters, part of the tile's
// rows is padding.
//
// Reached. Shared memory is busy most of the time, as expected; warps also wait
// for tiles and at barriers. With very few filters most of a tile is padding
// (docs/journal/im2col_shared.md).
#include <algorithm>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kTile = 16;
constexpr int kUnrollThreads = 256;
constexpr int64_t kMaxWorkspaceBytes = 256 << 20;

int64_t ColumnBytes(const Problem& p) {
  return 4 * p.channels * p.kernel_size * p.kernel_size;
}

// Unrolls the inputs of `count` output positions from `first` on, which are
// numbered over the whole batch, into C*K*K rows of `count` columns. A thread
// copies one channel's share of one column, so that a warp writes neighbouring
// columns at a time.
__global__ void UnrollKernel(const float* x, float* columns, int64_t first,
                             int64_t count, int C, int H, int W, int K) {
  const int64_t thread = int64_t{blockIdx.x} * kUnrollThreads + threadIdx.x;
  if (thread >= C * count) return;
  const int64_t c = thread / count;
  const int64_t column = thread % count;
  const int W_out = W - K + 1;
  const int64_t positions = int64_t{H - K + 1} * W_out;
  const int64_t b = (first + column) / positions;
  const int64_t position = (first + column) % positions;
  const int64_t h = position / W_out;
  const int64_t w = position % W_out;
  const float* in = x + ((b * C + c) * H + h) * W + w;
  float* out = columns + c * K * K * count + column;
  for (int p = 0; p < K; ++p) {
    for (int q = 0; q < K; ++q) {
      *out = in[int64_t{p} * W + q];
      out += count;
    }
  }
}

// Multiplies k (M x depth) by the unrolled columns (depth x count) and stores
// the products as the output positions from `first` on.
__global__ void TiledProductKernel(const float* k, const float* columns,
                                   float* y, int64_t first, int64_t count,
                                   int M, int depth, int64_t positions,
                                   int tiles_m) {
  __shared__ float k_tile[kTile][kTile];
  __shared__ float column_tile[kTile][kTile];
  const int m = blockIdx.x % tiles_m * kTile + threadIdx.y;
  const int64_t column = int64_t{blockIdx.x / tiles_m} * kTile + threadIdx.x;
  float sum = 0;
  for (int d = 0; d < depth; d += kTile) {
    // Elements beyond the matrices are zero.
    const int k_d = d + threadIdx.x;
    const int column_d = d + threadIdx.y;
    k_tile[threadIdx.y][threadIdx.x] =
        m < M && k_d < depth ? k[int64_t{m} * depth + k_d] : 0;
    column_tile[threadIdx.y][threadIdx.x] =
        column < count && column_d < depth ? columns[column_d * count + column]
                                           : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      sum += k_tile[threadIdx.y][i] * column_tile[i][threadIdx.x];
    }
    __syncthreads();
  }
  if (m >= M || column >= count) return;
  const int64_t b = (first + column) / positions;
  const int64_t position = (first + column) % positions;
  y[(b * M + m) * positions + position] = sum;
}

class Im2colShared : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    const int64_t fit = kMaxWorkspaceBytes / ColumnBytes(problem_);
    slice_ = std::min(total(), fit);
    workspace_.Reserve(slice_ * ColumnBytes(problem_));
    return {};
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    float* const columns = workspace_.as<float>();
    const int64_t tiles_m = CeilDivide(p.filters, kTile);
    for (int64_t first = 0; first < total(); first += slice_) {
      const int64_t count = std::min(slice_, total() - first);
      UnrollKernel<<<CeilDivide(p.channels * count, kUnrollThreads),
                     kUnrollThreads, 0, stream>>>(x, columns, first, count,
                                                  p.channels, p.height, p.width,
                                                  p.kernel_size);
      RETURN_IF_FAILED(CheckLaunch("UnrollKernel"));
      TiledProductKernel<<<CeilDivide(count, kTile) * tiles_m,
                           dim3(kTile, kTile), 0, stream>>>(
          k, columns, y, first, count, p.filters,
          p.channels * p.kernel_size * p.kernel_size,
          p.output_height() * p.output_width(), tiles_m);
      RETURN_IF_FAILED(CheckLaunch("TiledProductKernel"));
    }
    return {};
  }

 private:
  // Columns of the whole batch.
  int64_t total() const {
    return problem_.batch * problem_.output_height() * problem_.output_width();
  }

  Workspace workspace_{memory_};
  int64_t slice_ = 0;  // columns that are unrolled at a time
};

const char* Reject(const Problem& problem) {
  return ColumnBytes(problem) > kMaxWorkspaceBytes
             ? "the inputs of one output position exceed the workspace of 256 "
               "MiB"
             : nullptr;
}

}  // namespace

extern const KernelVariant kIm2colShared;
const KernelVariant kIm2colShared = {
    "im2col_shared",
    AccuracyClass::kFp32,
    Track::kLesson,
    "Unrolls the input into a matrix, a bounded number of columns at a time, "
    "and multiplies it by the filters in 16 x 16 tiles of shared memory.",
    "The product reads every element of a tile 16 times from shared memory "
    "and is regular; the unrolled matrix costs K*K times the input's bytes.",
    Reject,
    Make<Im2colShared>,
};

}  // namespace convlab::cuda
