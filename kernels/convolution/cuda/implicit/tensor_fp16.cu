// Tensor cores, in FP16.
//
// Idea. As tensor_tf32 (the kernel in tensor_core.cuh is the same), with two
// values in half precision in a word: mma.sync m16n8k16 does 2,048
// multiply-adds and reads as many registers as TF32's 1,024.
//
// Change against tensor_tf32. FP16 has TF32's 11 bits but not its range: above
// 65,504 a value becomes infinity, below 6e-8 zero. Products are exact and sums
// are float32, so that only rounding the operands costs accuracy; pixels up to
// 255 are exact.
//
// Cost. The tensors' own bytes. A depth of taps has half the words, so half the
// loads and half the mma.sync of tensor_tf32. With one channel the pairs are
// columns, and of five taps a sixth is padding.
//
// Bound. Half of tensor_tf32's loads from shared memory, which take about as
// long as device memory on second layers; first layers are bound by the output.
// Loading inputs and storing outputs weigh more than in tensor_tf32: they are
// as many as there, and the products are half. docs/journal/tensor_fp16.md has
// the details.
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/convolution/cuda/implicit/launch.cuh"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

struct Fp16Words {
  static constexpr int kValues = 2;

  static __device__ __forceinline__ uint32_t Pack(float low, float high) {
    const __half2 word = __floats2half2_rn(low, high);
    return reinterpret_cast<const uint32_t&>(word);
  }

  static __device__ __forceinline__ void MultiplyAdd(const uint32_t (&a)[4],
                                                     const uint2& b,
                                                     float (&c)[4]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
#endif
  }
};

}  // namespace

extern const KernelVariant kTensorFp16;
const KernelVariant kTensorFp16 = {
    "tensor_fp16",
    AccuracyClass::kFp16,
    Track::kSpecialty,
    "Implicit matrix product on tensor cores (mma.sync m16n8k16) in half "
    "precision with float32 sums, fed from the image in shared memory.",
    "An instruction does 2,048 multiply-adds, and two values share a word in "
    "shared memory and registers.",
    TensorCore<Fp16Words>::Reject,
    Make<TensorCore<Fp16Words>>,
};

}  // namespace convlab::cuda
