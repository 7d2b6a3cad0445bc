#include "kernels/convolution/cuda/strips/mma_plan.h"

#include <algorithm>
#include <cmath>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {

FilterLayout LayoutOf(const StripsPlan& plan) {
  const StripsShape& shape = kStripsShapes[plan.shape];
  FilterLayout layout;
  layout.M = plan.M, layout.C = plan.C, layout.K = plan.K;
  layout.plane_channels = 1, layout.shifts = shape.shifts;
  layout.chunks_per_plane = shape.halves() / 8;
  layout.chunks = plan.C * layout.chunks_per_plane;
  layout.row_pairs = !shape.wide, layout.rows = shape.steps;
  layout.tiles_n = shape.tiles_n;
  layout.filter_groups = plan.filter_groups;
  layout.filter_vectors = plan.filter_vectors;
  return layout;
}

bool SetStripsPlan(const Problem& problem, int shape_index, int bands,
                   int parts, const DeviceLimits& limits, StripsPlan* plan,
                   const Epilogue& epilogue) {
  const StripsShape& shape = kStripsShapes[shape_index];
  const int K = problem.kernel_size;
  if (problem.channels > kStripsMostSteps / shape.steps ||
      K < kStripsLeastKernelSize || K > kStripsMostKernelSize ||
      !shape.Takes(problem.channels, K) ||
      (!epilogue.empty() && !shape.pools())) {
    return false;
  }
  // Larger problems do not fit, and with these nothing below overflows.
  constexpr int64_t kMost = 1 << 16;
  if (problem.width > kMost || problem.filters > kMost) return false;
  *plan = {};
  plan->shape = shape_index;
  plan->epilogue = epilogue;
  plan->batch = problem.batch;
  plan->C = problem.channels, plan->H = problem.height;
  plan->W = problem.width;
  plan->M = problem.filters, plan->K = K;
  plan->H_out = problem.output_height(), plan->W_out = problem.output_width();
  plan->bands = std::min<int64_t>(bands, CeilDivide(plan->H_out, shape.rows));
  plan->strips = CeilDivide(plan->H_out, plan->strip_rows());
  plan->units = CeilDivide(plan->W_out, shape.shifts);
  plan->units_magic = DivisionMagic(plan->units);
  plan->filter_groups = CeilDivide(plan->M, shape.filters());
  plan->filter_vectors = plan->C * shape.steps * shape.tiles_n * 32;
  plan->part_groups =
      CeilDivide(plan->filter_groups, std::min(parts, plan->filter_groups));
  plan->parts = CeilDivide(plan->filter_groups, plan->part_groups);
  plan->pitch = CeilDivide(plan->W, 2);
  plan->pitch_magic = DivisionMagic(plan->pitch);
  const int64_t plane = int64_t{plan->strip_rows() + K - 1} * plan->pitch;
  // The last unit of the last row reads beyond the row's end.
  const int64_t beyond =
      int64_t{plan->units - 1} * shape.shifts / 2 + shape.halves() / 2;
  const int64_t image =
      (plan->C - 1) * plane +
      int64_t{plan->strip_rows() - shape.rows + shape.input_rows()} *
          plan->pitch +
      std::max<int64_t>(beyond - plan->pitch, 0);
  // A filter begins up to seven floats later. The filters of a tile are so far
  // apart that the lanes of a store meet different banks.
  const int pool = epilogue.empty() ? 1 : epilogue.pool.size;
  int64_t stage = int64_t{plan->strip_rows() / pool} * (plan->W_out / pool) + 7;
  const int remainder = shape.shifts == 4 ? 16 : 8;
  stage += (remainder - stage % 32 + 32) % 32;
  const int64_t words = stage * shape.filters() + 2 * image;
  if (words > kMost) return false;
  plan->plane_words = plane;
  plan->plane_magic = DoubledMagic(plane);
  plan->slab_words = RoundUp(image, 4);
  UseStripsInset({0, 0, plan->H, plan->W}, plan);
  plan->stage_pitch = stage;
  plan->stage_words = stage * shape.filters();
  const int64_t fit = (limits.shared_per_block / 4 - plan->block_words() -
                       plan->filter_words()) /
                      plan->warp_words();
  if (fit < kStripsLeastWarps) return false;
  plan->warps =
      std::min<int64_t>(std::min<int64_t>(fit, kStripsMostWarps),
                        CeilDivide(plan->items(), limits.multiprocessors));
  plan->block_items = CeilDivide(
      plan->items(), std::min<int64_t>(limits.multiprocessors,
                                       CeilDivide(plan->items(), plan->warps)));
  plan->thread_blocks = CeilDivide(plan->items(), plan->block_items);
  plan->shared_bytes =
      4 * (plan->filter_words() + plan->warps * plan->warp_words() +
           plan->block_words());
  return true;
}

void UseStripsInset(const Inset& inset, StripsPlan* plan) {
  plan->inset = inset;
  plan->inset_pitch = CeilDivide(inset.width, 2);
  plan->inset_plane_words =
      (plan->strip_rows() + plan->K - 1) * plan->inset_pitch;
  plan->inset_pitch_magic = DoubledMagic(plan->inset_pitch);
  plan->inset_plane_magic = DoubledMagic(plan->inset_plane_words);
}

namespace {

struct StripsCosts {
  // Cycles in which a scheduler issues: for an octet's products, rows of
  // operands, vectors of filters, rows of outputs and all else; for a word that
  // each lane splits; for an item; for a group of filters.
  double product, row, filter, store, octet, words, item, group;
  // Cycles of latency of one warp.
  double item_time, group_time, octet_time, channel_time, product_time;
  double words_time;
  // For words that were not loaded ahead: latency, and issue slots.
  double late_time, late;
  // A multiprocessor's share of memory, 4.3 TB/s for all, and cycles for a
  // piece that does not begin and end with a line.
  double bytes_per_cycle, piece;
  double power;        // of the norm by which the three add up
  double fewer_warps;  // exponent: fewer warps hide less
};
constexpr StripsCosts kOneChannelCosts = {
    /*product=*/4.6,     /*row=*/1,
    /*filter=*/0,
    /*store=*/14,        /*octet=*/5,
    /*words=*/4,
    /*item=*/920,        /*group=*/10,
    /*item_time=*/300,
    /*group_time=*/1360, /*octet_time=*/220,
    /*channel_time=*/0,
    /*product_time=*/16, /*words_time=*/4,
    /*late_time=*/450,
    /*late=*/100,        /*bytes_per_cycle=*/18,
    /*piece=*/10,
    /*power=*/3.5,       /*fewer_warps=*/0,
};
constexpr StripsCosts kCosts = {
    /*product=*/4.2,
    /*row=*/5.5,
    /*filter=*/4.8,
    /*store=*/12,
    /*octet=*/35,
    /*words=*/76,
    /*item=*/170,
    /*group=*/150,
    /*item_time=*/250,
    /*group_time=*/60,
    /*octet_time=*/70,
    /*channel_time=*/10,
    /*product_time=*/12.8,
    /*words_time=*/3,
    /*late_time=*/0,
    /*late=*/0,
    /*bytes_per_cycle=*/18,
    /*piece=*/24,
    /*power=*/2.1,
    /*fewer_warps=*/0.45,
};

}  // namespace

double StripsCost(const StripsPlan& plan, const DeviceLimits& limits) {
  const StripsShape& shape = kStripsShapes[plan.shape];
  const StripsCosts& costs = shape.one_channel ? kOneChannelCosts : kCosts;
  const double stored = plan.epilogue.empty() ? 1 : 0.25;  // of the outputs
  // Averages over an image's strips.
  const int last_rows = plan.H_out - (plan.strips - 1) * plan.strip_rows();
  const int last_bands = CeilDivide(last_rows, shape.rows);
  const double octets =
      ((plan.strips - 1) * CeilDivide(int64_t{plan.bands} * plan.units, 8) +
       CeilDivide(int64_t{last_bands} * plan.units, 8)) *
      1.0 / plan.strips * plan.part_groups;
  const double words = plan.C * (plan.H_out + plan.strips * (plan.K - 1.0)) *
                       plan.pitch / 32 / plan.strips;
  const double late = std::max(0.0, std::ceil((plan.strip_rows() + plan.K - 1) *
                                              plan.C * plan.pitch / 32.0) -
                                        shape.loads);
  const double issue =
      octets *
          (plan.C * (costs.product * shape.products() +
                     costs.row * shape.input_rows() * shape.halves() / 8 +
                     costs.filter * shape.filter_vectors()) +
           costs.store * stored * shape.rows * shape.tiles_n + costs.octet) +
      costs.group * plan.part_groups + costs.words * words + costs.item;
  const double latency =
      octets * (costs.octet_time +
                plan.C * (costs.channel_time +
                          costs.product_time * shape.products())) +
      costs.group_time * plan.part_groups + costs.item_time +
      costs.words_time * words + costs.late_time * late;
  const double rounds =
      CeilDivide(plan.items(), int64_t{limits.multiprocessors} * plan.warps);
  const double area = stored * plan.H_out * plan.W_out;
  const double bytes =
      4.0 * plan.batch * (double{1} * plan.C * plan.H * plan.W + plan.M * area);
  constexpr int kLine = 32;  // floats
  const int64_t piece = int64_t{plan.strip_rows()} * plan.W_out;
  const bool whole_lines = (plan.strips == 1 || piece % kLine == 0) &&
                           int64_t{plan.H_out} * plan.W_out % kLine == 0;
  const double pieces =
      whole_lines ? 0 : 1.0 * plan.batch * plan.M * plan.strips;
  const double memory = (bytes / costs.bytes_per_cycle + costs.piece * pieces) /
                        limits.multiprocessors;
  const double sum =
      std::pow(std::pow(rounds * plan.warps * issue / 4, costs.power) +
                   std::pow(rounds * latency, costs.power) +
                   std::pow(memory, costs.power),
               1 / costs.power);
  return sum *
             std::pow(1.0 * kStripsMostWarps / plan.warps, costs.fewer_warps) +
         rounds * plan.warps * costs.late * late;
}

bool MakeStripsPlan(const Problem& problem, const DeviceLimits& limits,
                    StripsPlan* plan, const Epilogue& epilogue) {
  constexpr int kMostBands = 8, kMostParts = 64;
  double best = 0;
  for (int shape = 0; shape < kStripsShapeCount; ++shape) {
    for (int bands = 1; bands <= kMostBands; ++bands) {
      for (int parts = 1; parts <= kMostParts; ++parts) {
        StripsPlan tried;
        if (!SetStripsPlan(problem, shape, bands, parts, limits, &tried,
                           epilogue) ||
            tried.bands != bands || tried.parts != parts) {
          continue;
        }
        const double cost = StripsCost(tried, limits);
        if (best == 0 || cost < best) {
          best = cost;
          *plan = tried;
        }
      }
    }
  }
  return best > 0;
}

double EstimateStripsNs(const Problem& problem, const DeviceLimits& limits) {
  // Fitted to 634 problems on an H200 (TimeModel). Memory is part of the plan's
  // own cost.
  constexpr TimeModel kModel = {/*launch_us=*/8.04, /*per_cycle=*/1.12,
                                /*per_byte=*/0, /*weight_ns=*/1.88};
  // A vector of filters that a thread copies to shared memory at first, when
  // nothing hides its latency.
  constexpr double kFilterVectorCycles = 269;
  StripsPlan plan;
  if (!MakeStripsPlan(problem, limits, &plan)) return -1;
  const double vectors = plan.filter_words() / 4.0 / (32 * plan.warps);
  return EstimateNs(kModel,
                    StripsCost(plan, limits) + kFilterVectorCycles * vectors,
                    problem, limits);
}

}  // namespace convlab::cuda
