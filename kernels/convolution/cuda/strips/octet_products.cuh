// The products of an octet: eight units in a few output rows, by the filters of
// a group, on the tensor cores.
//
// A product is m16n8k16, or m16n8k8 where a step has one filter row. Its 16
// rows are the eight units in two output rows; its 8 columns are filters with
// their shifts; its depth is 8 halves of each of two input rows, or 16 halves
// of one input row if the shape is `wide`. Lane 4 * g + t holds of unit g the
// depth's words t and t + 4, in the first output row (operands 0 and 2) and in
// the second (operands 1 and 3), and of the sums columns 2 * t and 2 * t + 1.
//
// The operands of one product are called a quad. Output rows follow each other,
// so that neighbouring quads have rows of inputs in common.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_OCTET_PRODUCTS_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_OCTET_PRODUCTS_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/strips/mma_plan.h"

namespace convlab::cuda {

#if __CUDA_ARCH__ >= 800

// Where a lane reads its operands: its first word of the high halves, the
// distance of the input rows and that of the low halves, all in bytes.
struct SlabAddress {
  uint32_t at, pitch, low_offset;

  template <int kOffset>
  __device__ __forceinline__ uint32_t High() const {
    return LoadShared<kOffset>(at);
  }
  template <int kOffset>
  __device__ __forceinline__ uint32_t Low() const {
    return LoadShared<kOffset>(at + low_offset);
  }
  __device__ __forceinline__ void NextRow() { at += pitch; }
};

// All operands of an octet with one channel. Output rows 2 * j and 2 * j + 1
// with filter rows 2 * s and 2 * s + 1 take quad j + s. Of the last quad a
// shape that is odd needs the first two words only.
template <int kShape>
struct OctetOperands {
  static constexpr StripsShape kOf = kStripsShapes[kShape];
  static constexpr int kQuads = kOf.steps + kOf.rows / 2 - 1;

  uint32_t high[kQuads][4], low[kQuads][4];

  __device__ __forceinline__ void Load(SlabAddress in) {
#pragma unroll
    for (int i = 0; i < 2 * kQuads + (kOf.odd ? 0 : 1); ++i, in.NextRow()) {
      const uint32_t h = in.High<0>();
      const uint32_t l = in.Low<0>();
      if (i < 2 * kQuads) high[i / 2][i % 2] = h, low[i / 2][i % 2] = l;
      if (i % 2 == 1) high[i / 2][2] = h, low[i / 2][2] = l;
      if (i % 2 == 0 && i > 0) {
        high[i / 2 - 1][3] = h, low[i / 2 - 1][3] = l;
      }
    }
  }
};

// Adds the product of a quad and two filter rows, of which in the last step of
// a shape that is odd only the first exists.
template <int kShape>
__device__ __forceinline__ void MultiplyRows(int step,
                                             const uint32_t (&quad)[4],
                                             uint32_t first, uint32_t second,
                                             float (&sum)[4]) {
  if (kStripsShapes[kShape].odd && step + 1 == kStripsShapes[kShape].steps) {
    MultiplyAdd8(quad[0], quad[1], first, sum);
  } else {
    MultiplyAdd(quad, first, second, sum);
  }
}

// Adds the large products of an octet with one channel to `sum`. Those of kRun
// steps share a sum on the tensor cores (StripsShape::run), the first of them
// with what is in `sum`; the first run is shorter if they do not divide kSteps.
template <int kShape, int kRun, int kSteps, int kS, int kNT>
__device__ __forceinline__ void AddLargeProducts(
    const OctetOperands<kShape>& in, const uint4 (&filters)[kSteps][kNT],
    float (&sum)[kS][kNT][4]) {
  constexpr int kFirstRun = (kSteps - 1) % kRun + 1;
#pragma unroll
  for (int first = kFirstRun - kRun; first < kSteps; first += kRun) {
    float part[kS][kNT][4] = {};
    float(&to)[kS][kNT][4] = first <= 0 ? sum : part;
#pragma unroll
    for (int s = first < 0 ? 0 : first; s < first + kRun; ++s) {
#pragma unroll
      for (int j = 0; j < kS; ++j) {
#pragma unroll
        for (int n = 0; n < kNT; ++n) {
          MultiplyRows<kShape>(s, in.high[j + s], filters[s][n].x,
                               filters[s][n].y, to[j][n]);
        }
      }
    }
    if (first > 0) AddSums(part, sum);
  }
}

// Adds the products of an octet with one channel to `sum`: kS pairs of output
// rows by kNT tiles of 8 columns. The products of low halves come first: they
// are small, and so a sum of them loses least. `one_signed` says that some
// filter of all is of one sign.
template <int kShape, int kSteps, int kS, int kNT>
__device__ __forceinline__ void MultiplyOctet(
    const OctetOperands<kShape>& in, const uint4 (&filters)[kSteps][kNT],
    bool one_signed, float (&sum)[kS][kNT][4]) {
#pragma unroll
  for (int product = 0; product < 2; ++product) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int j = 0; j < kS; ++j) {
#pragma unroll
        for (int n = 0; n < kNT; ++n) {
          const uint4& f = filters[s][n];
          if (product == 0) {
            MultiplyRows<kShape>(s, in.high[j + s], f.z, f.w, sum[j][n]);
          } else {
            MultiplyRows<kShape>(s, in.low[j + s], f.x, f.y, sum[j][n]);
          }
        }
      }
    }
  }
  constexpr int kRun = kStripsShapes[kShape].run();
  constexpr int kRunOfOneSign = kStripsShapes[kShape].run_of_one_sign();
  if (kRunOfOneSign < kRun && one_signed) {
    AddLargeProducts<kShape, kRunOfOneSign>(in, filters, sum);
  } else {
    AddLargeProducts<kShape, kRun>(in, filters, sum);
  }
}

// The operands of an octet and one of several channels, loaded quad by quad
// while products run. Quad i holds input rows i and i + 1 if `wide`, or else
// rows 2 * i to 2 * i + 2, of which the second occurs twice.
template <int kShape>
class ChannelOperands {
 public:
  static constexpr StripsShape kOf = kStripsShapes[kShape];
  static constexpr int kStride = kOf.wide ? 2 : 1;  // in quads, per row pair
  static constexpr int kQuads = kOf.steps + kStride * (kOf.rows / 2 - 1);

  uint32_t high[kQuads][4], low[kQuads][4];

  // `zero` is 0, which the compiler does not know.
  __device__ __forceinline__ ChannelOperands(const SlabAddress& in,
                                             uint32_t zero)
      : in_(in), zero_(zero) {
    if constexpr (kOf.wide) {
      high[0][0] = in_.High<0>(), high[0][2] = in_.High<16>();
      low[0][0] = in_.Low<0>(), low[0][2] = in_.Low<16>();
    } else {
      high[0][0] = in_.High<0>(), low[0][0] = in_.Low<0>();
    }
  }

  // Completes quad i and begins the next. In the order of i.
  __device__ __forceinline__ void Load(int i) {
    in_.NextRow();
    if constexpr (kOf.wide) {
      high[i][1] = in_.High<0>(), high[i][3] = in_.High<16>();
      low[i][1] = in_.Low<0>(), low[i][3] = in_.Low<16>();
      if (i + 1 < kQuads) {
        high[i + 1][0] = Copy(high[i][1]), high[i + 1][2] = Copy(high[i][3]);
        low[i + 1][0] = Copy(low[i][1]), low[i + 1][2] = Copy(low[i][3]);
      }
    } else {
      high[i][1] = in_.High<0>(), low[i][1] = in_.Low<0>();
      high[i][2] = Copy(high[i][1]), low[i][2] = Copy(low[i][1]);
      in_.NextRow();
      high[i][3] = in_.High<0>(), low[i][3] = in_.Low<0>();
      if (i + 1 < kQuads) {
        high[i + 1][0] = Copy(high[i][3]), low[i + 1][0] = Copy(low[i][3]);
      }
    }
  }

 private:
  // A copy that the compiler cannot undo. Of a register that occurs in two
  // operands it would make a copy for every product.
  __device__ __forceinline__ uint32_t Copy(uint32_t v) const {
    return v ^ zero_;
  }

  SlabAddress in_;
  uint32_t zero_;
};

// Adds the products of an octet and one channel. The products of low halves
// have sums of their own, `small`: added to large sums one by one, each would
// lose bits. Those of high halves have them for a run of steps. `filters` is
// the address of the lane's first vector.
template <int kShape, int kS = kStripsShapes[kShape].rows / 2,
          int kNT = kStripsShapes[kShape].tiles_n>
__device__ __forceinline__ void MultiplyChannel(const SlabAddress& in,
                                                uint32_t filters, uint32_t zero,
                                                float (&sum)[kS][kNT][4],
                                                float (&small)[kS][kNT][4]) {
  using Operands = ChannelOperands<kShape>;
  constexpr int kSteps = kStripsShapes[kShape].steps;
  constexpr int kRun = kStripsShapes[kShape].run();
  uint4 f[kSteps][kNT];
  float part[kS][kNT][4];
  Operands operands(in, zero);
#pragma unroll
  for (int i = 0; i < Operands::kQuads; ++i) {
    if (i < kSteps) {
#pragma unroll
      for (int n = 0; n < kNT; ++n) {
        f[i][n] = LoadShared4(filters + (i * kNT + n) * 512);
      }
    }
    operands.Load(i);
#pragma unroll
    for (int product = 0; product < 3; ++product) {
#pragma unroll
      for (int j = 0; j < kS; ++j) {
        const int step = i - Operands::kStride * j;
        if (step < 0 || step >= kSteps) continue;
#pragma unroll
        for (int n = 0; n < kNT; ++n) {
          const uint4& v = f[step][n];
          if (product == 0) {
            if (step % kRun == kSteps % kRun || step == 0) {
#pragma unroll
              for (float& one : part[j][n]) one = 0;
            }
            MultiplyAdd(operands.high[i], v.x, v.y, part[j][n]);
            if (step % kRun == (kSteps - 1) % kRun) {
#pragma unroll
              for (int e = 0; e < 4; ++e) sum[j][n][e] += part[j][n][e];
            }
          }
          if (product == 1) {
            MultiplyAdd(operands.high[i], v.z, v.w, small[j][n]);
          }
          if (product == 2) MultiplyAdd(operands.low[i], v.x, v.y, small[j][n]);
        }
      }
    }
  }
}

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_OCTET_PRODUCTS_CUH_
