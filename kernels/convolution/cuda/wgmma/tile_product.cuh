// The products of one tile: a warpgroup multiplies rows of pixels, which it
// loads into registers, with filters, which wgmma reads from shared memory.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_TILE_PRODUCT_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_TILE_PRODUCT_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/block.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"
#include "kernels/convolution/cuda/wgmma/step_order.h"

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
        // A number that the compiler cannot compute again for each address.
        pitch_(plan.pitch * 4 + plan.zero),
        low_offset_(plan.slab_words * 4),
        filters_(static_cast<uint32_t>(ColumnsAt(filters))),
        low_filters_(plan.group_bytes / 16),
        in_{first[0], first[1]} {}

  // One part: multiplies `steps` steps.
  __device__ __forceinline__ void Run(int steps, Sums& sum) {
    Unroll<C::kAhead>([&](auto i) { Load<decltype(i)::value>(); });
    Take<0, 0>({~plan_.zero, 0});
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

  // Two parts: multiplies `steps` steps in the order of StepOrder. What leaves
  // the tensor cores in `step_sum` is added to `sum` by ordinary additions.
  // With `short_sums` each step is done kPasses times, each time with zeros for
  // all rows but those of one pass.
  __device__ __forceinline__ void RunStepSums(int steps, bool short_sums,
                                              Sums& step_sum, Sums& sum) {
#pragma unroll
    for (uint32_t& mask : masks_) mask = short_sums ? 0 : ~0u;
    masks_[1] = ~0u;
    if (short_sums) steps *= Order::kPasses;
    LoadTurn<0>();
    LoadTurn<1>();
#pragma unroll
    for (auto& vector : sum) {
#pragma unroll
      for (float& value : vector) value = 0;
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      TakeGroup<0>();
      Unroll<Order::kGroups>([&](auto i) {
        constexpr int kG = decltype(i)::value;
        MultiplyGroup<kG>(step_sum);
        // The group before is done.
        if constexpr (Order::IsLarge(kG - 1)) {
          AddFinished<kG - 1>(step_sum, sum);
        }
      });
      filters_ += (C::kFilterRows * C::kFilterRowBytes / 16) & masks_[0];
      // Products that ran across the loop's end would be serialized by the
      // compiler, or be done once more, in vain, after the last step.
      WaitForProducts<0>();
      AddFinished<Order::kGroups - 1>(step_sum, sum);
    }
  }

 private:
  using Order = StepOrder<kShape>;

  // Starts to load the operands of a turn. at_ is where its pair of rows
  // begins.
  template <int kTurn>
  __device__ __forceinline__ void LoadTurn() {
    constexpr int kFirstRow = 2 * Order::Pair(kTurn);
    if constexpr (kTurn == 0) {
      const uint32_t mask = masks_[0];
#pragma unroll
      for (int i = 0; i + 1 < Order::kPasses; ++i) masks_[i] = masks_[i + 1];
      masks_[Order::kPasses - 1] = mask;
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      if constexpr (kTurn == 0) {
        at_[e] = in_[e] + kFirstRow * pitch_;
        // With short sums the same step follows, but after the last pass.
        in_[e] += 32 & masks_[1];
      } else if constexpr (Order::IsLow(kTurn)) {
        at_[e] -= 2 * pitch_;
      } else if constexpr (kFirstRow == 0) {
        // The compiler must not know that rows come again, or it keeps all
        // their addresses.
        asm volatile("" : "+r"(at_[e]));
      } else {
        at_[e] += 2 * pitch_;
      }
      Unroll<2>([&](auto operand_index) {
        constexpr int kOperand = decltype(operand_index)::value;
        if constexpr (kFirstRow + kOperand < C::kInputRows) {
          LoadHalves(e,
                     at_[e] + kOperand * pitch_ +
                         (Order::IsLow(kTurn) ? low_offset_ : 0),
                     next_[kTurn % C::kAhead][kOperand]);
        }
      });
    }
  }
  template <int kG>
  __device__ __forceinline__ void TakeGroup() {
    constexpr int kFirst = Order::FirstTurn(kG);
    Unroll<Order::FirstTurn(kG + 1) - kFirst>([&](auto i) {
      constexpr int kTurn = kFirst + decltype(i)::value;
      constexpr int kRow = 2 * Order::Pair(kTurn);
      Take<kTurn, Order::Buffer(kTurn)>(
          {masks_[Order::Pass(kRow)], masks_[Order::Pass(kRow + 1)]});
    });
  }

  // Starts the products of a group, and takes the next operands once those of
  // the group before are done.
  template <int kG>
  __device__ __forceinline__ void MultiplyGroup(Sums& sum) {
    constexpr int kFirst = Order::FirstTurn(kG);
    constexpr int kCount =
        Order::IsLarge(kG) ? 0 : Order::FirstTurn(kG + 1) - kFirst;
    // Loads come before the products, which wait until those of the other
    // warpgroups leave room: rows that were loaded behind them would be late.
    Unroll<kCount>([&](auto i) {
      constexpr int kTurn = kFirst + C::kAhead + decltype(i)::value;
      if constexpr (kTurn < Order::kTurns) LoadTurn<kTurn>();
    });
    if constexpr (kG == Order::kGroups - 2) {
      // Of the next step; after the last one in vain.
      LoadTurn<0>();
      LoadTurn<1>();
    }
    // Or else the compiler keeps the descriptors of all filter rows.
    if constexpr (kG == 0 || kG == Order::kLowGroups ||
                  (Order::IsLarge(kG) &&
                   (kG - Order::kLoaded) % Order::kVectors == 0)) {
      filters_ += plan_.zero;
    }
    FenceProducts();
    Unroll<kCount>([&](auto i) {
      constexpr int kTurn = kFirst + decltype(i)::value;
      Unroll<C::kVectors>([&](auto v) {
        constexpr int kV = decltype(v)::value;
        StartProducts<kTurn, kV>(Order::IsLow(kTurn) ? 0 : low_filters_, sum);
        if constexpr (Order::IsWhole(kTurn)) StartProducts<kTurn, kV>(0, sum);
      });
    });
    if constexpr (Order::IsLarge(kG)) StartLarge<kG>(sum);
    CommitProducts();
    WaitForProducts<1>();
    if constexpr (kG + 1 < Order::kLoaded) TakeGroup<kG + 1>();
  }

  // Starts the products of a turn's rows that one vector of output rows needs,
  // with the filters that begin at filters_ + offset.
  template <int kTurn, int kV>
  __device__ __forceinline__ void StartProducts(uint32_t offset, Sums& sum) {
    Unroll<2>([&](auto operand_index) {
      constexpr int kOperand = decltype(operand_index)::value;
      constexpr int kRow = 2 * Order::Pair(kTurn) + kOperand;
      constexpr int kRowOfVector = kRow - Order::FirstRow(kV);
      if constexpr (Needs(kRowOfVector)) {
        StartProduct(
            sum[kV], rows_[Order::Buffer(kTurn)][kOperand],
            FilterRow(kRowOfVector, offset),
            Order::IsLow(kTurn) && kRow == Order::BeginRow(kV) ? 0 : 1);
      }
    });
  }
  // Starts a group of large products.
  template <int kG>
  __device__ __forceinline__ void StartLarge(Sums& sum) {
    constexpr int kV = Order::Vector(kG), kFirst = Order::FirstLarge(kG);
    Unroll<Order::EndLarge(kG) - kFirst>([&](auto i) {
      constexpr int kRow = kFirst + decltype(i)::value;
      StartProduct(sum[kV], rows_[Order::BufferOfHeld(kRow / 2)][kRow % 2],
                   FilterRow(kRow - Order::FirstRow(kV)),
                   Order::Begins(kG) && kRow == kFirst ? 0 : 1);
    });
  }

  // Adds up the sums that a group of large products completes.
  template <int kG>
  static __device__ __forceinline__ void AddFinished(Sums& step_sum,
                                                     Sums& sum) {
#pragma unroll
    for (int i = 0; i < C::kSums; ++i) {
      float& value = step_sum[Order::Vector(kG)][i];
      // Or else the compiler may read them before the products are done.
      asm volatile("" : "+f"(value)::"memory");
      sum[Order::Vector(kG)][i] += value;
    }
  }

  // Whether a vector of output rows needs a row, counted from its first.
  static constexpr bool Needs(int row) {
    return row >= 0 && row < C::kVectorRows + C::kKernelSize - 1;
  }
  // The descriptor of the filter row for it. Arranged filters begin with the
  // last row: this one is for the vector's first output row, and those before
  // it are for the others. An address in a descriptor does not overflow, so
  // that an addition makes another.
  __device__ __forceinline__ uint64_t FilterRow(int row,
                                                uint32_t offset = 0) const {
    return ColumnsAt(0) >> 32 << 32 |
           (filters_ + offset +
            (C::kKernelSize + C::kVectorRows - 2 - row) * C::kFilterRowBytes /
                16);
  }

  // Starts to load the operand's rows of unit e from the address `from`.
  __device__ __forceinline__ void LoadHalves(int e, uint32_t from,
                                             uint32_t (&to)[4]) {
    if constexpr (C::kWide) {
      const uint2 words = LoadShared2(from);
      to[e] = words.x;
      to[e + 2] = words.y;
    } else {
      to[e] = LoadShared<0>(from);
      to[e + 2] = LoadShared<16>(from);
    }
  }

  // Moves a row's or a turn's operands to the registers that products read, by
  // an instruction that the compiler cannot leave out: a load into those
  // registers would make the next product wait for it. A row's mask has all
  // bits, or none.
  template <int kTurn, int kBuffer>
  __device__ __forceinline__ void Take(const uint2& masks) {
#pragma unroll
    for (int i = 0; i < 4 * C::kParts; ++i) {
      asm volatile("and.b32 %0, %1, %2;"
                   : "=r"(rows_[kBuffer][i / 4][i % 4])
                   : "r"(next_[kTurn % C::kAhead][i / 4][i % 4]),
                     "r"(i < 4 ? masks.x : masks.y));
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
      LoadHalves(e, at_[e], next_[kI % C::kAhead][0]);
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
        StartProduct(sum[v], rows_[kI % 2][0], FilterRow(kRow),
                     kRow == 0 ? step_adds : 1);
      }
    });
    CommitProducts();
    if constexpr (kInputRow + 1 == C::kInputRows) {
      filters_ += C::kFilterRows * C::kFilterRowBytes / 16;
    }
    // After the last step these rows are loaded in vain.
    Load<kI + C::kAhead>();
    WaitForProducts<1>();
    Take<kI + 1, (kI + 1) % 2>({~plan_.zero, 0});
  }

  const WgmmaPlan& plan_;
  const uint32_t pitch_, low_offset_;  // of low halves of inputs, in bytes
  // The lower word of the descriptor of the step's filters, and the distance of
  // their low halves.
  uint32_t filters_;
  const uint32_t low_filters_;
  uint32_t in_[2], at_[2];  // of the next step, and of the last row loaded
  // Of the rows of each pass, in turn.
  uint32_t masks_[C::kParts == 1 ? 2 : Order::kPasses];
  // By buffer, operand and word: those whose products run and those that wait
  // for them; and those that are being loaded.
  uint32_t rows_[C::kParts == 1 ? 2 : Order::kBuffers][2][4],
      next_[C::kAhead][2][4];
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_TILE_PRODUCT_CUH_
