// Convolution by the Fourier transform, in tiles.
//
// Idea. A convolution is a product of spectra. The image is cut into tiles of
// 32 x 32 that overlap by K - 1 (overlap-save); a tile's transform times the
// conjugate of a filter's transform, summed over input channels and transformed
// back, holds the tile's outputs in its first 33 - K rows and columns, and the
// wrapped-around rest is dropped. One complex multiply-add per channel and
// filter then serves two outputs, whatever K is up to 32.
//
//   Two tiles in one. The transform is complex, the data and the filter are
//   real: one tile is the real part of the input, the next tile the imaginary
//   part, and their outputs come out as such.
//
//   A transform of 32 values lies in a warp, one value per lane: each of its
//   five steps exchanges values between lanes 16, 8, 4, 2 and 1 apart by a
//   shuffle. The forward transform takes its input in order and leaves it in
//   bit-reversed order (decimation in frequency), the inverse does the reverse
//   (decimation in time); the filters' spectra have the same order, so nothing
//   is ever put back in place.
//
// Kernels. FilterSpectra: the transforms of the M*C filters, padded with
// zeroes, into a workspace. FftKernel: a block takes a pair of tiles and 8
// filters; for each input channel it transforms rows, goes through shared
// memory to columns, and multiplies in registers; then each filter's sum goes
// the same way back.
//
// Cost. Per pair of tiles: C*ceil(M/8) + M transforms of 5 * 1024 * 10 FLOPs
// and M*C * 1024 complex multiply-adds of 8 FLOPs, for 2*(33 - K)^2 outputs of
// M channels. Tiles that reach beyond the outputs cost as much as full ones.
//
// Bound. Shuffles: a transform is 64 warps' rows and columns of 5 steps, two
// shuffles each; and the spectra of the filters, 8 KB for each filter and
// channel, which each block reads from the L2 cache.
//
// Accuracy. Rounding errors are relative to the tile's largest values, not to
// each output's, and integers do not come out exact; still class fp32. Reached:
// latencies bound it before the shuffles do (docs/journal/fft.md).
#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lessons/tiles.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kTile = 32;  // a warp's width
constexpr int kSpectrum = kTile * kTile;
constexpr int kWarps = 8;
constexpr int kRows = kTile / kWarps;  // rows, and columns, of each warp
constexpr int kFilters = 8;            // of a block
constexpr unsigned kAllLanes = 0xffffffff;
// One more than the width, so that columns too are read without conflicts.
using Tile = float2[kTile][kTile + 1];

__device__ float2 Multiply(float2 a, float2 b) {
  return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ float2 MultiplyConjugate(float2 a, float2 b) {
  return make_float2(a.x * b.x + a.y * b.y, a.y * b.x - a.x * b.y);
}

// The 32-point transform across the lanes of a warp.
class WarpFft {
 public:
  __device__ WarpFft() {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int half = 1 << step;
      // 1 in the lower half of each pair of lanes.
      const int power = Lane() & half ? Lane() & (half - 1) : 0;
      sincospif(-static_cast<float>(power) / half, &twiddle_[step].y,
                &twiddle_[step].x);
    }
  }

  __device__ float2 Forward(float2 v) const {
#pragma unroll
    for (int step = kSteps - 1; step >= 0; --step) {
      v = Multiply(Butterfly(v, step), twiddle_[step]);
    }
    return v;
  }

  // Without the factor 1/32.
  __device__ float2 Inverse(float2 v) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      v = Butterfly(MultiplyConjugate(v, twiddle_[step]), step);
    }
    return v;
  }

  __device__ static int Lane() { return threadIdx.x; }

 private:
  static constexpr int kSteps = 5;

  // Sum in the lower lane, difference in the upper.
  __device__ static float2 Butterfly(float2 v, int step) {
    const float2 other = {__shfl_xor_sync(kAllLanes, v.x, 1 << step),
                          __shfl_xor_sync(kAllLanes, v.y, 1 << step)};
    const float sign = Lane() & (1 << step) ? -1.0f : 1.0f;
    return make_float2(fmaf(sign, v.x, other.x), fmaf(sign, v.y, other.y));
  }

  float2 twiddle_[kSteps];
};

// The warp's i-th row of the tile, or column of its spectrum.
__device__ int Line(int i) { return threadIdx.y + i * kWarps; }

// Transforms a tile. Before, v[i] of lane l is row Line(i), column l of the
// tile; afterwards it is row l, column Line(i) of the spectrum.
__device__ void ForwardTile(const WarpFft& fft, Tile& tile,
                            float2 (&v)[kRows]) {
  __syncthreads();  // the previous tile is no longer read
#pragma unroll
  for (int i = 0; i < kRows; ++i) tile[Line(i)][fft.Lane()] = fft.Forward(v[i]);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRows; ++i) v[i] = fft.Forward(tile[fft.Lane()][Line(i)]);
}

// The inverse of ForwardTile, without the factor 1/1024.
__device__ void InverseTile(const WarpFft& fft, Tile& tile,
                            float2 (&v)[kRows]) {
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRows; ++i) tile[fft.Lane()][Line(i)] = fft.Inverse(v[i]);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRows; ++i) v[i] = fft.Inverse(tile[Line(i)][fft.Lane()]);
}

// Transforms the filters, one block per filter and channel, into
// spectra[m][c][column][row].
__global__ void FilterSpectra(const float* __restrict__ k,
                              float2* __restrict__ spectra, int K) {
  __shared__ Tile tile;
  const WarpFft fft;
  const float* const filter = k + int64_t{blockIdx.x} * K * K;
  float2 v[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const bool inside = Line(i) < K && fft.Lane() < K;
    v[i] = make_float2(inside ? filter[Line(i) * K + fft.Lane()] : 0, 0);
  }
  ForwardTile(fft, tile, v);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    spectra[(int64_t{blockIdx.x} * kTile + Line(i)) * kTile + fft.Lane()] =
        v[i];
  }
}

// Where a tile lies. Tiles are counted over all images, so that the second of
// the last pair may not exist.
struct Place {
  int64_t b;
  int h, w;
  bool exists;

  __device__ Place(int64_t tile, int64_t batch, int tiles_x, int64_t tiles,
                   int step)
      : b(tile / tiles),
        h(tile % tiles / tiles_x * step),
        w(tile % tiles % tiles_x * step),
        exists(b < batch) {}
};

// Loads channel c of two tiles: v[i] of lane l becomes row Line(i), column l of
// both, and zero beyond the image.
__device__ void LoadPair(const Place (&places)[2], const float* x, int C, int H,
                         int W, int c, float2 (&v)[kRows]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float parts[2];
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const Place& place = places[t];
      const int h = place.h + Line(i);
      const int w = place.w + WarpFft::Lane();
      parts[t] = place.exists && h < H && w < W
                     ? x[((place.b * C + c) * H + h) * W + w]
                     : 0;
    }
    v[i] = make_float2(parts[0], parts[1]);
  }
}

// Adds the product of the tiles' spectrum v with that of each filter from m0 on
// for channel c.
__device__ void AddProducts(const float2 (&v)[kRows],
                            const float2* __restrict__ spectra, int C, int M,
                            int m0, int c, float2 (&sums)[kFilters][kRows]) {
#pragma unroll
  for (int f = 0; f < kFilters; ++f) {
    if (m0 + f >= M) break;
    const float2* const spectrum =
        spectra + (int64_t{m0 + f} * C + c) * kSpectrum;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float2 product =
          MultiplyConjugate(v[i], spectrum[Line(i) * kTile + WarpFft::Lane()]);
      sums[f][i].x += product.x;
      sums[f][i].y += product.y;
    }
  }
}

// Stores the outputs of filter m0 + f in two tiles, which v holds as
// InverseTile leaves them. `step` is the number of a tile's output rows and
// columns.
__device__ void StorePair(const Place (&places)[2], const float2 (&v)[kRows],
                          int M, int m0, int f, int H_out, int W_out, int step,
                          float* y) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (Line(i) >= step || WarpFft::Lane() >= step) continue;
    const float parts[] = {v[i].x, v[i].y};
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const Place& place = places[t];
      const int h = place.h + Line(i);
      const int w = place.w + WarpFft::Lane();
      if (place.exists && h < H_out && w < W_out) {
        y[((place.b * M + m0 + f) * H_out + h) * W_out + w] =
            parts[t] * (1.0f / kSpectrum);
      }
    }
  }
}

__global__ void __launch_bounds__(kWarps * 32, 2)
    FftKernel(const float* __restrict__ x, const float2* __restrict__ spectra,
              float* __restrict__ y, int64_t B, int C, int H, int W, int M,
              int K, int groups, int tiles_x, int64_t tiles) {
  __shared__ Tile tile;
  const WarpFft fft;
  const int m0 = blockIdx.x % groups * kFilters;
  const int64_t pair = blockIdx.x / groups;
  const int step = kTile - K + 1;
  const Place places[] = {Place(2 * pair, B, tiles_x, tiles, step),
                          Place(2 * pair + 1, B, tiles_x, tiles, step)};

  float2 sums[kFilters][kRows] = {};
  for (int c = 0; c < C; ++c) {
    float2 v[kRows];
    LoadPair(places, x, C, H, W, c, v);
    ForwardTile(fft, tile, v);
    AddProducts(v, spectra, C, M, m0, c, sums);
  }
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
#pragma unroll
  for (int f = 0; f < kFilters; ++f) {
    if (m0 + f >= M) break;
    InverseTile(fft, tile, sums[f]);
    StorePair(places, sums[f], M, m0, f, H_out, W_out, step, y);
  }
}

// Rows and columns of outputs that one tile of inputs yields.
int64_t TileOutputs(const Problem& p) { return kTile - p.kernel_size + 1; }

int64_t Tiles(const Problem& p) {
  return TilesPerPlane(p, TileOutputs(p), TileOutputs(p));
}

int64_t Groups(const Problem& p) { return CeilDivide(p.filters, kFilters); }

int64_t Blocks(const Problem& p) {
  return CeilDivide(p.batch * Tiles(p), 2) * Groups(p);
}

class Fft : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    spectra_.Reserve(Filters() * kSpectrum * sizeof(float2));
    return {};
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    const dim3 threads(32, kWarps);
    FilterSpectra<<<Filters(), threads, 0, stream>>>(k, spectra_.as<float2>(),
                                                     p.kernel_size);
    RETURN_IF_FAILED(CheckLaunch("FilterSpectra"));
    FftKernel<<<Blocks(p), threads, 0, stream>>>(
        x, spectra_.as<float2>(), y, p.batch, p.channels, p.height, p.width,
        p.filters, p.kernel_size, Groups(p), TilesAcross(p, TileOutputs(p)),
        Tiles(p));
    return CheckLaunch("FftKernel");
  }

 private:
  // Two-dimensional filters, one for each pair of channels.
  int64_t Filters() const { return problem_.filters * problem_.channels; }

  Workspace spectra_{memory_};
};

const char* Reject(const Problem& p) {
  if (p.kernel_size > kTile) {
    return "the filter is larger than a tile of the transform, 32 x 32";
  }
  return Blocks(p) > kMaxGridX || p.filters * p.channels > kMaxGridX
             ? kTooManyBlocks
             : nullptr;
}

}  // namespace

extern const KernelVariant kFft;
const KernelVariant kFft = {
    "fft",
    AccuracyClass::kFp32Normwise,
    Track::kSpecialty,
    "Tiles of 32 x 32 are transformed, multiplied with the filters' spectra "
    "and transformed back.",
    "One complex multiply-add serves two outputs, whatever the filter's size.",
    Reject,
    Make<Fft>,
    /*estimate_ns=*/nullptr,
    /*detour=*/nullptr,
    /*exact_on_integers=*/false,
};

}  // namespace convlab::cuda
