// Few input channels on Hopper: each warpgroup for itself.
//
// Idea. As tensor_strips, but what computes a strip of output rows by itself is
// a warpgroup, so that the products are wgmma's: 64 units from registers by
// filters in shared memory, which the tensor cores read themselves. All filters
// of a group, with every shift, are the columns of one product. So a strip's
// inputs are loaded from shared memory once for 32 to 96 columns, not once for
// every 8.
//
// The product. A row is a unit of 2 or 4 neighbouring output columns in `rows`
// output rows. A column is a filter moved to the right by 0 to 3 pixels and
// down by 0 to rows - 1. A step of the depth is 8 halves of two input rows. A
// filter of 7 rows takes four steps whether it is moved down by one or not: the
// second output row costs columns, but no depth. For filters of 8 and 9 rows a
// step is 16 halves of one input row, and units are 8 columns of one row.
//
// More depth. The inputs of a few steps are in registers at a time: those of a
// channel, or of three rows of it. As in tensor_strips, a sum leaves the tensor
// cores after the large products of one or two steps.
//
// Roles. The copy engine brings a strip's inputs while the strip before is
// multiplied. The warpgroup's 128 threads split them, multiply 64 units at a
// time, and stage the sums. The copy engine writes each filter's rows as one
// piece. Warpgroups never wait for each other; two to four of them hide each
// other's latencies.
//
// Epilogue. Max pooling of 2 x 2 with stride 2, after which a quarter of the
// outputs is written: a thread has the sums of whole windows.
//
// Change against tensor_strips. One instruction starts what took 6 to 12, and
// inputs are loaded as operands once for all filters of a group. They come by
// the copy engine, not through registers.
//
// Cost. As tensor_strips. Of shared memory, in accesses of 128 bytes, a tile of
// 64 units takes 6 * octets for filters and 32 for inputs for each step of all
// channels, and 16 * octets for outputs.
//
// Bound. Memory, with one channel: the kernel is close to one that only copies
// the same pieces. With more channels the products take longest, and the stores
// hide behind them (docs/journal/wgmma_strips.md).
#include <cstdint>
#include <utility>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/arranging_kernel.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/mend.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/strips/halving.h"
#include "kernels/convolution/cuda/strips/padded_strips.h"
#include "kernels/convolution/cuda/strips/wgmma_filters.cuh"
#include "kernels/convolution/cuda/strips/wgmma_functions.cuh"
#include "kernels/convolution/cuda/strips/wgmma_plan.h"
#include "kernels/convolution/cuda/strips/wgmma_strips.cuh"

namespace convlab::cuda {
namespace {

class WgmmaStripsConvolution : public ArrangingKernel {
 public:
  using ArrangingKernel::ArrangingKernel;

  Error Prepare() override { return Prepare(/*inset=*/nullptr); }
  // x has images inside of the problem's, unless `inset` is null.
  Error Prepare(const Inset* inset) {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeWgmmaStripsPlan(problem_, limits, &plan_, epilogue_)) {
      return {"WgmmaStripsConvolution::Prepare", "no strip fits"};
    }
    if (inset != nullptr) plan_.inset = *inset;
    const bool pooled = !epilogue_.empty();
    kernel_ = plan_.padded() ? PaddedWgmmaStripsFunction(plan_.shape, pooled)
                             : WgmmaStripsFunctionOf</*kPadded=*/false>(
                                   plan_.shape, pooled);
    const auto* const code = reinterpret_cast<const void*>(kernel_);
    RETURN_IF_FAILED(AllowAllSharedMemory(code));
    overlaps_ = MayOverlap(code);
    mender_ = Mender(problem_, epilogue_,
                     TilesOfRows(plan_.H_out, plan_.W_out, plan_.strip_rows));
    mender_.UseInset(plan_.inset);
    ReserveFilters(
        filters(), plan_.filter_bytes(),
        blocks() * plan_.warpgroups * CeilDivide(plan_.items(), plan_.workers));
    return {};
  }

  Error Arrange(const ArrangedFilters& to, cudaStream_t stream) override {
    const ArrangeFunction arrange = ArrangeFunctionOf(
        plan_.shape, std::make_integer_sequence<int, kWgmmaStripsShapeCount>());
    return LaunchOverlapping("ArrangeWgmmaStripsFiltersKernel", arrange,
                             overlaps_, filters(), 256, /*shared_bytes=*/0,
                             stream, to.k, reinterpret_cast<uint32_t*>(to.data),
                             to.known, plan_);
  }

  Error Convolve(const float* x, const ArrangedFilters& arranged, float* y,
                 cudaStream_t stream) override {
    WgmmaStripsPlan plan = plan_;
    plan.follows_inputs = !arranged.just_now;
    return LaunchOverlapping("WgmmaStripsKernel", kernel_, overlaps_, blocks(),
                             128 * plan.warpgroups,
                             Mender::SharedBytes(plan.shared_bytes), stream, x,
                             reinterpret_cast<const uint4*>(arranged.data),
                             mender_.Arguments(arranged), y, plan);
  }

  void UseBias(const float* bias) override {
    plan_.epilogue.bias = bias;
    mender_.UseBias(bias);
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason =
            RejectWithoutWarpgroupProducts(reinterpret_cast<const void*>(
                WgmmaStripsKernel<0, false, false>))) {
      return reason;
    }
    if (problem.kernel_size < kWgmmaStripsLeastKernelSize ||
        problem.kernel_size > kWgmmaStripsMostKernelSize) {
      return "takes filters of 2 x 2 to 9 x 9";
    }
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    if (problem.channels > WgmmaStripsMostChannels(problem.kernel_size)) {
      return "takes few channels: at most 4, 3, 2 and 1 for filters of up to "
             "3, 5, 7 and 9 rows";
    }
    DeviceLimits limits;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    WgmmaStripsPlan plan;
    return MakeWgmmaStripsPlan(problem, limits, &plan)
               ? nullptr
               : "the filters and strips of a few rows for two warpgroups do "
                 "not fit into shared memory";
  }

  static const char* RejectEpilogue(const Problem& problem,
                                    const Epilogue& epilogue) {
    if (const char* const reason = RejectUnlessHalving(problem, epilogue)) {
      return reason;
    }
    return RejectWithoutPlan(
        MakeWgmmaStripsPlan, problem, epilogue,
        "has units of one row, and so no windows, for filters of 8 "
        "and 9 rows");
  }

 private:
  using ArrangeFunction = void (*)(const float*, uint32_t*, ScaledFilter*,
                                   WgmmaStripsPlan);
  template <int... kShapes>
  static ArrangeFunction ArrangeFunctionOf(
      int shape, std::integer_sequence<int, kShapes...>) {
    static constexpr ArrangeFunction kTable[] = {
        ArrangeWgmmaStripsFiltersKernel<kShapes>...};
    return kTable[shape];
  }

  int64_t blocks() const { return CeilDivide(plan_.workers, plan_.warpgroups); }
  // Those that fill the groups.
  int64_t filters() const {
    return int64_t{plan_.filter_groups} *
           kWgmmaStripsShapes[plan_.shape].filters();
  }

  WgmmaStripsPlan plan_ = {};
  WgmmaStripsFunction kernel_ = nullptr;
  bool overlaps_ = false;
  Mender mender_;
};

}  // namespace

extern const KernelVariant kWgmmaStrips;
const KernelVariant kWgmmaStrips = {
    "wgmma_strips",
    AccuracyClass::kFp32,
    Track::kProduction,
    "Layers with few input channels on Hopper's tensor cores at float32's "
    "accuracy: each warpgroup computes strips of rows by itself, which the "
    "copy engine brings and writes.",
    "One load of the inputs serves all filters of a strip, and the tensor "
    "cores read filters from shared memory, so that issuing instructions and "
    "multiplying hide behind writing the outputs.",
    WgmmaStripsConvolution::Reject,
    Make<WgmmaStripsConvolution>,
    EstimateWgmmaStripsNs,
    /*detour=*/nullptr,
    /*exact_on_integers=*/true,
    WgmmaStripsConvolution::RejectEpilogue,
    MakePadded<WgmmaStripsConvolution>,
};

}  // namespace convlab::cuda
