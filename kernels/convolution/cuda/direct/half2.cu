// FP16 arithmetic, two multiply-adds per instruction.
//
// Idea. HFMA2 does two half-precision multiply-adds where FFMA does one in
// single precision. The kernel is direct_tiled's direct one with the filters
// in pairs: one operand holds two filters' weights for a tap, the other the
// input twice, which costs nothing, for the instruction can read either half
// of a register for both.
//
// Change against direct_tiled. Inputs and filters are rounded to half on
// their way to shared memory, inside the operation, so they take half the space
// there and half the loads. Inputs are therefore not copied asynchronously;
// each thread reads a few before it converts them, and the other blocks on the
// multiprocessor compute meanwhile.
//
// Accuracy. A sum in half precision has 11 bits: its error grows with every
// addition, and it overflows at 65,504. So products are summed in half over at
// most 28 taps, a few filter rows, and these sums are added up in float32. With
// random inputs n such additions err by about sqrt(n / 2) * 1.8e-4 of the
// result, 6.7e-4 for 28, beside the 2.5e-4 of rounding the operands. Pixels up
// to 255 are exact in half, and 28 of them with weights below 9 do not
// overflow.
//
// Cost. The tensors' own bytes. Per filter row (K = 5), a thread with 8 filters
// and 2 x 4 columns issues 160 HFMA2 and 9 loads; moving the 64 sums to float32
// costs 128 instructions per 25 taps, a sixth of the arithmetic.
//
// Bound. Arithmetic, at twice the FP32 rate less that sixth, on second layers;
// first layers are bound by writing the float32 output.
//
// Measured on one H200, batch 10,000: fa17 0.54 ms, fa18 1.88 and 6.25, sp19
// 0.27 and 0.57, fa19 1.21 and 3.60, fa20 1.01 and 2.24; error 7.8e-4
// to 8.3e-4. A negative result: no faster than direct_tiled in float32. Half
// the multiply-add instructions are left, but the inputs' conversion, the
// carrying over and their waiting stay, with twelve to sixteen warps on a
// multiprocessor to hide it. Raw pixels through the trained filters err by at
// most 0.08 in outputs of up to 29.
//
// Counters (ncu, fa19's layers). Not the output on the first layer, for DRAM is
// 38 % busy (7 on the second). Issue slots are 53 and 48 % used; the longest
// stall is long scoreboard (1.9 cycles per instruction), the inputs on their
// way, and on the second layer wait (1.2), at 22 and 15 % occupancy. There some
// unit that these counters do not name is 71 % busy, the multiply-add pipes
// together 38 %. If only half of these take HFMA2, which was not measured, its
// peak is no higher than FP32's.
#include <utility>

#include "kernels/convolution/cuda/direct/half2.cuh"
#include "kernels/convolution/cuda/direct/instances.h"
#include "kernels/convolution/cuda/direct/launch.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"

namespace convlab::cuda {
namespace {

using KernelPointer = void (*)(const float*, const float*, float*, DirectPlan);

struct KernelTable {
  KernelPointer kernels[kHalf2InstanceCount];
};

// The kernels of kHalf2Instances, in the same order.
template <int... kIndices>
constexpr KernelTable MakeKernelTable(std::integer_sequence<int, kIndices...>) {
  return {{Half2Kernel<kHalf2Instances[kIndices].kernel_size,
                       kHalf2Instances[kIndices].tile.filters,
                       kHalf2Instances[kIndices].tile.rows,
                       kHalf2Instances[kIndices].tile.columns,
                       kHalf2Instances[kIndices].tile.threads>...}};
}
constexpr KernelTable kTable =
    MakeKernelTable(std::make_integer_sequence<int, kHalf2InstanceCount>());

class Half2 : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    instance_ = ChooseHalf2(problem_, limits, &plan_);
    if (instance_ < 0) return {"Half2::Prepare", "no tile fits"};
    return PrepareDirectLaunch(kTable.kernels[instance_], limits, plan_,
                               &launch_);
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    DirectPlan plan = plan_;
    SetVectors(x, y, kHalf2Instances[instance_].tile, /*most_floats=*/1, &plan);
    kTable.kernels[instance_]<<<launch_.blocks, plan.block_threads(),
                                plan.shared_bytes, stream>>>(x, k, y, plan);
    return CheckLaunch("Half2Kernel");
  }

 private:
  int instance_ = -1;
  DirectPlan plan_ = {};
  DirectLaunch launch_;
};

const char* Reject(const Problem& problem) {
  DeviceLimits limits;
  DirectPlan plan;
  // A device that cannot be asked fails in Prepare, with the reason.
  if (AskLimits(&limits).failed()) return nullptr;
  return ChooseHalf2(problem, limits, &plan) < 0 ? kTileTooLarge : nullptr;
}

}  // namespace

extern const KernelVariant kHalf2;
const KernelVariant kHalf2 = {
    "half2",
    AccuracyClass::kFp16,
    Track::kSpecialty,
    "Direct convolution in half precision, two filters per instruction, with "
    "sums of at most 28 products carried over to float32.",
    "An instruction does two multiply-adds, and inputs and filters take half "
    "the space and loads in shared memory.",
    Reject,
    Make<Half2>,
};

}  // namespace convlab::cuda
