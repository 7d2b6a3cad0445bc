#include "kernels/convolution/cuda/few_images/plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {
namespace {

constexpr int kMostGridYZ = 65535;
constexpr int64_t kMostLineSize = 1 << 15;  // of a LinePlan's H, W and M

// Rows of inputs so far apart that the eight lanes of a vector load, which
// stand in one row or in two, meet different banks.
int Pitch(int groups_x, int columns) {
  constexpr int kBanks = 32;
  const int least = groups_x * kFewColumns;
  if (least % kBanks == 0) return SplitParts(columns, 4) * 4;
  return least + SplitParts(std::max(columns - least, 0), kBanks) * kBanks;
}

// Floats that divide a row and the tensor's address.
int Vector(int row, const void* tensor) {
  const auto fits = [&](int floats) {
    return row % floats == 0 &&
           reinterpret_cast<uintptr_t>(tensor) / 4 % floats == 0;
  };
  return fits(4) ? 4 : fits(2) ? 2 : 1;
}

bool HasKernel(int K) {
  return std::find(std::begin(kFewKernelSizes), std::end(kFewKernelSizes), K) !=
         std::end(kFewKernelSizes);
}

// The next number to try after n: all small ones, and steps of a quarter.
int Next(int n) { return n < 8 ? n + 1 : n + n / 4; }

}  // namespace

bool SetFewImagesPlan(const Problem& problem, const FewImagesCut& cut,
                      const FewImagesLimits& limits, FewImagesPlan* plan) {
  // What is larger does not fit; so nothing below overflows.
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
  const int columns = SplitParts(plan->W_out, kFewColumns);
  const int parts = SplitParts(columns, (most_threads - K + 1) / kFewColumns);
  plan->rows = cut.rows;
  plan->groups_x = SplitParts(columns, parts);
  plan->groups_y = cut.groups_y;
  plan->groups_m = cut.groups_m, plan->rounds = cut.rounds;
  plan->tile_rows = cut.groups_y * cut.rows;
  plan->tile_columns = plan->groups_x * kFewColumns;
  plan->block_filters = cut.groups_m * cut.rounds * kFewFilters;
  plan->tiles_x = SplitParts(columns, plan->groups_x);
  plan->tiles_y = SplitParts(plan->H_out, plan->tile_rows);
  plan->blocks_m = SplitParts(plan->M, plan->block_filters);
  if (int64_t{plan->groups_x} * cut.groups_y * cut.groups_m > most_threads ||
      (cut.slices > 1 && cut.rounds > 1) ||
      plan->tile_rows - plan->H_out >= cut.rows ||
      plan->block_filters - plan->M >= cut.groups_m * kFewFilters ||
      (cut.groups_m - 1) * kFewFilters >= plan->M ||
      int64_t{plan->tiles_x} * plan->tiles_y > kMostGridYZ ||
      plan->blocks_m > kMostGridYZ) {
    return false;
  }

  plan->input_rows = plan->tile_rows + K - 1;
  plan->input_columns = std::min(plan->tile_columns + K - 1, plan->W);
  plan->pitch = Pitch(plan->groups_x, plan->input_columns);
  // What the last lane's last vector has beyond the last row.
  const int beyond = SplitParts(K, 4) * 4 + 4;
  // Sums of a thread in each slice.
  const int sums = cut.rows * kFewFilters * kFewColumns;
  const int64_t positions =
      int64_t{plan->groups_x} * plan->groups_y * plan->groups_m;
  const int64_t stage = cut.slices == 1 ? 0 : positions * cut.slices * sums;
  // As many channels as fit, evenly.
  const int64_t of_channel = plan->block_filters * taps + plan->plane();
  const int64_t fit = std::min(
      (limits.shared_per_block / 4 - stage - beyond) / of_channel, kMost / K);
  if (fit < 1) return false;
  plan->channels = SplitParts(plan->C, SplitParts(plan->C, fit));
  if (plan->channels < plan->C && cut.rounds > 1) return false;
  const int channel_rows = plan->channels * K;
  plan->slice_rows =
      SplitParts(channel_rows, std::min(cut.slices, channel_rows));
  plan->slices = SplitParts(channel_rows, plan->slice_rows);
  plan->threads = positions * plan->slices;
  constexpr int kWarp = 32;
  plan->block_threads =
      SplitParts(std::max(plan->threads, plan->input_columns), kWarp) * kWarp;
  if (plan->block_threads > most_threads) return false;
  plan->filter_floats = plan->block_filters * taps * plan->channels;
  plan->input_floats = plan->channels * plan->plane() + beyond;
  plan->stage_floats = plan->slices == 1 ? 0 : plan->threads * sums;

  plan->scope = !HasKernel(K) || plan->channels < plan->C ? FewScope::kAnything
                : plan->C == 1 && plan->slices == 1 ? FewScope::kOneChannel
                                                    : FewScope::kAllChannels;
  plan->groups_x_magic = SplitMagic(plan->groups_x);
  plan->groups_y_magic = SplitMagic(plan->groups_y);
  plan->groups_m_magic = SplitMagic(plan->groups_m);
  plan->input_rows_magic = SplitMagic(plan->input_rows);
  plan->tile_rows_magic = SplitMagic(plan->tile_rows);
  plan->tile_columns_magic = SplitMagic(plan->tile_columns);
  SetFewImagesVectors(nullptr, nullptr, plan);
  return true;
}

void SetFewImagesVectors(const void* x, const void* y, FewImagesPlan* plan) {
  plan->copy_floats = Vector(plan->W, x);
  plan->store_floats = Vector(plan->W_out, y);
  plan->copy_columns = SplitParts(plan->input_columns, plan->copy_floats);
  plan->copy_columns_magic = SplitMagic(plan->copy_columns);
  plan->copy_rows = plan->block_threads / plan->copy_columns;
}

double FewImagesCost(const FewImagesPlan& plan, const FewImagesLimits& limits) {
  // Instructions of a warp: at its begin, for a copy of each lane, for a store,
  // for the sums' way through shared memory, and for each of a thread's terms.
  constexpr double kWarp = 124, kCopy = 39, kStore = 16;
  constexpr double kStage = 167, kTerm = 4.9;
  constexpr double kProducts = 1.1;  // with what goes beside
  // Cycles that a block waits: for memory, and for each of the same.
  constexpr double kMemoryTime = 1340, kCopyTime = 44, kRowTime = 105;
  constexpr double kStageTime = 1400, kTermTime = 39;
  constexpr double kPower = 1.41;
  // Of a multiprocessor and of a thread.
  constexpr int kRegisters = 65536, kRegistersOf[kFewMostRows] = {72, 96};
  constexpr int kSharedOfBlock = 1024;  // that each takes itself, in bytes

  const int K = plan.K;
  const int warps = plan.block_threads / 32;
  const double chunks = SplitParts(plan.C, plan.channels);
  const double copies =
      chunks *
      (SplitParts(int64_t{plan.channels} * plan.input_rows, plan.copy_rows) +
       int64_t{plan.groups_m} * plan.rounds *
           SplitParts(int64_t{plan.channels} * K * K,
                      plan.block_threads / kFewFilters));
  const double filter_rows = chunks * plan.slice_rows * plan.rounds;
  const int sums = plan.rows * kFewFilters * kFewColumns;
  // Products, and loads of taps and of inputs.
  const int vectors = SplitParts(K + kFewColumns - 1, kFewColumns);
  const double row = sums * K + K + plan.rows * vectors;
  double instructions = kWarp + kCopy * copies + kProducts * filter_rows * row;
  double time = kMemoryTime + kCopyTime * copies + filter_rows * row;
  if (plan.scope != FewScope::kOneChannel) time += kRowTime * filter_rows;
  if (plan.slices == 1) {
    instructions += kStore * plan.rounds * sums / plan.store_floats;
  } else {
    const double terms = plan.slices * SplitParts(sums, plan.slices);
    instructions += kStage + kTerm * terms;
    time += kStageTime + kTermTime * terms;
  }
  const int64_t blocks = SplitParts(plan.blocks(), limits.multiprocessors);
  const int64_t resident =
      std::min(kRegisters / (warps * 32 * kRegistersOf[plan.rows - 1]),
               limits.shared_per_multiprocessor /
                   (plan.shared_bytes() + kSharedOfBlock));
  const double waves = SplitParts(blocks, std::max<int64_t>(resident, 1));
  return std::pow(std::pow(blocks * warps * instructions / 4, kPower) +
                      std::pow(waves * time, kPower),
                  1 / kPower);
}

bool MakeFewImagesPlan(const Problem& problem, const FewImagesLimits& limits,
                       FewImagesPlan* plan) {
  // More blocks than that keep every multiprocessor busy without slices.
  const int64_t enough = 6 * int64_t{limits.multiprocessors};
  double best = 0;
  // Whether slices may help.
  const auto try_cut = [&](const FewImagesCut& cut, int least_threads) {
    FewImagesPlan tried;
    if (!SetFewImagesPlan(problem, cut, limits, &tried)) return false;
    if (tried.threads >= least_threads) {
      const double cost = FewImagesCost(tried, limits);
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
  const int most_m = std::min(SplitParts(problem.filters, kFewFilters), kMost);
  const int64_t filter_rows = problem.channels * problem.kernel_size;
  // The model knows nothing of smaller blocks; a small problem has no others.
  for (const int least_threads : {64, 1}) {
    for (int rows = 1; rows <= kFewMostRows; ++rows) {
      for (int y = 1; y <= most_y; ++y) {
        for (int m = 1; m <= most_m; m = Next(m)) {
          for (int rounds = 1; m * rounds < most_m + m; rounds = Next(rounds)) {
            if (!try_cut({rows, y, m, rounds, 1}, least_threads) ||
                rounds > 1) {
              continue;
            }
            for (int of_slice = 1; of_slice < filter_rows;
                 of_slice = Next(of_slice)) {
              const int64_t slices = SplitParts(filter_rows, of_slice);
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

bool SetLinePlan(const Problem& problem, const LineCut& cut,
                 const FewImagesLimits& limits, LinePlan* plan) {
  // What is larger does not fit; so nothing below overflows.
  constexpr int64_t kMost = kMostLineSize;
  const int64_t H_out = problem.output_height();
  const int64_t W_out = problem.output_width();
  if (problem.channels != 1 || !HasKernel(problem.kernel_size) ||
      problem.height > kMost || problem.width > kMost ||
      problem.filters > kMost) {
    return false;
  }
  const int K = problem.kernel_size;
  *plan = {};
  plan->H = problem.height, plan->W = problem.width;
  plan->M = problem.filters, plan->K = K;
  plan->H_out = H_out, plan->W_out = W_out;
  plan->groups_x = SplitParts(W_out, kFewColumns);
  plan->groups_y = cut.groups_y;
  plan->tiles_y = SplitParts(H_out, plan->groups_y);
  plan->input_rows = plan->groups_y + K - 1;
  plan->pitch = Pitch(plan->groups_x, plan->W);
  plan->positions = plan->groups_x * cut.groups_y;
  plan->groups = SplitParts(plan->M, kFewFilters);
  plan->threads = cut.threads;
  plan->block_items = cut.threads * cut.rounds;

  // The divisions' bounds.
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

  // A piece of n items begins within one of d, and so meets this many.
  const auto meets = [&](int64_t d) {
    return SplitParts(plan->block_items - 1, d) + 1;
  };
  plan->block_tiles =
      std::min(meets(tile_items), problem.batch * plan->tiles_y);
  plan->block_groups = std::min<int64_t>(meets(plan->positions), plan->groups);
  const int64_t floats = int64_t{plan->block_tiles} * plan->plane() +
                         int64_t{plan->block_groups} * kFewFilters * K * K;
  if (floats > 2 * kMost || plan->shared_bytes() > limits.shared_per_block) {
    return false;
  }
  plan->positions_magic = SplitMagic(plan->positions);
  plan->tile_items_magic = SplitMagic(tile_items);
  plan->groups_x_magic = SplitMagic(plan->groups_x);
  plan->tiles_y_magic = SplitMagic(plan->tiles_y);
  plan->input_rows_magic = SplitMagic(plan->input_rows);
  SetLineVectors(nullptr, nullptr, plan);
  return true;
}

void SetLineVectors(const void* x, const void* y, LinePlan* plan) {
  plan->copy_floats = Vector(plan->W, x);
  plan->store_floats = Vector(plan->W_out, y);
  plan->copy_columns = plan->W / plan->copy_floats;
  plan->copy_columns_magic = SplitMagic(plan->copy_columns);
}

double LineCost(const LinePlan& plan, const FewImagesLimits& limits) {
  // As in FewImagesCost.
  constexpr double kWarp = 238, kCopy = 29, kStore = 29, kProducts = 1.16;
  constexpr double kMemoryTime = 369, kCopyTime = 189;
  constexpr double kPower = 1.97;
  constexpr int kRegisters = 65536, kRegistersOfThread = 64;
  constexpr int kSharedOfBlock = 1024;
  constexpr int kWarpThreads = 32;

  const int K = plan.K;
  const int rounds = plan.block_items / plan.threads;
  constexpr int kSums = kFewFilters * kFewColumns;
  const int vectors = SplitParts(K + kFewColumns - 1, kFewColumns);
  const double products = K * (kSums * K + K + vectors);
  const double copies = SplitParts(int64_t{plan.block_tiles} * plan.input_rows *
                                       plan.copy_columns,
                                   plan.threads) +
                        SplitParts(plan.filter_floats(), plan.threads);
  const double instructions =
      kWarp + kCopy * copies +
      rounds * (kProducts * products + kStore * kSums / plan.store_floats);
  const double time = kMemoryTime + kCopyTime * copies + rounds * products;
  const int64_t blocks = SplitParts(plan.blocks(), limits.multiprocessors);
  const int64_t resident =
      std::min(kRegisters / (plan.threads * kRegistersOfThread),
               limits.shared_per_multiprocessor /
                   (plan.shared_bytes() + kSharedOfBlock));
  const double waves = SplitParts(blocks, std::max<int64_t>(resident, 1));
  // Of a quarter of a multiprocessor.
  const double warps = SplitParts(blocks * plan.threads / kWarpThreads, 4);
  return std::pow(
      std::pow(warps * instructions, kPower) + std::pow(waves * time, kPower),
      1 / kPower);
}

bool MakeLinePlan(const Problem& problem, const FewImagesLimits& limits,
                  LinePlan* plan) {
  // With less for a multiprocessor its begin, which takes longer than that of
  // FewImagesPlan's kernel, costs more than equal pieces gain.
  constexpr int64_t kLeastItems = 512;
  // Two blocks or more for a multiprocessor, which one barrier does not halt.
  constexpr int kThreadsStep = 64, kMostRounds = 32;
  if (problem.channels > 1 || problem.height > kMostLineSize) return false;
  double best = 0;
  for (int tiles = 1, last = 0; tiles <= problem.output_height();
       tiles = Next(tiles)) {
    const int rows = SplitParts(problem.output_height(), tiles);
    if (rows == last) continue;
    last = rows;
    for (int threads = kThreadsStep; threads <= kLineMostThreads;
         threads += kThreadsStep) {
      for (int rounds = 1; rounds <= kMostRounds; rounds = Next(rounds)) {
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

double EstimateFewImagesNs(const Problem& problem, const DeviceLimits& limits) {
  constexpr TimeModel kModel = {/*launch_us=*/3.65, /*per_cycle=*/1.19,
                                /*per_byte=*/1.24, /*weight_ns=*/0.017,
                                /*overlap=*/4};
  const FewImagesLimits device = {limits.multiprocessors,
                                  limits.shared_per_block,
                                  limits.shared_per_multiprocessor};
  LinePlan line;
  if (MakeLinePlan(problem, device, &line)) {
    return EstimateNs(kModel, LineCost(line, device), problem, limits);
  }
  FewImagesPlan plan;
  if (!MakeFewImagesPlan(problem, device, &plan)) return -1;
  return EstimateNs(kModel, FewImagesCost(plan, device), problem, limits);
}

}  // namespace convlab::cuda
