#include "kernels/compiled/cuda/front_plan.h"

#include <algorithm>

#include "common/math/rounding.h"

namespace convlab::cuda {

bool MakeFrontShape(const FrontProblem& problem, bool warpgroups,
                    FrontShape* shape) {
  // Up to this size the sums of the interpolation are below 2^24, which floats
  // hold exactly.
  constexpr int kMostPixels = 128;
  constexpr int kMostKernel = 7;
  const int convolved = problem.enlarged - problem.kernel_size + 1;
  const MaxPool& pool = problem.pool;
  if (problem.size > kMostPixels || problem.enlarged > kMostPixels ||
      problem.kernel_size > kMostKernel || convolved < 4 || pool.size != 2 ||
      pool.stride != 2 || pool.Output(convolved) != convolved / 2) {
    return false;
  }
  shape->problem = problem;
  shape->pooled = convolved / 2;
  shape->pitch = int64_t{problem.filters} * shape->pooled * shape->pooled;
  shape->steps =
      std::max(CeilDivide(problem.kernel_size + 1, 2), kFrontSteps[0]);
  // Every window reads 8 pixels of a row.
  shape->columns =
      RoundUp(std::max(problem.enlarged, 2 * shape->pooled + 6), 2);
  static_assert(kMostPixels + 8 <= FrontPitch(false));
  // One group computes all filters. Five to eight would leave too many columns
  // of the large product empty; up to four have a small one.
  constexpr int kMostFilters = 2 * kFrontGroupTiles[1], kFewestFilters = 9;
  constexpr int kMostOfSmall = 2 * kFrontGroupTiles[0];
  shape->warpgroups =
      warpgroups && shape->columns <= FrontPitch(true) &&
      problem.filters <= kMostFilters &&
      (problem.filters <= kMostOfSmall || problem.filters >= kFewestFilters) &&
      (shape->by_planes() || problem.filters * shape->plane() % 4 == 0);
  int least = INT32_MAX;
  const auto consider = [&](int tiles) {
    const int groups = CeilDivide(problem.filters, 2 * tiles);
    if (groups * tiles > least) return;
    least = groups * tiles;
    shape->tiles = tiles;
    shape->groups = groups;
  };
  if (shape->warpgroups) {
    for (const int tiles : kFrontGroupTiles) {
      if (problem.filters <= 2 * tiles) consider(tiles);
    }
  } else {
    for (const int tiles : kFrontTiles) consider(tiles);
  }
  shape->source_magic = DivisionMagic(problem.size + 2);
  // Of less than two words DivisionMagic is 0, too.
  shape->words_magic =
      problem.size % 4 == 0 ? DivisionMagic(problem.size / 4) : 0;
  shape->enlarged_magic = DivisionMagic(problem.enlarged);
  shape->pairs_magic = DivisionMagic(shape->columns / 2);
  return true;
}

namespace {

void SetParts(FrontLaunch* launch) {
  launch->part_rows = CeilDivide(launch->pixel_rows(),
                                 launch->threads / (launch->shape.columns / 2));
}

// As many warpgroups in a block as keep the most of a multiprocessor's busy.
FrontLaunch MakeWarpgroupLaunch(const FrontShape& shape, int64_t images,
                                int multiprocessors) {
  // For all blocks of a multiprocessor, and what each takes for itself.
  constexpr int kSharedBytes = 228 << 10, kOwnBytes = 1 << 10;
  FrontLaunch launch = {shape, images, 1, shape.pooled, 1, 1, 1, kFrontThreads};
  const int blocks_of_memory =
      kSharedBytes / (launch.shared_bytes() + kOwnBytes);
  const int products = launch.padded_runs() / 64;
  double most = 0;
  for (int groups = 1; groups <= FrontBlockGroups(shape.tiles); ++groups) {
    const int blocks =
        std::min(blocks_of_memory, FrontGroups(shape.tiles) / groups);
    const double busy =
        static_cast<double>(blocks) * products / CeilDivide(products, groups);
    if (busy <= most) continue;
    most = busy;
    launch.threads = groups * kFrontThreads;
    launch.blocks =
        std::min<int64_t>(images, int64_t{multiprocessors} * blocks);
  }
  SetParts(&launch);
  return launch;
}

}  // namespace

FrontLaunch MakeFrontLaunch(const FrontShape& shape, int64_t images,
                            int multiprocessors) {
  if (shape.warpgroups) {
    return MakeWarpgroupLaunch(shape, images, multiprocessors);
  }
  constexpr int kFewestRows = 2;
  FrontLaunch launch = {shape, images, 1, shape.pooled, 1, 1, 1, kFrontThreads};
  const int64_t slots =
      int64_t{multiprocessors} * FrontBlocks(shape.steps, shape.tiles);
  const int64_t most = CeilDivide(shape.pooled, kFewestRows);
  // Two groups share an enlarged image where that does not leave the GPU idle.
  if (shape.groups % 2 == 0 && images * most * shape.groups > slots) {
    launch.wide = 2;
  }
  const int64_t own = std::max<int64_t>(1, slots * launch.wide / shape.groups);
  const int64_t strips = std::clamp<int64_t>(own / images, 1, most);
  launch.rows = static_cast<int>(CeilDivide(shape.pooled, strips));
  // What every GPU gives without being asked.
  constexpr int kSharedBytes = 48 << 10;
  while (launch.rows > kFewestRows && launch.shared_bytes() > kSharedBytes) {
    --launch.rows;
  }
  // Rows that memory has no room for make more strips, of as many rows each.
  launch.strips = CeilDivide(shape.pooled, launch.rows);
  launch.rows = static_cast<int>(CeilDivide(shape.pooled, launch.strips));
  launch.blocks = std::min(images * launch.strips, own);
  SetParts(&launch);
  return launch;
}

}  // namespace convlab::cuda
