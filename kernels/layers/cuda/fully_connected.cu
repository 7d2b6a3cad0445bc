// The fully connected layer without tensor cores: a matrix product of batch x
// inputs by inputs x outputs, and a bias. It is for GPUs older than compute
// capability 8.0, and where the partial sums of matrix.cu have no room.
//
// Idea. The product has far more rows (images) than columns (outputs), so a
// block computes 128 images and up to 160 outputs: all of fa19's 160, whose 807
// MB of inputs are then read once. Tiles of both matrices pass through shared
// memory, stored with the summation index first, so that the threads of a warp
// read neighbouring images and outputs. A thread keeps 8 x 10 sums in registers
// and feeds them from 18 values: 4.4 multiply-adds per value read. The next
// tile is loaded from device memory while this one is used, and stored to a
// second pair of tiles, so that one barrier per tile is enough.
//
// Splitting the sum. 10,000 images are 79 blocks, too few for a GPU that runs
// 264 of them at a time. The sum over the inputs is therefore cut into pieces,
// each a block of its own, and a second kernel adds up the partial sums. That
// is done in a fixed order: the same run gives the same bits.
//
// Cost. fa19's first layer on 10,000 images: 64.6 GFLOP, 0.83 GB.
//
// Bound. FP32 arithmetic: about 1.1 ms at the H200's 60 TFLOP/s.
//
// Outcome (H200, 10,000 images). 20184 x 160 in 1.97 ms, 33 TFLOP/s; unsplit
// 4.61 ms. 7200 x 500, with 8 x 8 sums per thread, 1.88 ms, 38 TFLOP/s.
//
// Tried without gain, for 20184 x 160: tiles of 16 inputs, whose registers
// spill, 2.37 ms; the next values read while the present ones are multiplied,
// 1.92 ms; the same with one block per multiprocessor, so that a thread may
// have 255 registers, 2.50 ms.
#include "common/math/rounding.h"
#include "kernels/layers/cuda/launches.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlockRows = 128;  // images of a block
constexpr int kRows = 8;         // of a thread
constexpr int kDepth = 8;        // inputs in a tile
// Keeps float4 aligned, and puts the two quads of a row, stored by
// neighbouring threads, into different halves of the 32 banks.
constexpr int kPad = 4;

// kCount rows of a matrix [rows, inputs], kDepth inputs at a time: Fetch reads
// them into registers, Store puts them into shared memory, [input][row].
template <int kCount, bool kVector>
class TileLoader {
 public:
  __device__ TileLoader(const float* matrix, int64_t first_row, int64_t rows,
                        int inputs) {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      // Rows beyond the last repeat it, and their results are dropped.
      const int64_t row = min(first_row + Row(q), rows - 1);
      from_[q] = matrix + row * inputs + Column(q);
    }
  }

  __device__ void Fetch(int begin, int end) {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      if (!Takes(q)) continue;
      const float* const from = from_[q] + begin;
      const int left = end - begin - Column(q);
      if (kVector) {
        values_[q] = left > 0 ? *reinterpret_cast<const float4*>(from)
                              : make_float4(0, 0, 0, 0);
      } else {
        values_[q].x = left > 0 ? from[0] : 0;
        values_[q].y = left > 1 ? from[1] : 0;
        values_[q].z = left > 2 ? from[2] : 0;
        values_[q].w = left > 3 ? from[3] : 0;
      }
    }
  }

  __device__ void Store(float (*tile)[kCount + kPad]) const {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      if (!Takes(q)) continue;
      float* const to = &tile[Column(q)][Row(q)];
      to[0 * (kCount + kPad)] = values_[q].x;
      to[1 * (kCount + kPad)] = values_[q].y;
      to[2 * (kCount + kPad)] = values_[q].z;
      to[3 * (kCount + kPad)] = values_[q].w;
    }
  }

 private:
  // A thread's q-th four neighbouring inputs of one row.
  static constexpr int kQuadsPerRow = kDepth / 4;
  static constexpr int kQuads = CeilDivide(kCount * kQuadsPerRow, kThreads);
  static __device__ int Row(int q) {
    return (threadIdx.x + q * kThreads) / kQuadsPerRow;
  }
  static __device__ int Column(int q) {
    return (threadIdx.x + q * kThreads) % kQuadsPerRow * 4;
  }
  static __device__ bool Takes(int q) { return Row(q) < kCount; }

  const float* from_[kQuads];
  float4 values_[kQuads];
};

// A thread's columns are chunks of four, 64 apart, and then two: neighbouring
// threads read neighbouring 16 or 8 bytes.
template <int kColumns>
__device__ int ColumnOf(int thread_x, int j) {
  const int chunk = j / 4;
  const int width = min(4, kColumns - 4 * chunk);
  return 64 * chunk + thread_x * width + j % 4;
}

// sums[b, o] of the inputs [z * piece, (z + 1) * piece) with z the block's, at
// out + z * batch * outputs. kColumns of a thread's outputs, 16 times as many
// of a block's. A bias that is not null is added.
template <int kColumns, bool kVector>
__global__ void __launch_bounds__(kThreads, 2)
    FullyConnectedKernel(int64_t batch, int inputs, int outputs, int piece,
                         const float* in, const float* weight,
                         const float* bias, float* out) {
  constexpr int kBlockColumns = 16 * kColumns;
  __shared__ __align__(16) float images[2][kDepth][kBlockRows + kPad];
  __shared__ __align__(16) float weights[2][kDepth][kBlockColumns + kPad];

  const int64_t first_row = int64_t{blockIdx.x} * kBlockRows;
  const int first_column = blockIdx.y * kBlockColumns;
  const int begin = blockIdx.z * piece;
  const int end = min(begin + piece, inputs);
  // A warp is 4 x 8 threads, a block 4 x 2 warps.
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int thread_y = warp / 2 * 4 + lane / 8;
  const int thread_x = warp % 2 * 8 + lane % 8;

  TileLoader<kBlockRows, kVector> image_loader(in, first_row, batch, inputs);
  TileLoader<kBlockColumns, kVector> weight_loader(weight, first_column,
                                                   outputs, inputs);
  float sums[kRows][kColumns] = {};
  image_loader.Fetch(begin, end);
  weight_loader.Fetch(begin, end);
  image_loader.Store(images[0]);
  weight_loader.Store(weights[0]);
  __syncthreads();
  int used = 0;
  for (int i = begin; i < end; i += kDepth) {
    const bool more = i + kDepth < end;
    if (more) {
      image_loader.Fetch(i + kDepth, end);
      weight_loader.Fetch(i + kDepth, end);
    }
#pragma unroll
    for (int depth = 0; depth < kDepth; ++depth) {
      alignas(16) float a[kRows], b[kColumns];
#pragma unroll
      for (int r = 0; r < kRows; r += 4) {
        *reinterpret_cast<float4*>(a + r) = *reinterpret_cast<const float4*>(
            &images[used][depth][16 * r + 4 * thread_y]);
      }
#pragma unroll
      for (int c = 0; c < kColumns; c += 4) {
        const float* const from =
            &weights[used][depth][ColumnOf<kColumns>(thread_x, c)];
        if (c + 4 <= kColumns) {
          *reinterpret_cast<float4*>(b + c) =
              *reinterpret_cast<const float4*>(from);
        } else {
          *reinterpret_cast<float2*>(b + c) =
              *reinterpret_cast<const float2*>(from);
        }
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) sums[r][c] += a[r] * b[c];
      }
    }
    if (more) {
      // No thread reads these any more, by the barrier of the previous round.
      used = 1 - used;
      image_loader.Store(images[used]);
      weight_loader.Store(weights[used]);
      __syncthreads();
    }
  }

  out += blockIdx.z * batch * outputs;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = first_row + 64 * (r / 4) + 4 * thread_y + r % 4;
    if (row >= batch) continue;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int column = first_column + ColumnOf<kColumns>(thread_x, c);
      if (column >= outputs) continue;
      out[row * outputs + column] =
          bias == nullptr ? sums[r][c] : sums[r][c] + bias[column];
    }
  }
}

__global__ void AddPiecesKernel(int64_t count, int outputs, int pieces,
                                const float* partial, const float* bias,
                                float* out) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  float sum = bias == nullptr ? 0 : bias[i % outputs];
  for (int piece = 0; piece < pieces; ++piece)
    sum += partial[piece * count + i];
  out[i] = sum;
}

// The number of pieces of the sum with the shortest time, measured in inputs
// per block, if `slots` blocks run at a time.
int Pieces(int64_t blocks, int64_t slots, int64_t inputs, int64_t most) {
  // Estimated cost of starting a block and adding up its sums.
  constexpr int64_t kBlockCost = 200;
  constexpr int64_t kMostPieces = 64;
  int best = 1;
  int64_t best_cost = INT64_MAX;
  for (int64_t pieces = 1; pieces <= min(most, kMostPieces); ++pieces) {
    const int64_t cost = CeilDivide(blocks * pieces, slots) *
                         (CeilDivide(inputs, pieces) + kBlockCost);
    if (cost < best_cost) {
      best = pieces;
      best_cost = cost;
    }
  }
  return best;
}

template <int kColumns>
Error Launch(int64_t batch, int64_t inputs, int64_t outputs, const float* in,
             const float* weight, const float* bias, float* out, float* scratch,
             int64_t scratch_floats, cudaStream_t stream) {
  const int64_t count = batch * outputs;
  const dim3 blocks(CeilDivide(batch, kBlockRows),
                    CeilDivide(outputs, 16 * kColumns));
  int multiprocessors = 0;
  RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(
      &multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  const int pieces = Pieces(int64_t{blocks.x} * blocks.y, 2 * multiprocessors,
                            inputs, max(scratch_floats / count, int64_t{1}));
  // Whole tiles, so that only the last piece has an end inside one.
  const int piece = RoundUp(CeilDivide(inputs, pieces), kDepth);
  const dim3 grid(blocks.x, blocks.y, CeilDivide(inputs, piece));
  const bool vector = inputs % 4 == 0 && (reinterpret_cast<uintptr_t>(in) |
                                          reinterpret_cast<uintptr_t>(weight)) %
                                                 sizeof(float4) ==
                                             0;
  const bool whole = grid.z == 1;
  const float* const added = whole ? bias : nullptr;
  float* const sums = whole ? out : scratch;
  if (vector) {
    FullyConnectedKernel<kColumns, true><<<grid, kThreads, 0, stream>>>(
        batch, inputs, outputs, piece, in, weight, added, sums);
  } else {
    FullyConnectedKernel<kColumns, false><<<grid, kThreads, 0, stream>>>(
        batch, inputs, outputs, piece, in, weight, added, sums);
  }
  RETURN_IF_FAILED(CheckLaunch("FullyConnectedKernel"));
  if (whole) return {};
  AddPiecesKernel<<<CeilDivide(count, kThreads), kThreads, 0, stream>>>(
      count, outputs, grid.z, scratch, bias, out);
  return CheckLaunch("AddPiecesKernel");
}

}  // namespace

Error LaunchFullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                           const float* in, const float* weight,
                           const float* bias, float* out, float* scratch,
                           int64_t scratch_floats, cudaStream_t stream) {
  // The widest block among those that waste the fewest columns.
  const auto padded = [&](int64_t width) { return RoundUp(outputs, width); };
  const auto launch = padded(160) <= min(padded(128), padded(32)) ? Launch<10>
                      : padded(128) <= padded(32)                 ? Launch<8>
                                                                  : Launch<2>;
  return launch(batch, inputs, outputs, in, weight, bias, out, scratch,
                scratch_floats, stream);
}

}  // namespace convlab::cuda
