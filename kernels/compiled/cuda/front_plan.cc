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
      problem.kernel_size > kMostKernel || convolved < 2 || pool.size != 2 ||
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
  shape->wide = shape->groups % 2 == 0 ? 2 : 1;
  // Every window reads 8 pixels of a row.
  shape->columns =
      RoundUp(std::max(problem.enlarged, 2 * shape->pooled + 6), 2);
  static_assert(kMostPixels + 8 <= kFrontPitch);
  shape->pooled_magic = DivisionMagic(shape->pooled);
  shape->source_magic = DivisionMagic(problem.size + 2);
  return true;
}

FrontLaunch MakeFrontLaunch(const FrontShape& shape, int64_t images,
                            int multiprocessors) {
  // What every GPU gives without being asked.
  constexpr int kSharedBytes = 48 << 10;
  FrontLaunch launch = {shape, images, shape.pooled, 1, 1};
  const int64_t slots = std::max<int64_t>(1, int64_t{multiprocessors} *
                                                 kFrontBlocksPerMultiprocessor *
                                                 shape.wide / shape.groups);
  const int64_t strips =
      std::min<int64_t>(shape.pooled, std::max<int64_t>(1, slots / images));
  launch.rows = static_cast<int>(CeilDivide(shape.pooled, strips));
  while (launch.rows > 1 && launch.shared_bytes() > kSharedBytes) --launch.rows;
  launch.strips = CeilDivide(shape.pooled, launch.rows);
  launch.blocks = std::min(images * launch.strips, slots);
  return launch;
}

}  // namespace convlab::cuda
