#include "kernels/compiled/cuda/front_plan.h"

#include <algorithm>

#include "common/math/rounding.h"

namespace convlab::cuda {

bool MakeFrontShape(const FrontProblem& problem, FrontShape* shape) {
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
  shape->steps =
      std::max(CeilDivide(problem.kernel_size + 1, 2), kFrontSteps[0]);
  int least = INT32_MAX;
  for (const int tiles : kFrontTiles) {
    const int groups = CeilDivide(problem.filters, 2 * tiles);
    if (groups * tiles > least) continue;
    least = groups * tiles;
    shape->tiles = tiles;
    shape->groups = groups;
  }
  // Every window reads 8 pixels of a row.
  shape->columns =
      RoundUp(std::max(problem.enlarged, 2 * shape->pooled + 6), 2);
  static_assert(kMostPixels + 8 <= kFrontPitch);
  shape->source_magic = DivisionMagic(problem.size + 2);
  // Of less than two words DivisionMagic is 0, too.
  shape->words_magic =
      problem.size % 4 == 0 ? DivisionMagic(problem.size / 4) : 0;
  shape->enlarged_magic = DivisionMagic(problem.enlarged);
  shape->pairs_magic = DivisionMagic(shape->columns / 2);
  return true;
}

FrontLaunch MakeFrontLaunch(const FrontShape& shape, int64_t images,
                            int multiprocessors) {
  // What every GPU gives without being asked.
  constexpr int kSharedBytes = 48 << 10;
  constexpr int kFewestRows = 2;
  FrontLaunch launch = {shape, images, 1, shape.pooled, 1, 1};
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
  while (launch.rows > kFewestRows && launch.shared_bytes() > kSharedBytes) {
    --launch.rows;
  }
  // Rows that memory has no room for make more strips, of as many rows each.
  launch.strips = CeilDivide(shape.pooled, launch.rows);
  launch.rows = static_cast<int>(CeilDivide(shape.pooled, launch.strips));
  launch.blocks = std::min(images * launch.strips, own);
  return launch;
}

}  // namespace convlab::cuda
