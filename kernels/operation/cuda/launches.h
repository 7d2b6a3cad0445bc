// The functions of the .cu files. Small, because nvcc parses it once per
// architecture.
#ifndef KERNELS_OPERATION_CUDA_LAUNCHES_H_
#define KERNELS_OPERATION_CUDA_LAUNCHES_H_

#include <cstdint>

#include "common/network/layer.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {

// The general kernel's problem, with what it divides by.
struct GeneralPlan {
  int C, H, W, M, KH, KW;
  int stride_y, stride_x, top, left;
  int OH, OW;  // of the sums
  int taps;    // C * KH * KW
  int filter_tiles;
  int64_t sums;  // of one filter, in all images
  int64_t blocks;
  Divisor by_filter, by_filter_row;  // KH * KW, KW
  Divisor by_plane, by_row;          // OH * OW, OW
  Activation activation;
};

// Filters of a block's tile: 8, 16, 32 or 64.
constexpr int GeneralTileFilters(int64_t filters) {
  return filters <= 8 ? 8 : filters <= 16 ? 16 : filters <= 32 ? 32 : 64;
}
// Positions of a block's tile of so many filters.
constexpr int GeneralTilePositions(int filters) {
  return filters == 64 ? 128 : 256;
}

// y = activation(sums + bias); bias may be null.
Error LaunchGeneral(const GeneralPlan& plan, const float* x, const float* k,
                    const float* bias, float* y, cudaStream_t stream);

// A copy of `planes` planes of height x width amid zeros.
struct Padding {
  int64_t planes;
  int height, width, top, left;
  int padded_height, padded_width;
};
Error LaunchPad(const Padding& padding, const float* x, float* padded,
                cudaStream_t stream);

// Max pooling of planes of height x width, or none, then bias and activation.
// Without pooling `sums` and `y` may be the same.
struct Finish {
  int64_t planes;  // channels of all images
  int channels, height, width;
  int out_height, out_width;
  MaxPool pool;
  Activation activation;
};
Error LaunchFinish(const Finish& finish, const float* sums, const float* bias,
                   float* y, cudaStream_t stream);

}  // namespace convlab::cuda

#endif  // KERNELS_OPERATION_CUDA_LAUNCHES_H_
