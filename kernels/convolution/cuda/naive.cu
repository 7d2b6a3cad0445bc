// Rung 1 on the GPU: one thread per output element.
//
// Idea. Output elements do not depend on each other, so each gets a thread, and
// the GPU's thousands of threads hide each other's waiting. This is the
// course's third milestone, kept as the textbook has it.
//
// Shape of the launch. A block is 16 x 16 output positions of one image's one
// output channel. The grid's x counts all blocks of the batch: x alone may
// exceed 65,535, and a batch may have more images than that.
//
// Cost. 2*C*K*K FLOPs per thread, and as many loads: every product reads an
// input and a weight through the caches. fa19's second layer on 10,000 images
// is 121 GFLOP and 121 G loads; the tensors themselves are 1.3 GB.
//
// Bound. Load instructions: two per multiply-add, where the arithmetic units
// could take one multiply-add per clock and lane. Neighbouring threads read
// neighbouring inputs (one 128-byte line per warp) and the same weight (a
// broadcast), so the caches serve almost all of it, but each load still takes
// an issue slot.
#include "kernels/convolution/cuda/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kTile = 16;

__global__ void NaiveKernel(const float* x, const float* k, float* y, int C,
                            int H, int W, int M, int K, int blocks_x,
                            int blocks_y) {
  // Which tile of which plane (image and output channel) this block computes.
  const int64_t plane = blockIdx.x / (blocks_x * blocks_y);
  const int tile = blockIdx.x % (blocks_x * blocks_y);
  const int h = tile / blocks_x * kTile + threadIdx.y;
  const int w = tile % blocks_x * kTile + threadIdx.x;
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  if (h >= H_out || w >= W_out) return;
  // Whole tensors exceed 2^31 elements, one image and one filter do not: 64-bit
  // arithmetic stays out of the loop.
  x += plane / M * C * H * W;
  k += plane % M * C * K * K;
  float sum = 0;
  for (int c = 0; c < C; ++c) {
    for (int p = 0; p < K; ++p) {
      for (int q = 0; q < K; ++q) {
        sum += x[(c * H + h + p) * W + w + q] * k[(c * K + p) * K + q];
      }
    }
  }
  y[plane * H_out * W_out + h * W_out + w] = sum;
}

class Naive : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y) override {
    const Problem& p = problem_;
    const int64_t blocks_x = CeilDivide(p.output_width(), kTile);
    const int64_t blocks_y = CeilDivide(p.output_height(), kTile);
    const int64_t blocks = p.batch * p.filters * blocks_x * blocks_y;
    NaiveKernel<<<blocks, dim3(kTile, kTile)>>>(
        x, k, y, p.channels, p.height, p.width, p.filters, p.kernel_size,
        blocks_x, blocks_y);
    return CheckLaunch("NaiveKernel");
  }
};

}  // namespace

extern const KernelVariant kNaive;
const KernelVariant kNaive = {
    "naive",
    AccuracyClass::kFp32,
    "One thread computes one output element with the loops of the definition.",
    "The starting point on the GPU: thousands of threads instead of a few "
    "cores.",
    RejectHugeImages,
    Make<Naive>,
};

}  // namespace convlab::cuda
