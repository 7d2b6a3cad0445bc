// A few images: start every load at once, and wait for memory once.
//
// Idea. One image of the course's layers is so little work that all
// multiprocessors together would do it in less time than a kernel takes to
// start and to bring a single float from device memory and back. What counts is
// to start every load at once, on all multiprocessors, to be ready when the
// data arrive, and to write the outputs soon. A hundred images are the same
// with more arithmetic.
//
// - A block of threads computes a tile of a few rows for a few filters of one
//   image (tile_kernel.cuh). A thread's item is 4 neighbouring columns of 1 or
//   2 rows for 4 filters. For a filter row it loads its inputs and the taps by
//   16 bytes: with 7 taps and one row, 10 loads for 112 multiply-adds.
// - Where positions are too few to fill a multiprocessor, slices of a block's
//   threads share the filter rows of all channels, and their sums meet in
//   shared memory. Where there are many, a thread goes on to further filters,
//   so that it begins and copies only once.
// - All copies are asynchronous (cp.async), and a thread works out its place
//   while they are on their way. The copies transpose the filters.
// - Many images of one channel become one line of items, which blocks share in
//   equal parts whatever image and filters these belong to (line_kernel.cuh).
// - A thread applies a bias and an activation to its own sums. For pooling they
//   go to shared memory, as those of slices do: windows lie within tiles.
//
// Change against the rungs before. whole_image has one block for an image, and
// direct_tiled's blocks stay for many; with few images both leave most of the
// GPU idle. Unlike the kernels for tensor cores, this one needs no second
// kernel that arranges the filters. Models choose its sizes (tile_plan.h,
// line_plan.h).
//
// Cost. Tiles share K - 1 rows, and blocks of other filters load the same
// inputs, all but once from the L2 cache. The products are the definition's,
// padded to columns and filters in multiples of 4.
//
// Bound. One image: latencies, of the launch, of memory, and of the
// instructions before the first load and after the last product. A hundred:
// instructions, most of which are multiply-adds, and writing the output.
//
// Reached. One image takes little longer than a kernel that loads and stores
// one float. docs/journal/few_images.md tells what was tried.
#include <algorithm>
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

template <FewScope kScope, int kK, bool kFused>
TilePointer OfRows(int rows) {
  return rows == 1 ? FewImagesTileKernel<kScope, kK, 1, kFused>
                   : FewImagesTileKernel<kScope, kK, 2, kFused>;
}

template <FewScope kScope, int kK>
TilePointer OfEpilogue(const TilePlan& plan) {
  return plan.epilogue.empty() ? OfRows<kScope, kK, false>(plan.rows)
                               : OfRows<kScope, kK, true>(plan.rows);
}

// For filters that have kernels of their own.
template <FewScope kScope, size_t... kSizes>
TilePointer OfKernelSize(const TilePlan& plan, std::index_sequence<kSizes...>) {
  TilePointer found = nullptr;
  ((plan.K == kFewKernelSizes[kSizes]
        ? void(found = OfEpilogue<kScope, kFewKernelSizes[kSizes]>(plan))
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
  return OfEpilogue<FewScope::kAnything, 0>(plan);
}

using LinePointer = void (*)(const float*, const float*, float*, LinePlan);

template <size_t... kSizes>
LinePointer LineOf(int K, bool fused, std::index_sequence<kSizes...>) {
  LinePointer found = nullptr;
  ((K == kFewKernelSizes[kSizes]
        ? void(found =
                   fused ? FewImagesLineKernel<kFewKernelSizes[kSizes], true>
                         : FewImagesLineKernel<kFewKernelSizes[kSizes], false>)
        : void()),
   ...);
  return found;
}

LinePointer KernelOf(const LinePlan& plan) {
  return LineOf(plan.K, !plan.epilogue.empty(),
                std::make_index_sequence<std::size(kFewKernelSizes)>());
}

// A launch that may overlap with the kernel before it in the stream. It takes
// 0.2 us more by itself, and 0.3 to 0.5 us less of each in a row.
struct FewLaunch {
  dim3 blocks;
  int threads, shared_bytes;
  bool overlaps;
};

// Sets what depends on the device. If a multiprocessor could hold more blocks
// than an even deal gives it, but not those of the next kernel beside them, the
// next kernel's early blocks would make the deal uneven: then blocks take more
// shared memory than they use.
Error PrepareLaunch(const void* kernel, const DeviceLimits& limits,
                    FewLaunch* launch) {
  RETURN_IF_FAILED(AllowAllSharedMemory(kernel));
  launch->overlaps = launch->overlaps && MayOverlap(kernel);
  if (!launch->overlaps) return {};
  int resident = 0;
  RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &resident, kernel, launch->threads, launch->shared_bytes));
  const int64_t blocks =
      int64_t{launch->blocks.x} * launch->blocks.y * launch->blocks.z;
  const int64_t needed = CeilDivide<int64_t>(blocks, limits.multiprocessors);
  if (needed >= resident || resident >= 2 * needed) return {};
  const int most =
      limits.shared_per_multiprocessor / static_cast<int>(needed) - 1024;
  launch->shared_bytes = std::min(limits.shared_per_block, most);
  return {};
}

template <typename Plan>
Error Launch(const char* name,
             void (*kernel)(const float*, const float*, float*, Plan),
             const FewLaunch& launch, const float* x, const float* k, float* y,
             Plan plan, cudaStream_t stream) {
  cudaLaunchAttribute overlapping = {};
  overlapping.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlapping.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = launch.blocks;
  config.blockDim = dim3(static_cast<unsigned>(launch.threads));
  config.dynamicSmemBytes = launch.shared_bytes;
  config.stream = stream;
  config.attrs = &overlapping;
  config.numAttrs = launch.overlaps ? 1 : 0;
  void* pointers[] = {&x, &k, &y, &plan};
  return Check(cudaLaunchKernelExC(
                   &config, reinterpret_cast<const void*>(kernel), pointers),
               name);
}

class FewImages : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    is_line_ =
        epilogue_.pool.size == 0 && MakeLinePlan(problem_, limits, &line_plan_);
    if (is_line_) {
      line_plan_.epilogue = epilogue_;
      launch_ = {dim3(line_plan_.blocks()), line_plan_.threads,
                 line_plan_.shared_bytes(), overlaps_};
      return PrepareLaunch(reinterpret_cast<const void*>(KernelOf(line_plan_)),
                           limits, &launch_);
    }
    if (!MakeTilePlan(problem_, limits, &tile_plan_, epilogue_)) {
      return {"FewImages::Prepare", "no tile fits"};
    }
    launch_ = {dim3(tile_plan_.batch, tile_plan_.tiles_x * tile_plan_.tiles_y,
                    tile_plan_.blocks_m),
               tile_plan_.block_threads, tile_plan_.shared_bytes(), overlaps_};
    return PrepareLaunch(reinterpret_cast<const void*>(KernelOf(tile_plan_)),
                         limits, &launch_);
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    if (is_line_) {
      SetLineVectors(x, y, &line_plan_);
      return Launch("FewImagesLineKernel", KernelOf(line_plan_), launch_, x, k,
                    y, line_plan_, stream);
    }
    SetTileVectors(x, y, &tile_plan_);
    return Launch("FewImagesTileKernel", KernelOf(tile_plan_), launch_, x, k, y,
                  tile_plan_, stream);
  }

  // For images that stand so in the problem's, and runs that overlap with the
  // kernel before them.
  Error Prepare(const Inset* inset) {
    overlaps_ = true;
    RETURN_IF_FAILED(Prepare());
    if (is_line_) {
      SetLineInset(*inset, &line_plan_);
    } else {
      SetTileInset(*inset, &tile_plan_);
    }
    return {};
  }

  void UseBias(const float* bias) override {
    line_plan_.epilogue.bias = tile_plan_.epilogue.bias = bias;
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

  static const char* RejectEpilogue(const Problem& problem,
                                    const Epilogue& epilogue) {
    if (PoolsSlowly(problem, epilogue)) {
      return "does not pool many images, whose sums would go through shared "
             "memory";
    }
    return RejectWithoutPlan(
        MakeTilePlan, problem, epilogue,
        "pools windows that lie within a block's tile: that do not "
        "overlap, or of images that fit into one tile");
  }

 private:
  // Whether a line, for which the estimate is, would be much faster than tiles,
  // which alone can pool.
  static bool PoolsSlowly(const Problem& problem, const Epilogue& epilogue) {
    constexpr double kMuch = 1.6;
    DeviceLimits limits;
    LinePlan line;
    TilePlan tiles;
    return epilogue.pool.size > 0 && !AskLimits(&limits).failed() &&
           MakeLinePlan(problem, limits, &line) &&
           MakeTilePlan(problem, limits, &tiles, epilogue) &&
           TileCost(tiles, limits) > kMuch * LineCost(line, limits);
  }

  bool is_line_ = false, overlaps_ = false;
  LinePlan line_plan_ = {};
  TilePlan tile_plan_ = {};  // otherwise
  FewLaunch launch_ = {};
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
    /*detour=*/nullptr,
    /*exact_on_integers=*/true,
    FewImages::RejectEpilogue,
    MakePadded<FewImages>,
};

}  // namespace convlab::cuda
