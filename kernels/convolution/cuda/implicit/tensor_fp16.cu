// Tensor cores, in FP16.
//
// Idea. As tensor_tf32 (the kernel is the same, in tensor_core.cuh), with two
// half-precision values in a word: mma.sync m16n8k16 does 2,048 multiply-adds
// and reads as many registers as TF32's 1,024.
//
// Change against tensor_tf32. FP16 has TF32's 11 bits but not its range:
// beyond 65,504 there is infinity, below 6e-8 zero. Products are exact and
// sums are float32, so only rounding the operands costs accuracy, and pixels up
// to 255 are exact.
//
// Cost. The tensors' own bytes. Half the words of a depth of taps, so half the
// loads and half the mma.sync of tensor_tf32; with one channel the pairs are
// columns, and of five taps a sixth is padding.
//
// Bound. Half of tensor_tf32's on-chip loads, which is near the time of device
// memory on second layers; first layers are bound by the output.
//
// Measured on one H200, batch 10,000: fa17 0.39 ms, fa18 1.08 and 1.04, sp19
// 0.36 and 0.24, fa19 0.98 and 0.85, fa20 1.11 and 0.60; error 2.6e-4. Up to
// 197 TFLOP/s. Loading the inputs and storing the output weigh more than in
// tensor_tf32: they are as many as there, and the products are half.
//
// Counters (ncu, fa19's layers). Nothing is full, as in tensor_tf32: shared
// memory is at least 14 and 41 % busy, tensor cores 7 and 24 %, DRAM 49 and
// 32 %, issue slots 58 and 46 %; the longest stall is wait (1.7 and 2.0 cycles
// per instruction), then long scoreboard (1.2 and 1.8), at 24 % occupancy. On
// the second layer 27 % of shared memory's work are conflicts of banks.
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
