// Tiles of filters and outputs in registers.
//
// Idea. All filters read the same inputs. A tile of 4 filters by 6 vectors of
// outputs keeps its 24 sums in registers: an input that is loaded serves 4
// filters, a weight serves 6 vectors, and 24 sums are three times what hides an
// addition's latency.
//
// Change from vectorized. Four filters at a time, their weights reordered to
// stand beside each other; the tile walks down the image, so that its inputs
// are in the nearest cache. With 16 registers (AVX2, SSE4) it has 3 vectors.
//
// Bound. For each tap of the filter a tile loads 6 inputs, which touch two
// cache lines each, and 4 weights: 16 of the 24 loads for which its 24
// multiplications leave time. So the arithmetic bounds a full tile. But tiles
// are not always full: with AVX-512 a row of 66 outputs is four vectors and one
// with two outputs in it, 80 lanes for 66; a row of 29 is two tiles of one
// vector, 4 sums each, which is half of the peak, and 32 lanes for 29.
//
// Reached. The arithmetic's peak except for the lanes and sums that rows leave
// empty (docs/journal/cpu_register_tiled.md).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/math/rounding.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/cpu/filter_groups.h"
#include "kernels/simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/cpu/register_tiled.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef KERNELS_CONVOLUTION_CPU_REGISTER_TILED_ONCE
#define KERNELS_CONVOLUTION_CPU_REGISTER_TILED_ONCE
namespace convlab::cpu::register_tiled {

// Filters of a tile.
constexpr int kFilters = 4;

// What this file compiles to for one instruction set.
struct Kernel {
  int64_t lanes;
  // Computes the output planes of one image and `filters` filters, at most
  // kFilters, whose weights stand beside each other: [C, K, K, filters].
  void (*convolve)(const Problem& problem, const float* image,
                   const float* weights, int filters, float* out);
};

}  // namespace convlab::cpu::register_tiled
#endif  // KERNELS_CONVOLUTION_CPU_REGISTER_TILED_ONCE

HWY_BEFORE_NAMESPACE();
namespace convlab::cpu::register_tiled {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
constexpr int64_t kLanes = hn::MaxLanes(D());
// So many that the sums, the inputs and a weight fill 32 or 16 registers.
constexpr int kMostVectors =
    HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 6 : 3;

// kTileFilters filters times kVectors vectors of neighbouring outputs.
template <int kTileFilters, int kVectors>
void Tile(const Problem& problem, const float* HWY_RESTRICT in,
          const float* HWY_RESTRICT weights, float* HWY_RESTRICT out) {
  const D d;
  const int64_t K = problem.kernel_size;
  hn::Vec<D> sums[kTileFilters][kVectors];
#pragma GCC unroll 16
  for (int f = 0; f < kTileFilters; ++f) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sums[f][v] = hn::Zero(d);
  }
  for (int64_t c = 0; c < problem.channels; ++c) {
    for (int64_t p = 0; p < K; ++p) {
      const float* row = in + (c * problem.height + p) * problem.width;
      for (int64_t q = 0; q < K; ++q, weights += kTileFilters) {
        hn::Vec<D> inputs[kVectors];
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          inputs[v] = hn::LoadU(d, row + q + v * kLanes);
        }
#pragma GCC unroll 16
        for (int f = 0; f < kTileFilters; ++f) {
          const auto weight = hn::Set(d, weights[f]);
#pragma GCC unroll 16
          for (int v = 0; v < kVectors; ++v) {
            sums[f][v] = hn::MulAdd(inputs[v], weight, sums[f][v]);
          }
        }
      }
    }
  }
  const int64_t plane = problem.output_height() * problem.output_width();
#pragma GCC unroll 16
  for (int f = 0; f < kTileFilters; ++f) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[f][v], d, out + f * plane + v * kLanes);
    }
  }
}

using TileFunction = void(const Problem&, const float*, const float*, float*);

// Returns the tile of the given shape.
template <int kTileFilters, int kVectors>
TileFunction* FindTile(int filters, int64_t vectors) {
  if constexpr (kTileFilters > 1) {
    if (filters < kTileFilters) {
      return FindTile<kTileFilters - 1, kVectors>(filters, vectors);
    }
  }
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) {
      return FindTile<kTileFilters, kVectors - 1>(filters, vectors);
    }
  }
  return Tile<kTileFilters, kVectors>;
}

void Convolve(const Problem& problem, const float* image, const float* weights,
              int filters, float* out) {
  const int64_t W_out = problem.output_width();
  // A row's whole vectors in as few tiles as possible, equal but for one
  // vector, and the rest of the row in one more vector, which ends with it.
  const int64_t whole = W_out / kLanes;
  const int64_t tiles = CeilDivide(whole, kMostVectors);
  TileFunction* const last = FindTile<kFilters, kMostVectors>(filters, 1);
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t first = whole * tile / tiles;
    const int64_t vectors = whole * (tile + 1) / tiles - first;
    TileFunction* const function =
        FindTile<kFilters, kMostVectors>(filters, vectors);
    for (int64_t h = 0; h < problem.output_height(); ++h) {
      function(problem, image + h * problem.width + first * kLanes, weights,
               out + h * W_out + first * kLanes);
    }
  }
  if (W_out % kLanes == 0) return;
  for (int64_t h = 0; h < problem.output_height(); ++h) {
    const int64_t first = W_out - kLanes;
    last(problem, image + h * problem.width + first, weights,
         out + h * W_out + first);
  }
}

Kernel GetKernel() { return {kLanes, Convolve}; }

}  // namespace HWY_NAMESPACE
}  // namespace convlab::cpu::register_tiled
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convlab::cpu {
namespace register_tiled {
namespace {

class RegisterTiled : public Convolution {
 public:
  RegisterTiled(const Problem& problem, Workers& workers)
      : problem_(problem),
        workers_(workers),
        kernel_(
            ChosenKernel(CONVLAB_KERNELS(GetKernel), problem.output_width())),
        weights_(problem.kernel_elements()) {}

  absl::Status Run(const float* x, const float* k, float* y, Stream) override {
    const int64_t M = problem_.filters;
    const int64_t products = problem_.kernel_elements() / M;
    GroupFilters(k, M, products, kFilters, weights_.data());
    const int64_t image = problem_.channels * problem_.height * problem_.width;
    const int64_t plane = problem_.output_height() * problem_.output_width();
    const int64_t tiles = CeilDivide(M, kFilters);
    workers_.For(
        problem_.batch * tiles, 1, [&](int, int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t b = i / tiles, m = i % tiles * kFilters;
            kernel_.convolve(
                problem_, x + b * image, weights_.data() + m * products,
                std::min<int64_t>(kFilters, M - m), y + (b * M + m) * plane);
          }
        });
    return absl::OkStatus();
  }

 private:
  const Problem problem_;
  Workers& workers_;
  const Kernel kernel_;
  std::vector<float> weights_;
};

}  // namespace
}  // namespace register_tiled

extern const Variant kRegisterTiled;
const Variant kRegisterTiled = {
    "register_tiled",
    Backend::kCpu,
    AccuracyClass::kFp32,
    Track::kLesson,
    "Tiles of four filters by up to six vectors of outputs, whose sums stay in "
    "registers.",
    "Every input that is loaded serves four filters and every weight six "
    "vectors, and the sums are enough to hide an addition's latency.",
    SupportsAll,
    [](const Problem& problem, const Epilogue&, const Resources& resources)
        -> absl::StatusOr<std::unique_ptr<Convolution>> {
      return std::make_unique<register_tiled::RegisterTiled>(
          problem, *resources.workers);
    },
    /*estimate_ns=*/nullptr,
    /*detour=*/nullptr,
    /*exact_on_integers=*/true,
    /*by_cpu_target=*/true,
};

}  // namespace convlab::cpu
#endif  // HWY_ONCE
