#include "kernels/convolution/cuda/direct/instances.h"

#include <cstdint>
#include <initializer_list>

#include "common/math/rounding.h"

namespace convlab::cuda {

bool MakeDirectTiledPlan(const DirectInstance& instance, const Problem& problem,
                         const DeviceLimits& limits, DirectPlan* plan) {
  if (instance.kernel_size != 0 &&
      instance.kernel_size != problem.kernel_size) {
    return false;
  }
  if (!MakeDirectPlan(instance.tile, problem, limits, plan)) return false;
  if (!instance.tile.constant_filters) return true;
  // All groups of filters follow each other for one tile of inputs, which must
  // then hold all channels.
  const int64_t filters = RoundUp(problem.filters, instance.tile.filters);
  return plan->chunks == 1 &&
         filters * problem.channels * plan->K * plan->K <= kConstantFloats;
}

// The least time by padding and measured rate. The filters of one channel go
// to constant memory if they can.
int ChooseDirectTiled(const Problem& problem, const DeviceLimits& limits,
                      DirectPlan* plan) {
  int best = -1;
  double best_time = 0;
  for (const bool constant : {true, false}) {
    if (constant && problem.channels > 1) continue;
    for (int i = 0; i < kDirectTiledInstanceCount; ++i) {
      const DirectInstance& instance = kDirectTiledInstances[i];
      DirectPlan cut = {};
      if (instance.tile.constant_filters != constant ||
          !MakeDirectTiledPlan(instance, problem, limits, &cut)) {
        continue;
      }
      const double time = Padding(instance.tile, cut) / instance.rate;
      if (best < 0 || time < best_time) {
        best = i;
        best_time = time;
        *plan = cut;
      }
    }
    if (best >= 0) return best;
  }
  return best;
}

// The instance made for K, if there is one, that pads the filters least, where
// a thread's loads cost as much as two filters.
int ChooseHalf2(const Problem& problem, const DeviceLimits& limits,
                DirectPlan* plan) {
  const auto cost = [&](const DirectInstance& instance) {
    const int filters = instance.tile.filters;
    return CeilDivide(problem.filters, filters) * (filters + 2);
  };
  int best = -1;
  for (int i = 0; i < kHalf2InstanceCount; ++i) {
    const DirectInstance& instance = kHalf2Instances[i];
    DirectPlan cut = {};
    if ((instance.kernel_size != 0 &&
         instance.kernel_size != problem.kernel_size) ||
        !MakeDirectPlan(instance.tile, problem, limits, &cut)) {
      continue;
    }
    if (best < 0 || instance.kernel_size != kHalf2Instances[best].kernel_size ||
        cost(instance) < cost(kHalf2Instances[best])) {
      best = i;
      *plan = cut;
    }
  }
  return best;
}

}  // namespace convlab::cuda
