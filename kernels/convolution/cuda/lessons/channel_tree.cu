// The sum over input channels by a tree.
//
// Idea. A thread's long loop is over C*K*K products. Input channels can be
// summed apart: up to 16 threads share one output, each sums some of the
// channels, and a tree adds their partial sums in log2 steps.
//
// Change from naive. A block computes 32 neighbouring outputs of one plane with
// S slices of the channels, S the power of two from C up, 16 at most. A slice
// is one warp, so that neighbouring threads read neighbouring inputs; the
// slices meet in shared memory, halving in number at each step. (A tree of warp
// shuffles would need the slices in the lanes of one warp, whose loads would
// then be a plane apart.)
//
// Cost. The loads and FLOPs of naive, plus S - 1 additions, a store and log2 S
// barriers per output. Where C is no power of two some slices have nothing to
// do: 4 of 16 for 12 channels.
//
// Bound. Instructions, as in naive. Dividing the sum can pay where there are
// too few outputs to fill the GPU; at 10,000 images there are 10^8.
//
// Reached. Slower than naive: with many channels because of the tree and the
// idle slices, with one channel because the code for the tree is there all the
// same (docs/journal/channel_tree.md).
#include <algorithm>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kOutputs = 32;  // of a block: a warp's width
constexpr int kMaxSlices = 16;

__global__ void ChannelTreeKernel(const float* __restrict__ x,
                                  const float* __restrict__ k,
                                  float* __restrict__ y, int C, int H, int W,
                                  int M, int K, int64_t blocks_per_plane) {
  __shared__ float partial[kMaxSlices][kOutputs];
  const int64_t plane = blockIdx.x / blocks_per_plane;
  const int64_t b = plane / M;
  const int m = plane % M;
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  const int64_t output = blockIdx.x % blocks_per_plane * kOutputs + threadIdx.x;
  const bool inside = output < int64_t{H_out} * W_out;
  float sum = 0;
  if (inside) {
    const int64_t corner = output / W_out * W + output % W_out;
    for (int c = threadIdx.y; c < C; c += blockDim.y) {
      const float* const image = x + (b * C + c) * H * W + corner;
      const float* const filter = k + (int64_t{m} * C + c) * K * K;
      for (int p = 0; p < K; ++p) {
        for (int q = 0; q < K; ++q) {
          sum += image[int64_t{p} * W + q] * filter[p * K + q];
        }
      }
    }
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  for (int slices = blockDim.y / 2; slices > 0; slices /= 2) {
    __syncthreads();
    if (threadIdx.y < slices) {
      partial[threadIdx.y][threadIdx.x] +=
          partial[threadIdx.y + slices][threadIdx.x];
    }
  }
  // No barrier is needed: the thread that stores a sum also computed it.
  if (inside && threadIdx.y == 0) {
    y[plane * H_out * W_out + output] = partial[0][threadIdx.x];
  }
}

int64_t BlocksPerPlane(const Problem& p) {
  return CeilDivide(p.output_height() * p.output_width(), kOutputs);
}

int64_t Blocks(const Problem& p) {
  return p.batch * p.filters * BlocksPerPlane(p);
}

class ChannelTree : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    int slices = 1;
    while (slices < std::min<int64_t>(p.channels, kMaxSlices)) slices *= 2;
    ChannelTreeKernel<<<Blocks(p), dim3(kOutputs, slices), 0, stream>>>(
        x, k, y, p.channels, p.height, p.width, p.filters, p.kernel_size,
        BlocksPerPlane(p));
    return CheckLaunch("ChannelTreeKernel");
  }
};

const char* Reject(const Problem& problem) {
  return Blocks(problem) > kMaxGridX ? kTooManyBlocks : nullptr;
}

}  // namespace

extern const KernelVariant kChannelTree;
const KernelVariant kChannelTree = {
    "channel_tree",
    AccuracyClass::kFp32,
    Track::kLesson,
    "Up to 16 threads share one output, each sums some input channels, and a "
    "tree in shared memory adds them up.",
    "The longest chain of additions is shorter, and small batches have more "
    "threads.",
    Reject,
    Make<ChannelTree>,
    /*estimate_ns=*/nullptr,
    /*detour=*/
    "It shows what a reduction among threads costs, which pays only where "
    "there are too few outputs to fill the GPU.",
};

}  // namespace convlab::cuda
