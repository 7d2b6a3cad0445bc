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
#include <cstdint>
#include <utility>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/split/kernel.cuh"
#include "kernels/convolution/cuda/split/plan.h"

namespace convlab::cuda {
namespace {

class SplitConvolution : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeSplitPlan(problem_, limits, &plan_)) {
      return {"SplitConvolution::Prepare", "no tile fits"};
    }
    RETURN_IF_FAILED(
        AllowAllSharedMemory(reinterpret_cast<const void*>(Function())));
    blocks_ = plan_.tiles() < limits.multiprocessors ? plan_.tiles()
                                                     : limits.multiprocessors;
    return arranged_.Allocate(LayoutOf(plan_));
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    SplitPlan plan = plan_;
    // Pairs of pixels are loaded as such.
    if (plan.plane_channels == 1 && reinterpret_cast<uintptr_t>(x) % 8 != 0) {
      plan.linear = false;
    }
    RETURN_IF_FAILED(arranged_.Arrange(k, stream));
    Function()<<<blocks_, 32 * plan.warps * plan.teams, plan.shared_bytes,
                 stream>>>(x, k, arranged_.data(), arranged_.exponent(), y,
                           plan);
    return CheckLaunch("SplitKernel");
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutTensorCores(
            reinterpret_cast<const void*>(FunctionOf<0>()))) {
      return reason;
    }
    if (problem.kernel_size > kSplitMostKernelSize) {
      return "takes filters of at most 11 x 11";
    }
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    DeviceLimits limits;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    SplitPlan plan;
    return MakeSplitPlan(problem, limits, &plan)
               ? nullptr
               : "the channels of the smallest tile do not fit into shared "
                 "memory";
  }

 private:
  using FunctionPointer = void (*)(const float*, const float*, const char*,
                                   const int*, float*, SplitPlan);
  template <int kShape>
  static constexpr FunctionPointer FunctionOf() {
    constexpr SplitShape s = kSplitShapes[kShape];
    return SplitKernel<s.kernel_size, s.rows, s.tiles_n, s.row_pairs,
                       s.filters_shared, s.threads>;
  }
  template <int... kShapes>
  static constexpr auto AllFunctions(std::integer_sequence<int, kShapes...>) {
    struct Table {
      FunctionPointer functions[kSplitShapeCount];
    };
    return Table{{FunctionOf<kShapes>()...}};
  }
  FunctionPointer Function() const {
    static constexpr auto kTable =
        AllFunctions(std::make_integer_sequence<int, kSplitShapeCount>());
    return kTable.functions[plan_.shape];
  }

  SplitPlan plan_ = {};
  ArrangedFilters arranged_;
  int64_t blocks_ = 0;
};

}  // namespace

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
