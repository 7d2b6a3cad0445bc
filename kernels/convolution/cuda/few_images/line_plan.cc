#include "kernels/convolution/cuda/few_images/line_plan.h"

#include <algorithm>
#include <cmath>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/division.h"

namespace convlab::cuda {
namespace {

constexpr int64_t kMostLineSize = 1 << 15;  // of the plan's H, W and M

}  // namespace

bool SetLinePlan(const Problem& problem, const LineCut& cut,
                 const DeviceLimits& limits, LinePlan* plan) {
  // What is larger does not fit, so that nothing below overflows.
  constexpr int64_t kMost = kMostLineSize;
  const int64_t H_out = problem.output_height();
  const int64_t W_out = problem.output_width();
  if (problem.channels != 1 || !HasKernelOfItsOwn(problem.kernel_size) ||
      problem.height > kMost || problem.width > kMost ||
      problem.filters > kMost) {
    return false;
  }
  const int K = problem.kernel_size;
  *plan = {};
  plan->H = problem.height, plan->W = problem.width;
  plan->M = problem.filters, plan->K = K;
  plan->H_out = H_out, plan->W_out = W_out;
  plan->groups_x = CeilDivide(W_out, kFewColumns);
  plan->groups_y = cut.groups_y;
  plan->tiles_y = CeilDivide(H_out, plan->groups_y);
  plan->input_rows = plan->groups_y + K - 1;
  plan->pitch = InputPitch(plan->groups_x, plan->W);
  plan->positions = plan->groups_x * cut.groups_y;
  plan->groups = CeilDivide(plan->M, kFewFilters);
  plan->threads = cut.threads;
  plan->block_items = cut.threads * cut.rounds;

  // The bounds within which Divide is exact.
  const int64_t tile_items = int64_t{plan->groups} * plan->positions;
  constexpr int64_t kMostItems = int64_t{1} << 31;
  const int64_t most_items = plan->block_items + tile_items;
  if (tile_items > kMost * kMost || most_items * tile_items >= 2 * kMostItems ||
      problem.batch * plan->tiles_y > kMostItems / tile_items - 1) {
    return false;
  }
  plan->items = problem.batch * plan->tiles_y * tile_items;
  if (cut.threads > kLineMostThreads || cut.groups_y > H_out ||
      plan->block_items - cut.threads >= plan->items) {
    return false;
  }

  // Where groups, or tiles, of d items follow each other, a block's part meets
  // so many of them, wherever it begins.
  const auto meets = [&](int64_t d) {
    return CeilDivide(plan->block_items - 1, d) + 1;
  };
  plan->block_tiles =
      std::min(meets(tile_items), problem.batch * plan->tiles_y);
  plan->block_groups = std::min<int64_t>(meets(plan->positions), plan->groups);
  const int64_t floats = int64_t{plan->block_tiles} * plan->plane() +
                         int64_t{plan->block_groups} * kFewFilters * K * K;
  if (floats > 2 * kMost || plan->shared_bytes() > limits.shared_per_block) {
    return false;
  }
  plan->positions_magic = DivisionMagic(plan->positions);
  plan->tile_items_magic = DivisionMagic(tile_items);
  plan->groups_x_magic = DivisionMagic(plan->groups_x);
  plan->tiles_y_magic = DivisionMagic(plan->tiles_y);
  plan->input_rows_magic = DivisionMagic(plan->input_rows);
  plan->inset = {0, 0, plan->H, plan->W};
  SetLineVectors(nullptr, nullptr, plan);
  return true;
}

void SetLineInset(const Inset& inset, LinePlan* plan) {
  plan->inset = inset;
  plan->padded = inset.height < plan->H || inset.width < plan->W;
  SetLineVectors(nullptr, nullptr, plan);
}

void SetLineVectors(const void* x, const void* y, LinePlan* plan) {
  plan->copy_floats =
      plan->padded ? VectorFloats(plan->inset, x) : VectorFloats(plan->W, x);
  plan->store_floats = VectorFloats(plan->W_out, y);
  plan->copy_columns = CeilDivide(plan->W, plan->copy_floats);
  plan->copy_columns_magic = DivisionMagic(plan->copy_columns);
}

double LineCost(const LinePlan& plan, const DeviceLimits& limits) {
  // As in TileCost (tile_plan.cc).
  constexpr double kWarp = 238, kCopy = 29, kStore = 29, kProducts = 1.16;
  constexpr double kMemoryTime = 369, kCopyTime = 189;
  constexpr double kPower = 1.97;
  constexpr int kRegisters = 65536, kRegistersOfThread = 64;
  constexpr int kSharedOfBlock = 1024;
  constexpr int kWarpThreads = 32;

  const int K = plan.K;
  const int rounds = plan.block_items / plan.threads;
  constexpr int kSums = kFewFilters * kFewColumns;
  const int vectors = CeilDivide(K + kFewColumns - 1, kFewColumns);
  const double products = K * (kSums * K + K + vectors);
  const double copies = CeilDivide(int64_t{plan.block_tiles} * plan.input_rows *
                                       plan.copy_columns,
                                   plan.threads) +
                        CeilDivide(plan.filter_floats(), plan.threads);
  const double instructions =
      kWarp + kCopy * copies +
      rounds * (kProducts * products + kStore * kSums / plan.store_floats);
  const double time = kMemoryTime + kCopyTime * copies + rounds * products;
  const int64_t blocks = CeilDivide(plan.blocks(), limits.multiprocessors);
  const int64_t resident =
      std::min(kRegisters / (plan.threads * kRegistersOfThread),
               limits.shared_per_multiprocessor /
                   (plan.shared_bytes() + kSharedOfBlock));
  const double waves = CeilDivide(blocks, std::max<int64_t>(resident, 1));
  // Of a quarter of a multiprocessor.
  const double warps = CeilDivide(blocks * plan.threads / kWarpThreads, 4);
  return std::pow(
      std::pow(warps * instructions, kPower) + std::pow(waves * time, kPower),
      1 / kPower);
}

bool MakeLinePlan(const Problem& problem, const DeviceLimits& limits,
                  LinePlan* plan) {
  // With less for a multiprocessor the begin, which takes longer than that of
  // TilePlan's kernel, costs more than equal parts gain.
  constexpr int64_t kLeastItems = 512;
  // Two blocks or more for a multiprocessor, so that no barrier halts it.
  constexpr int kThreadsStep = 64, kMostRounds = 32;
  if (problem.channels > 1 || problem.height > kMostLineSize) return false;
  double best = 0;
  for (int tiles = 1, last = 0; tiles <= problem.output_height();
       tiles = NextToTry(tiles)) {
    const int rows = CeilDivide(problem.output_height(), tiles);
    if (rows == last) continue;
    last = rows;
    for (int threads = kThreadsStep; threads <= kLineMostThreads;
         threads += kThreadsStep) {
      for (int rounds = 1; rounds <= kMostRounds; rounds = NextToTry(rounds)) {
        LinePlan tried;
        if (!SetLinePlan(problem, {rows, threads, rounds}, limits, &tried) ||
            tried.items < kLeastItems * limits.multiprocessors ||
            tried.blocks() <= limits.multiprocessors) {
          continue;
        }
        const double cost = LineCost(tried, limits);
        if (best == 0 || cost < best) {
          best = cost;
          *plan = tried;
        }
      }
    }
  }
  return best > 0;
}

}  // namespace convlab::cuda
