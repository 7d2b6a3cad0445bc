#include "kernels/operation/cuda/general_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/math/rounding.h"
#include "kernels/operation/operation.h"

namespace convlab::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kFewestWarps = 3, kMostWarps = kGeneralMostThreads / kWarp;
constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;
constexpr int kFloat = sizeof(float);
constexpr int kTooManyBytes = 1 << 30;
// Of channels, filter rows or columns of a chunk: more do not fit in any case.
constexpr int kMostPart = 4096;
// Up to four shares of the taps.
constexpr int kMostSharesLog = 2;
// Ways to divide a row of outputs that are tried.
constexpr int kColumnCuts = 8;

// The size of the parts if `all` is cut into as few equal ones of at most
// `most` as possible.
int EvenPart(int64_t all, int64_t most) {
  const int64_t part = std::min(all, most);
  return static_cast<int>(CeilDivide(all, CeilDivide(all, part)));
}

// Sets the chunk's sizes and what follows from them.
void SetChunk(int channels, int rows, int columns, int stages,
              GeneralPlan* plan) {
  GeneralPlan& p = *plan;
  p.chunk_channels = channels, p.chunk_rows = rows, p.chunk_columns = columns;
  p.row_chunks = CeilDivide(p.KH, rows);
  p.column_chunks = CeilDivide(p.KW, columns);
  p.chunks = CeilDivide(p.C, channels) * p.row_chunks * p.column_chunks;
  p.stages = std::min(stages, p.chunks);
  p.in_rows = (p.rows - 1) * p.stride_y + rows;
  p.in_columns = (p.columns - 1) * p.stride_x + columns;
  // The first vector begins up to three columns before the tile.
  p.row_vectors = CeilDivide(p.in_columns + 3, 4);
  p.phases = p.vectors ? 1 : p.stride_x;
  p.phase_pitch = CeilDivide(p.in_columns, p.phases);
  p.row_pitch = p.vectors ? 4 * p.row_vectors : p.phase_pitch * p.phases;
  p.image_pitch = p.in_rows * p.row_pitch;
  const int64_t channel_pitch = int64_t{p.images} * p.image_pitch;
  p.channel_pitch = static_cast<int>(channel_pitch);
  // Keeps vectors aligned, and spreads the copies of eight taps over banks.
  p.weight_pitch = p.filters + 4;
  const int64_t inputs = RoundUp(channels * channel_pitch, 4);
  const int64_t taps = int64_t{channels} * rows * columns;
  const int64_t stage = inputs + RoundUp(taps * p.weight_pitch, 4);
  const int64_t shares =
      ((1 << p.shares_log) - 1) * int64_t{p.warps >> p.shares_log} * kWarp *
      kGeneralShapes[p.shape].filters * kGeneralShapes[p.shape].positions;
  const int64_t bytes =
      kFloat * std::max(RoundUp(taps, 4) + p.stages * stage, shares);
  p.shared_bytes = static_cast<int>(std::min<int64_t>(bytes, kTooManyBytes));
  p.input_floats = static_cast<int>(inputs);
  p.stage_floats = static_cast<int>(stage);
  p.chunk_taps = static_cast<int>(RoundUp(taps, 4));
}

// The largest chunk that fits; false if not even one tap does.
bool FitChunk(int shared_bytes, int parts, GeneralPlan* plan) {
  GeneralPlan& p = *plan;
  const auto fits = [&](int channels, int rows, int columns, int stages) {
    SetChunk(channels, rows, columns, stages, &p);
    return p.shared_bytes <= shared_bytes;
  };
  // The most that `takes` takes, up to the limit; 0 if it is nothing.
  const auto most = [](int limit, const auto& takes) {
    int low = 0, high = std::min(limit, kMostPart);
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      const bool taken = takes(middle);
      if (taken) low = middle;
      if (!taken) high = middle - 1;
    }
    return low;
  };
  int channels = 0, rows = 0;
  if (p.KH <= kMostPart && p.KW <= kMostPart) {
    if (parts == 1 && p.C <= kMostPart && fits(p.C, p.KH, p.KW, 1)) return true;
    if (parts > 1) return fits(CeilDivide(p.C, parts), p.KH, p.KW, 2);
    channels = most(p.C, [&](int n) { return fits(n, p.KH, p.KW, 2); });
  }
  if (channels > 0) return fits(EvenPart(p.C, channels), p.KH, p.KW, 2);
  if (p.KW <= kMostPart) {
    rows = most(p.KH, [&](int n) { return fits(1, n, p.KW, 2); });
  }
  if (rows > 0) return fits(1, EvenPart(p.KH, rows), p.KW, 2);
  const int columns = most(p.KW, [&](int n) { return fits(1, 1, n, 2); });
  return columns > 0 && fits(1, 1, EvenPart(p.KW, columns), 2);
}

// Blocks that a multiprocessor's registers allow at a time.
int ResidentByRegisters(const GeneralPlan& plan) {
  return kGeneralShapes[plan.shape].threads / (kWarp * plan.warps);
}

int Resident(const GeneralPlan& plan, const DeviceLimits& limits) {
  return std::max(
      1, std::min(ResidentByRegisters(plan), limits.shared_per_multiprocessor /
                                                 (plan.shared_bytes + 1024)));
}

// Whether inputs can be loaded in vectors: rows begin at multiples of four
// elements, and those of all chunks begin in the same column.
bool TakesVectors(const GeneralPlan& p) { return p.in.w == 1 && p.W % 4 == 0; }

// Of x and y.
double TensorBytes(const GeneralPlan& p) {
  return (p.halves_x ? 0.5 : 1) * kFloat * static_cast<double>(p.batch) *
         (double{1} * p.C * p.H * p.W + double{1} * p.M * p.OH * p.OW);
}

// Cycles of the multiprocessors' clock. The constants were fitted to the times
// of 4,403 plans for 44 problems on an H200 (docs/journal/general_plan.md), and
// those of copies and stores anew to 2,453 plans for 40, floats and halves.
double CostOf(const GeneralPlan& p, const DeviceLimits& limits) {
  const GeneralShape shape = kGeneralShapes[p.shape];
  // What a warp issues for a tap. Shared memory brings a number to all threads
  // of a warp in a cycle, for four schedulers, and more slowly where rows end.
  // Rows that lie there as in memory have neighbours apart by the stride, which
  // meet the same banks by twos or fours.
  const double issued = shape.filters * shape.positions +
                        3.67 * shape.positions + shape.filters / 4.0 + 1;
  const double conflicts = 1 + 0.235 * std::min(1.0, 31.0 / p.columns);
  const int step = p.vectors ? p.stride_x & -p.stride_x : 1;
  const double strided = 1 + 1.09 * (step - 1);
  const double brought =
      2.94 * (shape.positions * conflicts * strided + shape.filters);
  const int shares = 1 << p.shares_log;
  const double warps = p.warps / 4.0 / shares;  // of a scheduler, one share
  const double rows = double{1} * p.chunk_channels * p.images * p.in_rows;
  // Halves come by way of registers, and are stored one by one.
  constexpr double kHalvesVectors = 1.7, kHalvesSingly = 4.55;
  double row = p.vectors ? 1.68 + 0.282 * p.row_vectors
                         : 3.23 + 0.253 * RoundUp(p.in_columns, 8);
  if (p.halves_x) row *= p.vectors ? kHalvesVectors : kHalvesSingly;
  const double copied =
      p.chunks * (rows * row + 0.278 * p.chunk_taps * p.filters);
  // Each row of a tile ends in two sectors of memory that others write, too,
  // unless sectors and rows end together.
  constexpr int kSector = 32 / kFloat;
  const bool apart = p.OW % kSector != 0 || p.columns % kSector != 0;
  const double ends =
      apart ? 4.84 * p.filters * p.images * (p.columns == p.OW ? 1 : p.rows)
            : 0;
  const bool sevens = shape.positions == 7;
  const double store =
      p.halves_out ? (sevens ? 13.4 : 14.4) : (sevens ? 19.6 : 9.74);
  const double stored =
      warps * shape.filters * shape.positions * (store + 14.7 * (shares - 1)) +
      ends;
  const double block =
      warps * p.taps * std::max(issued, brought) + copied + stored;
  const double blocks = static_cast<double>(
      CeilDivide<int64_t>(p.blocks, limits.multiprocessors));
  const double resident = Resident(p, limits);
  const double at_a_time = std::min(blocks, resident);
  // Warps of blocks that are there at a time hide what each of them waits for.
  // The last blocks of a multiprocessor may be fewer.
  const double turns = std::ceil(blocks / resident);
  const double scheduler_warps = p.warps / 4.0;  // of a block
  const double waits = 0.59 / scheduler_warps * turns;
  // A scheduler has whole warps: some have one more than others.
  const auto uneven = [&](double warps_of_all) {
    return (std::ceil(warps_of_all) - warps_of_all) / scheduler_warps;
  };
  const double idle =
      0.312 * ((turns - 1) * uneven(resident * scheduler_warps) +
               uneven((blocks - (turns - 1) * resident) * scheduler_warps));
  constexpr double kBlockCycles = 3020;  // until the first inputs are there
  const double later_chunk = !p.vectors ? 0.821 : p.halves_x ? 2.23 : 0.425;
  const double later_chunks = later_chunk * (p.chunks - 1);
  // Few blocks do not compute while others store what the L2 cache does not
  // keep.
  constexpr double kCacheBytes = 45e6;
  const double missed = 0.829 / at_a_time *
                        std::max(0.0, TensorBytes(p) - kCacheBytes) /
                        limits.memory_gbs * limits.clock_ghz;
  return (blocks + waits + idle) * block +
         kBlockCycles * (1 + later_chunks) * turns + missed;
}

// Sets all that follows from the tile; false if it does not fit.
bool SetTile(int images, int rows, int columns, int parts,
             const DeviceLimits& limits, GeneralPlan* plan) {
  GeneralPlan& p = *plan;
  p.images = images, p.rows = rows, p.columns = columns;
  p.tiles_y = CeilDivide(p.OH, rows), p.tiles_x = CeilDivide(p.OW, columns);
  const double blocks =
      static_cast<double>(CeilDivide<int64_t>(p.batch, images)) * p.tiles_y *
      p.tiles_x * p.filter_groups;
  if (blocks > static_cast<double>(kMostBlocks)) return false;
  p.blocks = static_cast<int64_t>(blocks);
  // As many blocks at a time as registers allow, if that leaves a channel.
  const int resident = ResidentByRegisters(p);
  if (resident == 0) return false;
  if (!FitChunk(limits.shared_per_multiprocessor / resident - 1024, parts,
                plan) &&
      !FitChunk(limits.shared_per_block, parts, plan)) {
    return false;
  }
  return !p.vectors || p.column_chunks == 1;
}

// Takes so much shared memory that no multiprocessor has more blocks than when
// they are dealt out evenly. Otherwise blocks of the next kernel, which may
// come early, fill the places that are left, and where blocks end first the
// rest of them makes one more than elsewhere: with two of three places taken
// that is half of the time again. If all of the next kernel's blocks have a
// place beside this one's, nothing has to be done.
void LimitResidents(const DeviceLimits& limits, GeneralPlan* plan) {
  GeneralPlan& p = *plan;
  const int64_t needed = CeilDivide<int64_t>(p.blocks, limits.multiprocessors);
  const int resident = Resident(p, limits);
  if (needed >= resident || resident >= 2 * needed) return;
  constexpr int kUnit = 128;  // in which shared memory is given to blocks
  const int most =
      limits.shared_per_multiprocessor / static_cast<int>(needed) - 1024;
  p.shared_bytes = std::min(limits.shared_per_block, most & ~(kUnit - 1));
}

void SetDivisors(GeneralPlan* plan) {
  GeneralPlan& p = *plan;
  p.by_filter_groups = Divisor(p.filter_groups);
  p.by_tiles_x = Divisor(p.tiles_x), p.by_tiles_y = Divisor(p.tiles_y);
  p.by_row_chunks = Divisor(p.row_chunks);
  p.by_column_chunks = Divisor(p.column_chunks);
  p.by_tile = Divisor(p.rows * p.columns);
  p.by_columns = Divisor(p.columns);
  p.by_rows_of_channel = Divisor(p.images * p.in_rows);
  p.by_in_rows = Divisor(p.in_rows);
  p.by_row_vectors = Divisor(p.row_vectors);
  p.by_phases = Divisor(p.phases);
  p.by_chunk_filter = Divisor(p.chunk_rows * p.chunk_columns);
  p.by_chunk_columns = Divisor(p.chunk_columns);
}

GeneralPlan PlanOf(const Operation& o, bool copied) {
  GeneralPlan p = {};
  p.batch = o.batch;
  p.C = static_cast<int>(o.channels), p.H = static_cast<int>(o.height);
  p.W = static_cast<int>(o.width), p.M = static_cast<int>(o.filters);
  p.KH = static_cast<int>(o.kernel_height);
  p.KW = static_cast<int>(o.kernel_width);
  p.OH = static_cast<int>(o.sums_height());
  p.OW = static_cast<int>(o.sums_width());
  p.stride_y = static_cast<int>(o.stride_y);
  p.stride_x = static_cast<int>(o.stride_x);
  p.top = static_cast<int>(o.top), p.left = static_cast<int>(o.left);
  p.taps = static_cast<int>(o.taps());
  const bool pools = o.pool.size > 0;
  p.activation = pools ? Activation::kNone : o.activation;
  p.in = StepsOf(o.channels_last && !copied, o.channels, o.height, o.width);
  // Sums that are pooled later are plain.
  p.out = StepsOf(o.channels_last && !pools, o.filters, p.OH, p.OW);
  p.halves_x = o.halves && !copied, p.halves_in = o.halves;
  p.halves_out = o.halves && !pools;
  return p;
}

// Calls visit(plan) for the ways to divide the outputs into tiles of so many
// positions that fit.
template <typename Visit>
void ForTiles(int positions, const DeviceLimits& limits, GeneralPlan& p,
              const Visit& visit) {
  const int fewest = CeilDivide(p.OW, positions);
  for (int cut = fewest; cut < fewest + kColumnCuts && cut <= p.OW; ++cut) {
    const int columns = CeilDivide(p.OW, cut);
    const int rows = EvenPart(p.OH, positions / columns);
    int images = 1;
    // Images of a tile are found by 32-bit numbers (ImageOffset).
    if (columns == p.OW && rows == p.OH &&
        std::max(p.in.b, p.out.b) <= std::numeric_limits<int>::max()) {
      images = EvenPart(p.batch, positions / (rows * columns));
    }
    for (const bool vectors : {false, true}) {
      p.vectors = vectors;
      if (vectors && !TakesVectors(p)) continue;
      for (const int parts : {1, 2, 4, 8}) {
        if (parts > 1 && p.C < 2 * parts) break;
        if (SetTile(images, rows, columns, parts, limits, &p)) visit(p);
      }
    }
  }
}

// Calls visit(plan) for the plans that fit, without their divisors.
template <typename Visit>
void ForPlans(const Operation& operation, bool copied,
              const DeviceLimits& limits, const Visit& visit) {
  GeneralPlan p = PlanOf(operation, copied);
  for (p.shape = 0; p.shape < kGeneralShapeCount; ++p.shape) {
    const GeneralShape shape = kGeneralShapes[p.shape];
    for (p.filter_warps = 1; p.filter_warps <= kMostWarps; ++p.filter_warps) {
      if ((p.filter_warps - 1) * shape.filters >= p.M) break;
      p.filters = p.filter_warps * shape.filters;
      p.filter_groups = CeilDivide(p.M, p.filters);
      for (p.shares_log = 0; p.shares_log <= kMostSharesLog; ++p.shares_log) {
        const int tile_warps = p.filter_warps << p.shares_log;
        for (int parts = 1; parts * tile_warps <= kMostWarps; ++parts) {
          p.warps = parts * tile_warps;
          if (p.warps < kFewestWarps) continue;
          ForTiles(parts * kWarp * shape.positions, limits, p, visit);
        }
      }
    }
  }
}

}  // namespace

Steps StepsOf(bool channels_last, int64_t channels, int64_t height,
              int64_t width) {
  const int c = static_cast<int>(channels), w = static_cast<int>(width);
  if (channels_last) return {channels * height * width, 1, w * c, c};
  return {channels * height * width, static_cast<int>(height * width), w, 1};
}

bool MakeGeneralPlan(const Operation& operation, const DeviceLimits& limits,
                     GeneralPlan* plan, bool copied) {
  double least = std::numeric_limits<double>::max();
  ForPlans(operation, copied, limits, [&](const GeneralPlan& p) {
    const double cost = CostOf(p, limits);
    if (cost < least) least = cost, *plan = p;
  });
  if (least == std::numeric_limits<double>::max()) return false;
  LimitResidents(limits, plan);
  SetDivisors(plan);
  return true;
}

double EstimateGeneralNs(const GeneralPlan& p, const DeviceLimits& limits) {
  // Fitted with a warm L2 cache were 797 ns and so much of the memory's rate.
  // The estimates of variants are for a cold one, which costs small problems
  // two microseconds: with 2.2 the faster of this kernel and few_images is
  // chosen for nine of the ten problems where they are within 15 %.
  constexpr double kLaunchNs = 3020, kCached = 5.42;
  return kLaunchNs + CostOf(p, limits) / limits.clock_ghz +
         TensorBytes(p) / (kCached * limits.memory_gbs);
}

}  // namespace convlab::cuda
