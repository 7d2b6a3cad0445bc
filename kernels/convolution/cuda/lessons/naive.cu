// One thread per output element.
//
// Idea. Output elements do not depend on each other, so each gets a thread, and
// the GPU's thousands of threads hide each other's waiting. This is the
// course's third milestone, kept as the textbook has it.
//
// Launch. A block computes 256 consecutive output elements of one image, so
// that only an image's last block has idle threads. The grid's x counts all
// blocks of the batch: y and z are too small for a large one.
//
// Cost. 2*C*K*K FLOPs per thread, and as many loads: every product reads an
// input and a weight through the caches. fa19's second layer on 10,000 images
// takes 121 GFLOP and 121 G loads; its tensors are only 1.3 GB.
//
// Bound. Instructions: each multiply-add comes with two loads and the
// arithmetic of loops and addresses, where the arithmetic units could take one
// multiply-add per clock and lane. Neighbouring threads read neighbouring
// inputs (one 128-byte line per warp) and the same weight (a broadcast), so the
// caches serve almost all loads, but each still takes an issue slot.
//
// Reached. The issue slots are nearly all used, memory is almost idle
// (docs/journal/naive.md).
#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void NaiveKernel(const float* x, const float* k, float* y, int C,
                            int H, int W, int M, int K, int blocks_per_image) {
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  const int64_t b = blockIdx.x / blocks_per_image;
  const int i = blockIdx.x % blocks_per_image * kThreads + threadIdx.x;
  if (i >= M * H_out * W_out) return;
  const int m = i / (H_out * W_out);
  const int h = i / W_out % H_out;
  const int w = i % W_out;
  // A whole tensor may exceed 2^31 elements, but one image and one filter do
  // not, so that 64-bit arithmetic stays out of the loop.
  const float* image = x + b * C * H * W;
  const float* filter = k + int64_t{m} * C * K * K;
  float sum = 0;
  for (int c = 0; c < C; ++c) {
    for (int p = 0; p < K; ++p) {
      for (int q = 0; q < K; ++q) {
        sum += image[(c * H + h + p) * W + w + q] * filter[(c * K + p) * K + q];
      }
    }
  }
  y[b * M * H_out * W_out + i] = sum;
}

int64_t BlocksPerImage(const Problem& p) {
  return CeilDivide(p.filters * p.output_height() * p.output_width(), kThreads);
}

const char* Reject(const Problem& problem) {
  if (const char* reason = RejectHugeImages(problem)) return reason;
  return problem.batch * BlocksPerImage(problem) > kMaxGridX ? kTooManyBlocks
                                                             : nullptr;
}

class Naive : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    const int64_t blocks_per_image = BlocksPerImage(p);
    NaiveKernel<<<p.batch * blocks_per_image, kThreads, 0, stream>>>(
        x, k, y, p.channels, p.height, p.width, p.filters, p.kernel_size,
        blocks_per_image);
    return CheckLaunch("NaiveKernel");
  }
};

// naive is a candidate because it takes problems that no other candidate
// takes. It reached 10 FLOPs per cycle and multiprocessor on the course's
// layers.
double EstimateNaiveNs(const Problem& problem, const DeviceLimits& limits) {
  constexpr double kFlopsPerCycle = 10, kLaunchNs = 5000;
  return kLaunchNs +
         static_cast<double>(problem.flops()) /
             (kFlopsPerCycle * limits.multiprocessors * limits.clock_ghz);
}

}  // namespace

extern const KernelVariant kNaive;
const KernelVariant kNaive = {
    "naive",
    AccuracyClass::kFp32,
    Track::kLesson,
    "One thread computes one output element with the loops of the definition.",
    "The starting point on the GPU: thousands of threads instead of a few "
    "cores.",
    Reject,
    Make<Naive>,
    EstimateNaiveNs,
};

}  // namespace convlab::cuda
