#include "kernels/convolution/cuda/few_images/estimate.h"

#include "kernels/convolution/cuda/few_images/line_plan.h"
#include "kernels/convolution/cuda/few_images/tile_plan.h"
#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {

double EstimateFewImagesNs(const Problem& problem, const DeviceLimits& limits) {
  constexpr TimeModel kModel = {/*launch_us=*/3.65, /*per_cycle=*/1.19,
                                /*per_byte=*/1.24, /*weight_ns=*/0.017,
                                /*overlap=*/4};
  LinePlan line;
  if (MakeLinePlan(problem, limits, &line)) {
    return EstimateNs(kModel, LineCost(line, limits), problem, limits);
  }
  TilePlan plan;
  if (!MakeTilePlan(problem, limits, &plan)) return -1;
  return EstimateNs(kModel, TileCost(plan, limits), problem, limits);
}

}  // namespace convlab::cuda
