#include "kernels/convolution/cuda/few_images/estimate.h"

#include <algorithm>

#include "kernels/convolution/cuda/few_images/line_plan.h"
#include "kernels/convolution/cuda/few_images/tile_plan.h"
#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {
namespace {

// Threads store 16, 8 or 4 bytes at a time, so that several stores meet in each
// sector where rows are not aligned. That costs where the L2 cache does not
// keep what they write.
double PartialStoresNs(const Problem& problem, int store_floats,
                       const DeviceLimits& limits) {
  constexpr double kCacheBytes = 45e6, kPerByte = 0.69;
  const double beyond =
      4 * static_cast<double>(problem.output_elements()) - kCacheBytes;
  return kPerByte * (4.0 / store_floats - 1) * std::max(0.0, beyond) /
         limits.memory_gbs;
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
    return EstimateNs(kModel, LineCost(line, limits), problem, limits) +
           PartialStoresNs(problem, line.store_floats, limits);
  }
  TilePlan tiles;
  if (!MakeTilePlan(problem, limits, &tiles)) return -1;
  double cycles = TileCost(tiles, limits);
  if (tiles.scope == FewScope::kAnything) cycles *= kNotUnrolled;
  return EstimateNs(kModel, cycles, problem, limits) +
         PartialStoresNs(problem, tiles.store_floats, limits);
}

}  // namespace convlab::cuda
