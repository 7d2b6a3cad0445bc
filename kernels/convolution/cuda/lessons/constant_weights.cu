// The weights in constant memory.
//
// Idea. All threads of a warp multiply with the same weight at the same time.
// Constant memory is made for that: its cache hands one word to a whole warp,
// beside the path that serves shared and global loads.
//
// Change from tiled_shared. Run first copies the weights, on the device, into
// constant memory. It holds 64 KB: of a larger weight tensor, as many filters
// as fit are copied and computed, then the next ones. A problem of which a
// single filter exceeds 64 KB is rejected.
//
// Cost. As before, with the K*K weight loads per output and channel moved from
// the load units to the constant cache, and one copy of at most 64 KB per
// launch.
//
// Bound. The K*K shared loads, one per multiply-add, and the loop's own
// instructions, since K is known only at run time.
//
// Reached. A little faster than tiled_shared. The loop's instructions fill the
// issue slots, not the loads; the next lesson removes them
// (docs/journal/constant_weights.md).
#include <algorithm>

#include "kernels/convolution/cuda/lessons/constant_filters.h"
#include "kernels/convolution/cuda/lessons/tiles.h"
#include "kernels/convolution/cuda/lib/constant_memory.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kTile = 16;  // output rows and columns of a block
constexpr int kTaps = 16;  // filter rows and columns taken at a time
// Puts the two rows of a warp in different banks; see tiled_shared.cu.
constexpr int kPitch = 48;

__constant__ float constant_weights[kConstantFloats];
// Convolutions that use it take turns.
ConstantMemoryTurns turns;

// Computes filters m0 .. m0 + filters - 1 of M, whose weights are in constant
// memory.
__global__ void ConstantWeightsKernel(const float* x, float* y, int C, int H,
                                      int W, int M, int K, int m0, int filters,
                                      int tiles_x, int64_t tiles) {
  __shared__ float tile[kTile + kTaps - 1][kPitch];
  const int64_t b = blockIdx.x / tiles / filters;
  const int m = blockIdx.x / tiles % filters;
  const int h0 = blockIdx.x % tiles / tiles_x * kTile;
  const int w0 = blockIdx.x % tiles % tiles_x * kTile;
  float sum = 0;
  for (int c = 0; c < C; ++c) {
    const float* const image = x + (b * C + c) * H * W;
    const float* const filter = constant_weights + (m * C + c) * K * K;
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
  if (h < H_out && w < W_out) {
    y[((b * M + m0 + m) * H_out + h) * W_out + w] = sum;
  }
}

int64_t Tiles(const Problem& p) { return TilesPerPlane(p, kTile, kTile); }

class ConstantWeights : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    ConstantMemoryTurn turn(turns, stream);
    RETURN_IF_FAILED(turn.Begin());
    for (int64_t m0 = 0; m0 < p.filters; m0 += FiltersAtATime(p)) {
      const int64_t filters = std::min(FiltersAtATime(p), p.filters - m0);
      RETURN_IF_CUDA_ERROR(
          cudaMemcpyToSymbolAsync(constant_weights, k + m0 * FilterFloats(p),
                                  filters * FilterFloats(p) * sizeof(float), 0,
                                  cudaMemcpyDeviceToDevice, stream));
      ConstantWeightsKernel<<<p.batch * filters * Tiles(p), dim3(kTile, kTile),
                              0, stream>>>(
          x, y, p.channels, p.height, p.width, p.filters, p.kernel_size, m0,
          filters, TilesAcross(p, kTile), Tiles(p));
      RETURN_IF_FAILED(CheckLaunch("ConstantWeightsKernel"));
    }
    return turn.End();
  }
};

const char* Reject(const Problem& p) {
  return RejectConstantFilters(p, Tiles(p));
}

}  // namespace

extern const KernelVariant kConstantWeights;
const KernelVariant kConstantWeights = {
    "constant_weights",
    AccuracyClass::kFp32,
    Track::kLesson,
    "The tiled kernel with the weights in constant memory.",
    "The constant cache hands one weight to a whole warp, so that only the "
    "input is left to load.",
    Reject,
    Make<ConstantWeights>,
    /*estimate_ns=*/nullptr,
    /*detour=*/
    "It still carries the cost of the staged tile; it moves the weights out of "
    "the way, so that restrict_unrolled can show what the loops cost.",
};

}  // namespace convlab::cuda
