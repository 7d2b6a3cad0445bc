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
// and within a step the input rows of the units from top to bottom. Methods
// take the number of an input row, kI, counted on over two steps, which are one
// turn of the loop; after them it begins again.
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

  // Multiplies kSteps steps, all of whose products add up in one sum. The small
  // ones cut nothing off the large ones if they come first.
  template <int kSteps>
  __device__ __forceinline__ void RunOneSum(Sums& sum) {
    Unroll<C::kAhead>([&](auto i) { LoadGroup<kSteps, decltype(i)::value>(); });
    Take<0>();
    Unroll<OneSum<kSteps>::kGroups>(
        [&](auto i) { MultiplyGroup<kSteps, decltype(i)::value>(sum); });
    WaitForProducts<0>();
  }

  // Multiplies `steps` steps. `main` becomes the sums of high * high, and with
  // two parts `small` those of high * low and low * high. Some of the last
  // large products are added to `small`, so that fewer cut bits off a sum:
  // those of half of the filter's rows if `steps` is odd, and those of the last
  // two steps, which are even then, if `split_last` (WgmmaPlan::split_steps).
  __device__ __forceinline__ void Run(int steps, bool split_last, Sums& main,
                                      Sums& small) {
    Unroll<C::kAhead>([&](auto i) { Load<decltype(i)::value>(); });
    Take<0>();
    const int last = C::kSplits && split_last ? 2 : 0;
    int step = steps;
#pragma unroll 1
    for (; step >= 2 + last; step -= 2) {
      Unroll<2 * C::kInputRows>([&](auto i) {
        constexpr int kI = decltype(i)::value;
        Multiply<kI, C::kNoRow>(kI < C::kInputRows ? step != steps : 1, main,
                                small);
      });
    }
    if constexpr (C::kSplits) {
      if (last > 0) {
        Unroll<2 * C::kInputRows>(
            [&](auto i) { Multiply<decltype(i)::value, 0>(1, main, small); });
        step = 0;
      }
    }
    if (step > 0) {
      Unroll<C::kInputRows>([&](auto i) {
        Multiply<decltype(i)::value, C::kSplitRow>(step != steps, main, small);
      });
    }
    WaitForProducts<0>();
  }

 private:
  // The order of RunOneSum, in groups of two input rows: first their low halves
  // by high ones; then their high halves by low ones and, but for the first
  // kDeferred groups, by high ones; at last the high halves of those groups by
  // high ones.
  template <int kSteps>
  struct OneSum {
    static constexpr int kRows = kSteps * C::kInputRows;
    static constexpr int kPairs = (kRows + 1) / 2;
    static constexpr int kDeferred = kSteps * C::kKernelSize > kWgmmaMostLarge
                                         ? (kPairs + 1) / 2
                                         : 0;
    static constexpr int kGroups = 2 * kPairs + kDeferred;
    static constexpr bool IsLow(int group) { return group < kPairs; }
    static constexpr bool ByLow(int group) {
      return group >= kPairs && group < 2 * kPairs;
    }
    static constexpr bool ByHigh(int group) {
      return group < kPairs || group >= kPairs + kDeferred;
    }
    // Of the two operands of a group. The last of a pass may have one.
    static constexpr int Row(int group, int operand) {
      return 2 * (group % kPairs) + operand;
    }
  };

  // Starts to load the operands of a group.
  template <int kSteps, int kG>
  __device__ __forceinline__ void LoadGroup() {
    using Order = OneSum<kSteps>;
    if constexpr (kG < Order::kGroups) {
      Unroll<2>([&](auto operand_index) {
        constexpr int kOperand = decltype(operand_index)::value;
        constexpr int kRow = Order::Row(kG, kOperand);
        if constexpr (kRow < Order::kRows) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            MoveTo<kRow>(e);
            LoadHalves<kG % C::kAhead, kOperand>(
                e, at_[e] + (Order::IsLow(kG) ? low_offset_ : 0));
          }
        }
      });
    }
  }

  // Starts the products of a group, and takes the next operands once those of
  // the group before are done.
  template <int kSteps, int kG>
  __device__ __forceinline__ void MultiplyGroup(Sums& sum) {
    using Order = OneSum<kSteps>;
    // Or else the compiler keeps the descriptors of all filter rows.
    if constexpr (Order::Row(kG, 0) % C::kInputRows == 0 ||
                  Order::Row(kG, 1) % C::kInputRows == 0) {
      filters_ += plan_.zero;
    }
    FenceProducts();
    Unroll<C::kVectors>([&](auto v) {
      constexpr int kV = decltype(v)::value;
      if constexpr (Order::ByLow(kG)) {
        MultiplyPair<kSteps, kG, kV>(plan_.group_bytes, sum);
      }
      if constexpr (Order::ByHigh(kG)) {
        MultiplyPair<kSteps, kG, kV>(0, sum);
      }
    });
    CommitProducts();
    LoadGroup<kSteps, kG + C::kAhead>();
    WaitForProducts<1>();
    if constexpr (kG + 1 < Order::kGroups) Take<kG + 1>();
  }

  // Starts the products of a group's operands for a vector of output rows, with
  // the filters' high halves or, so many bytes behind, their low ones.
  template <int kSteps, int kG, int kV>
  __device__ __forceinline__ void MultiplyPair(uint32_t offset, Sums& sum) {
    using Order = OneSum<kSteps>;
    Unroll<2>([&](auto operand_index) {
      constexpr int kOperand = decltype(operand_index)::value;
      constexpr int kStep = Order::Row(kG, kOperand) / C::kInputRows;
      constexpr int kRow = Order::Row(kG, kOperand) % C::kInputRows -
                           kV * C::kVectorRows;  // among the vector's
      if constexpr (kStep < kSteps && kRow >= 0 &&
                    kRow < C::kVectorRows + C::kKernelSize - 1) {
        const uint32_t address =
            filters_ + (kStep * C::kFilterRows + C::kKernelSize +
                        C::kVectorRows - 2 - kRow) *
                           C::kFilterRowBytes;
        constexpr bool kFirst = Order::IsLow(kG) && kStep == 0 && kRow == 0;
        StartProduct(sum[kV], rows_[kG % 2][kOperand],
                     ColumnsAt(address + offset), kFirst ? 0 : 1);
      }
    });
  }

  // Moves the address of unit e to a row, from the one before. The compiler
  // must not know that rows come again, or else it keeps all their addresses.
  template <int kRow>
  __device__ __forceinline__ void MoveTo(int e) {
    if constexpr (kRow % C::kInputRows == 0) {
      at_[e] = in_[e] + 32 * (kRow / C::kInputRows);
      in_[e] += plan_.zero;
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

  // Starts to load an input row.
  template <int kI>
  __device__ __forceinline__ void Load() {
    constexpr int kBuffer = kI % C::kAhead;
    if constexpr (kI % C::kInputRows == 0) {
      at_[0] = in_[0], at_[1] = in_[1];
      in_[0] += 32, in_[1] += 32;
    } else {
      at_[0] += pitch_, at_[1] += pitch_;
    }
    Unroll<C::kParts>([&](auto part) {
      constexpr int kPart = decltype(part)::value;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        LoadHalves<kBuffer, kPart>(e, at_[e] + kPart * low_offset_);
      }
    });
  }

  // Moves an input row to the registers that products read, by an instruction
  // that the compiler cannot leave out: a load into those registers would make
  // the next product wait for it.
  template <int kI>
  __device__ __forceinline__ void Take() {
#pragma unroll
    for (int i = 0; i < 4 * C::kParts; ++i) {
      asm volatile("xor.b32 %0, %1, %2;"
                   : "=r"(rows_[kI % 2][i / 4][i % 4])
                   : "r"(next_[kI % C::kAhead][i / 4][i % 4]), "r"(plan_.zero));
    }
  }

  // Starts the products of an input row, and takes the next row once those of
  // the row before are done. If step_adds is 0 sums begin with the first
  // product that they meet, whatever they held: so it is in the first step.
  // From the vector's row kSplitRow on large products are added to `small`.
  template <int kI, int kSplitRow>
  __device__ __forceinline__ void Multiply(int step_adds, Sums& main,
                                           Sums& small) {
    constexpr int kRow = kI % C::kInputRows;
    const uint32_t(&rows)[2][4] = rows_[kI % 2];
    FenceProducts();
    Unroll<C::kVectors>([&](auto v_index) {
      constexpr int v = decltype(v_index)::value;
      constexpr int kFirst = v * C::kVectorRows;  // of its output rows
      if constexpr (kRow >= kFirst &&
                    kRow < kFirst + C::kVectorRows + C::kKernelSize - 1) {
        // Arranged filters begin with the last row: this is filter row
        // kRow - kFirst and, for the other output rows, those before it.
        const uint32_t address =
            filters_ + (C::kKernelSize + C::kVectorRows - 2 - (kRow - kFirst)) *
                           C::kFilterRowBytes;
        const uint64_t high = ColumnsAt(address);
        const int adds = kRow == kFirst ? step_adds : 1;
        if constexpr (C::kParts == 2) {
          const uint64_t low = ColumnsAt(address + plan_.group_bytes);
          StartProduct(small[v], rows[0], low, adds);
          if constexpr (kRow - kFirst < kSplitRow) {
            StartProduct(main[v], rows[0], high, adds);
            StartProduct(small[v], rows[1], high);
          } else {
            StartProduct(small[v], rows[1], high);
            StartProduct(small[v], rows[0], high);
          }
        } else {
          StartProduct(main[v], rows[0], high, adds);
        }
      }
    });
    CommitProducts();
    if constexpr (kRow + 1 == C::kInputRows) {
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
  // By input row, part and word: the row whose products run and the one that
  // waits for them; and the rows that are being loaded.
  uint32_t rows_[2][2][4], next_[C::kAhead][2][4];
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_TILE_PRODUCT_CUH_
