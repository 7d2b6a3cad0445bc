// The products of one tile: a warpgroup multiplies rows of pixels, which it
// loads into registers, with filters, which wgmma reads from shared memory.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_TILE_PRODUCT_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_TILE_PRODUCT_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/block.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

// One thread's part. The depth is walked in steps of 16 halves of a filter row,
// and within a step the input rows of the units from top to bottom.
template <int kShape>
class TileProduct {
 public:
  using C = WgmmaConstants<kShape>;
  // Of the output rows of a unit.
  using Sums = float[C::kVectors][C::kSums];

  // The thread's two units begin in shared memory at `first`, the filters of
  // the group at `filters`.
  __device__ __forceinline__ TileProduct(const WgmmaPlan& plan,
                                         const uint32_t (&first)[2],
                                         uint32_t filters)
      : plan_(plan),
        pitch_(plan.pitch * 4),
        low_offset_(plan.slab_words * 4),
        filters_(filters),
        in_{first[0], first[1]} {}

  // One part: multiplies `steps` steps.
  __device__ __forceinline__ void Run(int steps, Sums& sum) {
    Unroll<C::kAhead>([&](auto i) { Load<decltype(i)::value>(); });
    Take<0>();
    int step = steps;
#pragma unroll 1
    for (; step >= 2; step -= 2) {
      Unroll<2 * C::kInputRows>([&](auto i) {
        constexpr int kI = decltype(i)::value;
        Multiply<kI>(kI < C::kInputRows ? step != steps : 1, sum);
      });
    }
    if (step > 0) {
      Unroll<C::kInputRows>(
          [&](auto i) { Multiply<decltype(i)::value>(step != steps, sum); });
    }
    WaitForProducts<0>();
  }

  // Two parts: multiplies kSteps steps, all of whose products add up in one
  // sum.
  template <int kSteps>
  __device__ __forceinline__ void RunOneSum(Sums& sum) {
    using Order = Groups<kSteps>;
    Unroll<C::kAhead>([&](auto i) { LoadGroup<Order, decltype(i)::value>(); });
    Take<0>();
    Unroll<Order::kCount>(
        [&](auto i) { MultiplyGroup<Order, decltype(i)::value>(sum); });
    WaitForProducts<0>();
  }

  // Two parts: multiplies `steps` steps. Those of each step add up in
  // `step_sum`, which is added to `sum` by ordinary additions.
  __device__ __forceinline__ void RunStepSums(int steps, Sums& step_sum,
                                              Sums& sum) {
    using Order = Groups<1, /*loops=*/true>;
    static_assert(Order::kCount % 2 == 0 && Order::kCount % C::kAhead == 0);
    Unroll<C::kAhead>([&](auto i) { LoadGroup<Order, decltype(i)::value>(); });
    Take<0>();
#pragma unroll
    for (auto& vector : sum) {
#pragma unroll
      for (float& value : vector) value = 0;
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      Unroll<Order::kCount>([&](auto i) {
        constexpr int kG = decltype(i)::value;
        MultiplyGroup<Order, kG>(step_sum);
        // The group before is done.
        if constexpr (kG > 0) AddFinished<Order, kG - 1>(step_sum, sum);
      });
      filters_ += C::kFilterRows * C::kFilterRowBytes;
      WaitForProducts<0>();
      AddFinished<Order, Order::kCount - 1>(step_sum, sum);
    }
  }

 private:
  // The order of the products of kSteps steps with two parts. What comes before
  // the large products, those of high halves, cuts nothing off these. So groups
  // of two input rows follow each other: first their low halves by the filters'
  // high ones; then their high halves by low ones and, but for the first
  // kDeferred groups, by high ones; at last those groups' high halves by high
  // ones. If `loops`, the groups of the next step follow.
  template <int kSteps, bool loops = false>
  struct Groups {
    static constexpr bool kLoops = loops;
    static constexpr int kRows = kSteps * C::kInputRows;
    static constexpr int kPairs = (kRows + 1) / 2;
    static constexpr int kDeferred = kSteps * C::kKernelSize > kWgmmaMostLarge
                                         ? (kPairs + 1) / 2
                                         : 0;
    static constexpr int kCount = 2 * kPairs + kDeferred;
    static constexpr bool IsLow(int group) { return group < kPairs; }
    static constexpr bool ByLow(int group) {
      return group >= kPairs && group < 2 * kPairs;
    }
    static constexpr bool ByHigh(int group) {
      return group < kPairs || group >= kPairs + kDeferred;
    }
    // Of a group's two operands, of which the second may not exist.
    static constexpr int Row(int group, int operand) {
      return 2 * (group % kPairs) + operand;
    }
  };

  // Starts to load the operands of a group.
  template <typename Order, int kAt>
  __device__ __forceinline__ void LoadGroup() {
    constexpr int kG = Order::kLoops ? kAt % Order::kCount : kAt;
    if constexpr (kG < Order::kCount) {
      Unroll<2>([&](auto operand_index) {
        constexpr int kOperand = decltype(operand_index)::value;
        constexpr int kRow = Order::Row(kG, kOperand);
        if constexpr (kRow < Order::kRows) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            MoveTo<kRow, Order::kLoops && !Order::IsLow(kG)>(e);
            LoadHalves<kG % C::kAhead, kOperand>(
                e, at_[e] + (Order::IsLow(kG) ? low_offset_ : 0));
          }
        }
      });
    }
  }

  // Starts the products of a group, and takes the next operands once those of
  // the group before are done.
  template <typename Order, int kG>
  __device__ __forceinline__ void MultiplyGroup(Sums& sum) {
    // Or else the compiler keeps the descriptors of all filter rows.
    if constexpr (Order::Row(kG, 0) % C::kInputRows == 0 ||
                  Order::Row(kG, 1) % C::kInputRows == 0) {
      filters_ += plan_.zero;
    }
    FenceProducts();
    Unroll<C::kVectors>([&](auto v) {
      constexpr int kV = decltype(v)::value;
      if constexpr (Order::ByLow(kG)) {
        MultiplyRows<Order, kG, kV>(plan_.group_bytes, sum);
      }
      if constexpr (Order::ByHigh(kG)) MultiplyRows<Order, kG, kV>(0, sum);
    });
    CommitProducts();
    // After the last step these rows are loaded in vain.
    LoadGroup<Order, kG + C::kAhead>();
    WaitForProducts<1>();
    if constexpr (Order::kLoops || kG + 1 < Order::kCount) Take<kG + 1>();
  }

  // Starts the products of a group's rows that one vector of output rows needs,
  // with the filters' high halves or, `offset` bytes behind them, the low ones.
  template <typename Order, int kG, int kV>
  __device__ __forceinline__ void MultiplyRows(uint32_t offset, Sums& sum) {
    Unroll<2>([&](auto operand_index) {
      constexpr int kOperand = decltype(operand_index)::value;
      constexpr int kInputRow = Order::Row(kG, kOperand);
      constexpr int kStep = kInputRow / C::kInputRows;
      constexpr int kRow = kInputRow % C::kInputRows - kV * C::kVectorRows;
      if constexpr (kInputRow < Order::kRows && Needs(kRow)) {
        constexpr bool kFirst = Order::IsLow(kG) && kStep == 0 && kRow == 0;
        StartProduct(
            sum[kV], rows_[kG % 2][kOperand],
            ColumnsAt(filters_ + kStep * C::kFilterRows * C::kFilterRowBytes +
                      FilterOffset(kRow) + offset),
            kFirst ? 0 : 1);
      }
    });
  }

  // Adds up the sums of one step to which no product is added after group kG.
  template <typename Order, int kG>
  static __device__ __forceinline__ void AddFinished(Sums& step_sum,
                                                     Sums& sum) {
    Unroll<C::kVectors>([&](auto v_index) {
      constexpr int v = decltype(v_index)::value;
      constexpr int kFirstRow = v * C::kVectorRows;
      constexpr int kLastRow = kFirstRow + C::kVectorRows + C::kKernelSize - 2;
      constexpr int kLast = Order::kPairs + kLastRow / 2;
      // Or else the next step's first product would come before.
      static_assert(kLast + 1 < Order::kCount + kFirstRow / 2);
      if constexpr (kLast == kG) {
#pragma unroll
        for (int i = 0; i < C::kSums; ++i) {
          // Or else the compiler may read them before the products are done.
          asm volatile("" : "+f"(step_sum[v][i])::"memory");
          sum[v][i] += step_sum[v][i];
        }
      }
    });
  }

  // Whether a vector of output rows needs a row, counted from its first.
  static constexpr bool Needs(int row) {
    return row >= 0 && row < C::kVectorRows + C::kKernelSize - 1;
  }
  // Where the filter row for it begins, in bytes. Arranged filters begin with
  // the last row: this one is for the vector's first output row, and those
  // before it are for the others.
  static constexpr uint32_t FilterOffset(int row) {
    return (C::kKernelSize + C::kVectorRows - 2 - row) * C::kFilterRowBytes;
  }

  // Moves the address of unit e to a row, from the one before. After the first
  // of a step's rows the next step begins if `last`, or else the same rows come
  // again. The compiler must not know that, or it keeps all their addresses.
  template <int kRow, bool last>
  __device__ __forceinline__ void MoveTo(int e) {
    if constexpr (kRow % C::kInputRows == 0) {
      at_[e] = in_[e] + 32 * (kRow / C::kInputRows);
      in_[e] += last ? 32 : plan_.zero;
    } else {
      at_[e] += pitch_;
    }
  }

  // Starts to load the operand's rows of unit e from the address `from`.
  template <int kBuffer, int kOperand>
  __device__ __forceinline__ void LoadHalves(int e, uint32_t from) {
    uint32_t(&to)[4] = next_[kBuffer][kOperand];
    if constexpr (C::kWide) {
      const uint2 words = LoadShared2(from);
      to[e] = words.x;
      to[e + 2] = words.y;
    } else {
      to[e] = LoadShared<0>(from);
      to[e + 2] = LoadShared<16>(from);
    }
  }

  // Moves a group's operands to the registers that products read, by an
  // instruction that the compiler cannot leave out: a load into those registers
  // would make the next product wait for it.
  template <int kG>
  __device__ __forceinline__ void Take() {
#pragma unroll
    for (int i = 0; i < 4 * C::kParts; ++i) {
      asm volatile("xor.b32 %0, %1, %2;"
                   : "=r"(rows_[kG % 2][i / 4][i % 4])
                   : "r"(next_[kG % C::kAhead][i / 4][i % 4]), "r"(plan_.zero));
    }
  }

  // One part: starts to load an input row, counted on over two steps, which are
  // one turn of Run's loop; after them it begins again.
  template <int kI>
  __device__ __forceinline__ void Load() {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      if constexpr (kI % C::kInputRows == 0) {
        at_[e] = in_[e];
        in_[e] += 32;
      } else {
        at_[e] += pitch_;
      }
      LoadHalves<kI % C::kAhead, 0>(e, at_[e]);
    }
  }

  // One part: starts the products of an input row, and takes the next row once
  // those of the row before are done. If step_adds is 0 sums begin with the
  // first product that they meet, whatever they held: so it is in the first
  // step.
  template <int kI>
  __device__ __forceinline__ void Multiply(int step_adds, Sums& sum) {
    constexpr int kInputRow = kI % C::kInputRows;
    FenceProducts();
    Unroll<C::kVectors>([&](auto v_index) {
      constexpr int v = decltype(v_index)::value;
      constexpr int kRow = kInputRow - v * C::kVectorRows;
      if constexpr (Needs(kRow)) {
        StartProduct(sum[v], rows_[kI % 2][0],
                     ColumnsAt(filters_ + FilterOffset(kRow)),
                     kRow == 0 ? step_adds : 1);
      }
    });
    CommitProducts();
    if constexpr (kInputRow + 1 == C::kInputRows) {
      filters_ += C::kFilterRows * C::kFilterRowBytes;
    }
    // After the last step these rows are loaded in vain.
    Load<kI + C::kAhead>();
    WaitForProducts<1>();
    Take<kI + 1>();
  }

  const WgmmaPlan& plan_;
  const uint32_t pitch_, low_offset_;  // in bytes
  uint32_t filters_;                   // of the current step
  uint32_t in_[2], at_[2];  // of the next step, and of the last row loaded
  // By input row or group, operand and word: those whose products run and those
  // that wait for them; and those that are being loaded.
  uint32_t rows_[2][2][4], next_[C::kAhead][2][4];
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_TILE_PRODUCT_CUH_
