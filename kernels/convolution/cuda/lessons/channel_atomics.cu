// The sum over input channels by atomic additions.
//
// Idea. The division of channel_tree, without a tree: every slice of the input
// channels is added to the output in device memory by atomicAdd, so that the
// slices need neither shared memory nor barriers and may run in any block.
//
// Change from channel_tree. Slices are blocks, up to 16, one per channel where
// there are fewer; y is zeroed inside Run.
//
// Cost. The loads and FLOPs of naive. y is written 1 + S times (the zeroes, and
// one addition per slice) instead of once; the L2 cache does the additions, and
// a block's slices reach it one after the other.
//
// Bound. Instructions, as in naive; where K*K is small, additions in the L2.
// The slices are added in the order of their arrival, so float results may
// differ in the last bits between runs. Sums of small integers are exact in any
// order. Atomic additions flush denormal results to zero.
//
// Reached. The additions in the L2 cost less than channel_tree's barriers, but
// more than the single sum of naive (docs/journal/channel_atomics.md).
#include <algorithm>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kOutputs = 256;  // of a block
constexpr int kMaxSlices = 16;

__global__ void ChannelAtomicsKernel(const float* __restrict__ x,
                                     const float* __restrict__ k,
                                     float* __restrict__ y, int C, int H, int W,
                                     int M, int K, int slices,
                                     int64_t blocks_per_plane) {
  const int slice = blockIdx.x % slices;
  const int64_t block = blockIdx.x / slices;
  const int64_t plane = block / blocks_per_plane;
  const int64_t b = plane / M;
  const int m = plane % M;
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  const int64_t output = block % blocks_per_plane * kOutputs + threadIdx.x;
  if (output >= int64_t{H_out} * W_out) return;
  const int64_t corner = output / W_out * W + output % W_out;
  float sum = 0;
  for (int c = slice; c < C; c += slices) {
    const float* const image = x + (b * C + c) * H * W + corner;
    const float* const filter = k + (int64_t{m} * C + c) * K * K;
    for (int p = 0; p < K; ++p) {
      for (int q = 0; q < K; ++q) {
        sum += image[int64_t{p} * W + q] * filter[p * K + q];
      }
    }
  }
  atomicAdd(y + plane * H_out * W_out + output, sum);
}

int64_t Slices(const Problem& p) {
  return std::min<int64_t>(p.channels, kMaxSlices);
}

int64_t BlocksPerPlane(const Problem& p) {
  return CeilDivide(p.output_height() * p.output_width(), kOutputs);
}

int64_t Blocks(const Problem& p) {
  return p.batch * p.filters * BlocksPerPlane(p) * Slices(p);
}

class ChannelAtomics : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    RETURN_IF_CUDA_ERROR(
        cudaMemsetAsync(y, 0, p.output_elements() * sizeof(float), stream));
    ChannelAtomicsKernel<<<Blocks(p), kOutputs, 0, stream>>>(
        x, k, y, p.channels, p.height, p.width, p.filters, p.kernel_size,
        Slices(p), BlocksPerPlane(p));
    return CheckLaunch("ChannelAtomicsKernel");
  }
};

const char* Reject(const Problem& problem) {
  return Blocks(problem) > kMaxGridX ? kTooManyBlocks : nullptr;
}

}  // namespace

extern const KernelVariant kChannelAtomics;
const KernelVariant kChannelAtomics = {
    "channel_atomics",
    AccuracyClass::kFp32Normwise,
    Track::kLesson,
    "Up to 16 blocks share the outputs of a tile, each adds its input "
    "channels' sum by atomicAdd.",
    "The split over input channels without barriers and shared memory.",
    Reject,
    Make<ChannelAtomics>,
    /*estimate_ns=*/nullptr,
    /*detour=*/
    "It shows what atomic additions cost beside a tree, and that with them the "
    "order of a sum is no longer fixed.",
};

}  // namespace convlab::cuda
