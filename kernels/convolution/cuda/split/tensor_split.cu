// Tensor cores at float32's accuracy.
//
// Idea. A float is the sum of two halves, as closely as the accuracy class
// asks: x = h + l, where h is x rounded to half precision and l is the rest,
// rounded. Together they hold 22 bits. x * k is then hx * hk + hx * lk + lx *
// hk; what is left out, lx * lk, is below 2^-22 of it. Three products on FP16
// tensor cores cost a third of one in float32. Scaling both operands by powers
// of two keeps them in the range of half precision. Outputs that small factors
// may have spoiled all the same are found by a bound and computed from the
// floats when the block is done (mend.cuh).
//
// Change against tensor_fp16. Each operand has two planes of halves instead of
// one, and there are three products instead of one. A tap is an offset in
// shared memory as there, but the channels lie innermost, so that a filter
// row's values are one run; and teams of warps each have an image of their own.
// kernel.cuh is the kernel.
//
// Cost. The tensors' own bytes: inputs are read once and outputs written once,
// except where an image is cut into tiles. The products are three times the
// definition's, and the padding of the product: of its depth to multiples of 16
// halves, of output rows to bands of six, and of units to octets. Three tiles
// of rows by three tiles of filters take 27 products for 16 words of 128 bytes
// from shared memory.
//
// Bound. Second layers: tensor cores. First layers: writing the output.
//
// Reached. In second layers the loop over products comes near the rate of the
// mma instruction alone, but copying in and out is not hidden behind it. First
// layers, with one channel, stay below the memory's rate.
// docs/journal/tensor_split.md tells what was tried.
#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/arranging_kernel.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/mend.cuh"
#include "kernels/convolution/cuda/split/functions.cuh"
#include "kernels/convolution/cuda/split/padded_split.h"
#include "kernels/convolution/cuda/split/plan.h"

namespace convlab::cuda {
namespace {

class SplitConvolution : public ArrangingKernel {
 public:
  using ArrangingKernel::ArrangingKernel;

  Error Prepare() override { return Prepare(/*inset=*/nullptr); }
  // x has images inside of the problem's, unless `inset` is null.
  Error Prepare(const Inset* inset) {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeSplitPlan(problem_, limits, &plan_)) {
      return {"SplitConvolution::Prepare", "no tile fits"};
    }
    if (inset != nullptr) UseSplitInset(*inset, &plan_);
    const auto* const code = reinterpret_cast<const void*>(Function());
    RETURN_IF_FAILED(AllowAllSharedMemory(code));
    overlaps_ = MayOverlap(code);
    blocks_ = plan_.tiles() < limits.multiprocessors ? plan_.tiles()
                                                     : limits.multiprocessors;
    const int tiles = plan_.tiles_y * plan_.tiles_x;
    mender_ = Mender(
        problem_, epilogue_,
        {plan_.H_out, plan_.W_out, tiles, plan_.tiles_x, plan_.tile_columns,
         /*units=*/1, /*band_units=*/1, plan_.tile_rows, plan_.tile_columns});
    mender_.UseInset(plan_.inset);
    const FilterLayout layout = LayoutOf(plan_);
    ReserveFilters(layout.filters(), LaneFilterBytes(layout),
                   blocks_ * plan_.teams *
                       CeilDivide(plan_.tiles(), blocks_ * plan_.teams));
    return {};
  }

  Error Arrange(const ArrangedFilters& filters, cudaStream_t stream) override {
    return ArrangeLaneFilters(LayoutOf(plan_), filters, overlaps_, stream);
  }

  Error Convolve(const float* x, const ArrangedFilters& filters, float* y,
                 cudaStream_t stream) override {
    SplitPlan plan = plan_;
    // Pairs of pixels are loaded as such.
    if (plan.plane_channels == 1 && reinterpret_cast<uintptr_t>(x) % 8 != 0) {
      plan.linear = false;
    }
    return LaunchOverlapping("SplitKernel", Function(), overlaps_, blocks_,
                             32 * plan.warps * plan.teams,
                             Mender::SharedBytes(plan.shared_bytes), stream, x,
                             filters.data, mender_.Arguments(filters), y, plan);
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason =
            RejectWithoutTensorCores(reinterpret_cast<const void*>(
                SplitFunctionOf<0, /*kPadded=*/false>()))) {
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
  SplitFunction Function() const {
    return plan_.padded()
               ? PaddedSplitFunction(plan_.shape)
               : SplitFunctionOfShape</*kPadded=*/false>(plan_.shape);
  }

  SplitPlan plan_ = {};
  Mender mender_;
  int64_t blocks_ = 0;
  bool overlaps_ = false;
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
    /*detour=*/nullptr,
    /*exact_on_integers=*/true,
    /*reject_epilogue=*/nullptr,
    MakePadded<SplitConvolution>,
};

}  // namespace convlab::cuda
