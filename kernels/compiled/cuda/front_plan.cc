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
  // One group computes all filters; for fewer the columns of its products would
  // be too few.
  constexpr int kMostFilters = 2 * kFrontGroupTiles, kFewestFilters = 9;
  shape->warpgroups = warpgroups && shape->columns <= FrontPitch(true) &&
                      problem.filters >= kFewestFilters &&
                      problem.filters <= kMostFilters;
  int least = INT32_MAX;
  const auto consider = [&](int tiles) {
    const int groups = CeilDivide(problem.filters, 2 * tiles);
    if (groups * tiles > least) return;
    least = groups * tiles;
    shape->tiles = tiles;
    shape->groups = groups;
  };
  if (shape->warpgroups) {
    consider(kFrontGroupTiles);
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

// Of GPUs that have products of warpgroups: for all blocks of a multiprocessor,
// and what each takes for itself.
constexpr int kSharedBytes = 228 << 10, kOwnBytes = 1 << 10;

// Lets blocks compute whole images, if there is room: as many warpgroups in a
// block as keep the most of a multiprocessor's busy.
bool TakeWhole(int multiprocessors, FrontLaunch* launch) {
  const FrontShape& shape = launch->shape;
  FrontLaunch whole = *launch;
  whole.rows = shape.pooled;
  whole.strips = 1;
  whole.whole = true;
  if (whole.result_bytes() % 16 != 0) return false;
  const int blocks_of_memory =
      kSharedBytes / (whole.shared_bytes() + kOwnBytes);
  const int products = whole.padded_runs() / 64;
  double most = 0;
  for (int groups = 1; groups <= kFrontBlockGroups; ++groups) {
    const int blocks = std::min(blocks_of_memory, kFrontGroups / groups);
    const double busy =
        static_cast<double>(blocks) * products / CeilDivide(products, groups);
    if (busy <= most) continue;
    most = busy;
    whole.threads = groups * kFrontThreads;
    whole.blocks =
        std::min<int64_t>(whole.images, int64_t{multiprocessors} * blocks);
    *launch = whole;
  }
  return most > 0;
}

}  // namespace

FrontLaunch MakeFrontLaunch(const FrontShape& shape, int64_t images,
                            int multiprocessors) {
  constexpr int kFewestRows = 2;
  FrontLaunch launch = {shape, images,        1,    shape.pooled, 1, 1,
                        1,     kFrontThreads, false};
  const int blocks = shape.warpgroups ? kFrontStripBlocks
                                      : FrontBlocks(shape.steps, shape.tiles);
  // Or what every GPU gives without being asked.
  const int shared_bytes =
      shape.warpgroups ? kSharedBytes / blocks - kOwnBytes : 48 << 10;
  const int64_t slots = int64_t{multiprocessors} * blocks;
  const int64_t most = CeilDivide(shape.pooled, kFewestRows);
  // Two groups share an enlarged image where that does not leave the GPU idle.
  if (!shape.warpgroups && shape.groups % 2 == 0 &&
      images * most * shape.groups > slots) {
    launch.wide = 2;
  }
  const int64_t own = std::max<int64_t>(1, slots * launch.wide / shape.groups);
  const int64_t strips = std::clamp<int64_t>(own / images, 1, most);
  const auto set_parts = [&] {
    launch.part_rows =
        CeilDivide(launch.pixel_rows(), launch.threads / (shape.columns / 2));
  };
  if (shape.warpgroups && strips == 1 && TakeWhole(multiprocessors, &launch)) {
    set_parts();
    return launch;
  }
  launch.rows = static_cast<int>(CeilDivide(shape.pooled, strips));
  while (launch.rows > kFewestRows && launch.shared_bytes() > shared_bytes) {
    --launch.rows;
  }
  // Rows that memory has no room for make more strips, of as many rows each.
  launch.strips = CeilDivide(shape.pooled, launch.rows);
  launch.rows = static_cast<int>(CeilDivide(shape.pooled, launch.strips));
  launch.blocks = std::min(images * launch.strips, own);
  set_parts();
  return launch;
}

}  // namespace convlab::cuda
