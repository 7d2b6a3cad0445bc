// The input tile in shared memory.
//
// Idea. The 256 threads of a block need almost the same inputs: an input under
// a K x K filter is read K*K times. The block copies the inputs of one channel
// that its tile of outputs needs, the tile and a rim (the halo) of K - 1 rows
// and columns, into shared memory once, and every thread reads it there.
//
// Change from naive. Two barriers and a copy per input channel; the inner loop
// is the same, with one of its two loads from shared memory. A filter larger
// than 16 x 16 is taken in pieces of that size, so that the tile's memory does
// not depend on K.
//
// Cost. Global loads of inputs per output and channel: (16 + K - 1)^2 / 16^2,
// 1.9 for K = 7 instead of 49. Shared loads: K*K. Weights still come from
// global memory, K*K broadcasts.
//
// Bound. Instructions, as before: the caches already served the naive kernel's
// loads, so the copy makes each load cheaper, not rarer.
//
// Reached. Slower than naive on every layer. On a GPU whose first-level cache
// is the same memory as shared memory, staging by itself only adds the copy,
// the barriers and the threads of tiles that reach beyond the plane. It pays
// once the inner loop is short and registers hold several outputs
// (docs/journal/tiled_shared.md).
#include "kernels/convolution/cuda/lessons/tiles.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kTile = 16;  // output rows and columns of a block
constexpr int kTaps = 16;  // filter rows and columns taken at a time
// A warp reads two rows of the tile at once. They are in different banks if
// their distance is an odd multiple of 16 words.
constexpr int kPitch = 48;

__global__ void TiledSharedKernel(const float* x, const float* k, float* y,
                                  int C, int H, int W, int M, int K,
                                  int tiles_x, int64_t tiles) {
  __shared__ float tile[kTile + kTaps - 1][kPitch];
  const int64_t plane = blockIdx.x / tiles;
  const int64_t b = plane / M;
  const int m = plane % M;
  const int h0 = blockIdx.x % tiles / tiles_x * kTile;
  const int w0 = blockIdx.x % tiles % tiles_x * kTile;
  float sum = 0;
  for (int c = 0; c < C; ++c) {
    const float* const image = x + (b * C + c) * H * W;
    const float* const filter = k + (int64_t{m} * C + c) * K * K;
    for (int p0 = 0; p0 < K; p0 += kTaps) {
      for (int q0 = 0; q0 < K; q0 += kTaps) {
        const int P = min(kTaps, K - p0);
        const int Q = min(kTaps, K - q0);
        __syncthreads();  // the previous tile is no longer read
        for (int i = threadIdx.y; i < kTile + P - 1; i += kTile) {
          for (int j = threadIdx.x; j < kTile + Q - 1; j += kTile) {
            const int h = h0 + p0 + i;
            const int w = w0 + q0 + j;
            tile[i][j] = h < H && w < W ? image[int64_t{h} * W + w] : 0;
          }
        }
        __syncthreads();
        for (int p = 0; p < P; ++p) {
          for (int q = 0; q < Q; ++q) {
            sum += tile[threadIdx.y + p][threadIdx.x + q] *
                   filter[(p0 + p) * K + q0 + q];
          }
        }
      }
    }
  }
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  const int h = h0 + threadIdx.y;
  const int w = w0 + threadIdx.x;
  if (h < H_out && w < W_out) y[(plane * H_out + h) * W_out + w] = sum;
}

int64_t Tiles(const Problem& p) { return TilesPerPlane(p, kTile, kTile); }

int64_t Blocks(const Problem& p) { return p.batch * p.filters * Tiles(p); }

class TiledShared : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    TiledSharedKernel<<<Blocks(p), dim3(kTile, kTile), 0, stream>>>(
        x, k, y, p.channels, p.height, p.width, p.filters, p.kernel_size,
        TilesAcross(p, kTile), Tiles(p));
    return CheckLaunch("TiledSharedKernel");
  }
};

const char* Reject(const Problem& problem) {
  return Blocks(problem) > kMaxGridX ? kTooManyBlocks : nullptr;
}

}  // namespace

extern const KernelVariant kTiledShared;
const KernelVariant kTiledShared = {
    "tiled_shared",
    AccuracyClass::kFp32,
    Track::kLesson,
    "A block stages the input tile with its halo in shared memory, one channel "
    "at a time.",
    "An input is fetched once per tile instead of once per product.",
    Reject,
    Make<TiledShared>,
    /*estimate_ns=*/nullptr,
    /*detour=*/
    "Every fast kernel stages its inputs; this one shows that staging alone "
    "gains nothing where the cache already serves the loads.",
};

}  // namespace convlab::cuda
