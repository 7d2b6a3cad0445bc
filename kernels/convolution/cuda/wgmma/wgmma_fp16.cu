// Hopper's products of warpgroups, in FP16.
//
// Idea. Of tensor_wgmma's three products, hx * hk + hx * lk + lx * hk, the
// first alone: operands rounded to halves, sums in float32. The kernel is the
// same (wgmma_kernel.cuh), with operands of one part.
//
// Change against tensor_wgmma. A third of the products, half the bytes of slabs
// and filters in shared memory, half the registers for sums. They go to warps
// that convert, 7 to 15 instead of 3 to 8, since a third of the products no
// longer hides what a slab waits for; to third warpgroups and more buffers; and
// fa18's filters, 65 instead of 129 KB, leave room for a stage.
//
// Change against tensor_fp16. wgmma instead of mma.sync, a pixel's channels
// side by side, and warps that convert, multiply and store side by side. And
// operands are scaled by powers of two, as tensor_wgmma's are: values may have
// any scale, and infinities and NaN come out where they should.
//
// Cost. Second layers, batch 10,000, one product: fa18 206 GFLOP, fa19 121,
// fa20 73, sp19 16, padded as tensor_wgmma's. Bytes: inputs and outputs once,
// 1.22, 1.33, 1.00 and 0.32 GB.
//
// Bound. Device memory, at 3.9 TB/s: fa18 0.31 ms, fa19 0.34, fa20 0.26, sp19
// 0.08. Products alone, at tensor_wgmma's 13 cycles for 24 columns, 16 for 32
// and 24 for 48, take 6050 cycles of an image of fa18, 3900 of fa19, 2240 of
// fa20 and 580 of sp19: 0.27, 0.17, 0.10 and 0.03 ms at 1.7 GHz.
//
// Predicted, in ms: fa18 0.51, fa19 0.48, fa20 0.28, sp19 0.09, by the plan's
// estimate of cycles at 1.7 GHz, whose constants were measured with three
// products. Measured at first 0.66, 0.64, 0.33 and 0.12, where tensor_fp16
// takes 1.05, 0.86, 0.61 and 0.24: warps that convert took 17 instructions a
// value and far longer than estimated. With eight (tensor_wgmma.cu): 0.52,
// 0.52, 0.32 and 0.11.
//
// Counters (ncu, fa19's second layer, 0.51 ms at 1795 MHz): DRAM 72 % busy,
// tensor pipe 31 %, shared memory and the rest of the multiprocessor 42 %. The
// best of cuDNN takes 2.06, 1.31, 1.00 and 0.41 ms.
//
// The error is that of rounding both operands, as tensor_fp16's, 2.6e-4; what
// the tensor cores cut off where they add is little beside it, so that sums
// stay there for all of the depth.
#include "kernels/convolution/cuda/wgmma/wgmma_convolution.cuh"

namespace convlab::cuda {

extern const KernelVariant kWgmmaFp16;
const KernelVariant kWgmmaFp16 = {
    "wgmma_fp16",
    AccuracyClass::kFp16,
    Track::kSpecialty,
    "Hopper's products of warpgroups in half precision with float32 sums: "
    "tensor_wgmma with its high halves only, scaled by powers of two.",
    "One product instead of three, and half the bytes of pixels and filters in "
    "shared memory: the limit is device memory, and what fills it.",
    WgmmaConvolution<1>::Reject,
    Make<WgmmaConvolution<1>>,
};

}  // namespace convlab::cuda
