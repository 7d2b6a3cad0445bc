#include "kernels/convolution/cuda/strips/mma_plan.h"

#include <algorithm>
#include <cmath>

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
  layout.max_apart = FilterMaxApart(int64_t{plan.M} * plan.C * plan.K * plan.K);
  return layout;
}

bool SetStripsPlan(const Problem& problem, int shape_index, int blocks,
                   int parts, int multiprocessors, int shared_limit,
                   StripsPlan* plan) {
  const StripsShape& shape = kStripsShapes[shape_index];
  const int K = problem.kernel_size;
  if (problem.channels > kStripsMostSteps / shape.steps ||
      K < kStripsLeastKernelSize || K > kStripsMostKernelSize ||
      !shape.Takes(problem.channels, K)) {
    return false;
  }
  // What is larger does not fit; so nothing below overflows.
  constexpr int64_t kMost = 1 << 16;
  if (problem.width > kMost || problem.filters > kMost) return false;
  *plan = {};
  plan->shape = shape_index;
  plan->batch = problem.batch;
  plan->C = problem.channels, plan->H = problem.height;
  plan->W = problem.width;
  plan->M = problem.filters, plan->K = K;
  plan->H_out = problem.output_height(), plan->W_out = problem.output_width();
  plan->blocks = std::min<int64_t>(blocks, SplitParts(plan->H_out, shape.rows));
  plan->strips = SplitParts(plan->H_out, plan->strip_rows());
  plan->units = SplitParts(plan->W_out, shape.shifts);
  plan->units_magic = SplitMagic(plan->units);
  plan->filter_groups = SplitParts(plan->M, shape.filters());
  plan->filter_vectors = plan->C * shape.steps * shape.tiles_n * 32;
  plan->part_groups =
      SplitParts(plan->filter_groups, std::min(parts, plan->filter_groups));
  plan->parts = SplitParts(plan->filter_groups, plan->part_groups);
  plan->pitch = SplitParts(plan->W, 2);
  plan->pitch_magic = SplitMagic(plan->pitch);
  const int64_t plane = int64_t{plan->strip_rows() + K - 1} * plan->pitch;
  // What the last unit of the last row reads beyond its end.
  const int64_t beyond =
      int64_t{plan->units - 1} * shape.shifts / 2 + shape.halves() / 2;
  const int64_t image =
      (plan->C - 1) * plane +
      int64_t{plan->strip_rows() - shape.rows + shape.input_rows()} *
          plan->pitch +
      std::max<int64_t>(beyond - plan->pitch, 0);
  // A filter begins up to seven floats on. Filters of a tile are so far apart
  // that the lanes of a store meet different banks.
  int64_t stage = int64_t{plan->strip_rows()} * plan->W_out + 7;
  const int remainder = shape.shifts == 4 ? 16 : 8;
  stage += (remainder - stage % 32 + 32) % 32;
  const int64_t words = stage * shape.filters() + 2 * image;
  if (words > kMost) return false;
  plan->plane_words = plane;
  plan->plane_magic = SplitMagic(plane);
  plan->image_words = SplitParts(image, 4) * 4;
  plan->stage_pitch = stage;
  plan->stage_words = stage * shape.filters();
  const int64_t fit = (shared_limit / 4 - 1 - int64_t{plan->filter_words()}) /
                      plan->warp_words();
  if (fit < kStripsLeastWarps) return false;
  plan->warps = std::min<int64_t>(std::min<int64_t>(fit, kStripsMostWarps),
                                  SplitParts(plan->items(), multiprocessors));
  plan->block_items = SplitParts(
      plan->items(), std::min<int64_t>(multiprocessors,
                                       SplitParts(plan->items(), plan->warps)));
  plan->thread_blocks = SplitParts(plan->items(), plan->block_items);
  plan->shared_bytes =
      4 * (plan->filter_words() + plan->warps * plan->warp_words() + 1);
  return true;
}

namespace {

struct StripsCosts {
  // Issued by a quarter of a multiprocessor, in cycles: for products, for rows
  // of operands, for vectors of filters and for rows of outputs of an octet,
  // for 32 lanes' words that are split.
  double product, row, filter, store, octet, words, item, group;
  // Of one warp.
  double item_time, group_time, octet_time, channel_time, product_time;
  double words_time;
  // Words that were not loaded ahead cost time and issue slots.
  double late_time, late;
  // Of a multiprocessor's share of memory, 4.3 TB/s, and of pieces that do not
  // begin and end with a line.
  double bytes_per_cycle, piece;
  double power;        // with which the three add up
  double fewer_warps;  // what they hide less: a power of their number
};
constexpr StripsCosts kOneChannelCosts = {
    // Issued.
    4.6, 1, 0, 14, 5, 4, 920, 10,
    // Of one warp.
    300, 1360, 220, 0, 16, 4,
    // Late words, memory, their sum.
    450, 100, 18, 10, 3.5, 0};
constexpr StripsCosts kCosts = {4.2, 5.5, 4.8, 12, 35,  76,   170,
                                150, 250, 60,  70, 10,  12.8, 3,
                                0,   0,   18,  24, 2.1, 0.45};

}  // namespace

double StripsCost(const StripsPlan& plan, int multiprocessors) {
  const StripsShape& shape = kStripsShapes[plan.shape];
  const StripsCosts& costs = shape.one_channel ? kOneChannelCosts : kCosts;
  // On average of an image's strips.
  const int last_rows = plan.H_out - (plan.strips - 1) * plan.strip_rows();
  const int last_blocks = SplitParts(last_rows, shape.rows);
  const double octets =
      ((plan.strips - 1) * SplitParts(int64_t{plan.blocks} * plan.units, 8) +
       SplitParts(int64_t{last_blocks} * plan.units, 8)) *
      1.0 / plan.strips * plan.part_groups;
  const double words = plan.C * (plan.H_out + plan.strips * (plan.K - 1.0)) *
                       plan.pitch / 32 / plan.strips;
  const double late = std::max(0.0, std::ceil((plan.strip_rows() + plan.K - 1) *
                                              plan.C * plan.pitch / 32.0) -
                                        shape.loads);
  const double issue =
      octets * (plan.C * (costs.product * shape.products() +
                          costs.row * shape.input_rows() * shape.halves() / 8 +
                          costs.filter * shape.filter_vectors()) +
                costs.store * shape.rows * shape.tiles_n + costs.octet) +
      costs.group * plan.part_groups + costs.words * words + costs.item;
  const double latency =
      octets * (costs.octet_time +
                plan.C * (costs.channel_time +
                          costs.product_time * shape.products())) +
      costs.group_time * plan.part_groups + costs.item_time +
      costs.words_time * words + costs.late_time * late;
  const double rounds =
      SplitParts(plan.items(), int64_t{multiprocessors} * plan.warps);
  const double area = double{1} * plan.H_out * plan.W_out;
  const double bytes =
      4.0 * plan.batch * (double{1} * plan.C * plan.H * plan.W + plan.M * area);
  constexpr int kLine = 32;  // floats
  const int64_t piece = int64_t{plan.strip_rows()} * plan.W_out;
  const bool whole_lines = (plan.strips == 1 || piece % kLine == 0) &&
                           int64_t{plan.H_out} * plan.W_out % kLine == 0;
  const double pieces =
      whole_lines ? 0 : 1.0 * plan.batch * plan.M * plan.strips;
  const double memory =
      (bytes / costs.bytes_per_cycle + costs.piece * pieces) / multiprocessors;
  const double sum =
      std::pow(std::pow(rounds * plan.warps * issue / 4, costs.power) +
                   std::pow(rounds * latency, costs.power) +
                   std::pow(memory, costs.power),
               1 / costs.power);
  return sum *
             std::pow(1.0 * kStripsMostWarps / plan.warps, costs.fewer_warps) +
         rounds * plan.warps * costs.late * late;
}

bool MakeStripsPlan(const Problem& problem, int multiprocessors,
                    int shared_limit, StripsPlan* plan) {
  constexpr int kMostBlocks = 8, kMostParts = 64;
  double best = 0;
  for (int shape = 0; shape < kStripsShapeCount; ++shape) {
    for (int blocks = 1; blocks <= kMostBlocks; ++blocks) {
      for (int parts = 1; parts <= kMostParts; ++parts) {
        StripsPlan tried;
        if (!SetStripsPlan(problem, shape, blocks, parts, multiprocessors,
                           shared_limit, &tried) ||
            tried.blocks != blocks || tried.parts != parts) {
          continue;
        }
        const double cost = StripsCost(tried, multiprocessors);
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
  constexpr TimeModel kModel = {/*launch_us=*/8.66, /*per_cycle=*/1.11,
                                /*per_byte=*/0.002, /*weight_ns=*/3.66,
                                /*overlap=*/7};
  StripsPlan plan;
  if (!MakeStripsPlan(problem, limits.multiprocessors, limits.shared_per_block,
                      &plan)) {
    return -1;
  }
  return EstimateNs(kModel, StripsCost(plan, limits.multiprocessors), problem,
                    limits);
}

}  // namespace convlab::cuda
