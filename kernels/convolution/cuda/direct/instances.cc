#include "kernels/convolution/cuda/direct/instances.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/tile_steps.h"
#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {
namespace {

// All constants of the estimate were fitted to direct_tiled's times of 1,107
// problems on an H200 (docs/journal/estimates.md). The middle 90 % of the
// predictions are 0.81 to 1.24 of the measured times.
constexpr TimeModel kTime = {/*launch_us=*/5.313, /*per_cycle=*/1,
                             /*per_byte=*/0.984, /*weight_ns=*/0,
                             /*overlap=*/1.797};
// Filters on their way to constant memory: a kernel and a copy of their own.
constexpr double kConstantFiltersUs = 4.536;
// The multiply-adds of all warps together, by the instance's rate.
constexpr double kRateCycles = 0.669;
// The following are latencies of one thread, which other warps do not hide:
// of a multiply-add, and of a turn of the loops that copy filters and inputs.
constexpr double kMultiplyAddCycles = 1.226;
constexpr double kFilterCopyCycles = 242.9;
constexpr double kInputCopyCycles = 237.6;
// One vector that a multiprocessor stores.
constexpr double kStoreCycles = 0.134;

// The GPU on which the rates of instances were measured.
constexpr double kRateMultiprocessors = 132;
constexpr double kRateGhz = 1.98;

// Cycles of a multiprocessor, from the first image of its blocks to the last.
double Cycles(const DirectInstance& instance, const DirectPlan& plan,
              const DeviceLimits& limits) {
  const DirectTile& tile = instance.tile;
  const int threads = plan.block_threads();
  const int sums = tile.filters * tile.rows * tile.columns;
  // As PrepareDirectLaunch counts them, but by the registers that the compiler
  // should use instead of those that it uses.
  const int64_t by_shared =
      limits.shared_per_multiprocessor / (plan.shared_bytes + 1024);
  const int64_t resident = std::max<int64_t>(
      1, std::min<int64_t>(by_shared, ResidentThreads(sums) / threads));
  const int64_t slots = limits.multiprocessors * resident;
  const int64_t images_at_once = ImagesAtOnce(slots, plan.places(), plan.batch);
  const int64_t blocks = images_at_once * plan.places();
  // One after another: blocks in the place of another, images of a block.
  const auto waves = static_cast<double>(CeilDivide(blocks, slots));
  const double images =
      waves * static_cast<double>(CeilDivide(plan.batch, images_at_once));
  // Blocks on the fullest multiprocessor at a time.
  const auto live = static_cast<double>(
      std::min(resident, CeilDivide(blocks, limits.multiprocessors)));

  // Of one block and image.
  const double filter_groups =
      tile.constant_filters ? CeilDivide(plan.M, tile.filters) : 1;
  const double outputs = filter_groups * sums;  // of a thread
  const double multiply_adds =
      outputs * plan.C * plan.K * plan.K;  // of a thread
  const double flops_per_cycle =
      1e3 * instance.rate / (kRateMultiprocessors * kRateGhz);
  const double input_vectors = static_cast<double>(plan.C) * plan.rows *
                               plan.columns / plan.steps.floats;
  const double image_cycles =
      kRateCycles * live * threads * 2 * multiply_adds / flops_per_cycle +
      kMultiplyAddCycles * multiply_adds +
      kInputCopyCycles * input_vectors / threads +
      kStoreCycles * live * threads * outputs / plan.store_floats;
  // Filters are copied once, or for each image if they come in chunks.
  const double filter_copies =
      tile.constant_filters ? 0
                            : static_cast<double>(plan.C) * plan.K * plan.K *
                                  plan.threads_m * tile.filters / threads;
  return images * image_cycles +
         kFilterCopyCycles * (plan.chunks > 1 ? images : waves) * filter_copies;
}

// The least time for outputs that the L2 cache does not keep, where a block's
// threads share its positions by five groups of filters or more and rows are
// not aligned: tiles of few rows then store pieces of many planes by 8 or 4
// bytes, which ten problems on an H200 did at 1.1 to 2.05 TB/s. With fewer
// groups the other terms say how long it takes.
double StoresNs(const Problem& problem, const DirectPlan& plan,
                const DeviceLimits& limits) {
  constexpr double kCacheBytes = 45e6, kPerByte = 2.6, kPerByteSingly = 3.4;
  constexpr int kManyGroups = 5;
  const double bytes = 4 * static_cast<double>(problem.output_elements());
  if (plan.store_floats == 4 || plan.threads_m < kManyGroups ||
      bytes <= kCacheBytes) {
    return 0;
  }
  return (plan.store_floats == 1 ? kPerByteSingly : kPerByte) * bytes /
         limits.memory_gbs;
}

}  // namespace

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

double EstimateDirectTiledNs(const Problem& problem,
                             const DeviceLimits& limits) {
  DirectPlan plan = {};
  const int index = ChooseDirectTiled(problem, limits, &plan);
  if (index < 0) return -1;
  const DirectInstance& instance = kDirectTiledInstances[index];
  // Tensors lie where whole vectors can be read and written.
  SetVectors(nullptr, nullptr, instance.tile, /*most_floats=*/4, &plan);
  const double ns = std::max(
      EstimateNs(kTime, Cycles(instance, plan, limits), problem, limits),
      StoresNs(problem, plan, limits));
  return instance.tile.constant_filters ? ns + 1e3 * kConstantFiltersUs : ns;
}

}  // namespace convlab::cuda
