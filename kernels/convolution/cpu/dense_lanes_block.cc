// The tiles of dense_lanes (dense_lanes.cc), once for each instruction set.
#include "kernels/convolution/cpu/dense_lanes_block.h"

#include <algorithm>
#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cpu/dense_lanes_plan.h"
#include "kernels/simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/cpu/dense_lanes_block.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convlab::cpu::dense_lanes {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
constexpr int64_t kLanes = hn::MaxLanes(D());
constexpr int kFloatsPerLine = 16;  // of a cache

constexpr bool k32Registers = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;
constexpr int kMostFilters = k32Registers ? 12 : 6;

// The vectors of a tile of so many filters: the sums, one input per vector and
// a weight fill the registers.
constexpr int VectorsFor(int filters) {
  constexpr int k32[] = {8, 8, 7, 6, 5, 4, 3, 3, 2, 2, 2, 2};
  constexpr int k16[] = {6, 5, 3, 3, 2, 2};
  return k32Registers ? k32[filters - 1] : k16[filters - 1];
}

// The outputs of kFilters filters in kVectors spans. With kTwoRows a span may
// go on in the next row.
template <int kFilters, int kVectors, bool kTwoRows>
void Tile(const Plan& plan, const Span* spans, const float* image,
          const float* HWY_RESTRICT weights, bool stream,
          float* HWY_RESTRICT out) {
  const D d;
  const float* first[kVectors];
  const float* second[kVectors];
  hn::Mask<D> in_first[kVectors];
  hn::Vec<D> sums[kFilters][kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    first[v] = image + spans[v].first;
    if (kTwoRows) {
      second[v] = image + spans[v].second;
      in_first[v] = hn::FirstN(d, spans[v].count);
    }
#pragma GCC unroll 16
    for (int f = 0; f < kFilters; ++f) sums[f][v] = hn::Zero(d);
  }
  const int64_t* const taps = plan.taps;
  const int64_t tap_count = plan.tap_count;
  for (int64_t t = 0; t < tap_count; ++t, weights += kFilters) {
    const int64_t tap = taps[t];
    hn::Vec<D> inputs[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      inputs[v] = hn::LoadU(d, first[v] + tap);
      if (kTwoRows) {
        inputs[v] = hn::IfThenElse(in_first[v], inputs[v],
                                   hn::LoadU(d, second[v] + tap));
      }
    }
#pragma GCC unroll 16
    for (int f = 0; f < kFilters; ++f) {
      const auto weight = hn::Set(d, weights[f]);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        sums[f][v] = hn::MulAdd(inputs[v], weight, sums[f][v]);
      }
    }
  }
  if (stream) {
#pragma GCC unroll 16
    for (int f = 0; f < kFilters; ++f) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        hn::Stream(sums[f][v], d, out + f * plan.plane + spans[v].position);
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int f = 0; f < kFilters; ++f) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[f][v], d, out + f * plan.plane + spans[v].position);
    }
  }
}

using TileFunction = void(const Plan&, const Span*, const float*, const float*,
                          bool, float*);

// Returns the tile of the given shape; `vectors` is at most
// VectorsFor(filters).
template <bool kTwoRows, int kFilters = kMostFilters,
          int kVectors = VectorsFor(kFilters)>
TileFunction* FindTile(int filters, int64_t vectors) {
  if constexpr (kFilters > 1) {
    if (filters < kFilters) {
      return FindTile<kTwoRows, kFilters - 1>(filters, vectors);
    }
  }
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) {
      return FindTile<kTwoRows, kFilters, kVectors - 1>(filters, vectors);
    }
  }
  return Tile<kFilters, kVectors, kTwoRows>;
}

void Convolve(const Plan& plan, const Block& block) {
  const bool fetch_outputs = plan.tap_count >= kTapsToFetch;
  const int64_t most = VectorsFor(block.filters);
  const int64_t tiles = CeilDivide(block.end - block.begin, most);
  const int64_t step = CeilDivide(block.next_count, tiles);
  const float* next = block.next;
  const float* const next_end = next + block.next_count;
  for (int64_t i = block.begin; i < block.end; i += most) {
    const Span* const spans = plan.spans + i;
    const int64_t vectors = std::min(most, block.end - i);
    bool two_rows = false, stream = plan.stream;
    for (int64_t v = 0; v < vectors; ++v) {
      two_rows |= spans[v].count < kLanes;
      stream &= reinterpret_cast<uintptr_t>(block.out + spans[v].position) %
                    sizeof(hn::Vec<D>) ==
                0;
    }
    const float* const stop = next + std::min<int64_t>(step, next_end - next);
    for (const float* line = next; line < stop; line += kFloatsPerLine) {
      hwy::Prefetch(line);
    }
    next = stop;
    // Fetch the lines that the next tile will write.
    for (int64_t v = 0; fetch_outputs && v < most; ++v) {
      if (i + most + v >= block.end) break;
      const float* out = block.out + spans[most + v].position;
      for (int f = 0; f < block.filters; ++f) {
        hwy::Prefetch(out + f * plan.plane);
      }
    }
    (two_rows ? FindTile<true>(block.filters, vectors)
              : FindTile<false>(block.filters, vectors))(
        plan, spans, block.image, block.weights, stream, block.out);
  }
}

BlockKernel GetKernel() { return {kLanes, kMostFilters, Convolve}; }

}  // namespace HWY_NAMESPACE
}  // namespace convlab::cpu::dense_lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convlab::cpu::dense_lanes {

BlockKernel ChosenBlockKernel(int64_t width) {
  return ChosenKernel(CONVLAB_KERNELS(GetKernel), width);
}

}  // namespace convlab::cpu::dense_lanes
#endif  // HWY_ONCE
