#include <algorithm>
#include <new>
#include <vector>

#include "common/math/rounding.h"
#include "kernels/layers/layers.h"
#include "kernels/simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layers/fully_connected.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef KERNELS_LAYERS_FULLY_CONNECTED_ONCE
#define KERNELS_LAYERS_FULLY_CONNECTED_ONCE
namespace convlab::fully_connected {

// The functions that this file compiles for one instruction set.
struct Kernel {
  // Outputs that a tile computes.
  int64_t tile_outputs;
  // Adds to out[b,o] the products of all inputs, where outputs is a multiple of
  // the lanes. `weight` has the tiles one after another, each [inputs, outputs
  // of the tile], so that a tile reads contiguous memory.
  void (*connect)(int64_t rows, int64_t inputs, int64_t outputs,
                  const float* in, const float* weight, float* out);
};

}  // namespace convlab::fully_connected
#endif  // KERNELS_LAYERS_FULLY_CONNECTED_ONCE

HWY_BEFORE_NAMESPACE();
namespace convlab::fully_connected {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());

void FetchIntoCache(const float* values, int64_t count) {
  constexpr int64_t kFloatsPerLine = 16;
  for (int64_t i = 0; i < count; i += kFloatsPerLine) hwy::Prefetch(values + i);
}

constexpr bool k32Registers = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;
// The largest tile: its sums, a vector of weights each and an input fill the
// registers.
constexpr int kRows = 5;
constexpr int kVectors = k32Registers ? 5 : 2;
constexpr int64_t kTileOutputs = kVectors * kLanes;
// Inputs of a block, so that a tile's weights stay in the nearest cache for all
// images.
constexpr int64_t kBlock = 256;

// Adds the products of `count` inputs to the sums of kTileRows images, which
// are `outputs` floats apart, and kTileVectors vectors of outputs.
template <int kTileRows, int kTileVectors>
void ConnectTile(int64_t inputs, int64_t outputs, int64_t count,
                 const float* HWY_RESTRICT in, const float* HWY_RESTRICT weight,
                 float* HWY_RESTRICT out) {
  const D d;
  V sums[kTileRows][kTileVectors];
#pragma GCC unroll 16
  for (int b = 0; b < kTileRows; ++b) {
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; ++v) {
      sums[b][v] = hn::LoadU(d, out + b * outputs + v * kLanes);
    }
  }
  for (int64_t i = 0; i < count; ++i, ++in, weight += kTileVectors * kLanes) {
    V weights[kTileVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; ++v) {
      weights[v] = hn::LoadU(d, weight + v * kLanes);
    }
#pragma GCC unroll 16
    for (int b = 0; b < kTileRows; ++b) {
      const V value = hn::Set(d, in[b * inputs]);
#pragma GCC unroll 16
      for (int v = 0; v < kTileVectors; ++v) {
        sums[b][v] = hn::MulAdd(value, weights[v], sums[b][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int b = 0; b < kTileRows; ++b) {
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; ++v) {
      hn::StoreU(sums[b][v], d, out + b * outputs + v * kLanes);
    }
  }
}

using ConnectFunction = void(int64_t, int64_t, int64_t, const float*,
                             const float*, float*);

// The tile of that shape, or the largest smaller one in each dimension.
template <int kTileRows, int kTileVectors>
ConnectFunction* FindConnectTile(int64_t rows, int64_t vectors) {
  if constexpr (kTileRows > 1) {
    if (rows < kTileRows) {
      return FindConnectTile<kTileRows - 1, kTileVectors>(rows, vectors);
    }
  }
  if constexpr (kTileVectors > 1) {
    if (vectors < kTileVectors) {
      return FindConnectTile<kTileRows, kTileVectors - 1>(rows, vectors);
    }
  }
  return ConnectTile<kTileRows, kTileVectors>;
}

void Connect(int64_t rows, int64_t inputs, int64_t outputs, const float* in,
             const float* weight, float* out) {
  for (int64_t i = 0; i < inputs; i += kBlock) {
    const int64_t count = std::min(inputs - i, kBlock);
    const int64_t next = std::min(inputs - i - count, kBlock);
    for (int64_t o = 0; o < outputs; o += kTileOutputs) {
      const int64_t width = std::min(outputs - o, kTileOutputs);
      const float* const weights = weight + o * inputs + i * width;
      for (int64_t b = 0; b < rows; b += kRows) {
        // The images' next block, whose pieces stand far apart.
        for (int64_t r = b; o == 0 && r < std::min(rows, b + kRows); ++r) {
          FetchIntoCache(in + r * inputs + i + count, next);
        }
        FindConnectTile<kRows, kVectors>(rows - b, width / kLanes)(
            inputs, outputs, count, in + b * inputs + i, weights,
            out + b * outputs + o);
      }
    }
  }
}

Kernel GetKernel() { return {kTileOutputs, Connect}; }

}  // namespace HWY_NAMESPACE
}  // namespace convlab::fully_connected
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convlab {
namespace fully_connected {
namespace {

// Of all targets.
constexpr int64_t kMostLanes = 16;

// Rounded up to whole vectors.
int64_t PackedOutputs(int64_t outputs) { return RoundUp(outputs, kMostLanes); }

const KernelTable<Kernel>& Kernels() {
  static const KernelTable<Kernel> table = CONVLAB_KERNELS(GetKernel);
  return table;
}

}  // namespace
}  // namespace fully_connected

std::shared_ptr<const float> PackWeights(int64_t inputs, int64_t outputs,
                                         const float* weight,
                                         Workers& workers) {
  const int64_t packed_outputs = fully_connected::PackedOutputs(outputs);
  const int64_t tile = ChosenKernel(fully_connected::Kernels()).tile_outputs;
  // Aligned to a cache line, so that no vector crosses one.
  constexpr std::align_val_t kLine{64};
  const std::shared_ptr<float> packed(
      static_cast<float*>(
          ::operator new(inputs* packed_outputs * sizeof(float), kLine)),
      [=](float* values) { ::operator delete(values, kLine); });
  workers.For(inputs, 256, [&](int, int64_t begin, int64_t end) {
    for (int64_t first = 0; first < packed_outputs; first += tile) {
      const int64_t width = std::min(tile, packed_outputs - first);
      const int64_t count = std::clamp<int64_t>(outputs - first, 0, width);
      float* row = packed.get() + first * inputs + begin * width;
      for (int64_t i = begin; i < end; ++i, row += width) {
        for (int64_t o = 0; o < count; ++o) {
          row[o] = weight[(first + o) * inputs + i];
        }
        std::fill(row + count, row + width, 0.0f);
      }
    }
  });
  return packed;
}

void FullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                    const float* in, const float* packed, const float* bias,
                    float* out, Workers& workers) {
  const fully_connected::Kernel kernel =
      ChosenKernel(fully_connected::Kernels());
  const int64_t packed_outputs = fully_connected::PackedOutputs(outputs);
  // Each piece reads all the weights once, so a piece is many images; but never
  // so many that a core is idle.
  const int64_t share = (batch + workers.count() - 1) / workers.count();
  workers.For(batch, std::min<int64_t>(240, share),
              [&](int, int64_t begin, int64_t end) {
                const int64_t rows = end - begin;
                std::vector<float> sums(rows * packed_outputs);
                for (int64_t b = 0; bias != nullptr && b < rows; ++b) {
                  std::copy_n(bias, outputs, sums.data() + b * packed_outputs);
                }
                kernel.connect(rows, inputs, packed_outputs,
                               in + begin * inputs, packed, sums.data());
                for (int64_t b = 0; b < rows; ++b) {
                  std::copy_n(sums.data() + b * packed_outputs, outputs,
                              out + (begin + b) * outputs);
                }
              });
}

}  // namespace convlab
#endif  // HWY_ONCE
