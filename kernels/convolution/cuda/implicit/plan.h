// How the implicit matrix product on tensor cores is cut; `tensor_tf32` and
// `tensor_fp16` share it. tensor_core.cuh says how the product is formed. Free
// of CUDA, so that plans are tested without a GPU.
#ifndef KERNELS_CONVOLUTION_CUDA_IMPLICIT_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_IMPLICIT_PLAN_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/tile_steps.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

inline constexpr int kImplicitWarps = 8;
inline constexpr int kImplicitThreads = 32 * kImplicitWarps;
// Words of the depth that one mma.sync multiplies.
inline constexpr int kImplicitStepWords = 8;

// What a kernel was compiled for: a warp computes tiles_m tiles of 16 positions
// by tiles_n tiles of 8 filters at a time.
struct ImplicitShape {
  int tiles_m, tiles_n;

  constexpr int positions() const { return 16 * tiles_m; }
  constexpr int filters() const { return 8 * tiles_n; }
};
inline constexpr ImplicitShape kImplicitShapes[] = {
    {/*tiles_m=*/4, /*tiles_n=*/1}, {/*tiles_m=*/4, /*tiles_n=*/2},
    {/*tiles_m=*/4, /*tiles_n=*/3}, {/*tiles_m=*/4, /*tiles_n=*/4},
    {/*tiles_m=*/2, /*tiles_n=*/7},
};
inline constexpr int kImplicitShapeCount =
    sizeof(kImplicitShapes) / sizeof(kImplicitShapes[0]);

struct ImplicitPlan {
  int C, H, W, M, K, H_out, W_out;
  int plane_channels;  // in a plane: 1 or 2
  int word_columns;    // in a word: 1 or 2
  // Tiles of an image across and down, and blocks of filters.
  int tiles_x, tiles_y, filter_blocks;
  int64_t batch;
  int rows, columns;  // of a tile's outputs
  // A tile's inputs come in `chunks` of `planes` planes. Rows are `pitch` words
  // apart, planes `plane_words`.
  int planes, chunks, pitch, plane_words;
  TileSteps copy;
  int steps;  // of the depth, per chunk
  int64_t shared_bytes;

  constexpr int input_rows() const { return rows + K - 1; }
  constexpr int input_columns() const { return columns + K - 1; }
  // Blocks that one image needs; each goes from image to image.
  constexpr int64_t places() const {
    return int64_t{tiles_x} * tiles_y * filter_blocks;
  }
  // Words of taps in one plane's filter row.
  constexpr int row_taps() const {
    return (K + word_columns - 1) / word_columns;
  }
  constexpr int taps() const { return planes * K * row_taps(); }
  // Words of shared memory.
  constexpr int input_words() const {
    return (planes * plane_words + 3) / 4 * 4;
  }
  constexpr int filter_words(int tiles_n) const { return steps * tiles_n * 64; }
};

// A tap in the order of the depth.
struct ImplicitTap {
  int plane, p, q;  // q: of the word's first column

  constexpr ImplicitTap(const ImplicitPlan& plan, int tap)
      : plane(tap % plan.planes),
        p(tap / plan.planes / plan.row_taps()),
        q(tap / plan.planes % plan.row_taps() * plan.word_columns) {}
  constexpr int Offset(const ImplicitPlan& plan) const {
    return plane * plan.plane_words + p * plan.pitch + q;
  }
};

// Cuts the problem for warps of `shape`, with `word_values` values in a word (1
// or 2); false if not even the smallest part fits into shared memory.
bool MakeImplicitPlan(const Problem& problem, int word_values,
                      const ImplicitShape& shape, const DeviceLimits& limits,
                      ImplicitPlan* plan);

// The index in kImplicitShapes of the shape that the problem takes, and its
// plan; -1 if no tile fits.
int ChooseImplicitShape(const Problem& problem, int word_values,
                        const DeviceLimits& limits, ImplicitPlan* plan);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_IMPLICIT_PLAN_H_
