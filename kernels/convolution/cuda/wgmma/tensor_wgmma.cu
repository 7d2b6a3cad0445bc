// Hopper's products of warpgroups at float32's accuracy.
//
// Idea. As in tensor_split, x * k becomes hx * hk + hx * lk + lx * hk in half
// precision, with scaled operands, and mend.cuh computes what is not certain
// from the floats. Pixels lie in shared memory with their channels innermost,
// so that the values under a filter row are one run, and a tap is an offset.
// wgmma multiplies 64 rows of 16 halves, which come from registers here, by up
// to 256 columns in shared memory. The rows are pixels and the columns are
// filters, which the tensor cores read by themselves.
//
// Change against tensor_split. mma.sync reaches two thirds of the rate of
// Hopper's tensor cores, wgmma all of it. A warpgroup holds the sums of several
// output rows, so that it loads an input row once and multiplies it by every
// filter row that one of its output rows needs. A unit is one column of these
// output rows, or two columns, for which every filter is there twice, once
// moved by a pixel. The units of an image are numbered through, and 64 of them
// make a tile, whatever the image's width.
//
// Roles. One block runs on each multiprocessor. Converters bring a slab (an
// image or some of its rows or tiles), scale it by its own largest value, and
// leave its halves in one of a few buffers. Two or three warpgroups multiply,
// tile by tile in turn or a slab each, and leave the outputs in a stage. A
// writer stores the stage. Where the filters leave no room for a stage, outputs
// go from registers to device memory. Barriers in shared memory connect the
// roles; nothing waits for the whole block. wgmma_kernel.cuh is the kernel.
//
// Pooling. Where max pooling follows, a thread has the sums of both halves of a
// window. So it finds the largest sum in registers, and stores one value
// instead of 4 or 16, without a stage (pooling_multiplier.cuh).
//
// Cost. Three products; each filter row's run is padded to a multiple of 16
// halves, an image's units to a multiple of 64, and its rows to those of a
// unit. Inputs and outputs move once. The bound is the tensor cores, except for
// few channels (sp19), where device memory is as close. A product takes as long
// as its rows take to come from the registers unless it has 24 columns or more,
// and shared memory is nearly as busy as the tensor cores.
//
// Accuracy. Tensor cores cut off bits where they add. So sums that are added
// there are short (step_order.h), before they go on in float32.
#include "kernels/convolution/cuda/wgmma/padded_kernel.h"
#include "kernels/convolution/cuda/wgmma/wgmma_convolution.cuh"

namespace convlab::cuda {

extern const KernelVariant kTensorWgmma;
const KernelVariant kTensorWgmma = {
    "tensor_wgmma",
    AccuracyClass::kFp32,
    Track::kProduction,
    "Hopper's products of warpgroups at float32's accuracy: operands split "
    "into two halves as before, pixels from registers, filters from shared "
    "memory; warps that convert, that multiply and that store work side by "
    "side.",
    "mma.sync reaches two thirds of Hopper's tensor cores, wgmma all of them; "
    "and an input row is loaded once for all output rows that it meets.",
    WgmmaConvolution<2>::Reject,
    Make<WgmmaConvolution<2>>,
    [](const Problem& problem, const DeviceLimits& limits) {
      return EstimateWgmmaNs(problem, /*parts=*/2, limits);
    },
    /*detour=*/nullptr,
    /*exact_on_integers=*/true,
    WgmmaConvolution<2>::RejectEpilogue,
    MakePaddedTensorWgmma,
    // It computes an image by one block, convolve_pool by several if there are
    // few: one image of fa20 takes 26 us with that one and 30 with this, 100
    // take 38 and 37 (H200). Pieces of a call with several have more.
    /*fewest_pooled_images=*/64,
};

}  // namespace convlab::cuda
