// Few input channels on Hopper: each warpgroup for itself.
//
// Idea. As tensor_strips, but what computes a strip of output rows by itself is
// a warpgroup, so that the products are wgmma's: 64 pixels from registers by
// filters in shared memory, which the tensor cores read themselves. All filters
// of a group, with every shift, are columns of one product of 32 to 96 columns,
// for which a strip's inputs are loaded from shared memory once, not once for
// every 8 columns.
//
// The product. A row is a unit of 2 or 4 neighbouring output columns in `rows`
// output rows; a column is a filter moved to the right by 0 to 3 pixels and
// down by 0 to rows - 1; a step of the depth is 8 halves of two input rows. A
// filter of 7 rows takes four steps, one of 5 rows three, whether it is moved
// down by one or not, so that the second output row costs columns but no depth,
// and 12 filters of 7 x 7 make 48 columns where tensor_strips' columns would be
// 24. With fewer than 32 a product's rows take longer to come than the product.
//
// More depth. The steps of a channel are a pass, whose inputs are in registers;
// the passes of all channels add up in the same sums. Where filters have 8 or 9
// rows, a step is 16 halves of one input row, for units of 8 columns in one
// row, and three steps are a pass.
//
// Who does what. The copy engine brings a strip's inputs, a piece for each
// channel, while the one before is multiplied; the warpgroup's 128 threads
// split them, load 64 units at a time, multiply, and stage the sums; the copy
// engine writes each filter's rows as one piece. One barrier of the warpgroup
// after splitting, one before where a channel's inputs are no whole vectors,
// and two for each group of filters; warpgroups never wait for each other, and
// three or four of them hide each other's latencies.
//
// Change against tensor_strips. A warp issues one product for what took 6 to
// 12, and inputs are loaded as operands once for all filters of a group. They
// come by the copy engine, not through registers, of which four warpgroups have
// 128 for a thread.
//
// Cost. As tensor_strips: inputs rows + K - 1 for rows times, most of them from
// the L2 cache, outputs once. Of shared memory, 128 bytes at a time, a tile of
// 64 units takes 6 * octets for filters and 32 for inputs for each step of all
// channels, and 16 * octets for outputs. All filters stay there; strips have
// the rest.
//
// Bound. Reading inputs and writing outputs at 4.3 TB/s: 0.28 (fa17), 0.53
// (fa18), 0.13 (sp19), 0.53 (fa19) and 0.31 ms (fa20). Products alone would be
// 0.15, 0.20, 0.03, 0.16 and 0.12 ms, and twice that with two channels.
//
// Measured on one H200, batch 10,000, medians in ms (and TB/s of inputs and
// outputs); errors are 9.8e-8 for K = 5 and 1.2e-7 for K = 7:
//
//                      fa17        fa18        sp19        fa19        fa20
//   layer 1       0.33 (3.6)  0.63 (3.7)  0.15 (3.6)  0.63 (3.6)  0.41 (3.2)
//   tensor_strips 0.32        0.72        0.165       0.65        0.38
//   no products   0.32        0.63        0.15        0.63        0.35
//   no stores     0.28        0.51        0.13        0.40        0.39
//   neither       0.15        0.30        0.09        0.27        0.22
//   stores alone  0.27        0.53        0.11        0.52        0.24
//
// (without something, of these plans or of neighbouring ones; stores alone are
// without inputs, too). So products hide behind stores, except for fa20, whose
// four filters make 32 columns; and fa17's images of 72 units fill 64 and 8 of
// 64. Those two layers are left to tensor_strips. What remains is memory.
//
// What memory allows. A kernel that brings fa19's strips and writes its pieces
// by the copy engine, and computes nothing, takes 0.63 to 0.64 ms; 0.57 if its
// inputs come from the L2 cache, and 0.51 without any. Whole sectors instead of
// pieces that begin and end within one: 0.61 to 0.62, and 0.47 without inputs.
// The same bytes one after another: 0.61 to 0.63 by the copy engine, 0.59 by
// plain loads and stores of short blocks, 3.9 TB/s, where filling alone reaches
// 4.6. So a byte read for eleven written costs three times its share, and this
// kernel is within 8 % of what the memory does with such a mix.
//
// With two and three channels, and fa18 with 9 rows, where errors are 2.8e-7 to
// 6.1e-7:
//
//                      fa17        fa18        sp19        fa19        fa20
//   2 channels    0.54 (2.2)  0.96 (2.6)  0.20 (3.3)  0.79 (3.1)  0.71 (2.3)
//   tensor_strips 0.66        1.61        0.33        1.36        0.82
//   tensor_wgmma  0.68        1.72        0.47        1.25        1.90
//   no products   0.34        0.70        0.18        0.69        0.43
//   no stores     0.50        0.88        0.19        0.72        0.68
//   neither       0.15        0.33        0.10        0.31        0.28
//   3 channels    0.77        1.39        0.29        1.22        1.09
//   tensor_strips 0.88        2.20        0.45        1.84        1.37
//   9 rows                    0.80
//   tensor_strips             1.18
//
// So here products take longest, and stores hide behind them. tensor_wgmma is
// faster where its groups of 16 filters are full (fa20's second layer 0.98
// here, 0.55 there), and where the filters, 256 or 512 bytes for each step,
// leave strips little room: 64 filters of 3 x 3 x 3 take 3.3 ms on 32 x 32,
// there 0.87. fastest.cc has the rule.
//
// Counters (ncu: fa19, fa18, sp19, fa20): tensor pipe 30, 37, 26 and 33 % busy,
// shared memory 40, 59, 57 and 57 %, issue slots 32, 42, 51 and 58 %, the
// fabric between the two halves of the L2 cache 82, 82, 83 and 67 %, which is
// 90 % when a kernel only fills memory, at 4.3 TB/s. With two channels: tensor
// pipe 48, 50, 38 and 43 %, shared memory 68, 65, 69 and 67 %, issue slots 48,
// 40, 49 and 49 %, the fabric 73, 62, 74 and 57 %: nothing is full, and three
// or four warpgroups wait for their own products.
//
// Predicted and measured. From the bytes and their shapes, 0.30, 0.60, 0.14,
// 0.57 and 0.35 ms were predicted: 0.33, 0.63, 0.15, 0.63 and 0.41. Inputs of
// the strip after the next brought to the L2 cache: 2 % predicted, 1 % faster
// to 3 % slower measured. fa19 in strips of 12 rows took 0.70 where those of 14
// took 0.64, for the 396 warpgroups always met the same of an image's 6 strips
// and the last is half as high: hence plan.walkers, with which it takes 0.64
// too. Runs of strips for each block of threads, whose warpgroups take the next
// when they are ready, as in tensor_strips: 2 % faster (fa17) to 5 % slower
// (fa20).
//
// Several channels: 0.75 to 0.9 ms predicted for fa18 with two, from shared
// memory's traffic, which nearly doubles, 0.96 measured; 0.45 for fa17, 0.54; 9
// rows 0.65, 0.80: waiting costs more than predicted, for less hides it. The
// loop over passes costs one channel nothing: fa18 1 % faster, fa17 and fa20
// 1 % slower than kernels that have none. High halves loaded while the small
// products run: 3 to 5 % faster with 9 rows, 4 % faster to 1 % slower with
// channels.
//
// Tried and left. Small products of all passes first, for errors half as large:
// 7 to 19 % slower with channels, for high halves are loaded twice. Sums of
// their own for small products: as exact, up to 8 % slower, and registers for
// them with 48 columns only. The next pass's low halves loaded while the large
// products run: the compiler spills 100 bytes and more. Groups of 24 filters of
// 7 x 7: 6 to 11 % faster with two channels and 16 or 24 filters, 3 % slower
// with three and 24. Units of 4 columns for filters of 10 and 11 rows: 7 to 26
// % faster than tensor_strips with 12 or 24 filters, but 1.7 times as long
// with 4.
//
// Whole images by one warpgroup, strip after strip, with pieces that begin and
// end with a sector because what is left over waits in the stage: 0.68 to 0.72
// (fa19), with and without whole sectors; strips dealt in turn are better by
// 6 %. Stages that stand as their targets do modulo 128 bytes: 42 % fewer
// requests to L2, but 0 to 4 % slower, and the lanes' stores meet the same
// banks. Whole planes of four filters as pieces of 70 KB: 0.82, for products of
// 32 columns and two warpgroups. Two stages for a warpgroup: no better, with
// smaller strips or fewer warpgroups. Five warpgroups of 96 registers: 2 to 6 %
// slower. Inputs loaded ahead to registers: no better in a prototype for even
// widths, 10 to 40 % slower with branches for odd ones. Inputs loaded by the
// threads when they are wanted: 20 to 80 % slower.
//
// In a kernel that computes nothing: hints to the L2 cache, which inputs or
// outputs are to leave it first or last, 0 to 1 % faster or slower. Inputs
// brought to the L2 cache in bursts, by all multiprocessors at the same time,
// so that the memory changes from writing to reading less often: no gain, and 5
// to 10 % slower with bursts of more than 3 MB. Pieces written by threads: 10
// to 20 % slower.
#include <cstdint>
#include <utility>

#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/strips/wgmma_filters.cuh"
#include "kernels/convolution/cuda/strips/wgmma_plan.h"
#include "kernels/convolution/cuda/strips/wgmma_strips.cuh"

namespace convlab::cuda {
namespace {

class WgmmaStripsConvolution : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeWgmmaStripsPlan(problem_, limits, &plan_)) {
      return {"WgmmaStripsConvolution::Prepare", "no strip fits"};
    }
    RETURN_IF_FAILED(AllowAllSharedMemory(
        reinterpret_cast<const void*>(Functions().kernel)));
    overlaps_ = MayOverlap(reinterpret_cast<const void*>(Functions().kernel));
    return arranged_.Allocate(kHeaderBytes + plan_.filter_bytes());
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    int* const exponent = arranged_.as<int>();
    char* const arranged = arranged_.as<char>() + kHeaderBytes;
    const int64_t most = CeilDivide(plan_.filter_bytes() / 8, kArrangeThreads);
    const int arranging_blocks = static_cast<int>(most < 64 ? most : 64);
    const ShapeFunctions& functions = Functions();
    functions.arrange<<<arranging_blocks, kArrangeThreads, 0, stream>>>(
        k, reinterpret_cast<uint32_t*>(arranged), exponent, plan_);
    RETURN_IF_FAILED(CheckLaunch("ArrangeWgmmaStripsFiltersKernel"));
    const int64_t blocks = CeilDivide(plan_.walkers, plan_.warpgroups);
    return LaunchOverlapping(
        "WgmmaStripsKernel", functions.kernel, overlaps_, blocks,
        128 * plan_.warpgroups, plan_.shared_bytes, stream, x, k,
        reinterpret_cast<const uint4*>(arranged), exponent, y, plan_);
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutWarpgroupProducts(
            reinterpret_cast<const void*>(WgmmaStripsKernel<0>))) {
      return reason;
    }
    if (problem.kernel_size < kWgmmaStripsLeastKernelSize ||
        problem.kernel_size > kWgmmaStripsMostKernelSize) {
      return "takes filters of 2 x 2 to 9 x 9";
    }
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    if (problem.channels > WgmmaStripsMostChannels(problem.kernel_size)) {
      return "takes few channels: at most 8, 5, 4, 2 and 1 for filters of up "
             "to 3, 5, 7, 8 and 9 rows";
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

 private:
  // Before the arranged filters: their exponent.
  static constexpr int kHeaderBytes = 256;
  static constexpr int kArrangeThreads = 512;

  struct ShapeFunctions {
    void (*arrange)(const float*, uint32_t*, int*, WgmmaStripsPlan);
    void (*kernel)(const float*, const float*, const uint4*, const int*, float*,
                   WgmmaStripsPlan);
  };
  template <int... kShapes>
  static const ShapeFunctions& FunctionsOf(
      int shape, std::integer_sequence<int, kShapes...>) {
    static constexpr ShapeFunctions kTable[] = {
        {ArrangeWgmmaStripsFiltersKernel<kShapes>,
         WgmmaStripsKernel<kShapes>}...};
    return kTable[shape];
  }
  const ShapeFunctions& Functions() const {
    return FunctionsOf(
        plan_.shape, std::make_integer_sequence<int, kWgmmaStripsShapeCount>());
  }

  WgmmaStripsPlan plan_ = {};
  bool overlaps_ = false;
  Workspace arranged_;
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
};

}  // namespace convlab::cuda
