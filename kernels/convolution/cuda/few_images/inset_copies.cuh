// How few_images brings images amid zeros to shared memory without a copy of
// them: what lies outside of the image in memory arrives as zero. Rows begin
// anywhere in those of shared memory, so that copies are of single floats or of
// two, where both begin at even ones.
#ifndef KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_INSET_COPIES_CUH_
#define KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_INSET_COPIES_CUH_

#include <cuda_pipeline_primitives.h>

#include "kernels/convolution/cuda/lib/inset.h"

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

// Starts the copies of `rows` rows of `copies` times kFloats floats, from the
// problem's column first_column on, to rows `pitch` floats apart. row_of(row)
// is where a row begins, for which 8 or 16 threads look once.
template <int kFloats, typename RowOf>
__device__ __forceinline__ void CopyRowsOfInset(const Inset& inset, int rows,
                                                int copies, int first_column,
                                                int pitch, const float* from,
                                                float* to,
                                                const RowOf& row_of) {
  constexpr int kWide = 48;
  const int lanes_log = copies > kWide ? 4 : 3;
  const int lanes = 1 << lanes_log;
  const int lane = threadIdx.x & (lanes - 1);
  const int columns = kFloats * copies;
  const int first = min(max(inset.left - first_column, 0), columns);
  const int last =
      min(max(inset.left + inset.width - first_column, first), columns);
#pragma unroll 1
  for (int row = threadIdx.x >> lanes_log; row < rows;
       row += blockDim.x >> lanes_log) {
    const InsetRow found = row_of(row);
    float* const row_to = to + row * pitch;
    const float* const row_from = from + (found.at + first_column - inset.left);
    if (copies <= kWide) {
#pragma unroll 1
      for (int column = kFloats * lane; column < columns;
           column += kFloats * lanes) {
        const bool exists = found.exists && column >= first && column < last;
        __pipeline_memcpy_async(row_to + column,
                                exists ? row_from + column : from, 4 * kFloats,
                                exists ? 0 : 4 * kFloats);
      }
      continue;
    }
    // The image's part of a wide row is a loop of its own.
    const int begin = found.exists ? first : columns;
    const int end = found.exists ? last : columns;
#pragma unroll 1
    for (int column = lane; column < begin; column += lanes) row_to[column] = 0;
#pragma unroll 1
    for (int column = end + lane; column < columns; column += lanes) {
      row_to[column] = 0;
    }
#pragma unroll 4
    for (int column = begin + kFloats * lane; column < end;
         column += kFloats * lanes) {
      __pipeline_memcpy_async(row_to + column, row_from + column, 4 * kFloats);
    }
  }
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_FEW_IMAGES_INSET_COPIES_CUH_
