#include "kernels/convolution/cuda/few_images/estimate.h"

#include <algorithm>

#include "kernels/convolution/cuda/few_images/line_plan.h"
#include "kernels/convolution/cuda/few_images/tile_plan.h"
#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {
namespace {

// The least time for what a line stores: where rows are not aligned, by 8 or 4
// bytes, it was never more than 2.5 TB/s that the L2 cache does not keep, and
// 2.1 where there is little arithmetic (59 problems on an H200, of 2.4 times as
// much memory bandwidth).
double LineStoresNs(const Problem& problem, const LinePlan& line,
                    const DeviceLimits& limits) {
  constexpr double kCacheBytes = 45e6, kPerByte = 2.25;
  const double bytes = 4 * static_cast<double>(problem.output_elements());
  if (line.store_floats == 4 || bytes <= kCacheBytes) return 0;
  return kPerByte * bytes / limits.memory_gbs;
}

}  // namespace

double EstimateFewImagesNs(const Problem& problem, const DeviceLimits& limits) {
  constexpr TimeModel kModel = {/*launch_us=*/3.75, /*per_cycle=*/1.035,
                                /*per_byte=*/1.11, /*weight_ns=*/0,
                                /*overlap=*/2.8};
  // Plans were fitted to filters whose loops are unrolled. Others take so many
  // times the cycles, as the same times say.
  constexpr double kNotUnrolled = 1.4;
  LinePlan line;
  if (MakeLinePlan(problem, limits, &line)) {
    return std::max(EstimateNs(kModel, LineCost(line, limits), problem, limits),
                    LineStoresNs(problem, line, limits));
  }
  TilePlan tiles;
  if (!MakeTilePlan(problem, limits, &tiles)) return -1;
  double cycles = TileCost(tiles, limits);
  if (tiles.scope == FewScope::kAnything) cycles *= kNotUnrolled;
  return EstimateNs(kModel, cycles, problem, limits);
}

}  // namespace convlab::cuda
