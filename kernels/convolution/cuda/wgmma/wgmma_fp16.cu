// Hopper's products of warpgroups, in half precision.
//
// Idea. Of tensor_wgmma's three products, hx * hk + hx * lk + lx * hk, only the
// first: operands are rounded to halves, and sums are float32. The kernel is
// the same (wgmma_kernel.cuh), with operands of one part.
//
// Change against tensor_wgmma. There is a third of the products, half the bytes
// of slabs and filters in shared memory, and half the registers for sums. What
// this frees goes to more converters, since so few products no longer hide the
// time that a slab takes to come; to a third warpgroup, and to more buffers.
// fa18's filters leave room for a stage.
//
// Change against tensor_fp16. The kernel uses wgmma instead of mma.sync, keeps
// a pixel's channels side by side, and converts, multiplies and stores at the
// same time in different warps. Operands are scaled by powers of two, so that
// values may have any scale, and infinities and NaN come out where they should.
//
// Cost. One product, padded as tensor_wgmma's. Inputs and outputs move once.
//
// Bound. Device memory: for none of the course's layers do the products alone
// take as long. What is left is the work of the converters.
//
// Accuracy. The error is that of rounding both operands, as tensor_fp16's. What
// the tensor cores cut off where they add is small beside it, so that sums stay
// there for all of the depth.
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
    [](const Problem& problem, const DeviceLimits& limits) {
      return EstimateWgmmaNs(problem, /*parts=*/1, limits);
    },
};

}  // namespace convlab::cuda
