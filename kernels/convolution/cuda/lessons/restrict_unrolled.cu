// __restrict__ and unrolled filter loops.
//
// Idea. The same code as constant_weights.cu, so that the pair shows what two
// promises to the compiler are worth. With K a template argument the loops over
// the filter have no counters and no branches, all offsets are part of the
// instructions, and the loads of many taps are under way at once. With
// __restrict__ the compiler knows that no store to y changes x.
//
// Change from constant_weights. K from 1 to 11 is instantiated; for other K the
// argument is 0 and the loops are as before. Nothing else differs.
//
// Cost. The same loads and FLOPs, fewer instructions around them.
//
// Bound. The K*K shared loads: one per multiply-add, where a multiprocessor can
// do 128 multiply-adds per clock and 32 loads, so a quarter of the peak.
//
// Reached. Half the time of constant_weights. The bound is not reached: with
// one input channel the copy of a tile and its barriers serve few taps, and
// with many weights the cache of constant operands misses
// (docs/journal/restrict_unrolled.md).
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
// memory. kK is K, or 0 where that is known only at run time.
template <int kK>
__global__ void RestrictUnrolledKernel(const float* __restrict__ x,
                                       float* __restrict__ y, int C, int H,
                                       int W, int M, int runtime_K, int m0,
                                       int filters, int tiles_x,
                                       int64_t tiles) {
  const int K = kK > 0 ? kK : runtime_K;
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
#pragma unroll
        for (int p = 0; p < P; ++p) {
#pragma unroll
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

// The kernel for filters of K x K.
auto KernelFor(int64_t K) {
  static constexpr decltype(&RestrictUnrolledKernel<0>) kKernels[] = {
      RestrictUnrolledKernel<0>,  RestrictUnrolledKernel<1>,
      RestrictUnrolledKernel<2>,  RestrictUnrolledKernel<3>,
      RestrictUnrolledKernel<4>,  RestrictUnrolledKernel<5>,
      RestrictUnrolledKernel<6>,  RestrictUnrolledKernel<7>,
      RestrictUnrolledKernel<8>,  RestrictUnrolledKernel<9>,
      RestrictUnrolledKernel<10>, RestrictUnrolledKernel<11>};
  return kKernels[K < 12 ? K : 0];
}

int64_t Tiles(const Problem& p) { return TilesPerPlane(p, kTile, kTile); }

class RestrictUnrolled : public Kernel {
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
      KernelFor(p.kernel_size)<<<p.batch * filters * Tiles(p),
                                 dim3(kTile, kTile), 0, stream>>>(
          x, y, p.channels, p.height, p.width, p.filters, p.kernel_size, m0,
          filters, TilesAcross(p, kTile), Tiles(p));
      RETURN_IF_FAILED(CheckLaunch("RestrictUnrolledKernel"));
    }
    return turn.End();
  }
};

const char* Reject(const Problem& p) {
  return RejectConstantFilters(p, Tiles(p));
}

}  // namespace

extern const KernelVariant kRestrictUnrolled;
const KernelVariant kRestrictUnrolled = {
    "restrict_unrolled",
    AccuracyClass::kFp32,
    Track::kLesson,
    "The kernel of constant_weights with __restrict__ pointers and the "
    "filter's loops unrolled for its size.",
    "No loop counters and branches, and the loads of many taps under way at "
    "once.",
    Reject,
    Make<RestrictUnrolled>,
};

}  // namespace convlab::cuda
