// Few input channels: each warp for itself.
//
// Idea. A layer with one input channel writes 3 to 37 times what it reads and
// multiplies little, so that what counts is that the output never stops
// flowing. A warp computes a strip of output rows, over all columns and all
// filters, without ever waiting for another: the strip's inputs are in its own
// part of shared memory, split into halves as in tensor_split, and its outputs
// go to a stage there, from which the copy engine of compute capability 9.0
// writes each filter's rows as one piece, since they follow each other in the
// output. Meanwhile the warp goes on; barriers of the block there are none.
//
// The product. As tensor_split's row pairs: a row of m16n8k16 is a unit of 2 or
// 4 neighbouring output columns, a column is a filter moved by 0 to 3 pixels,
// and a step of the depth is 8 halves of two input rows. Eight units, an octet,
// in `rows` output rows are computed at a time. The units of all blocks of a
// strip are counted through, so that octets are full where a row has 6 units
// (fa17) or 11 (sp19).
//
// Dealing. A block has a run of strips that follow each other in the output,
// and a warp takes the next when it is ready for it, so that all end together
// whatever their strips cost.
//
// Several channels. Their planes stand one after the other in the strip, with
// one scale, and an octet's sums take them in turn: operands and filters of one
// channel come from shared memory while the others wait there. With one channel
// a group's filters stay in registers for all octets.
//
// Filters of more than 7 rows. A step is 16 halves of one input row, which hold
// a row of 9 taps with 8 shifts, or of 11 with 4: nothing is lost to pairs, and
// a unit is 8 output columns.
//
// Change against tensor_split. Warps instead of groups of warps; the inputs of
// a warp's next strip are in registers while it multiplies; whole strips as
// pieces instead of lines of 128 bytes, and no barriers.
//
// Cost. Inputs are read rows + K - 1 for rows times, though all but once from
// the L2 cache; outputs are written once. Products are three times the
// definition's, padded from 25 to 48 taps (K = 5, rows of 8 and 6 of them),
// from 49 to 64 (K = 7) or from 81 to 144 (K = 9).
//
// Bound. Writing the output: 4.3 TB/s were measured for whole sectors of 32
// bytes, 3.3 to 3.8 for pieces of 1584 bytes that begin within one. mma.sync's
// 630 TFLOP/s alone would be 0.14 (fa17), 0.35 (fa18), 0.06 (sp19), 0.32 (fa19)
// and 0.16 ms (fa20); twice that with two channels, and 0.8 (fa18) and 0.35 ms
// (fa20) with K = 9.
//
// Measured on one H200, batch 10,000, medians in ms (and TB/s of inputs and
// outputs); errors are 1.0e-7 for K = 5 and 1.2e-7 for K = 7, 1.5e-7 and 1.9e-7
// with two channels and 2.0e-7 for K = 9:
//
//                    fa17        fa18        sp19        fa19        fa20
//   layer 1     0.32 (3.7)  0.72 (3.2)  0.165 (3.4) 0.65 (3.5)  0.38 (3.5)
//   whole_image 0.40        1.28        0.19        0.84        0.59
//   2 channels  0.63        1.56        0.33        1.33        0.84
//   tensor_wgmma 0.74       1.83        0.58        1.57        2.08
//   K = 9                   1.18                                0.73
//   tensor_split            1.84                                1.57
//
// 0.63 and 1.18 are of a prototype that loads late words as said below with
// 0.93 ms. More channels: with 3, fa19 1.84 (the prototype; tensor_wgmma 2.09)
// and sp19 0.45 (0.72); with 4, sp19 0.69 (0.72), but fa19 3.03 (2.10). Where
// tensor_wgmma's groups of filters are full it is faster with two, too: 16
// filters of 7 x 7 on 40 x 40, 0.46 instead of 0.56.
//
// Without products and stages written it took 0.30, 0.67, 0.16, 0.66 and 0.34
// ms, without stores 0.28, 0.68, 0.15, 0.65 and 0.36 (fa18 and fa19 in former
// shapes), and stores alone 0.49 (fa18), 0.12 (sp19) and 0.52 (fa19). So each
// hides most of the other, but not all.
//
// Counters (ncu, in the same order). L2 82, 73, 78, 80 and 81 % busy, DRAM 76,
// 65, 69, 73 and 71 %, tensor pipe 47, 49, 42, 48 and 43 %, issue slots 47, 50,
// 51, 49 and 55 %: nothing is full. DRAM reads the inputs once and nothing to
// fill up sectors that were written in part: 209 MB (fa18) and 197 (fa19) for
// inputs of 207 and 196. fa19's warps, in a former shape, spent 17 % of their
// time on issuing, 42 % on fixed latencies, mostly of products and branches,
// 11 % on the tensor pipe, 1 % on inputs and 0.3 % on the copy engine: an octet
// was 190 instructions, 36 of them products, and there are three warps to
// choose from.
//
// Counters of two channels (fa20's first layer, before the points about loads
// below): a quarter of a multiprocessor issues in 49 % of the cycles and
// has 2.75 warps, of which one multiplies at a time. So what counts is how long
// a warp takes for the rest; there are no registers for more warps.
//
// Predicted and measured. Units counted through a strip (without, fa17 took
// 0.38 and sp19 0.198 ms): 0.31 and 0.165 predicted, 0.32 and 0.18 measured.
// Longer pieces: 0.57 predicted for fa19 with pieces of two blocks, 0.70 to
// 0.84 measured, for larger stages leave fewer warps and larger strips do not
// fit into the registers for loads. Whole sectors, by rounding where pieces end
// (with wrong results): 0.66 predicted for fa19, 0.70 as before; without
// products and inputs 0.49 instead of 0.52. Strips taken when a warp is ready,
// not in turn: in turn, the 1584 warps always met the same strip of an image,
// since there are 4, 6 or 9 (sp19, fa18, fa19), and those of the last, which is
// smaller, ended early, fa18's first after 439 of 820 us; 0.74 (fa18) and 0.165
// (sp19) predicted, 0.75 and 0.165 measured instead of 0.80 and 0.18. DRAM read
// 271 MB then (fa18), for strips that share inputs had drifted apart. All of a
// strip's inputs loaded ahead: 0.72 for fa18 and, in another shape, 0.65
// instead of 0.70 for fa19.
//
// Several channels: 0.55 ms predicted for fa17 with two, since the products
// double, 0.63 measured; 1.2 for fa18, 1.56 measured; 0.28 for sp19, 0.33. K =
// 9: 1.2 to 1.4 predicted for fa18, 1.18 measured. What was learnt on the way,
// where fa20 with two channels began at 0.99 ms:
// - A register that two operands share is copied for each product anew, which
//   made 109 moves for 48 products; an exclusive or with a zero that the
//   compiler does not know makes 26 of them.
// - `condition ? *p : 0` becomes a branch, at whose end what it loaded is
//   waited for. A predicate within the instruction, and the next point: 1.13 to
//   0.93.
// - Words that do not fit into the registers are prefetched to L2, and asked
//   for many at a time, before those in registers are split. 20 of them instead
//   of 16, and one comparison less for each: 0.93 to 0.84.
// - One channel keeps its own loads: with those for several, when they still
//   were branches, it took 2 to 28 % longer.
// - Small products have sums of their own, or each would cut bits off the large
//   ones.
//
// Tried and left. The next strip by cp.async into a buffer of its own instead
// of registers: fa17 and sp19 3 % faster, fa19 1 %, but fa18 4 % and fa20 25 %
// slower, where the buffers take room from stages. Inputs loaded when they are
// needed, prefetched to L2: 1 to 19 % slower. High and low halves side by side,
// which are one load, but the tensor cores want them in other registers: 6 to
// 17 % slower than apart. Two stages for a warp: no better, for then there are
// fewer warps. Stages that stand in shared memory as their targets do modulo
// 128 bytes instead of 32: no better. Whole lines by lanes, 16 bytes each,
// instead of the copy engine: 7 to 52 % slower; GPUs that have none do so. A
// policy of early eviction from L2 for what is written: 3 % slower (fa17) to
// 2 % faster. Two octets at a time: slower, the sums and operands take the
// registers of other warps. Strips in turn, but each time another strip of the
// image for a warp: 0 to 4 % slower, 12 % with fewer loads ahead. One counter
// for all blocks: no better. The next strip's number taken a strip earlier, or
// the first inputs loaded before the filters: 0 to 3 % slower. 14 to 16 warps
// of 128 registers: 4 to 80 % slower. Sums of their own for the small products,
// so that twice as many products are independent: 5 to 7 % slower. Rows whose
// distance the compiler knows: 0 to 3 % faster, for a kernel for each width.
#include <cstdint>
#include <utility>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/strips/mma_plan.h"
#include "kernels/convolution/cuda/strips/tensor_strips.cuh"

namespace convlab::cuda {
namespace {

class StripsConvolution : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeStripsPlan(problem_, limits, &plan_)) {
      return {"StripsConvolution::Prepare", "no strip fits"};
    }
    RETURN_IF_FAILED(AllowAllSharedMemory(
        reinterpret_cast<const void*>(Function(plan_.shape))));
    overlaps_ =
        MayOverlap(reinterpret_cast<const void*>(Function(plan_.shape)));
    return arranged_.Allocate(LayoutOf(plan_));
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    RETURN_IF_FAILED(arranged_.Arrange(k, stream));
    return LaunchOverlapping("StripsKernel", Function(plan_.shape), overlaps_,
                             plan_.thread_blocks, 32 * plan_.warps,
                             plan_.shared_bytes, stream, x, k, arranged_.data(),
                             arranged_.exponent(), y, plan_);
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutTensorCores(
            reinterpret_cast<const void*>(Function(0)))) {
      return reason;
    }
    if (problem.kernel_size < kStripsLeastKernelSize ||
        problem.kernel_size > kStripsMostKernelSize) {
      return "takes filters of 3 x 3 to 11 x 11";
    }
    if (problem.channels >
        kStripsMostSteps / StripsSteps(problem.kernel_size)) {
      return "takes few channels: at most 16, 10, 8, 3 and 2 for filters of up "
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

 private:
  using FunctionPointer = void (*)(const float*, const float*, const char*,
                                   const int*, float*, StripsPlan);

  template <int... kShapes>
  static FunctionPointer FunctionOf(int shape,
                                    std::integer_sequence<int, kShapes...>) {
    static constexpr FunctionPointer kTable[] = {StripsKernel<kShapes>...};
    return kTable[shape];
  }
  static FunctionPointer Function(int shape) {
    return FunctionOf(shape,
                      std::make_integer_sequence<int, kStripsShapeCount>());
  }

  StripsPlan plan_ = {};
  bool overlaps_ = false;
  ArrangedFilters arranged_;
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
};

}  // namespace convlab::cuda
