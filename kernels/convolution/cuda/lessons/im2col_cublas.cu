// Unroll, and multiply with cuBLAS.
//
// Idea. As in im2col_eigen on the CPU: with the C*K*K inputs of output position
// j as column j of a matrix U, an image's convolution is the product Y = W * U,
// and W and Y already lie in memory as the matrices that it needs. The library
// for matrix products on this GPU does the arithmetic.
//
// Change against the rung that multiplies with a kernel of its own: only who
// multiplies. A slice of the batch is unrolled into a bounded workspace; then
// one call makes a product per image (cublasSgemmStridedBatched, the same W for
// all, which has stride 0), each result where NCHW wants it. cuBLAS takes
// matrices by columns, so it is asked for Y' = U' * W' (cublas.h).
//
// Cost. U has K*K values per input (fewer at the border), is written once and
// read once. fa19's second layer: 1.0 MB per image from 52 KB, for 10,000
// images 10.1 GB each way where the tensors themselves are 1.3 GB; fa18's: 17
// GB. FLOPs as ever.
//
// Bound. Memory while U goes there and back: 20 GB at 4.3 TB/s are 4.7 ms for
// fa19's second layer, against 2 ms for its 121 GFLOP at the FP32 peak. The
// products are thin, M = 4 to 50 rows, where the library's tiles have 32 rows
// and more: much of a tile is computed for nothing.
//
// Measured on an H200 (10,000 images, kernel time from a cold L2): fa19's
// layers 4.94 and 11.1 ms against the naive kernel's 9.8 and 32.9; fa18's 8.79
// and 18.8. Memory explains less than half of the second layers' time; the thin
// products take the rest. fa17, with 50 output channels and a small image,
// takes 1.18 ms (naive: 5.41), less than any algorithm of cuDNN's legacy
// interface. fa20's first layer, M = 4, loses to the naive kernel: 11.5 ms
// against 6.54.
//
// Counters (ncu, fa19's layers, one slice). Unrolling takes 31 and 44 % of the
// time, and is not at the memory's limit: DRAM is 57 and 42 % busy, and warps
// wait for their inputs (long scoreboard 25 and 35 cycles per instruction). In
// the product the multiply-add pipes are 48 and 50 % busy, of which the
// definition's FLOPs need 11 and 29 (at 1.98 GHz): the thin products, as
// expected. DRAM is 38 and 35 % busy with U.
//
// Negative result. With a workspace that stays in the L2 (32 MiB of 60 MB) U
// need not go to memory, but eight times as many launches of smaller products
// cost more than that saves: fa19's layers took 6.50 and 12.2 ms, with 64
// MiB 6.18 and 13.1. Only fa20's first layer gained (10.9 ms).
#include <algorithm>

#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/cuda/cublas.h"

namespace convlab::cuda {
namespace {

constexpr int64_t kWorkspaceBytes = int64_t{256} << 20;
constexpr int kThreads = 256;

// Unrolls output positions [first, first + columns) of `images` images: a
// thread handles one position and channel, K*K values, so that neighbouring
// threads read and write neighbouring addresses in every step.
__global__ void UnrollKernel(const float* x, float* unrolled, int64_t threads,
                             int C, int H, int W, int K, int64_t first,
                             int64_t columns) {
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (thread >= threads) return;
  const int64_t column = thread % columns;
  const int64_t channel = thread / columns;  // of all the images
  const int W_out = W - K + 1;
  const int h = (first + column) / W_out;
  const int w = (first + column) % W_out;
  const float* in = x + (channel * H + h) * W + w;
  float* out = unrolled + channel * K * K * columns + column;
  for (int p = 0; p < K; ++p) {
    for (int q = 0; q < K; ++q) {
      *out = in[p * W + q];
      out += columns;
    }
  }
}

class Im2colCublas : public Kernel {
 public:
  explicit Im2colCublas(const Problem& p)
      : Kernel(p),
        rows_(p.channels * p.kernel_size * p.kernel_size),
        positions_(p.output_height() * p.output_width()) {}

  Error Prepare() override {
    // Whole images, or a part of one where a whole one does not fit.
    const int64_t floats = kWorkspaceBytes / sizeof(float);
    columns_ = std::clamp<int64_t>(floats / rows_, 1, positions_);
    images_ =
        std::clamp<int64_t>(floats / (rows_ * columns_), 1, problem_.batch);
    RETURN_IF_FAILED(
        unrolled_.Allocate(images_ * rows_ * columns_ * sizeof(float)));
    return cublas_.Create();
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    for (int64_t b = 0; b < p.batch; b += images_) {
      const int64_t images = std::min(images_, p.batch - b);
      for (int64_t first = 0; first < positions_; first += columns_) {
        const int64_t columns = std::min(columns_, positions_ - first);
        const int64_t threads = images * p.channels * columns;
        UnrollKernel<<<CeilDivide(threads, kThreads), kThreads, 0, stream>>>(
            x + b * p.channels * p.height * p.width, unrolled_.as<float>(),
            threads, p.channels, p.height, p.width, p.kernel_size, first,
            columns);
        RETURN_IF_FAILED(CheckLaunch("UnrollKernel"));
        MatrixProduct product{p.filters, columns, rows_};
        product.c_pitch = positions_;
        product.count = images;
        product.b_stride = rows_ * columns;
        product.c_stride = p.filters * positions_;
        RETURN_IF_FAILED(
            cublas_.Multiply(product, k, unrolled_.as<float>(),
                             y + b * p.filters * positions_ + first, stream));
      }
    }
    return {};
  }

 private:
  const int64_t rows_;       // of U: C*K*K
  const int64_t positions_;  // of the output of one image
  int64_t columns_ = 0;      // of U, for one image
  int64_t images_ = 0;       // unrolled at a time
  Workspace unrolled_;
  Cublas cublas_;
};

}  // namespace

extern const KernelVariant kIm2colCublas;
const KernelVariant kIm2colCublas = {
    "im2col_cublas",
    AccuracyClass::kFp32,
    Track::kLesson,
    "Unrolls up to 256 MiB of the input at a time and multiplies it with "
    "cuBLAS, one product per image.",
    "The library's matrix product is tuned for this GPU, where a kernel of "
    "one's own leaves arithmetic units idle.",
    [](const Problem& problem) {
      const char* const reason = RejectHugeImages(problem);
      return reason != nullptr ? reason : WhyNoCublas();
    },
    Make<Im2colCublas>,
};

}  // namespace convlab::cuda
