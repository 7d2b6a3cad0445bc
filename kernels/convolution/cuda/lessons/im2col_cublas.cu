// Unroll, and multiply with cuBLAS.
//
// Idea. As in im2col_eigen on the CPU: with the C*K*K inputs of output position
// j as column j of a matrix U, an image's convolution is the product Y = W * U,
// and W and Y already lie in memory as the matrices that it needs. The library
// for matrix products on this GPU does the arithmetic.
//
// Change from im2col_shared. A part of the batch is unrolled into a bounded
// workspace; then one call makes a product per image
// (cublasSgemmStridedBatched, with stride 0 for W, which all images share),
// each result where NCHW wants it. cuBLAS takes matrices by columns, so it is
// asked for Y' = U' * W' (cublas.h).
//
// Cost. U has K*K values per input (fewer at the border), is written once and
// read once. fa19's second layer: 1.0 MB per image from 52 KB, for 10,000
// images 10.1 GB each way where the tensors themselves are 1.3 GB; fa18's: 17
// GB. FLOPs as ever.
//
// Bound. Memory while U goes there and back, which takes longer than the
// layer's FLOPs at the FP32 peak. The products are thin, M = 4 to 50 rows,
// where the library's tiles have 32 rows and more: much of a tile is computed
// for nothing.
//
// Reached. Faster than im2col_shared, but with only four filters slower than
// naive. Memory explains less than half of the second layers' time; the thin
// products take the rest (docs/journal/im2col_cublas.md).
#include <algorithm>

#include "common/math/rounding.h"
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
  Im2colCublas(const Problem& p, const Epilogue& epilogue)
      : Kernel(p, epilogue),
        rows_(p.channels * p.kernel_size * p.kernel_size),
        positions_(p.output_height() * p.output_width()) {}

  Error Prepare() override {
    // Whole images, or a part of one where a whole one does not fit.
    const int64_t floats = kWorkspaceBytes / sizeof(float);
    columns_ = std::clamp<int64_t>(floats / rows_, 1, positions_);
    images_ =
        std::clamp<int64_t>(floats / (rows_ * columns_), 1, problem_.batch);
    unrolled_.Reserve(images_ * rows_ * columns_ * sizeof(float));
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
  Workspace unrolled_{memory_};
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
