#include "kernels/convolution/cuda/split/plan.h"

#include <algorithm>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {
namespace {

// Numbers of equal parts that are tried.
constexpr int kSplitCuts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 1 << 30};

}  // namespace

FilterLayout LayoutOf(const SplitPlan& plan) {
  const SplitShape& shape = kSplitShapes[plan.shape];
  FilterLayout layout;
  layout.M = plan.M, layout.C = plan.C, layout.K = plan.K;
  layout.plane_channels = plan.plane_channels, layout.shifts = plan.shifts;
  layout.chunks = plan.chunks;
  layout.chunks_per_plane = plan.chunks_per_plane;
  layout.row_pairs = shape.row_pairs, layout.tiles_n = shape.tiles_n;
  layout.rows = shape.row_pairs ? CeilDivide(plan.K, 2) : plan.K;
  layout.filter_groups = plan.filter_groups;
  layout.filter_vectors = plan.filter_vectors;
  return layout;
}

bool SetSplitProduct(const Problem& problem, int shape_index,
                     int plane_channels, int shifts, SplitPlan* plan) {
  const SplitShape& shape = kSplitShapes[shape_index];
  *plan = {};
  plan->shape = shape_index;
  plan->batch = problem.batch;
  plan->C = problem.channels, plan->H = problem.height;
  plan->W = problem.width, plan->M = problem.filters;
  plan->H_out = problem.output_height(), plan->W_out = problem.output_width();
  plan->inset = {0, 0, plan->H, plan->W};
  const int K = plan->K = problem.kernel_size;
  if (shape.kernel_size != kAnySize && shape.kernel_size != K) return false;
  // A unit begins at a word.
  if (shifts * plane_channels % 2 != 0) return false;
  plan->plane_channels = plane_channels, plan->shifts = shifts;
  while (1 << plan->shift_log < shifts) ++plan->shift_log;
  plan->planes = CeilDivide(plan->C, plane_channels);
  plan->chunks_per_plane =
      CeilDivide(int64_t{K + shifts - 1} * plane_channels, 8);
  if (shape.row_pairs) {
    if (plan->planes > 1 || plan->chunks_per_plane > 1) return false;
  } else {
    plan->chunks_per_plane = RoundUp(plan->chunks_per_plane, 2);
  }
  plan->chunks = plan->planes * plan->chunks_per_plane;
  plan->filter_groups =
      CeilDivide(int64_t{plan->M} * shifts, int64_t{8} * shape.tiles_n);
  const int64_t steps =
      shape.row_pairs ? CeilDivide(K, 2) : int64_t{plan->chunks} / 2 * K;
  const int64_t vectors = steps * shape.tiles_n * 32;
  if (vectors > 1 << 24) return false;
  plan->filter_vectors = vectors;
  return true;
}

int SplitItemProducts(const SplitPlan& plan) {
  const SplitShape& shape = kSplitShapes[plan.shape];
  return 3 * shape.rows / 2 * (plan.filter_vectors / 32);
}

bool SetSplitTiles(int bands, int tile_columns, SplitPlan* plan) {
  const SplitShape& shape = kSplitShapes[plan->shape];
  const int Cp = plan->plane_channels;
  plan->tile_rows = std::min(bands * shape.rows, plan->H_out);
  plan->tile_columns = std::min(tile_columns, plan->W_out);
  plan->tiles_y = CeilDivide(int64_t{plan->H_out}, plan->tile_rows);
  plan->tiles_x = CeilDivide(int64_t{plan->W_out}, plan->tile_columns);
  plan->input_rows = plan->tile_rows + plan->K - 1;
  plan->input_columns = plan->tile_columns + plan->K - 1;
  plan->bands = CeilDivide(plan->tile_rows, shape.rows);
  plan->units = CeilDivide(plan->tile_columns, plan->shifts);
  plan->units_magic = DivisionMagic(plan->units);
  plan->linear = plan->tiles_x == 1 && plan->W * Cp % 2 == 0;
  plan->copy_columns =
      Cp == 1 ? CeilDivide(plan->input_columns, 2) : plan->input_columns;
  plan->copy_columns_magic = DivisionMagic(plan->copy_columns);
  plan->pitch = CeilDivide(int64_t{plan->input_columns} * Cp, 2);
  // The last band's rows, with those that odd row pairs add; and what the last
  // unit of the last row reads beyond its end.
  const int64_t rows = int64_t{plan->bands} * shape.rows + plan->K - 1 +
                       (shape.row_pairs ? plan->K % 2 : 0);
  const int64_t last_unit =
      int64_t{plan->units - 1} * plan->shifts * Cp / 2 +
      int64_t{4} * (shape.row_pairs ? 1 : plan->chunks_per_plane);
  const int64_t words = plan->planes * rows * plan->pitch +
                        std::max<int64_t>(last_unit - plan->pitch, 0);
  if (words > 1 << 16) return false;
  plan->plane_words = rows * plan->pitch;
  plan->image_words = RoundUp(words, 4);
  return true;
}

void UseSplitInset(const Inset& inset, SplitPlan* plan) {
  plan->inset = inset;
  if (!plan->padded()) return;
  // A pixel of one channel is half a word, which may have a zero beside it.
  plan->linear = plan->tiles_x == 1 && plan->plane_channels > 1;
  if (plan->linear) {
    plan->copy_columns = inset.width;
    plan->copy_columns_magic = DivisionMagic(inset.width);
  }
}

void SetSplitPhases(int phase_bands, int phase_filter_groups, SplitPlan* plan) {
  const SplitShape& shape = kSplitShapes[plan->shape];
  plan->phase_bands = std::min(phase_bands, plan->bands);
  plan->phase_filter_groups =
      std::min(phase_filter_groups, plan->filter_groups);
  const int modulus = plan->shifts == 1 ? 16 : 32;
  const int remainder = plan->shifts == 1 ? 4 : 8;
  plan->stage_pitch = plan->phase_bands * shape.rows * plan->tile_columns;
  while (plan->stage_pitch % modulus != remainder) ++plan->stage_pitch;
  const int filters =
      plan->phase_filter_groups * shape.tiles_n * 8 / plan->shifts;
  plan->stage_floats = RoundUp(int64_t{plan->stage_pitch} * filters, 4);
}

int64_t SplitSharedBytes(const SplitPlan& plan, int teams) {
  const bool shared = kSplitShapes[plan.shape].filters_shared;
  return (shared ? plan.filter_bytes() : 0) +
         int64_t{4} * teams * plan.team_words();
}

SplitCost::SplitCost(const SplitPlan& plan, const DeviceLimits& limits)
    : plan_(plan), multiprocessors_(limits.multiprocessors) {
  const SplitShape& shape = kSplitShapes[plan.shape];
  // Words of 128 bytes for each row of each step: inputs, then filters.
  const double rows = plan.filter_vectors / (32.0 * shape.tiles_n);
  const double filters = (shape.filters_shared ? 2 : 8) * shape.tiles_n;
  const double loads = rows * 2 * (2 + filters);
  item_ =
      kProduct * SplitItemProducts(plan) + kLoad * loads + kPlane * plan.planes;
  if (shape.kernel_size == kAnySize) item_ *= kNotUnrolled;
  in_ = static_cast<double>(plan.planes) * plan.plane_channels *
        plan.input_rows * plan.input_columns;
  out_ = static_cast<double>(plan.M) * plan.tile_rows * plan.tile_columns;
  const bool whole_rows = plan.tiles_x == 1;
  memory_ = kMemory * (in_ + (whole_rows ? 1 : kPartLines) * out_);
}

double SplitCost::Total(int warps, int teams) const {
  const SplitPlan& plan = plan_;
  // How often a team's warps take an item, over a tile's phases.
  const int64_t full = plan.filter_groups / plan.phase_filter_groups;
  const int64_t rest = plan.filter_groups % plan.phase_filter_groups;
  int64_t rounds = 0, phases = 0;
  for (int band = 0; band < plan.bands; band += plan.phase_bands) {
    const int bands = std::min(plan.phase_bands, plan.bands - band);
    const int64_t octets = CeilDivide(int64_t{bands} * plan.units, 8);
    rounds += full * CeilDivide(octets * plan.phase_filter_groups, warps) +
              CeilDivide(octets * rest, warps);
    phases += full + (rest > 0);
  }
  const double copies = (plan.linear ? 1 : 2) * in_ + out_;
  const double busy = rounds * item_ * warps / 4 + kCopy * copies;
  const double alone = rounds * item_ * kLatency * std::max(1.0, warps / 4.0) +
                       kLoadTime * (1 + in_ / (kInFlight * warps)) +
                       kPhaseTime * (phases + out_ / (kInFlight * warps));
  const double shared = teams * std::max(busy, memory_);
  const double time = std::max(shared, alone) + std::min(shared, alone) / 4;
  return time * CeilDivide(plan.tiles(), int64_t{multiprocessors_} * teams);
}

namespace {

// Finds the cheapest plan by SplitCost; false if nothing fits. The search tries
// all shapes, channels of a plane and shifts, except those that pad the product
// by more than `most_padding` times the least; tiles from the whole image down
// to eight units of one band; phases, and warps of a team; each with
// as many teams as fit.
bool SearchSplitPlan(const Problem& problem, const DeviceLimits& limits,
                     double most_padding, SplitPlan* best) {
  const auto for_products = [&](auto visit) {
    for (int shape = 0; shape < kSplitShapeCount; ++shape) {
      for (const int plane_channels : {1, 2, 4, 6, 8}) {
        for (const int shifts : {1, 2, 4, 8}) {
          SplitPlan plan;
          if (SetSplitProduct(problem, shape, plane_channels, shifts, &plan)) {
            visit(plan);
          }
        }
      }
    }
  };
  // Products for a row of outputs of all filters.
  const auto products = [](const SplitPlan& plan) {
    return static_cast<double>(SplitItemProducts(plan)) * plan.filter_groups /
           (kSplitShapes[plan.shape].rows * plan.shifts);
  };
  double least_products = 0;
  for_products([&](const SplitPlan& plan) {
    const double p = products(plan);
    if (least_products == 0 || p < least_products) least_products = p;
  });

  double best_cost = 0;
  const auto try_phases = [&](int64_t free_bytes, SplitPlan* plan) {
    const int most_warps = kSplitShapes[plan->shape].threads / 32;
    const SplitCost cost(*plan, limits);
    for (int bands = 1; bands <= std::min(plan->bands, 4); ++bands) {
      for (int filters = 1; filters <= std::min(plan->filter_groups, 4);
           ++filters) {
        SetSplitPhases(bands, filters, plan);
        const int fit = std::min<int64_t>(
            kSplitMostTeams, free_bytes / (4 * plan->team_words()));
        if (fit == 0) break;
        for (int warps = 1; warps <= kSplitMostWarps; ++warps) {
          const int teams = std::min(fit, most_warps / warps);
          const double total = cost.Total(warps, teams);
          if (best_cost == 0 || total < best_cost) {
            best_cost = total;
            *best = *plan;
            best->warps = warps, best->teams = teams;
          }
        }
      }
    }
  };
  for_products([&](SplitPlan plan) {
    if (products(plan) > most_padding * least_products) return;
    const SplitShape& shape = kSplitShapes[plan.shape];
    const int64_t free_bytes = limits.shared_per_block -
                               (shape.filters_shared ? plan.filter_bytes() : 0);
    if (free_bytes <= 0) return;
    const int64_t all_bands = CeilDivide(plan.H_out, shape.rows);
    const int64_t all_units = CeilDivide(plan.W_out, plan.shifts);
    int bands_before = 0;
    for (const int cut_y : kSplitCuts) {
      const int bands = CeilDivide(all_bands, cut_y);
      if (bands == bands_before) continue;
      bands_before = bands;
      int units_before = 0;
      for (const int cut_x : kSplitCuts) {
        const int units = std::max<int64_t>(CeilDivide(all_units, cut_x), 8);
        if (units == units_before) continue;
        units_before = units;
        if (SetSplitTiles(bands, units * plan.shifts, &plan)) {
          try_phases(free_bytes, &plan);
        }
      }
    }
  });
  if (best_cost == 0) return false;
  best->shared_bytes = SplitSharedBytes(*best, best->teams);
  return true;
}

}  // namespace

bool MakeSplitPlan(const Problem& problem, const DeviceLimits& limits,
                   SplitPlan* plan) {
  if (problem.kernel_size > kSplitMostKernelSize) return false;
  // Plans that pad little may need more shared memory than there is.
  constexpr double kLittle = 1.25, kAny = 1e9;
  return SearchSplitPlan(problem, limits, kLittle, plan) ||
         SearchSplitPlan(problem, limits, kAny, plan);
}

double EstimateSplitNs(const Problem& problem, const DeviceLimits& limits) {
  constexpr TimeModel kModel = {/*launch_us=*/10.1, /*per_cycle=*/1.455,
                                /*per_byte=*/1.12, /*weight_ns=*/0};
  // The arrangement of the filters, fitted to the same times when every block
  // of threads looked at all weights. Now it looks at those of its own filter.
  constexpr double kWeightNs = 1.7;
  SplitPlan plan;
  if (!MakeSplitPlan(problem, limits, &plan)) return -1;
  const double cycles = SplitCost(plan, limits).Total(plan.warps, plan.teams);
  const int64_t weights = problem.kernel_elements() / problem.filters;
  const double arrangement_ns = kWeightNs * static_cast<double>(weights);
  return EstimateNs(kModel, cycles, problem, limits) + arrangement_ns;
}

}  // namespace convlab::cuda
