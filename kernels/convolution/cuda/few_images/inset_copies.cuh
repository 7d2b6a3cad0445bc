// How few_images brings images amid zeros to shared memory without a copy of
// them: what lies outside of the image in memory arrives as zero. Copies are of
// single floats, because rows begin anywhere in those of shared memory.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_INSET_COPIES_CUH_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_INSET_COPIES_CUH_

#include <cuda_pipeline_primitives.h>

#include <cstdint>

#include "kernels/convolution/cuda/few_images/item.h"
#include "kernels/convolution/cuda/lib/division.h"

namespace convlab::cuda {

// Where a row of the problem's images begins in memory, if it is there.
struct InsetRow {
  int at;
  bool exists;
};

// Row h of the problem's plane number `plane`.
__device__ __forceinline__ InsetRow RowOfInset(const Inset& inset, int plane,
                                               int h) {
  const int row = h - inset.top;
  return {(plane * inset.height + row) * inset.width,
          static_cast<unsigned>(row) < static_cast<unsigned>(inset.height)};
}

// Starts the copies of `rows` rows of `columns` floats, from the problem's
// column first_column on, to rows `pitch` floats apart. row_of(row) is where a
// row begins. columns_magic is that of the columns.
template <typename RowOf>
__device__ __forceinline__ void CopyRowsOfInset(const Inset& inset, int rows,
                                                int columns,
                                                uint32_t columns_magic,
                                                int first_column, int pitch,
                                                const float* from, float* to,
                                                const RowOf& row_of) {
  const auto copy = [&](const InsetRow& row, int column, float* at) {
    const int w = first_column + column - inset.left;
    const bool exists = row.exists && static_cast<unsigned>(w) <
                                          static_cast<unsigned>(inset.width);
    __pipeline_memcpy_async(at, from + (exists ? row.at + w : 0), 4,
                            exists ? 0 : 4);
  };
  // Wide rows are a warp's, which looks for each once; of narrow ones too many
  // of its lanes would have nothing to do.
  constexpr int kWarp = 32, kWide = 2 * kWarp;
  if (columns > kWide) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll 1
    for (int row = threadIdx.x / kWarp; row < rows; row += blockDim.x / kWarp) {
      const InsetRow found = row_of(row);
#pragma unroll 1
      for (int column = lane; column < columns; column += kWarp) {
        copy(found, column, to + row * pitch + column);
      }
    }
    return;
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * columns; i += blockDim.x) {
    const int row = Divide(i, columns_magic);
    const int column = i - row * columns;
    copy(row_of(row), column, to + row * pitch + column);
  }
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_INSET_COPIES_CUH_
