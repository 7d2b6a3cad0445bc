// Tiles in shared memory and in registers.
//
// Idea. fused_im2col loads two values from shared memory for one multiply-add.
// A thread that computes a register tile of TM x TN outputs loads TM + TN
// values for TM * TN multiply-adds: with 8 x 8 an eighth, and in fours by
// vector loads, so that almost all instructions are multiply-adds.
//
// Change from fused_im2col
// - A block of 128 threads computes BM filters by BN output positions, in steps
//   of a few rows of the unrolled matrix ("taps"). There are instances for
//   several BM, and the one that leaves least of it empty is taken: with 24
//   filters a square 64 x 64 tile would waste 62 % of its work.
// - A thread gathers the same columns in every step: it finds their place in
//   the image once. The taps' offsets, the same for all threads, are counted up
//   instead of divided out.
// - The next step's values are on their way to registers while this step is
//   computed, and shared memory has two stages: one barrier per step.
//
// Cost. The tensors' own bytes if the caches serve the gathering, which loads
// BN values per tap and block through the first-level cache: an input again for
// each of the K*K taps that use it. That is one global load and one store to
// shared memory for BM multiply-adds.
//
// Bound. Instructions. With 24 filters, a tap costs a thread 48 multiply-adds,
// five vector loads from shared memory and two elements of gathering; with 4
// filters, 16 multiply-adds and four elements, so that gathering bounds the
// first layers. A direct kernel, which keeps the image in shared memory and
// does not gather, can go further.
//
// Reached. Several times as fast as fused_im2col. Most issue slots are used,
// and on second layers about half of the instructions are multiply-adds
// (docs/journal/register_tiled.md).
#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 128;
// Elements of the unrolled matrix that a thread gathers per step.
constexpr int kGathered = 16;

// kCount consecutive floats of shared memory, by vector loads.
template <int kCount>
__device__ __forceinline__ void LoadVectors(const float* from, float* to) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 v = *reinterpret_cast<const float4*>(from + i);
      to[i] = v.x, to[i + 1] = v.y, to[i + 2] = v.z, to[i + 3] = v.w;
    }
  } else {
    static_assert(kCount % 2 == 0);
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float2 v = *reinterpret_cast<const float2*>(from + i);
      to[i] = v.x, to[i + 1] = v.y;
    }
  }
}

// Stores a thread's sums. The block's first filter is m0, the thread's is kTm
// times its row beyond that. Its columns come in fours, kThreadColumns fours
// apart, the first at column0 + first.
template <int kTm, int kTn, int kThreadColumns>
__device__ __forceinline__ void StoreSums(const float (&sums)[kTm][kTn],
                                          float* y, int64_t columns,
                                          int64_t column0, int first, int m0,
                                          int row, int M, int64_t positions,
                                          bool store_vectors) {
#pragma unroll
  for (int j = 0; j < kTn; j += 4) {
    const int64_t column = column0 + first + j * kThreadColumns;
    if (store_vectors) {
      // Four columns never straddle two images.
      if (column >= columns) continue;
      float* out = y + column / positions * M * positions + column % positions;
#pragma unroll
      for (int i = 0; i < kTm; ++i) {
        const int m = m0 + row * kTm + i;
        if (m < M) {
          *reinterpret_cast<float4*>(out + m * positions) = make_float4(
              sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
        }
      }
    } else {
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        if (column + v >= columns) continue;
        float* out = y + (column + v) / positions * M * positions +
                     (column + v) % positions;
#pragma unroll
        for (int i = 0; i < kTm; ++i) {
          const int m = m0 + row * kTm + i;
          if (m < M) out[m * positions] = sums[i][j + v];
        }
      }
    }
  }
}

// A block's threads stand in kRows rows; a row holds the kTm filters that its
// threads share.
template <int kRows, int kTm, int kTn>
__global__ void __launch_bounds__(kThreads)
    RegisterTiledKernel(const float* x, const float* k, float* y,
                        int64_t columns, int C, int H, int W, int M, int K,
                        int tiles_m, bool store_vectors) {
  constexpr int kThreadColumns = kThreads / kRows;
  constexpr int kBm = kRows * kTm;
  constexpr int kBn = kThreadColumns * kTn;
  constexpr int kDepth = kGathered * kThreads / kBn;  // taps per step
  constexpr int kOwnColumns = kBn / kThreads;         // that a thread gathers
  constexpr int kFilterLoads = (kDepth * kBm + kThreads - 1) / kThreads;
  __shared__ __align__(16) float k_tile[2][kDepth][kBm];
  __shared__ __align__(16) float column_tile[2][kDepth][kBn];

  const int tid = threadIdx.x;
  const int m0 = blockIdx.x % tiles_m * kBm;
  const int64_t column0 = int64_t{blockIdx.x / tiles_m} * kBn;
  const int W_out = W - K + 1;
  const int64_t positions = int64_t{H - K + 1} * W_out;
  const int taps = C * K * K;

  // Where the columns that this thread gathers begin in x. Those past the end
  // repeat the last one, and are not stored.
  const float* own[kOwnColumns];
#pragma unroll
  for (int i = 0; i < kOwnColumns; ++i) {
    int64_t column = column0 + i * kThreads + tid;
    if (column >= columns) column = columns - 1;
    const int64_t position = column % positions;
    own[i] = x + (column / positions * C * H + position / W_out) * W +
             position % W_out;
  }
  // The next tap to gather, the same for all threads: its number, its row and
  // column in the filter, and its distance in x from the first tap.
  int tap = 0, p = 0, q = 0;
  int64_t offset = 0;

  float gathered[kDepth][kOwnColumns];
  float filters[kFilterLoads];
  // Loads the next step's values, which takes long, to registers.
  const auto load_step = [&] {
#pragma unroll
    for (int i = 0; i < kFilterLoads; ++i) {
      const int element = i * kThreads + tid;
      const int m = m0 + element / kDepth;
      const int d = tap + element % kDepth;
      filters[i] = m < M && d < taps ? k[int64_t{m} * taps + d] : 0;
    }
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
#pragma unroll
      for (int i = 0; i < kOwnColumns; ++i) {
        gathered[d][i] = tap < taps ? own[i][offset] : 0;
      }
      ++tap, ++q, ++offset;
      if (q == K) {
        q = 0, ++p, offset += W - K;
        if (p == K) p = 0, offset += int64_t{H - K} * W;
      }
    }
  };
  // Hands the loaded values on to shared memory.
  const auto store_step = [&](int stage) {
#pragma unroll
    for (int i = 0; i < kFilterLoads; ++i) {
      const int element = i * kThreads + tid;
      if (element < kDepth * kBm) {
        k_tile[stage][element % kDepth][element / kDepth] = filters[i];
      }
    }
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
#pragma unroll
      for (int i = 0; i < kOwnColumns; ++i) {
        column_tile[stage][d][i * kThreads + tid] = gathered[d][i];
      }
    }
  };

  // A thread's columns come in fours, so that its loads are vectors and a
  // warp's addresses are consecutive.
  const int row = tid / kThreadColumns;
  const int first = tid % kThreadColumns * 4;
  float sums[kTm][kTn] = {};
  load_step();
  store_step(0);
  __syncthreads();
  const int steps = (taps + kDepth - 1) / kDepth;
  for (int step = 0; step < steps; ++step) {
    const int stage = step % 2;
    if (step + 1 < steps) load_step();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      float a[kTm], b[kTn];
      LoadVectors<kTm>(&k_tile[stage][d][row * kTm], a);
#pragma unroll
      for (int j = 0; j < kTn; j += 4) {
        LoadVectors<4>(&column_tile[stage][d][first + j * kThreadColumns],
                       b + j);
      }
#pragma unroll
      for (int i = 0; i < kTm; ++i) {
#pragma unroll
        for (int j = 0; j < kTn; ++j) sums[i][j] += a[i] * b[j];
      }
    }
    // The other stage was read in the previous step, whose barrier has passed.
    if (step + 1 < steps) store_step(1 - stage);
    __syncthreads();
  }

  StoreSums<kTm, kTn, kThreadColumns>(sums, y, columns, column0, first, m0, row,
                                      M, positions, store_vectors);
}

using KernelPointer = void (*)(const float*, const float*, float*, int64_t, int,
                               int, int, int, int, int, bool);

struct Instance {
  int filters;  // BM
  int columns;  // BN
  KernelPointer kernel;
};

template <int kRows, int kTm, int kTn>
constexpr Instance kInstance = {kRows* kTm, kThreads / kRows* kTn,
                                RegisterTiledKernel<kRows, kTm, kTn>};

// Ordered by BM.
constexpr Instance kInstances[] = {
    kInstance<1, 4, 4>,  kInstance<1, 8, 4>, kInstance<2, 6, 8>,
    kInstance<2, 8, 8>,  kInstance<4, 6, 8>, kInstance<4, 8, 8>,
    kInstance<4, 14, 4>,
};

class RegisterTiled : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    // Choose the least padding; among equals, the larger tile.
    const auto padded = [&](const Instance& instance) {
      return CeilDivide(p.filters, instance.filters) * instance.filters;
    };
    const Instance* best = kInstances;
    for (const Instance& instance : kInstances) {
      if (padded(instance) <= padded(*best)) best = &instance;
    }
    const int64_t positions = p.output_height() * p.output_width();
    const int64_t columns = p.batch * positions;
    const int64_t tiles_m = CeilDivide(p.filters, best->filters);
    const bool store_vectors =
        positions % 4 == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0;
    best->kernel<<<CeilDivide(columns, best->columns) * tiles_m, kThreads, 0,
                   stream>>>(x, k, y, columns, p.channels, p.height, p.width,
                             p.filters, p.kernel_size, tiles_m, store_vectors);
    return CheckLaunch("RegisterTiledKernel");
  }
};

}  // namespace

extern const KernelVariant kRegisterTiled;
const KernelVariant kRegisterTiled = {
    "register_tiled",
    AccuracyClass::kFp32,
    Track::kLesson,
    "Implicit matrix product in which each thread computes a tile of up to 8 x "
    "8 outputs in registers, with tiles in shared memory in two stages.",
    "A value loaded from shared memory is used in four to fourteen "
    "multiply-adds instead of one, and loading overlaps with computing.",
    TakeAll,
    Make<RegisterTiled>,
};

}  // namespace convlab::cuda
