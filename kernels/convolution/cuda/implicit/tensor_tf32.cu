// Tensor cores, in TF32.
//
// Idea. A tensor core multiplies small matrices in one instruction: mma.sync
// m16n8k8 does 1,024 multiply-adds for a warp, where an FFMA does 32. Operands
// are TF32 (float32's range, 11 bits of precision), sums are float32. The
// kernel, in tensor_core.cuh, is the implicit matrix product of output
// positions, taps and filters, fed from an image in shared memory.
//
// Change against direct_tiled. Inputs and filters are rounded to TF32 (to
// nearest) on their way to shared memory, so that a result is right to about
// three decimal digits. A warp instead of a thread has a tile: 64 positions by
// up to 32 filters.
//
// Cost. The tensors' own bytes. With 24 filters, a step of eight taps takes a
// warp 12 mma.sync, 16 loads of inputs, three of filters and two of the taps'
// offsets.
//
// Bound. Shared memory before the tensor cores: those 21 loads are 24 cycles of
// the multiprocessor's one load unit, so 96 for four warps, while each of four
// tensor cores needs 48 to 78 for its 12 instructions. First layers are bound
// by the output. Neither bound is reached: the conversion of inputs is a phase
// of its own, and latencies show. docs/journal/tensor_tf32.md has the details.
#include <cstdint>

#include "kernels/convolution/cuda/implicit/launch.cuh"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

struct Tf32Words {
  static constexpr int kValues = 1;

  static __device__ __forceinline__ uint32_t Pack(float value, float) {
    uint32_t word = 0;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(value));
#endif
    return word;
  }

  static __device__ __forceinline__ void MultiplyAdd(const uint32_t (&a)[4],
                                                     const uint2& b,
                                                     float (&c)[4]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
#endif
  }
};

}  // namespace

extern const KernelVariant kTensorTf32;
const KernelVariant kTensorTf32 = {
    "tensor_tf32",
    AccuracyClass::kTf32,
    Track::kSpecialty,
    "Implicit matrix product on tensor cores (mma.sync m16n8k8) in TF32 with "
    "float32 sums, fed from the image in shared memory without gathering.",
    "One instruction does 1,024 multiply-adds; operands are rounded to 11 "
    "bits.",
    TensorCore<Tf32Words>::Reject,
    Make<TensorCore<Tf32Words>>,
};

}  // namespace convlab::cuda
