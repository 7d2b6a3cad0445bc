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
    Take<0, 0>();
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

  // Two parts: multiplies `steps` steps. Each half of a step's filter rows has
  // sums of its own, which are added to `sum` by ordinary additions; of larger
  // filters each quarter has with `short_sums`.
  __device__ __forceinline__ void RunStepSums(int steps,
                                              const volatile bool& short_sums,
                                              Sums& step_sum, Sums& sum) {
    static_assert(kLoaded % C::kAhead == 0);
    Unroll<C::kAhead>([&](auto i) { LoadGroup<decltype(i)::value>(); });
    Take<0, Buffer(0)>();
#pragma unroll
    for (auto& vector : sum) {
#pragma unroll
      for (float& value : vector) value = 0;
    }
    // Each turn ends with the first group of the next step, so that products
    // run across it. After the last step that is done in vain.
    MultiplyGroup<0>(step_sum);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      Unroll<kGroups - 1>([&](auto i) {
        constexpr int kG = decltype(i)::value + 1;
        if constexpr (IsLarge(kG)) StartLarge<kG>(short_sums, step_sum, sum);
        MultiplyGroup<kG>(step_sum);
        // The group before is done.
        AddFinished<kG - 1>(step_sum, sum);
      });
      if (step + 1 < steps) filters_ += C::kFilterRows * C::kFilterRowBytes;
      MultiplyGroup<0>(step_sum);
      AddFinished<kGroups - 1>(step_sum, sum);
    }
    WaitForProducts<0>();
  }

 private:
  // The order of a step's products with two parts. Large products, those of two
  // high halves, are cut off by each product that follows, so the small ones
  // come first: groups of two input rows, their low halves by the filters' high
  // ones, from the last row to the first; then their high halves by the
  // filters' low ones. The first C::kHeld pairs of rows stay in registers until
  // all small products are there; with the others small and large products
  // stand side by side.
  //
  // The large products are four groups: those of the last rows of each vector
  // of output rows, for half of the vectors and for the other half, and those
  // of the first rows. So each group adds to other sums than the one before,
  // which are ready meanwhile; the next step's first group, too.
  static constexpr int kPairs = C::kPairs;
  static constexpr int kLoaded = 2 * kPairs;  // groups with new operands
  static constexpr int kGroups = kLoaded + 4;
  static constexpr bool IsLow(int group) { return group < kPairs; }
  static constexpr bool IsLarge(int group) { return group >= kLoaded; }
  // The rows of a group with new operands.
  static constexpr int Pair(int group) {
    return IsLow(group) ? kPairs - 1 - group : group - kPairs;
  }
  // The registers of a pair's operands, or of a group's.
  static constexpr int BufferOfHeld(int pair) { return 2 + pair; }
  static constexpr int Buffer(int group) {
    return !IsLow(group) && Pair(group) < C::kHeld ? BufferOfHeld(Pair(group))
                                                   : group % 2;
  }
  // The group whose operands are loaded while a group is multiplied, or -1.
  // After the last step those of the next are loaded in vain.
  static constexpr int NextLoaded(int group) {
    const int next = group + C::kAhead;
    return next < kLoaded ? next : next >= kGroups ? next - kGroups : -1;
  }
  // The first input row of a vector of output rows, and its last; and the row
  // with which its products begin.
  static constexpr int FirstRow(int vector) { return vector * C::kVectorRows; }
  static constexpr int LastRow(int vector) {
    return FirstRow(vector) + C::kVectorRows + C::kKernelSize - 2;
  }
  static constexpr int BeginRow(int vector) { return LastRow(vector) / 2 * 2; }
  // Of a group of large products: whether a vector is in it, and its rows.
  static constexpr bool Has(int group, int vector) {
    return (group - kLoaded) % 2 == (vector < C::kVectors / 2 ? 1 : 0);
  }
  static constexpr int FirstLarge(int group, int vector) {
    return FirstRow(vector) + ((group - kLoaded) / 2 == 0 ? kFirstRows : 0);
  }
  static constexpr int EndLarge(int group, int vector) {
    const int end = (group - kLoaded) / 2 == 0 ? LastRow(vector) + 1
                                               : FirstRow(vector) + kFirstRows;
    return end < 2 * C::kHeld ? end : 2 * C::kHeld;
  }
  static constexpr int MiddleLarge(int group, int vector) {
    const int first = FirstLarge(group, vector);
    const int end = EndLarge(group, vector);
    return first < end ? (first + end + 1) / 2 : end;
  }
  static constexpr int kLeastCut =
      7;  // filters that short_sums make a difference to
  static constexpr int kFirstRows = (C::kVectorRows + C::kKernelSize - 1) / 2;

  // Starts to load the operands of a group. at_ is where its pair of rows
  // begins.
  template <int kG>
  __device__ __forceinline__ void LoadGroup() {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      if constexpr (kG == 0) {
        at_[e] = in_[e] + (2 * kPairs - 2) * pitch_;
        in_[e] += 32;
      } else if constexpr (IsLow(kG)) {
        at_[e] -= 2 * pitch_;
      } else if constexpr (kG == kPairs) {
        // The compiler must not know that rows come again, or it keeps all
        // their addresses.
        asm volatile("" : "+r"(at_[e]));
      } else {
        at_[e] += 2 * pitch_;
      }
      Unroll<2>([&](auto operand_index) {
        constexpr int kOperand = decltype(operand_index)::value;
        if constexpr (2 * Pair(kG) + kOperand < C::kInputRows) {
          LoadHalves(e,
                     at_[e] + kOperand * pitch_ + (IsLow(kG) ? low_offset_ : 0),
                     next_[kG % C::kAhead][kOperand]);
        }
      });
    }
  }

  // Starts the products of a group, and takes the next operands once those of
  // the group before are done.
  template <int kG>
  __device__ __forceinline__ void MultiplyGroup(Sums& sum) {
    // Or else the compiler keeps the descriptors of all filter rows.
    if constexpr (kG % kPairs == 0 || kG == kLoaded + 2) filters_ += plan_.zero;
    FenceProducts();
    Unroll<C::kVectors>([&](auto v) {
      constexpr int kV = decltype(v)::value;
      if constexpr (IsLarge(kG)) {
        StartLarge<kG, kV, MiddleLarge(kG, kV), EndLarge(kG, kV)>(sum);
      } else if constexpr (IsLow(kG)) {
        StartProducts<kG, kV>(0, sum);
      } else {
        StartProducts<kG, kV>(plan_.group_bytes, sum);
        if constexpr (Pair(kG) >= C::kHeld) StartProducts<kG, kV>(0, sum);
      }
    });
    CommitProducts();
    constexpr int kNext = NextLoaded(kG);
    if constexpr (kNext >= 0) LoadGroup<kNext>();
    WaitForProducts<1>();
    if constexpr (kG + 1 < kLoaded) {
      Take<kG + 1, Buffer(kG + 1)>();
    } else if constexpr (kG + 1 == kGroups) {
      Take<0, Buffer(0)>();
    }
  }

  // Starts the products of a group's rows that one vector of output rows needs,
  // with the filters' high halves or, `offset` bytes behind them, the low ones.
  template <int kG, int kV>
  __device__ __forceinline__ void StartProducts(uint32_t offset, Sums& sum) {
    Unroll<2>([&](auto operand_index) {
      constexpr int kOperand = decltype(operand_index)::value;
      constexpr int kRow = 2 * Pair(kG) + kOperand;
      if constexpr (kRow >= FirstRow(kV) && kRow <= LastRow(kV)) {
        constexpr bool kBegins = IsLow(kG) && kRow == BeginRow(kV);
        StartProduct(
            sum[kV], rows_[Buffer(kG)][kOperand],
            ColumnsAt(filters_ + FilterOffset(kRow - FirstRow(kV)) + offset),
            kBegins ? 0 : 1);
      }
    });
  }

  // Starts the first half of a group of large products, and with `short_sums`
  // moves what is there to `sum`.
  template <int kG>
  __device__ __forceinline__ void StartLarge(const volatile bool& short_sums,
                                             Sums& step_sum, Sums& sum) {
    FenceProducts();
    Unroll<C::kVectors>([&](auto v) {
      constexpr int kV = decltype(v)::value;
      StartLarge<kG, kV, FirstLarge(kG, kV), MiddleLarge(kG, kV)>(step_sum);
    });
    if constexpr (C::kKernelSize >= kLeastCut) {
      if (!short_sums) return;
      CommitProducts();
      WaitForProducts<0>();
      Unroll<C::kVectors>([&](auto v_index) {
        constexpr int kV = decltype(v_index)::value;
        if constexpr (Has(kG, kV)) {
          Add(step_sum[kV], sum[kV]);
#pragma unroll
          for (float& value : step_sum[kV]) value = 0;
        }
      });
    }
  }
  // Starts a vector's products of these rows. The first rows of all begin new
  // sums.
  template <int kG, int kV, int kFirst, int kEnd>
  __device__ __forceinline__ void StartLarge(Sums& sum) {
    if constexpr (Has(kG, kV) && kFirst < kEnd) {
      Unroll<kEnd - kFirst>([&](auto i) {
        constexpr int kRow = kFirst + decltype(i)::value;
        StartProduct(sum[kV], rows_[BufferOfHeld(kRow / 2)][kRow % 2],
                     ColumnsAt(filters_ + FilterOffset(kRow - FirstRow(kV))),
                     kRow == FirstRow(kV) ? 0 : 1);
      });
    }
  }

  // Adds up the sums that a group of large products completes.
  template <int kG>
  static __device__ __forceinline__ void AddFinished(Sums& step_sum,
                                                     Sums& sum) {
    Unroll<C::kVectors>([&](auto v_index) {
      constexpr int kV = decltype(v_index)::value;
      static_assert(!Has(kGroups - 1, kV) || LastRow(kV) < 2 * kPairs - 2,
                    "the next step's first products come before");
      if constexpr (IsLarge(kG) && Has(kG, kV)) Add(step_sum[kV], sum[kV]);
    });
  }
  static __device__ __forceinline__ void Add(float (&from)[C::kSums],
                                             float (&to)[C::kSums]) {
#pragma unroll
    for (int i = 0; i < C::kSums; ++i) {
      // Or else the compiler may read them before the products are done.
      asm volatile("" : "+f"(from[i])::"memory");
      to[i] += from[i];
    }
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

  // Moves a group's operands to the registers that products read, by an
  // instruction that the compiler cannot leave out: a load into those registers
  // would make the next product wait for it.
  template <int kG, int kBuffer>
  __device__ __forceinline__ void Take() {
#pragma unroll
    for (int i = 0; i < 4 * C::kParts; ++i) {
      asm volatile("xor.b32 %0, %1, %2;"
                   : "=r"(rows_[kBuffer][i / 4][i % 4])
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
    Take<kI + 1, (kI + 1) % 2>();
  }

  const WgmmaPlan& plan_;
  const uint32_t pitch_, low_offset_;  // in bytes
  uint32_t filters_;                   // of the current step
  uint32_t in_[2], at_[2];  // of the next step, and of the last row loaded
  // By input row or group, operand and word: those whose products run and those
  // that wait for them; and those that are being loaded.
  uint32_t rows_[2 + C::kHeld][2][4], next_[C::kAhead][2][4];
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_TILE_PRODUCT_CUH_
