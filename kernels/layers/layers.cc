#include "kernels/layers/layers.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>
#include <vector>

#include "common/dataset/resize.h"
#include "common/math/rounding.h"
#include "kernels/simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layers/layers.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// Compiled per target, so after those two.
#include "hwy/contrib/math/math-inl.h"

#ifndef KERNELS_LAYERS_LAYERS_ONCE
#define KERNELS_LAYERS_LAYERS_ONCE
namespace convlab::layers {

// EnlargeTaps, and what they are divided by.
struct EnlargePlan {
  int64_t size, enlarged;
  std::vector<int32_t> first;
  std::vector<float> weight0, weight1;
  float divisor;
};

// What this file is compiled to for one set of instructions.
struct Kernel {
  int64_t lanes;
  // Enlarges one image; `padded` has room for one of its rows with a pixel
  // before and behind, and `rows` for as many enlarged rows; all are zeros but
  // for what an image before left.
  void (*enlarge)(const EnlargePlan& plan, const uint8_t* image, float* padded,
                  float* rows, float* out);
  void (*activate)(Activation activation, int64_t count, float* values);
  // Pools one image; `row` has room for one of its rows.
  void (*pool)(const MaxPool& pool, int64_t size, const float* in, float* row,
               float* out);
  // Outputs that a tile of a fully connected layer computes.
  int64_t tile_outputs;
  // Adds to out[b,o] the products of all inputs, where outputs is a multiple of
  // the lanes. `weight` has the tiles one after another, each [inputs, outputs
  // of the tile], so that what a tile reads follows itself.
  void (*connect)(int64_t rows, int64_t inputs, int64_t outputs,
                  const float* in, const float* weight, float* out);
};

}  // namespace convlab::layers
#endif  // KERNELS_LAYERS_LAYERS_ONCE

HWY_BEFORE_NAMESPACE();
namespace convlab::layers {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());

// All sums are whole numbers below 2^24, which floats hold exactly.
void Enlarge(const EnlargePlan& plan, const uint8_t* image, float* padded,
             float* rows, float* out) {
  const D d;
  const hn::RebindToSigned<D> indices;
  const int64_t enlarged = plan.enlarged;
  for (int64_t y = 0; y < plan.size; ++y, image += plan.size) {
    std::copy_n(image, plan.size, padded + 1);
    rows += enlarged;
    for (int64_t x = 0; x < enlarged; x += kLanes) {
      // The last vector ends with the row, whatever of it is done already.
      const int64_t i = std::min(x, enlarged - kLanes);
      const auto first = hn::LoadU(indices, plan.first.data() + i);
      const V sum = hn::Mul(hn::LoadU(d, plan.weight0.data() + i),
                            hn::GatherIndex(d, padded, first));
      hn::StoreU(hn::MulAdd(hn::LoadU(d, plan.weight1.data() + i),
                            hn::GatherIndex(d, padded + 1, first), sum),
                 d, rows + i);
    }
  }
  rows -= plan.size * enlarged;
  // A little less than the reciprocal, by more than all that is rounded: the
  // quotient is never too large, and too small by one at most.
  const V reciprocal = hn::Set(d, (1 - 0x1p-21f) / plan.divisor);
  const V divisor = hn::Set(d, plan.divisor), one = hn::Set(d, 1);
  for (int64_t y = 0; y < enlarged; ++y, out += enlarged) {
    const float* const above = rows + plan.first[y] * enlarged;
    const V weight0 = hn::Set(d, plan.weight0[y]);
    const V weight1 = hn::Set(d, plan.weight1[y]);
    for (int64_t x = 0; x < enlarged; x += kLanes) {
      const int64_t i = std::min(x, enlarged - kLanes);
      const V sum = hn::MulAdd(weight1, hn::LoadU(d, above + enlarged + i),
                               hn::Mul(weight0, hn::LoadU(d, above + i)));
      const V quotient = hn::Floor(hn::Mul(sum, reciprocal));
      const V rest = hn::NegMulAdd(quotient, divisor, sum);
      hn::StoreU(
          hn::Add(quotient, hn::IfThenElseZero(hn::Ge(rest, divisor), one)), d,
          out + i);
    }
  }
}

// Floats between what is pooled and what is fetched: a few rows.
constexpr int64_t kFetchAhead = 512;

void FetchIntoCache(const float* values, int64_t count) {
  constexpr int64_t kFloatsPerLine = 16;
  for (int64_t i = 0; i < count; i += kFloatsPerLine) hwy::Prefetch(values + i);
}

// The larger one, or the NaN that is among them, which hn::Max may drop.
HWY_INLINE V MaxOrNan(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
}

HWY_INLINE V ActivateOne(Activation activation, V v) {
  const D d;
  return activation == Activation::kTanh ? hn::Tanh(d, v)
                                         : MaxOrNan(v, hn::Zero(d));
}

template <Activation kActivation>
void ActivateAll(int64_t count, float* values) {
  const D d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(ActivateOne(kActivation, hn::LoadU(d, values + i)), d,
               values + i);
  }
  if (i == count) return;
  HWY_ALIGN float rest[kLanes] = {};
  std::copy(values + i, values + count, rest);
  hn::Store(ActivateOne(kActivation, hn::Load(d, rest)), d, rest);
  std::copy_n(rest, count - i, values + i);
}

void Activate(Activation activation, int64_t count, float* values) {
  if (activation == Activation::kTanh) {
    ActivateAll<Activation::kTanh>(count, values);
  } else if (activation == Activation::kRelu) {
    ActivateAll<Activation::kRelu>(count, values);
  }
}

// out[i] = the largest of rows[i], rows[i + width], ... of `count` rows of
// `width` values, of which there are kLanes at least.
void MaxOfRows(const float* rows, int64_t count, int64_t width, float* out) {
  const D d;
  for (int64_t i = 0; i < width; i += kLanes) {
    // The last vector ends with the row, whatever of it is done already.
    const int64_t first = std::min(i, width - kLanes);
    V largest = hn::LoadU(d, rows + first);
    for (int64_t r = 1; r < count; ++r) {
      largest = MaxOrNan(hn::LoadU(d, rows + r * width + first), largest);
    }
    hn::StoreU(largest, d, out + first);
  }
}

// out[i] = the largest of a[2i], a[2i + 1], b[2i] and b[2i + 1] for i below
// `count`, which is kLanes at least.
void MaxOfSquares(const float* a, const float* b, int64_t count, float* out) {
  const D d;
  const auto largest = [&](int64_t i) HWY_ATTR {
    return MaxOrNan(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
  };
  for (int64_t i = 0; i < count; i += kLanes) {
    hwy::Prefetch(a + 2 * i + kFetchAhead);
    hwy::Prefetch(b + 2 * i + kFetchAhead);
    const int64_t first = std::min(i, count - kLanes);
#if HWY_TARGET == HWY_SCALAR
    const V even = largest(2 * first), odd = largest(2 * first + 1);
#else
    const V low = largest(2 * first), high = largest(2 * first + kLanes);
    const V even = hn::ConcatEven(d, high, low);
    const V odd = hn::ConcatOdd(d, high, low);
#endif
    hn::StoreU(MaxOrNan(even, odd), d, out + first);
  }
}

void Pool(const MaxPool& pool, int64_t size, const float* in, float* row,
          float* out) {
  const int64_t pooled = pool.Output(size);
  // Squares that all lie within the image. Their rows have kLanes of them.
  const bool squares = pool.size == 2 && pool.stride == 2 && 2 * pooled <= size;
  for (int64_t h = 0; h < pooled; ++h, out += pooled) {
    const int64_t top = h * pool.stride;
    const float* const rows = in + top * size;
    if (squares) {
      MaxOfSquares(rows, rows + size, pooled, out);
      continue;
    }
    MaxOfRows(rows, std::min<int64_t>(pool.size, size - top), size, row);
    for (int64_t w = 0; w < pooled; ++w) {
      const int64_t left = w * pool.stride;
      const int64_t right = std::min<int64_t>(left + pool.size, size);
      float largest = row[left];
      for (int64_t x = left + 1; x < right; ++x) {
        const float value = row[x];
        largest = value > largest || value != value ? value : largest;
      }
      out[w] = largest;
    }
  }
}

constexpr bool k32Registers = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;
// The largest tile: its sums, a vector of weights each and an input fill the
// registers.
constexpr int kRows = 5;
constexpr int kVectors = k32Registers ? 5 : 2;
constexpr int64_t kTileOutputs = kVectors * kLanes;
// Inputs of a block, so that a tile's weights stay in the nearest cache while
// all images take their turn.
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

// The tile of that shape, or the largest that is smaller in what is smaller.
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

Kernel GetKernel() {
  return {kLanes, Enlarge, Activate, Pool, kTileOutputs, Connect};
}

}  // namespace HWY_NAMESPACE
}  // namespace convlab::layers
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convlab {
namespace layers {
namespace {

// Large enough to hide the hand-out, small enough to stay in a core's cache.
constexpr int64_t kValuesPerPiece = 16 << 10;

// Of all targets.
constexpr int64_t kMostLanes = 16;

// In whole vectors.
int64_t PackedOutputs(int64_t outputs) { return RoundUp(outputs, kMostLanes); }

const KernelTable<Kernel>& Kernels() {
  static const KernelTable<Kernel> table = CONVLAB_KERNELS(GetKernel);
  return table;
}

}  // namespace
}  // namespace layers

void EnlargeToFloats(const uint8_t* images, int64_t count, int size,
                     int enlarged, float* out, Workers& workers) {
  constexpr int64_t kImagesPerPiece = 4;
  const int64_t in_pixels = int64_t{size} * size;
  const int64_t out_pixels = int64_t{enlarged} * enlarged;
  layers::EnlargePlan plan = {size, enlarged, {}, {}, {}, 4.0f * out_pixels};
  for (const EnlargeTap& tap : EnlargeTaps(size, enlarged)) {
    plan.first.push_back(tap.first);
    plan.weight0.push_back(tap.weight0);
    plan.weight1.push_back(tap.weight1);
  }
  const bool exact = int64_t{255} * 4 * out_pixels < int64_t{1} << 24;
  const layers::Kernel kernel = ChosenKernel(layers::Kernels(), enlarged);
  workers.For(count, kImagesPerPiece, [&](int, int64_t begin, int64_t end) {
    if (size == enlarged) {
      std::copy(images + begin * in_pixels, images + end * in_pixels,
                out + begin * out_pixels);
      return;
    }
    if (!exact) {
      std::vector<uint8_t> bytes((end - begin) * out_pixels);
      EnlargeImages(images + begin * in_pixels, end - begin, size, enlarged,
                    bytes.data());
      std::copy(bytes.begin(), bytes.end(), out + begin * out_pixels);
      return;
    }
    std::vector<float> padded(size + 2), rows(int64_t{size + 2} * enlarged);
    for (int64_t i = begin; i < end; ++i) {
      kernel.enlarge(plan, images + i * in_pixels, padded.data(), rows.data(),
                     out + i * out_pixels);
    }
  });
}

void Activate(Activation activation, int64_t count, float* values,
              Workers& workers) {
  if (activation == Activation::kNone) return;
  const layers::Kernel kernel = ChosenKernel(layers::Kernels());
  workers.For(count, layers::kValuesPerPiece,
              [&](int, int64_t begin, int64_t end) {
                kernel.activate(activation, end - begin, values + begin);
              });
}

void PoolMax(const MaxPool& pool, Activation activation, int64_t planes,
             int64_t size, const float* in, float* out, Workers& workers) {
  const layers::Kernel kernel =
      ChosenKernel(layers::Kernels(), pool.Output(size));
  const int64_t pooled = pool.Output(size) * pool.Output(size);
  const int64_t grain =
      std::max<int64_t>(1, layers::kValuesPerPiece / (size * size));
  workers.For(planes, grain, [&](int, int64_t begin, int64_t end) {
    std::vector<float> row(size);
    for (int64_t plane = begin; plane < end; ++plane) {
      kernel.pool(pool, size, in + plane * size * size, row.data(),
                  out + plane * pooled);
    }
    kernel.activate(activation, (end - begin) * pooled, out + begin * pooled);
  });
}

std::shared_ptr<const float> PackWeights(int64_t inputs, int64_t outputs,
                                         const float* weight,
                                         Workers& workers) {
  const int64_t packed_outputs = layers::PackedOutputs(outputs);
  const int64_t tile = ChosenKernel(layers::Kernels()).tile_outputs;
  // From a cache line on, so that no vector lies in two.
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
  const layers::Kernel kernel = ChosenKernel(layers::Kernels());
  const int64_t packed_outputs = layers::PackedOutputs(outputs);
  // Each piece reads all the weights once, so a piece is many images; but never
  // so many that a core stays idle.
  const int64_t share = (batch + workers.count() - 1) / workers.count();
  workers.For(batch, std::min<int64_t>(240, share),
              [&](int, int64_t begin, int64_t end) {
                const int64_t rows = end - begin;
                std::vector<float> sums(rows * packed_outputs);
                for (int64_t b = 0; b < rows; ++b) {
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

void Softmax(int64_t batch, int64_t classes, float* values) {
  for (float* row = values; row < values + batch * classes; row += classes) {
    const float largest = *std::max_element(row, row + classes);
    for (int64_t i = 0; i < classes; ++i) row[i] = std::exp(row[i] - largest);
    const float sum = std::accumulate(row, row + classes, 0.0f);
    for (int64_t i = 0; i < classes; ++i) row[i] /= sum;
  }
}

}  // namespace convlab
#endif  // HWY_ONCE
