// FP16 arithmetic, two multiply-adds per instruction.
//
// Idea. HFMA2 does two multiply-adds in half precision where FFMA does one in
// single precision. The kernel is that of direct_tiled with the filters in
// pairs: one operand holds two filters' weights of a tap, the other the input
// twice. That costs nothing, because the instruction can read either half of a
// register for both.
//
// Change against direct_tiled. Inputs and filters are rounded to half on their
// way to shared memory, inside the operation, so that they take half the space
// and half the loads there. Inputs therefore cannot be copied asynchronously:
// each thread reads a few before it converts them, and the other blocks of the
// multiprocessor compute meanwhile.
//
// Accuracy. A sum in half precision has 11 bits: its error grows with every
// addition, and it overflows at 65,504. Products are therefore summed in half
// precision over at most 28 taps, a few filter rows, and these sums are added
// up in float32. With random inputs the error of n such additions is about
// sqrt(n / 2) * 1.8e-4 of the result, 6.7e-4 for 28, beside 2.5e-4 from
// rounding the operands. Pixels up to 255 are exact in half precision, and 28
// products of them with weights below 9 do not overflow.
//
// Cost. The tensors' own bytes. Per filter row (K = 5), a thread with 8 filters
// and 2 x 4 columns issues 160 HFMA2 and 9 loads; adding the 64 sums to float32
// takes 128 instructions per 25 taps, a sixth of the arithmetic.
//
// Bound. Meant to be arithmetic at twice the FP32 rate less that sixth. In fact
// latencies are: it is no faster than direct_tiled, because the conversion of
// inputs and the additions in float32 stay, and few warps hide them. A negative
// result; docs/journal/half2.md has the details.
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
