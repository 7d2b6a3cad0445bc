// How tensor_wgmma cuts a convolution; tensor_wgmma.cu says what the pieces
// are. No CUDA in here, so that the plans are tested without.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_PLAN_H_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_PLAN_H_

#include <cstdint>

#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// What a kernel was compiled for.
struct WgmmaShape {
  int kernel_size;
  int rows;         // of outputs, of a unit
  int octets;       // of filters, of a group
  int vector_rows;  // output rows of one product
  bool wide;        // a pixel's halves fill words of 8 bytes
  int consumers;    // warpgroups that multiply
  int threads;      // of a block

  // A thread's, of the other warpgroups and of those that multiply: together
  // what the block was given when it began.
  constexpr int converter_registers() const {
    return threads / 128 == consumers + 2 ? 48 : 56;
  }
  constexpr int consumer_registers() const {
    const int given = 65536 / threads / 8 * 8;
    const int others = threads / 128 - consumers;
    return (given * threads / 128 - others * converter_registers()) /
           consumers / 8 * 8;
  }
};

// A product has 8 * octets * vector_rows = 24 or 32 columns: with fewer its
// rows' way from the registers takes longer than the product. More rows use an
// input row more often and need registers for their sums, of which a thread has
// more in a smaller block. Three warpgroups hide each other's output better
// than two, but leave fewer registers and fewer warps to convert.
constexpr WgmmaShape kWgmmaShapes[] = {
    {3, 6, 3, 1, true, 2, 512},  {3, 6, 3, 1, false, 2, 512},
    {3, 6, 2, 2, true, 2, 512},  {3, 6, 2, 2, false, 2, 512},
    {5, 5, 3, 1, true, 2, 512},  {5, 5, 3, 1, false, 2, 512},
    {5, 4, 2, 2, true, 3, 512},  {5, 6, 2, 2, true, 2, 512},
    {5, 6, 2, 2, false, 2, 512}, {7, 7, 3, 1, true, 2, 384},
    {7, 5, 3, 1, true, 2, 512},  {7, 5, 3, 1, false, 2, 512},
    {7, 4, 2, 2, true, 3, 512},  {7, 4, 2, 2, false, 2, 512},
    {9, 5, 3, 1, true, 2, 512},  {9, 5, 3, 1, false, 2, 512},
    {9, 4, 2, 2, true, 3, 512},  {9, 4, 2, 2, false, 2, 512},
};
constexpr int kWgmmaShapeCount = sizeof(kWgmmaShapes) / sizeof(WgmmaShape);

constexpr int kWgmmaMostBuffers = 4;  // of slabs, and of stages
constexpr int kWgmmaUnits = 64;       // of a tile: the rows of a product

// In words of 4 bytes unless stated.
struct WgmmaPlan {
  int64_t batch;
  int C, H, W, M, K, H_out, W_out;
  int shape;         // of kWgmmaShapes
  int pixel_halves;  // C made even
  int steps;         // of 16 halves that cover a filter row
  // Sums that grow for this many steps in the tensor cores, which cut bits off;
  // so many passes make the depth.
  int pass_steps, passes;
  // A slab is so many row blocks, of the shape's rows each; an image has so
  // many slabs.
  int slab_blocks, slabs;
  int pitch;       // of a slab's row
  int slab_words;  // of its high halves; of the low ones the same
  int slab_buffers;
  int raw_words;  // of an image as it came, brought ahead; 0: it is not
  // Groups of 8 * octets filters; those of a phase share a stage.
  int groups, phase_groups;
  int group_bytes;  // of arranged filters, high halves; low ones the same
  // From filter to filter of the stage. Merged: a slab is an image and a phase
  // all filters, so that the stage is the image's output as it will lie.
  bool merged;
  int stage_pitch, stage_words, stages;
  int shared_bytes;
  uint32_t zero;  // 0, which the compiler does not know

  constexpr int64_t slab_count() const { return batch * slabs; }
  constexpr int64_t filter_bytes() const {
    return int64_t{2} * groups * group_bytes;
  }
};

// The plan with the shape, the blocks of a slab, the groups of a phase and the
// numbers of buffers as said; false if that does not fit.
bool SetWgmmaPlan(const Problem& problem, int shape, int slab_blocks,
                  int phase_groups, int slab_buffers, int stages,
                  int shared_limit, WgmmaPlan* plan);

// Estimated cycles of the whole convolution.
double WgmmaCost(const WgmmaPlan& plan, int multiprocessors);

// The plan of least cost, or false if there is none: the filter's size was not
// compiled, or the filters or the smallest slab do not fit into shared memory.
bool MakeWgmmaPlan(const Problem& problem, int multiprocessors,
                   int shared_limit, WgmmaPlan* plan);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_PLAN_H_
