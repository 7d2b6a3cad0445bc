// Few input channels: each warp for itself.
//
// Idea. A layer with one input channel writes several times what it reads and
// multiplies little, so that its output should never stop flowing. A warp
// computes strips of output rows, over all columns and all filters, without
// waiting for another warp. It splits a strip's inputs into halves, as
// tensor_split does, in a slab of its own; its outputs go to its stage, from
// which Hopper's copy engine writes each filter's rows as one piece.
//
// The product. A row of m16n8k16 is a unit of 2 or 4 neighbouring output
// columns, a column is a filter moved by 0 to 3 pixels, and a step of the depth
// is 8 halves of two input rows. Eight units, an octet, in `rows` output rows
// are computed at a time. The units of a whole strip are counted through, so
// that octets are full where a row has 6 or 11 units. Filters of more than 7
// rows take steps of 16 halves of one input row; then a unit is 4 or 8 columns.
//
// Exactness. Tensor cores cut off bits where they add to a large sum. So a sum
// has the large products of two steps at most, or of one if a step has 14 taps
// and filters are of one sign; such sums are added in float32.
//
// Dealing. A block's strips follow each other in the output, and a warp takes
// the next one when it is ready: so all end together, whatever strips cost.
//
// Several channels. Their planes lie one after the other in the slab, with one
// scale, and the sums of an octet take them in turn. With one channel a group's
// filters stay in registers for all octets. There, max pooling of 2 x 2 may be
// fused: a lane has the sums of whole windows, and writes a quarter as much.
//
// Change against tensor_split. Warps work alone instead of in groups; the
// inputs of a warp's next strip are in registers while it multiplies; pieces
// are whole strips instead of lines of 128 bytes; there are no barriers.
//
// Cost. A strip reads rows + K - 1 input rows, all but once from the L2 cache;
// outputs are written once. Products are three times the definition's, and the
// taps are padded: 25 to 40, 49 to 56, 81 to 144.
//
// Bound. Writing the output, which must be done in pieces that begin within a
// sector of 32 bytes. With one channel neither memory nor the tensor cores are
// full, but each hides most of the other; with more channels and larger filters
// a warp's own latencies count most (docs/journal/tensor_strips.md).
#include <cstdint>

#include "kernels/convolution/cuda/lib/arranging_kernel.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/mend.cuh"
#include "kernels/convolution/cuda/strips/halving.h"
#include "kernels/convolution/cuda/strips/mma_plan.h"
#include "kernels/convolution/cuda/strips/padded_strips.h"
#include "kernels/convolution/cuda/strips/tensor_strips.cuh"

namespace convlab::cuda {
namespace {

class StripsConvolution : public ArrangingKernel {
 public:
  using ArrangingKernel::ArrangingKernel;

  Error Prepare() override { return Prepare(/*inset=*/nullptr); }
  // x has images inside of the problem's, unless `inset` is null.
  Error Prepare(const Inset* inset) {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeStripsPlan(problem_, limits, &plan_, epilogue_)) {
      return {"StripsConvolution::Prepare", "no strip fits"};
    }
    if (inset != nullptr) UseStripsInset(*inset, &plan_);
    const bool pooled = !epilogue_.empty();
    kernel_ = plan_.padded()
                  ? PaddedStripsFunction(plan_.shape, pooled)
                  : StripsFunctionOf</*kPadded=*/false>(plan_.shape, pooled);
    const auto* const code = reinterpret_cast<const void*>(kernel_);
    RETURN_IF_FAILED(AllowAllSharedMemory(code));
    overlaps_ = MayOverlap(code);
    mender_ = Mender(problem_, epilogue_,
                     TilesOfRows(plan_.H_out, plan_.W_out, plan_.strip_rows()));
    mender_.UseInset(plan_.inset);
    const FilterLayout layout = LayoutOf(plan_);
    ReserveFilters(layout.filters(), LaneFilterBytes(layout),
                   plan_.thread_blocks * plan_.block_items);
    return {};
  }

  Error Arrange(const ArrangedFilters& filters, cudaStream_t stream) override {
    return ArrangeLaneFilters(LayoutOf(plan_), filters, overlaps_, stream);
  }

  Error Convolve(const float* x, const ArrangedFilters& filters, float* y,
                 cudaStream_t stream) override {
    return LaunchOverlapping(
        "StripsKernel", kernel_, overlaps_, plan_.thread_blocks,
        32 * plan_.warps, Mender::SharedBytes(plan_.shared_bytes), stream, x,
        filters.data, mender_.Arguments(filters), y, plan_);
  }

  void UseBias(const float* bias) override {
    plan_.epilogue.bias = bias;
    mender_.UseBias(bias);
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutTensorCores(
            reinterpret_cast<const void*>(StripsKernel<0, false, false>))) {
      return reason;
    }
    if (problem.kernel_size < kStripsLeastKernelSize ||
        problem.kernel_size > kStripsMostKernelSize) {
      return "takes filters of 3 x 3 to 11 x 11";
    }
    if (problem.channels >
        kStripsMostSteps / StripsSteps(problem.kernel_size)) {
      return "takes few channels: at most 9, 6, 4, 2 and 1 for filters of up "
             "to 4, 6, 7, 9 and 11 rows";
    }
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    DeviceLimits limits;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    StripsPlan plan;
    return MakeStripsPlan(problem, limits, &plan)
               ? nullptr
               : "the filters and strips of a few rows for four warps do not "
                 "fit into shared memory";
  }

  static const char* RejectEpilogue(const Problem& problem,
                                    const Epilogue& epilogue) {
    if (const char* const reason = RejectUnlessHalving(problem, epilogue)) {
      return reason;
    }
    return RejectWithoutPlan(
        MakeStripsPlan, problem, epilogue,
        "pools outputs of one input channel and of filters of up to 7 "
        "rows");
  }

 private:
  StripsPlan plan_ = {};
  StripsFunction kernel_ = nullptr;
  bool overlaps_ = false;
  Mender mender_;
};

}  // namespace

extern const KernelVariant kTensorStrips;
const KernelVariant kTensorStrips = {
    "tensor_strips",
    AccuracyClass::kFp32,
    Track::kProduction,
    "Layers with few input channels on tensor cores at float32's accuracy: "
    "each warp computes strips of rows by itself, and the copy engine writes "
    "them.",
    "Nothing waits for a barrier, and outputs leave in long pieces while the "
    "next are computed, so that writing to memory does not stop.",
    StripsConvolution::Reject,
    Make<StripsConvolution>,
    EstimateStripsNs,
    /*detour=*/nullptr,
    /*exact_on_integers=*/true,
    StripsConvolution::RejectEpilogue,
    MakePadded<StripsConvolution>,
};

}  // namespace convlab::cuda
