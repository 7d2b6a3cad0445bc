// Tensor cores in FP16, operands scaled, neighbouring outputs together.
//
// Idea. In tensor_fp16 each of a product's rows gathers its own words from
// shared memory. Here the rows of a product are neighbouring outputs of a
// layout in which the values that a filter row meets lie side by side, so that
// the words of one filter row are the next one's, one output row up: registers
// rotate instead of being loaded. split_core.cuh has the kernel.
//
// Change against tensor_fp16. Channels are innermost, up to eight of them, and
// the depth is padded per filter row: 60 to 64 in fa19's second layer. Operands
// are scaled by powers of two, so that half precision's range is no limit. Sums
// go to shared memory first and leave in whole lines of 128 bytes.
//
// Cost. The tensors' own bytes. Products are the definition's and what pads
// them, as in tensor_split.
//
// Bound. Second layers: loads from shared memory, 8 words of 128 bytes for the
// 9 products of a filter row with three tiles of filters. First layers: writing
// the output.
//
// Measured: not yet.
#include "kernels/convolution/cuda/split_core.cuh"

namespace convlab::cuda {

extern const KernelVariant kTensorDirect;
const KernelVariant kTensorDirect = {
    "tensor_direct",
    AccuracyClass::kFp16,
    "tensor_split with one product: operands scaled by powers of two and "
    "rounded to half precision, float32 sums.",
    "Neighbouring outputs share the words in registers, and the output leaves "
    "in whole lines.",
    SplitConvolution<false>::Reject,
    Make<SplitConvolution<false>>,
};

}  // namespace convlab::cuda
