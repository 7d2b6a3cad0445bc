#include "kernels/compiled/cuda/convolve_pool_plan.h"

#include <algorithm>

#include "common/math/rounding.h"

namespace convlab::cuda {
namespace {

// Whether the filters' words fit into the instance's.
bool Takes(const ConvolvePoolInstance& instance,
           const ConvolvePoolProblem& problem) {
  const int K = problem.kernel_size;
  if (K > instance.kernel_size || instance.pool != problem.pool.size) {
    return false;
  }
  return K * CeilDivide(problem.channels, 2) <= 8 * instance.row_steps;
}

// Estimated time of an item, in products of 64 rows for two rows of positions.
double ItemTime(const ConvolvePoolLaunch& launch) {
  constexpr double kItem = 0.5, kWord = 1 / 2000.0;
  const ConvolvePoolShape& shape = launch.shape;
  const int pool = shape.problem.pool.size;
  const int rows = std::min(launch.bands * pool + shape.problem.kernel_size - 1,
                            shape.problem.size);
  return kItem + kWord * launch.item_images * rows * shape.row_words +
         0.5 * pool * launch.tiles();
}

}  // namespace

bool MakeConvolvePoolShape(const ConvolvePoolProblem& problem,
                           ConvolvePoolShape* shape) {
  // So that numbers within an item have few digits (Divide).
  constexpr int kMostSize = 128;
  constexpr int kMostFilters = 256;
  const MaxPool& pool = problem.pool;
  const int convolved = problem.size - problem.kernel_size + 1;
  // Of one channel half of every word would be zeros.
  if (problem.channels < 2 || problem.size > kMostSize ||
      problem.filters > kMostFilters || pool.size < 2 ||
      pool.stride != pool.size || convolved < pool.size) {
    return false;
  }
  *shape = {};
  shape->problem = problem;
  shape->convolved = convolved;
  shape->pooled = static_cast<int>(pool.Output(convolved));
  // A band has two rows at least.
  if (convolved - (shape->pooled - 1) * pool.size < 2) return false;
  for (const ConvolvePoolInstance& instance : kConvolvePoolInstances) {
    if (Takes(instance, problem)) {
      shape->instance = instance;
      shape->pairs = CeilDivide(problem.channels, 2);
      shape->row_words = problem.size * shape->pairs;
      shape->groups = CeilDivide(problem.filters, instance.filters());
      return true;
    }
    ++shape->instance_number;
  }
  return false;
}

bool MakeConvolvePoolLaunch(const ConvolvePoolShape& shape, int64_t images,
                            const DeviceLimits& limits,
                            ConvolvePoolLaunch* launch) {
  constexpr int kOwnBytes = 1 << 10;  // what a block takes for itself
  constexpr int kMostItemImages = 16;
  const int most_bytes = std::min(
      limits.shared_per_block,
      limits.shared_per_multiprocessor / shape.instance.blocks - kOwnBytes);
  const int64_t slots =
      std::max<int64_t>(1, int64_t{limits.multiprocessors} *
                               shape.instance.blocks / shape.groups);
  bool found = false;
  double least = 0;
  const auto consider = [&](int item_images, int bands) {
    ConvolvePoolLaunch one = {};
    one.shape = shape;
    one.images = images;
    one.item_images = item_images;
    one.bands = bands;
    one.strips = CeilDivide(shape.pooled, bands);
    one.items = CeilDivide(images, item_images) * one.strips;
    one.blocks = std::min(one.items, slots);
    if (one.shared_bytes() > most_bytes) return;
    const double time =
        static_cast<double>(CeilDivide(one.items, slots)) * ItemTime(one);
    if (found && time >= least) return;
    found = true;
    least = time;
    *launch = one;
  };
  for (int i = 1; i <= std::min<int64_t>(kMostItemImages, images); ++i) {
    consider(i, shape.pooled);
  }
  if (images < slots || !found) {
    for (int bands = shape.pooled - 1; bands > 0; --bands) consider(1, bands);
  }
  return found;
}

}  // namespace convlab::cuda
