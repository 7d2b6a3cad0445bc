// What a thread of few_images computes at a time, and what both plans need to
// know about it. No CUDA in here, so that plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_ITEM_H_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_ITEM_H_

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/inset.h"

namespace convlab::cuda {

// An item is 4 filters at 4 neighbouring columns, of 1 or 2 rows.
constexpr int kFewFilters = 4;
constexpr int kFewColumns = 4;
constexpr int kFewMostRows = 2;

// Filters with kernels of their own, K x K.
constexpr int kFewKernelSizes[] = {3, 5, 7};

inline bool HasKernelOfItsOwn(int K) {
  return std::find(std::begin(kFewKernelSizes), std::end(kFewKernelSizes), K) !=
         std::end(kFewKernelSizes);
}

// The least distance of two rows of `columns` inputs in shared memory, of which
// groups_x threads load 16 bytes each: so that the eight lanes that a vector
// load serves at a time, which stand in one row or in two, meet different
// banks.
inline int InputPitch(int groups_x, int columns) {
  constexpr int kBanks = 32;
  const int least = groups_x * kFewColumns;
  if (least % kBanks == 0) return RoundUp(columns, 4);
  return least + RoundUp(std::max(columns - least, 0), kBanks);
}

// How many floats may be moved at a time, if rows of `row` floats follow each
// other from `tensor` on: 4, 2 or 1.
inline int VectorFloats(int row, const void* tensor) {
  const auto fits = [&](int floats) {
    return row % floats == 0 &&
           reinterpret_cast<uintptr_t>(tensor) / 4 % floats == 0;
  };
  return fits(4) ? 4 : fits(2) ? 2 : 1;
}

// The same for images amid zeros, of which a copy has all floats or none.
inline int VectorFloats(const Inset& inset, const void* tensor) {
  return inset.left % 2 == 0 && VectorFloats(inset.width, tensor) >= 2 ? 2 : 1;
}

// The number to try after n in a search: all small ones, then steps of a
// quarter.
inline int NextToTry(int n) { return n < 8 ? n + 1 : n + n / 4; }

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_ITEM_H_
