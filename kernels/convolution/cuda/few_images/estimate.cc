#include "kernels/convolution/cuda/few_images/estimate.h"

#include "kernels/convolution/cuda/few_images/line_plan.h"
#include "kernels/convolution/cuda/few_images/tile_plan.h"
#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {

double EstimateFewImagesNs(const Problem& problem, const DeviceLimits& limits) {
  constexpr TimeModel kModel = {/*launch_us=*/3.75, /*per_cycle=*/1.035,
                                /*per_byte=*/1.11, /*weight_ns=*/0,
                                /*overlap=*/2.8};
  // Plans were fitted to filters whose loops are unrolled. Others take so many
  // times the cycles, as the same times say.
  constexpr double kNotUnrolled = 1.4;
  LinePlan line;
  if (MakeLinePlan(problem, limits, &line)) {
    return EstimateNs(kModel, LineCost(line, limits), problem, limits);
  }
  TilePlan tiles;
  if (!MakeTilePlan(problem, limits, &tiles)) return -1;
  double cycles = TileCost(tiles, limits);
  if (tiles.scope == FewScope::kAnything) cycles *= kNotUnrolled;
  return EstimateNs(kModel, cycles, problem, limits);
}

}  // namespace convlab::cuda
