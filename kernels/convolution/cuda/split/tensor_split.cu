// Tensor cores at float32's accuracy.
//
// Idea. A float is the sum of two halves, as far as the accuracy class needs
// it: x = h + l, where h is x rounded to half precision and l the rest,
// rounded. Together they hold 22 bits. x * k is then hx * hk + hx * lk + lx *
// hk; what is left out, lx * lk, is below 2^-22 of it. Three products on FP16
// tensor cores cost a third of one in float32. Scaling both operands by powers
// of two keeps them in the range of half precision.
//
// Change against tensor_fp16. Two planes of halves instead of one and three
// products instead of one. A tap is an offset in shared memory as there, but
// the channels lie innermost, so that a filter row's values are one run; and
// groups of warps each have an image of their own. split_core.cuh has the
// kernel.
//
// Cost. The tensors' own bytes: inputs are read once, outputs written once,
// except where an image is cut into tiles. The products are three times the
// definition's, and what pads them: 60 to 64 in fa19's second layer, 84 to 96
// in fa18's, 28 to 32 in fa20's, 30 to 32 in sp19's; blocks of six rows of
// outputs, and octets of columns. A row of three tiles x three tiles of filters
// takes 27 products for 16 words of 128 bytes from shared memory.
//
// Bound. Second layers: tensor cores. mma.sync alone was measured at 630
// TFLOP/s, which would be 0.65 ms for fa19's second layer. First layers:
// writing the output.
//
// Measured on one H200, batch 10,000, in ms: the second layers of fa18 2.43,
// fa19 1.48, fa20 0.91 and sp19 0.27, where whole_image takes 4.44, 2.92, 1.59
// and 0.36; errors of 3e-7 for K = 5 and 4.2e-7 for K = 7. The loop over
// products reaches three quarters of mma.sync's rate; copying in and out is not
// hidden behind it. First layers are slower than with whole_image: fa17 0.66,
// fa18 1.62, sp19 0.41, fa19 1.73, fa20 1.27.
//
// Counters. fa19's second layer: tensor pipe 48 % busy, DRAM 19 %, 8 warps of a
// multiprocessor at a time; the longest stall is waiting for an instruction of
// fixed latency. The first: tensor pipe 14 %, DRAM 31 %.
//
// Tried and left. Stores of 32 to 128 bytes that are not whole lines: 0.65 to
// 1.3 TB/s, where whole lines reach 3.9. Copies of rows by the copy engine,
// which begin and end within a line: their edges cost the same. One group of
// warps that multiplies at a time, by a token: no gain. Staging one tile of
// columns at a time, with a barrier each: slower. Warps that only copy beside
// eight that multiply: no gain so far. Sums that stay in the tensor cores for
// all of the depth: they cut bits off, and the error comes near the class's.
#include "kernels/convolution/cuda/split/split_core.cuh"

namespace convlab::cuda {

extern const KernelVariant kTensorSplit;
const KernelVariant kTensorSplit = {
    "tensor_split",
    AccuracyClass::kFp32,
    Track::kProduction,
    "Tensor cores at float32's accuracy: both operands are scaled and split "
    "into two halves each, of which three products are summed; whole images "
    "in shared memory as halves, channels innermost.",
    "Three products in half precision are three times faster than one in "
    "float32, and a filter tap is only an offset in shared memory.",
    SplitConvolution::Reject,
    Make<SplitConvolution>,
    EstimateSplitNs,
};

}  // namespace convlab::cuda
