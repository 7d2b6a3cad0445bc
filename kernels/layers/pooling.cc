#include <algorithm>
#include <vector>

#include "absl/container/fixed_array.h"
#include "kernels/layers/layers.h"
#include "kernels/simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layers/pooling.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// Compiled per target, so after those two.
#include "hwy/contrib/math/math-inl.h"

#ifndef KERNELS_LAYERS_POOLING_ONCE
#define KERNELS_LAYERS_POOLING_ONCE
namespace convlab::pooling {

// The functions that this file compiles for one instruction set.
struct Kernel {
  int64_t lanes;
  void (*activate)(Activation activation, int64_t count, float* values);
  // Pools one image; `row` has room for one of its rows.
  void (*pool)(const MaxPool& pool, int64_t height, int64_t width,
               const float* in, float* row, float* out);
};

}  // namespace convlab::pooling
#endif  // KERNELS_LAYERS_POOLING_ONCE

HWY_BEFORE_NAMESPACE();
namespace convlab::pooling {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());

// Distance of the prefetch in floats: a few rows.
constexpr int64_t kFetchAhead = 512;

// The larger value, or NaN if one of them is, which hn::Max may drop.
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
// `width` values; width is at least kLanes.
void MaxOfRows(const float* rows, int64_t count, int64_t width, float* out) {
  const D d;
  for (int64_t i = 0; i < width; i += kLanes) {
    // The last vector ends with the row and may overlap the one before.
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

void Pool(const MaxPool& pool, int64_t height, int64_t width, const float* in,
          float* row, float* out) {
  const int64_t pooled = pool.Output(width), rows_out = pool.Output(height);
  // Squares that all lie within the image. Their rows have kLanes of them.
  const bool squares = pool.size == 2 && pool.stride == 2 &&
                       2 * pooled <= width && 2 * rows_out <= height;
  for (int64_t h = 0; h < rows_out; ++h, out += pooled) {
    const int64_t top = h * pool.stride;
    const float* const rows = in + top * width;
    if (squares) {
      MaxOfSquares(rows, rows + width, pooled, out);
      continue;
    }
    MaxOfRows(rows, std::min<int64_t>(pool.size, height - top), width, row);
    for (int64_t w = 0; w < pooled; ++w) {
      const int64_t left = w * pool.stride;
      const int64_t right = std::min<int64_t>(left + pool.size, width);
      float largest = row[left];
      for (int64_t x = left + 1; x < right; ++x) {
        const float value = row[x];
        largest = value > largest || value != value ? value : largest;
      }
      out[w] = largest;
    }
  }
}

Kernel GetKernel() { return {kLanes, Activate, Pool}; }

}  // namespace HWY_NAMESPACE
}  // namespace convlab::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convlab {
namespace pooling {
namespace {

// Large enough to hide the cost of distribution, small enough to stay in a
// core's cache.
constexpr int64_t kValuesPerPiece = 16 << 10;

const KernelTable<Kernel>& Kernels() {
  static const KernelTable<Kernel> table = CONVLAB_KERNELS(GetKernel);
  return table;
}

// Adds `added` to `area` values.
void AddOne(float added, int64_t area, float* values) {
  for (int64_t i = 0; i < area; ++i) values[i] += added;
}

}  // namespace
}  // namespace pooling

void AddBias(int64_t batch, int64_t channels, int64_t area, const float* bias,
             float* values, Workers& workers) {
  const int64_t grain = std::max<int64_t>(1, pooling::kValuesPerPiece / area);
  workers.For(batch * channels, grain, [&](int, int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      pooling::AddOne(bias[plane % channels], area, values + plane * area);
    }
  });
}

void Activate(Activation activation, int64_t count, float* values,
              Workers& workers) {
  if (activation == Activation::kNone) return;
  const pooling::Kernel kernel = ChosenKernel(pooling::Kernels());
  workers.For(count, pooling::kValuesPerPiece,
              [&](int, int64_t begin, int64_t end) {
                kernel.activate(activation, end - begin, values + begin);
              });
}

void PoolMax(const MaxPool& pool, Activation activation, int64_t planes,
             int64_t size, const float* in, float* out, Workers& workers) {
  const pooling::Kernel kernel =
      ChosenKernel(pooling::Kernels(), pool.Output(size));
  const int64_t pooled = pool.Output(size) * pool.Output(size);
  const int64_t grain =
      std::max<int64_t>(1, pooling::kValuesPerPiece / (size * size));
  workers.For(planes, grain, [&](int, int64_t begin, int64_t end) {
    std::vector<float> row(size);
    for (int64_t plane = begin; plane < end; ++plane) {
      kernel.pool(pool, size, size, in + plane * size * size, row.data(),
                  out + plane * pooled);
    }
    kernel.activate(activation, (end - begin) * pooled, out + begin * pooled);
  });
}

void FinishPlanes(const MaxPool& pool, Activation activation, const float* bias,
                  int64_t planes, int64_t height, int64_t width,
                  const float* in, float* out) {
  const pooling::Kernel kernel =
      ChosenKernel(pooling::Kernels(), pool.Output(width));
  const int64_t pooled = pool.Output(height) * pool.Output(width);
  // On the stack, unless rows are very long: callers do not allocate.
  absl::FixedArray<float, 4096> row(width);
  for (int64_t plane = 0; plane < planes; ++plane) {
    float* const to = out + plane * pooled;
    if (pool.size > 0) {
      kernel.pool(pool, height, width, in + plane * height * width, row.data(),
                  to);
    }
    if (bias != nullptr) pooling::AddOne(bias[plane], pooled, to);
  }
  kernel.activate(activation, planes * pooled, out);
}

}  // namespace convlab
#endif  // HWY_ONCE
