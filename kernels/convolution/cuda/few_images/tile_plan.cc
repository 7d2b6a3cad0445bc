#include "kernels/convolution/cuda/few_images/tile_plan.h"

#include <algorithm>
#include <cmath>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/division.h"

namespace convlab::cuda {
namespace {

constexpr int kMostGridYZ = 65535;

// The windows of a tile. Returns false if one may reach beyond its tile.
bool SetWindows(const Epilogue& epilogue, TilePlan* plan) {
  plan->epilogue = epilogue;
  if (epilogue.empty()) return true;
  plan->window = epilogue.pool.size > 0 ? epilogue.pool : MaxPool{1, 1, false};
  const int stride = plan->window.stride;
  const auto within = [&](int tiles, int of_tile) {
    return tiles == 1 || (plan->window.size <= stride && of_tile % stride == 0);
  };
  if (!within(plan->tiles_y, plan->tile_rows) ||
      !within(plan->tiles_x, plan->tile_columns)) {
    return false;
  }
  plan->pooled_rows = plan->window.Output(plan->H_out);
  plan->pooled_columns = plan->window.Output(plan->W_out);
  plan->window_rows =
      plan->tiles_y == 1 ? plan->pooled_rows : plan->tile_rows / stride;
  plan->window_columns =
      plan->tiles_x == 1 ? plan->pooled_columns : plan->tile_columns / stride;
  plan->window_rows_magic = DivisionMagic(plan->window_rows);
  plan->window_columns_magic = DivisionMagic(plan->window_columns);
  return true;
}

}  // namespace

bool SetTilePlan(const Problem& problem, const TileCut& cut,
                 const DeviceLimits& limits, TilePlan* plan,
                 const Epilogue& epilogue) {
  // What is larger does not fit, so that nothing below overflows.
  constexpr int64_t kMost = 1 << 16;
  constexpr int kMostKernelSize = 256;
  if (problem.kernel_size > kMostKernelSize) return false;
  const int64_t taps = problem.kernel_size * problem.kernel_size;
  *plan = {};
  plan->batch = problem.batch;
  plan->C = problem.channels, plan->H = problem.height;
  plan->W = problem.width, plan->M = problem.filters;
  const int K = plan->K = problem.kernel_size;
  plan->H_out = problem.output_height(), plan->W_out = problem.output_width();

  // Whole rows, if a block has a thread for each of their inputs.
  const int most_threads = kFewMostThreads[cut.rows - 1];
  const int columns = CeilDivide(plan->W_out, kFewColumns);
  const int parts = CeilDivide(columns, (most_threads - K + 1) / kFewColumns);
  plan->rows = cut.rows;
  plan->groups_x = CeilDivide(columns, parts);
  plan->groups_y = cut.groups_y;
  plan->groups_m = cut.groups_m, plan->rounds = cut.rounds;
  plan->tile_rows = cut.groups_y * cut.rows;
  plan->tile_columns = plan->groups_x * kFewColumns;
  plan->block_filters = cut.groups_m * cut.rounds * kFewFilters;
  plan->tiles_x = CeilDivide(columns, plan->groups_x);
  plan->tiles_y = CeilDivide(plan->H_out, plan->tile_rows);
  plan->blocks_m = CeilDivide(problem.filters, plan->block_filters);
  if (int64_t{plan->groups_x} * cut.groups_y * cut.groups_m > most_threads ||
      ((cut.slices > 1 || epilogue.pool.size > 0) && cut.rounds > 1) ||
      plan->tile_rows - plan->H_out >= cut.rows ||
      plan->block_filters - plan->M >= cut.groups_m * kFewFilters ||
      (cut.groups_m - 1) * kFewFilters >= plan->M ||
      int64_t{plan->tiles_x} * plan->tiles_y > kMostGridYZ ||
      plan->blocks_m > kMostGridYZ || !SetWindows(epilogue, plan)) {
    return false;
  }

  plan->input_rows = plan->tile_rows + K - 1;
  plan->input_columns = std::min(plan->tile_columns + K - 1, plan->W);
  plan->pitch = InputPitch(plan->groups_x, plan->input_columns);
  // The last lane's last vector reaches so far beyond the last row.
  const int beyond = RoundUp(K, 4) + 4;
  // Sums of a thread in each slice.
  const int sums = cut.rows * kFewFilters * kFewColumns;
  const int64_t positions =
      int64_t{plan->groups_x} * plan->groups_y * plan->groups_m;
  const int64_t stage = cut.slices == 1 && epilogue.pool.size == 0
                            ? 0
                            : positions * cut.slices * sums;
  // As many channels as fit, evenly.
  const int64_t of_channel = plan->block_filters * taps + plan->plane();
  const int64_t fit = std::min(
      (limits.shared_per_block / 4 - stage - beyond) / of_channel, kMost / K);
  if (fit < 1) return false;
  plan->channels = CeilDivide(plan->C, CeilDivide(plan->C, fit));
  if (plan->channels < plan->C && cut.rounds > 1) return false;
  const int channel_rows = plan->channels * K;
  plan->slice_rows =
      CeilDivide(channel_rows, std::min(cut.slices, channel_rows));
  plan->slices = CeilDivide(channel_rows, plan->slice_rows);
  plan->threads = positions * plan->slices;
  constexpr int kWarp = 32;
  plan->block_threads =
      RoundUp(std::max(plan->threads, plan->input_columns), kWarp);
  if (plan->block_threads > most_threads) return false;
  plan->filter_floats = plan->block_filters * taps * plan->channels;
  plan->input_floats = plan->channels * plan->plane() + beyond;
  plan->stage_floats = plan->stages() ? plan->threads * sums : 0;

  plan->scope = !HasKernelOfItsOwn(K) || plan->channels < plan->C
                    ? FewScope::kAnything
                : plan->C == 1 && plan->slices == 1 ? FewScope::kOneChannel
                                                    : FewScope::kAllChannels;
  plan->groups_x_magic = DivisionMagic(plan->groups_x);
  plan->groups_y_magic = DivisionMagic(plan->groups_y);
  plan->groups_m_magic = DivisionMagic(plan->groups_m);
  plan->input_rows_magic = DivisionMagic(plan->input_rows);
  plan->tile_rows_magic = DivisionMagic(plan->tile_rows);
  plan->tile_columns_magic = DivisionMagic(plan->tile_columns);
  plan->inset = {0, 0, plan->H, plan->W};
  SetTileVectors(nullptr, nullptr, plan);
  return true;
}

void SetTileInset(const Inset& inset, TilePlan* plan) {
  plan->inset = inset;
  plan->padded = inset.height < plan->H || inset.width < plan->W;
  SetTileVectors(nullptr, nullptr, plan);
}

void SetTileVectors(const void* x, const void* y, TilePlan* plan) {
  plan->copy_floats =
      plan->padded ? VectorFloats(plan->inset, x) : VectorFloats(plan->W, x);
  plan->store_floats = VectorFloats(plan->W_out, y);
  plan->copy_columns = CeilDivide(plan->input_columns, plan->copy_floats);
  plan->copy_columns_magic = DivisionMagic(plan->copy_columns);
  plan->copy_rows = plan->block_threads / plan->copy_columns;
}

double TileCost(const TilePlan& plan, const DeviceLimits& limits) {
  // Instructions of a warp: at its begin, for a copy of each lane, for a store,
  // for bringing the sums through shared memory, and for each term that a
  // thread adds there.
  constexpr double kWarp = 124, kCopy = 39, kStore = 16;
  constexpr double kStage = 167, kTerm = 4.9;
  constexpr double kProducts = 1.1;  // with the loops around them
  // Cycles that a block waits: for memory, and for each of the above.
  constexpr double kMemoryTime = 1340, kCopyTime = 44, kRowTime = 105;
  constexpr double kStageTime = 1400, kTermTime = 39;
  constexpr double kPower = 1.41;
  // Registers of a multiprocessor and of a thread.
  constexpr int kRegisters = 65536, kRegistersOf[kFewMostRows] = {72, 96};
  constexpr int kSharedOfBlock = 1024;  // bytes that the system takes

  const int K = plan.K;
  const int warps = plan.block_threads / 32;
  const double chunks = CeilDivide(plan.C, plan.channels);
  const double copies =
      chunks *
      (CeilDivide(int64_t{plan.channels} * plan.input_rows, plan.copy_rows) +
       int64_t{plan.groups_m} * plan.rounds *
           CeilDivide(int64_t{plan.channels} * K * K,
                      plan.block_threads / kFewFilters));
  const double filter_rows = chunks * plan.slice_rows * plan.rounds;
  const int sums = plan.rows * kFewFilters * kFewColumns;
  // Products, and loads of taps and of inputs.
  const int vectors = CeilDivide(K + kFewColumns - 1, kFewColumns);
  const double row = sums * K + K + plan.rows * vectors;
  double instructions = kWarp + kCopy * copies + kProducts * filter_rows * row;
  double time = kMemoryTime + kCopyTime * copies + filter_rows * row;
  if (plan.scope != FewScope::kOneChannel) time += kRowTime * filter_rows;
  if (plan.stage_floats == 0) {
    instructions += kStore * plan.rounds * sums / plan.store_floats;
  } else {
    const double terms = plan.slices * CeilDivide(sums, plan.slices);
    instructions += kStage + kTerm * terms;
    time += kStageTime + kTermTime * terms;
  }
  const int64_t blocks = CeilDivide(plan.blocks(), limits.multiprocessors);
  const int64_t resident =
      std::min(kRegisters / (warps * 32 * kRegistersOf[plan.rows - 1]),
               limits.shared_per_multiprocessor /
                   (plan.shared_bytes() + kSharedOfBlock));
  const double waves = CeilDivide(blocks, std::max<int64_t>(resident, 1));
  return std::pow(std::pow(blocks * warps * instructions / 4, kPower) +
                      std::pow(waves * time, kPower),
                  1 / kPower);
}

bool MakeTilePlan(const Problem& problem, const DeviceLimits& limits,
                  TilePlan* plan, const Epilogue& epilogue) {
  // More blocks than that keep every multiprocessor busy without slices.
  const int64_t enough = 6 * int64_t{limits.multiprocessors};
  double best = 0;
  // Returns whether slices may help.
  const auto try_cut = [&](const TileCut& cut, int least_threads) {
    TilePlan tried;
    if (!SetTilePlan(problem, cut, limits, &tried, epilogue)) return false;
    if (tried.threads >= least_threads) {
      const double cost = TileCost(tried, limits);
      if (best == 0 || cost < best) {
        best = cost;
        *plan = tried;
      }
    }
    return tried.blocks() < enough;
  };
  // Beyond these a cut does not fit a block.
  constexpr int64_t kMost = kFewMostThreads[0];
  const int most_y = std::min(problem.output_height(), kMost);
  const int most_m = std::min(CeilDivide(problem.filters, kFewFilters), kMost);
  const int64_t filter_rows = problem.channels * problem.kernel_size;
  // The model was not fitted to smaller blocks, but a small problem has no
  // others.
  for (const int least_threads : {64, 1}) {
    for (int rows = 1; rows <= kFewMostRows; ++rows) {
      for (int y = 1; y <= most_y; ++y) {
        for (int m = 1; m <= most_m; m = NextToTry(m)) {
          for (int rounds = 1; m * rounds < most_m + m;
               rounds = NextToTry(rounds)) {
            if (!try_cut({rows, y, m, rounds, 1}, least_threads) ||
                rounds > 1) {
              continue;
            }
            for (int of_slice = 1; of_slice < filter_rows;
                 of_slice = NextToTry(of_slice)) {
              const int64_t slices = CeilDivide(filter_rows, of_slice);
              if (slices > kMost) continue;
              try_cut({rows, y, m, 1, static_cast<int>(slices)}, least_threads);
            }
          }
        }
      }
    }
    if (best > 0) return true;
  }
  return false;
}

}  // namespace convlab::cuda
