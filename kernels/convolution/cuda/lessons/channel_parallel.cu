// Parallel over images, input channels and output channels at once.
//
// Idea. The lessons before give a block one output channel, so M blocks stage
// the same input tile, and each of their threads sums all input channels one
// after the other. Here the threads of a block are divided over positions,
// output channels and input channels: 16 x 8 positions of 4 output channels,
// which share a staged tile, times 2 slices of the input channels where there
// are two. Images and further output channels are blocks.
//
// Change from tiled_shared. The block has a third dimension, over output
// channels and slices, and stages the weights of its channels too: a warp lies
// within one channel, so its threads read the same weight. The size of the
// weights is not limited. At the end the slices' sums meet in shared memory.
//
// Cost. Staged inputs per output and input channel: (16+K-1)*(8+K-1)/(16*8*4),
// 0.6 for K = 7 instead of 1.9. Shared loads: 2*K*K, input and weight.
//
// Bound. Instructions and shared loads, two per multiply-add. Sharing the tile
// saves global loads, which the caches served already; more blocks and more
// threads do not help where the GPU is already full.
//
// Reached. No faster than tiled_shared, and slower where there are many input
// channels: the outputs alone fill the GPU many times over, so dividing the
// input channels gains nothing (docs/journal/channel_parallel.md).
#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lessons/tiles.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kTileX = 16;
constexpr int kTileY = 8;
constexpr int kChannels = 4;  // output channels of a block
constexpr int kThreads = kTileX * kTileY * kChannels;  // of a slice
constexpr int kTaps = 16;  // filter rows and columns taken at a time
// Puts the two rows of a warp in different banks; see tiled_shared.cu.
constexpr int kPitch = 48;

// Slice s of the input channels, of kSlices, sums channels s, s + kSlices, ...
template <int kSlices>
__global__ void ChannelParallelKernel(const float* __restrict__ x,
                                      const float* __restrict__ k,
                                      float* __restrict__ y, int C, int H,
                                      int W, int M, int K, int groups,
                                      int tiles_x, int64_t tiles) {
  __shared__ float tiles_of_slices[kSlices][kTileY + kTaps - 1][kPitch];
  __shared__ float weights_of_slices[kSlices][kChannels][kTaps][kTaps];
  const int slice = threadIdx.z / kChannels;
  const int channel = threadIdx.z % kChannels;
  auto& tile = tiles_of_slices[slice];
  auto& weights = weights_of_slices[slice][channel];
  const int64_t b = blockIdx.x / tiles / groups;
  const int m = blockIdx.x / tiles % groups * kChannels + channel;
  const int h0 = blockIdx.x % tiles / tiles_x * kTileY;
  const int w0 = blockIdx.x % tiles % tiles_x * kTileX;
  // The thread's row among all rows of threads of its slice.
  const int row = channel * kTileY + threadIdx.y;
  float sum = 0;
  // All threads reach every barrier, whether their slice has an input channel
  // left or not.
  for (int c0 = 0; c0 < C; c0 += kSlices) {
    const int c = c0 + slice;
    const float* const image = x + (b * C + c) * H * W;
    const float* const filter = k + (int64_t{m} * C + c) * K * K;
    for (int p0 = 0; p0 < K; p0 += kTaps) {
      for (int q0 = 0; q0 < K; q0 += kTaps) {
        const int P = min(kTaps, K - p0);
        const int Q = min(kTaps, K - q0);
        __syncthreads();  // the previous tile is no longer read
        if (c < C) {
          for (int i = row; i < kTileY + P - 1; i += kTileY * kChannels) {
            for (int j = threadIdx.x; j < kTileX + Q - 1; j += kTileX) {
              const int h = h0 + p0 + i;
              const int w = w0 + q0 + j;
              tile[i][j] = h < H && w < W ? image[int64_t{h} * W + w] : 0;
            }
          }
          if (m < M && threadIdx.x < Q) {
            for (int p = threadIdx.y; p < P; p += kTileY) {
              weights[p][threadIdx.x] = filter[(p0 + p) * K + q0 + threadIdx.x];
            }
          }
        }
        __syncthreads();
        if (c < C) {
          for (int p = 0; p < P; ++p) {
            for (int q = 0; q < Q; ++q) {
              sum += tile[threadIdx.y + p][threadIdx.x + q] * weights[p][q];
            }
          }
        }
      }
    }
  }
  if constexpr (kSlices > 1) {
    __shared__ float sums[kSlices - 1][kThreads];
    const int thread = row * kTileX + threadIdx.x;
    if (slice > 0) sums[slice - 1][thread] = sum;
    __syncthreads();
    if (slice > 0) return;
    for (int s = 1; s < kSlices; ++s) sum += sums[s - 1][thread];
  }
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  const int h = h0 + threadIdx.y;
  const int w = w0 + threadIdx.x;
  if (m < M && h < H_out && w < W_out) {
    y[((b * M + m) * H_out + h) * W_out + w] = sum;
  }
}

int64_t Tiles(const Problem& p) { return TilesPerPlane(p, kTileY, kTileX); }

int64_t Groups(const Problem& p) { return CeilDivide(p.filters, kChannels); }

int64_t Blocks(const Problem& p) { return p.batch * Groups(p) * Tiles(p); }

class ChannelParallel : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    return problem_.channels == 1 ? Start<1>(x, k, y, stream)
                                  : Start<2>(x, k, y, stream);
  }

 private:
  template <int kSlices>
  Error Start(const float* x, const float* k, float* y, cudaStream_t stream) {
    const Problem& p = problem_;
    const dim3 threads(kTileX, kTileY, kChannels * kSlices);
    ChannelParallelKernel<kSlices><<<Blocks(p), threads, 0, stream>>>(
        x, k, y, p.channels, p.height, p.width, p.filters, p.kernel_size,
        Groups(p), TilesAcross(p, kTileX), Tiles(p));
    return CheckLaunch("ChannelParallelKernel");
  }
};

const char* Reject(const Problem& problem) {
  return Blocks(problem) > kMaxGridX ? kTooManyBlocks : nullptr;
}

}  // namespace

extern const KernelVariant kChannelParallel;
const KernelVariant kChannelParallel = {
    "channel_parallel",
    AccuracyClass::kFp32,
    Track::kLesson,
    "A block's threads are split over positions, four output channels, which "
    "share the staged input, and two slices of the input channels.",
    "The input tile is staged once for four output channels, and each thread "
    "sums half of the input channels.",
    Reject,
    Make<ChannelParallel>,
    /*estimate_ns=*/nullptr,
    /*detour=*/
    "It shows that more parallelism gains nothing where the outputs alone fill "
    "the GPU.",
};

}  // namespace convlab::cuda
