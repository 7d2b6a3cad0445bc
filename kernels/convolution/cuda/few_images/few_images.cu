// A few images: everything waits for memory once.
//
// Idea. One image of the course's layers is 0.3 to 10 million multiply-adds,
// which all multiprocessors together do in less than a microsecond. An empty
// kernel takes 2.75 us from event to event, and one that brings a float from
// device memory and back 3.9: so what counts is to start every load at once, on
// all multiprocessors, to be ready when they arrive, and to write the outputs
// soon. A hundred images are the same with more arithmetic.
//
// - A block computes a tile of a few rows for a few filters of one image. A
//   thread computes 4 neighbouring columns of 1 or 2 rows for 4 filters. For a
//   filter row it loads its inputs and the taps by 16 bytes: with 7 taps and
//   one row 10 loads for 112 multiply-adds.
// - Where positions are too few to fill a multiprocessor, the rows of the
//   filters, of all channels, are shared out among slices of a block's threads;
//   their sums meet in shared memory. Where there are many, a thread goes on to
//   further filters (rounds), and begins and copies only once.
// - All copies are asynchronous (cp.async), and a thread works out its place
//   while they are on their way. Filters are transposed by their copies.
//
// Change against the rungs before. whole_image has one block for an image, and
// direct_tiled's blocks stay for many; both leave most of the GPU idle. There
// is no second kernel that arranges the filters, as tensor cores want. And
// sizes are chosen by a model (plan.h), not by a list.
//
// Cost. Tiles share K - 1 rows, and blocks of other filters load the same
// inputs: from the L2 cache, all but once. Products are the definition's, but
// for columns beyond a multiple of 4, and filters.
//
// Bound. One image: latencies, of the launch, of memory and of some hundred
// instructions before the first load and after the last product. A hundred:
// instructions, of which 80 to 91 % are multiply-adds in the inner loop, and
// writing the output.
//
// Measured on one H200, medians in us (of cuDNN's best plan in brackets), with
// one image and a hundred:
//
//                      fa17         fa18         sp19         fa19         fa20
//   1    layer 1  4.5 (6.1)    5.0 (7.7)    4.5 (6.1)    4.7 (6.3)    5.0 (7.8)
//        layer 2               7.5  (31)    5.2  (10)    6.5  (16)    5.8  (14)
//   100  layer 1  9.2  (19)   19.0  (84)    7.1  (27)   14.5  (55)   11.9  (92)
//        layer 2                68  (93)   12.2  (18)     47  (63)     26  (70)
//
// (With a hundred, the second layers of fa18, fa19 and fa20 in a harness of
// their own.) There tensor_strips takes 17, 22, 12, 22 and 16 us for the first
// layers, and tensor_wgmma, which has more to do at a time, 34, 26 and 17 for
// the second ones of fa18, fa19 and fa20.
//
// What the time goes into, in a harness, fa17 with 100 images in tiles, 9.3 us:
// without the stores 9.1, without the products 7.5, with neither 5.4. fa19's
// first layer, 15.1 us: 12.3, 13.2 and 6.1. So stores and products hide each
// other only in part.
//
// A line for one channel. Where a multiprocessor has 512 or more items, a
// thread's pieces of 4 by 4 sums, those of all images stand in one line that is
// cut into equal parts, whatever image and filters they belong to. fa17 with a
// hundred has 144 items in each of an image's 13 groups of filters, 4.5 warps.
// As 500 blocks of 5 warps and 3 rounds (the last of an image has 1) some
// multiprocessors computed 60 items of a warp, where 44 are the mean. Clocks
// read in that kernel: all copies have started after 1,900 cycles, the first
// product follows at 3,000, and the end is at 11,000. With fewer and larger
// blocks the first product comes at 2,000 to 2,300.
//
// Predicted and measured. One image in 5 to 8 us: 4.6 to 7.6. Rows of the
// filter unrolled for one channel, without the loop over parts of the channels:
// fa17 with 100 images 9.5 instead of 10.7, measured 9.0 to 9.4; what was not
// expected, one image went from 4.8 to 4.2, for the loads start sooner. fa17
// with 100 images in 8, as products and stores alone would have it: 9.0 at
// best. The same as a line in 8.5, for fewer rounds and an earlier begin: 9.0
// in a harness, instead of 9.5, and the other first layers 1 to 7 % less; there
// the stores, which take 3 us alone, begin when all warps have an item done.
//
// Tried and left. Four rows for a thread: 1 to 2 % faster for some first layers
// with 64 and 100 images, slower for all others. Rows of 66 floats in stores of
// 16 bytes, with two floats from the neighbouring lane: 8 to 10 % slower with
// 64 images. A loop over channels round the one over their rows in the copies,
// instead of rows counted through: second layers 0.1 to 0.3 us slower with one
// image, and up to 5 % faster with 100, where tensor_wgmma is faster still.
// Filters of any size, in steps of 4 taps, where the size is known: 15 to 40 %
// slower with 100 images. The line with one image: 1 to 7 % slower, for its
// begin takes longer. Its rows of the filter in a loop: 2 to 4 % slower. Its
// filters through registers, not by cp.async: 5 to 13 % slower. One block for a
// multiprocessor: 1 to 2 % slower than two. Prefetches into the L2 cache before
// the copies: no gain with a hundred images.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "kernels/convolution/cuda/few_images/estimate.h"
#include "kernels/convolution/cuda/few_images/line_kernel.cuh"
#include "kernels/convolution/cuda/few_images/line_plan.h"
#include "kernels/convolution/cuda/few_images/tile_kernel.cuh"
#include "kernels/convolution/cuda/few_images/tile_plan.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"

namespace convlab::cuda {
namespace {

using TilePointer = void (*)(const float*, const float*, float*, TilePlan);

template <FewScope kScope, int kK>
TilePointer OfRows(int rows) {
  return rows == 1 ? FewImagesTileKernel<kScope, kK, 1>
                   : FewImagesTileKernel<kScope, kK, 2>;
}

// For filters that have kernels of their own.
template <FewScope kScope, size_t... kSizes>
TilePointer OfKernelSize(const TilePlan& plan, std::index_sequence<kSizes...>) {
  TilePointer found = nullptr;
  ((plan.K == kFewKernelSizes[kSizes]
        ? void(found = OfRows<kScope, kFewKernelSizes[kSizes]>(plan.rows))
        : void()),
   ...);
  return found;
}

TilePointer KernelOf(const TilePlan& plan) {
  constexpr auto kSizes =
      std::make_index_sequence<std::size(kFewKernelSizes)>();
  switch (plan.scope) {
    case FewScope::kOneChannel:
      return OfKernelSize<FewScope::kOneChannel>(plan, kSizes);
    case FewScope::kAllChannels:
      return OfKernelSize<FewScope::kAllChannels>(plan, kSizes);
    case FewScope::kAnything:
      break;
  }
  return OfRows<FewScope::kAnything, 0>(plan.rows);
}

using LinePointer = void (*)(const float*, const float*, float*, LinePlan);

template <size_t... kSizes>
LinePointer LineOf(int K, std::index_sequence<kSizes...>) {
  LinePointer found = nullptr;
  ((K == kFewKernelSizes[kSizes]
        ? void(found = FewImagesLineKernel<kFewKernelSizes[kSizes]>)
        : void()),
   ...);
  return found;
}

LinePointer KernelOf(const LinePlan& plan) {
  return LineOf(plan.K, std::make_index_sequence<std::size(kFewKernelSizes)>());
}

class FewImages : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    is_line_ = MakeLinePlan(problem_, limits, &line_plan_);
    if (is_line_) {
      return AllowAllSharedMemory(
          reinterpret_cast<const void*>(KernelOf(line_plan_)));
    }
    if (!MakeTilePlan(problem_, limits, &tile_plan_)) {
      return {"FewImages::Prepare", "no tile fits"};
    }
    return AllowAllSharedMemory(
        reinterpret_cast<const void*>(KernelOf(tile_plan_)));
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    if (is_line_) {
      SetLineVectors(x, y, &line_plan_);
      KernelOf(line_plan_)<<<line_plan_.blocks(), line_plan_.threads,
                             line_plan_.shared_bytes(), stream>>>(x, k, y,
                                                                  line_plan_);
      return CheckLaunch("FewImagesLineKernel");
    }
    SetTileVectors(x, y, &tile_plan_);
    const dim3 blocks(tile_plan_.batch, tile_plan_.tiles_x * tile_plan_.tiles_y,
                      tile_plan_.blocks_m);
    KernelOf(tile_plan_)<<<blocks, tile_plan_.block_threads,
                           tile_plan_.shared_bytes(), stream>>>(x, k, y,
                                                                tile_plan_);
    return CheckLaunch("FewImagesTileKernel");
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    if (problem.batch > kMaxGridX) return kTooManyBlocks;
    DeviceLimits limits;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    TilePlan plan;
    return MakeTilePlan(problem, limits, &plan)
               ? nullptr
               : "four filters of one channel do not fit into shared memory "
                 "beside the rows that they need, or there are too many tiles";
  }

 private:
  bool is_line_ = false;
  LinePlan line_plan_ = {};
  TilePlan tile_plan_ = {};  // otherwise
};

}  // namespace

extern const KernelVariant kFewImages;
const KernelVariant kFewImages = {
    "few_images",
    AccuracyClass::kFp32,
    Track::kSpecialty,
    "For few images: many small blocks whose loads all start at once, where "
    "needed with the input channels shared out among threads.",
    "A few images are computed within microseconds, so that what counts is to "
    "wait for memory once, with all multiprocessors.",
    FewImages::Reject,
    Make<FewImages>,
    EstimateFewImagesNs,
};

}  // namespace convlab::cuda
