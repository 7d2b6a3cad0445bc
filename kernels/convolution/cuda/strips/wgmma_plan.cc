#include "kernels/convolution/cuda/strips/wgmma_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {
namespace {

// At least as much as the static shared memory of the kernel.
constexpr int kStaticSharedBytes = 1024;

}  // namespace

bool SetWgmmaStripsPlan(const Problem& problem, int shape_index, int strip_rows,
                        int parts, const DeviceLimits& limits,
                        WgmmaStripsPlan* plan, const Epilogue& epilogue) {
  const WgmmaStripsShape& shape = kWgmmaStripsShapes[shape_index];
  const int K = problem.kernel_size;
  const int slices = shape.Slices(K);
  const int pool = epilogue.empty() ? 1 : epilogue.pool.size;
  if (slices == 0 || problem.channels > WgmmaStripsMostChannels(K) ||
      (!shape.wide && shape.one_slice != (problem.channels == 1)) ||
      shape.rows % pool != 0) {
    return false;
  }
  // Larger problems do not fit, and with these nothing below overflows.
  constexpr int64_t kMost = 1 << 16;
  if (problem.width > kMost || problem.filters > kMost) return false;
  *plan = {};
  plan->shape = shape_index;
  plan->epilogue = epilogue;
  plan->batch = problem.batch;
  plan->slices = slices;
  plan->C = problem.channels, plan->H = problem.height;
  plan->W = problem.width, plan->M = problem.filters, plan->K = K;
  plan->H_out = problem.output_height(), plan->W_out = problem.output_width();
  plan->inset = {0, 0, plan->H, plan->W};
  plan->strip_rows = std::min<int64_t>(CeilDivide(strip_rows, shape.rows),
                                       CeilDivide(plan->H_out, shape.rows)) *
                     shape.rows;
  plan->strips = CeilDivide(plan->H_out, plan->strip_rows);
  plan->units = CeilDivide(plan->W_out, shape.shifts);
  plan->units_magic = DivisionMagic(plan->units);
  plan->filter_groups = CeilDivide(plan->M, shape.filters());
  plan->group_bytes = plan->C * plan->slices * shape.steps * shape.octets * 256;
  plan->exponent_words = RoundUp(plan->filter_groups * shape.filters(), 32);
  plan->part_groups =
      CeilDivide(plan->filter_groups, std::min(parts, plan->filter_groups));
  plan->parts = CeilDivide(plan->filter_groups, plan->part_groups);
  plan->pitch = CeilDivide(plan->W, 2);
  plan->pitch_magic = DivisionMagic(plan->pitch);
  // The last unit of the last row reads beyond the row's end.
  const int64_t beyond =
      int64_t{plan->units - 1} * shape.shifts / 2 + shape.halves() / 2;
  const int64_t plane = int64_t{plan->strip_rows + K - 1} * plan->pitch;
  const int64_t image = (plan->C - 1) * plane +
                        int64_t{plan->strip_rows - shape.rows +
                                plan->slices * shape.slice_rows()} *
                            plan->pitch +
                        std::max<int64_t>(beyond - plan->pitch, 0);
  // A filter begins up to seven floats later. The filters of an octet are so
  // far apart that the lanes of a store meet different banks.
  int64_t stage = int64_t{plan->strip_rows / pool} * (plan->W_out / pool) + 7;
  const int remainder = shape.shifts == 4 ? 16 : 8;
  stage += (remainder - stage % 32 + 32) % 32;
  // A plane begins up to three floats later.
  const int64_t raw_plane =
      CeilDivide(int64_t{plan->strip_rows + K - 1} * plan->W + 3, 4) * 4;
  const int64_t raw = plan->C * raw_plane;
  const int64_t words = stage * shape.filters() + raw + 2 * image;
  const int64_t filter_bytes =
      int64_t{2} * plan->filter_groups * plan->group_bytes +
      int64_t{4} * plan->exponent_words;
  if (words > kMost ||
      filter_bytes + kStaticSharedBytes > limits.shared_per_block) {
    return false;
  }
  plan->plane_words = plane;
  plan->slab_words = RoundUp(image, 16);
  plan->raw_plane = raw_plane;
  plan->raw_words = RoundUp(raw, 32);
  plan->stage_pitch = stage;
  plan->stage_words = CeilDivide(stage * shape.filters(), 32) * 32;
  const int64_t fit =
      (limits.shared_per_block - kStaticSharedBytes - filter_bytes) / 4 /
      plan->warpgroup_words();
  if (fit < kWgmmaStripsLeastWarpgroups) return false;
  plan->warpgroups =
      std::min<int64_t>(std::min<int64_t>(fit, shape.warpgroups),
                        CeilDivide(plan->items(), limits.multiprocessors));
  plan->workers = std::min<int64_t>(
      plan->items(), int64_t{limits.multiprocessors} * plan->warpgroups);
  // If the last strip is smaller, no worker gets it every time.
  const int of_image = plan->strips * plan->parts;
  if (plan->H_out % plan->strip_rows != 0 && plan->workers < plan->items()) {
    while (std::gcd(plan->workers, of_image) != 1) --plan->workers;
  }
  plan->shared_bytes =
      filter_bytes + int64_t{4} * plan->warpgroups * plan->warpgroup_words();
  return true;
}

double WgmmaStripsCost(const WgmmaStripsPlan& plan,
                       const DeviceLimits& limits) {
  // Cycles of shared memory, where the products read the filters: for 128
  // bytes, and for an item's other accesses.
  constexpr double kWavefront = 1.3, kItem = 460;
  // Cycles of latency of one warpgroup.
  constexpr double kItemTime = 290, kWordTime = 280, kGroupTime = 2400;
  constexpr double kTileTime = 20, kSliceTime = 260, kProductTime = 1.15;
  // A multiprocessor's share of memory, 4.2 TB/s for all, and how far few
  // warpgroups stay below it.
  constexpr double kBytesPerCycle = 17.5, kFew = 0.4;
  constexpr double kPower = 4.2;
  // In times of an item: until the first stores begin, and while some workers
  // have ended before others.
  constexpr double kBeginAndEnd = 1.5;

  const WgmmaStripsShape& shape = kWgmmaStripsShapes[plan.shape];
  const auto tiles_of = [&](int rows) {
    return CeilDivide(CeilDivide(rows, shape.rows) * plan.units,
                      kWgmmaStripsUnits);
  };
  // Averages over an image's strips.
  const int last_rows = plan.H_out - (plan.strips - 1) * plan.strip_rows;
  const double tiles =
      ((plan.strips - 1.0) * tiles_of(plan.strip_rows) + tiles_of(last_rows)) /
      plan.strips * plan.part_groups;
  const double words = plan.C * (plan.H_out + plan.strips * (plan.K - 1.0)) *
                       plan.pitch / 128 / plan.strips;
  const int steps = plan.C * plan.slices * shape.steps;
  const int products = 3 * steps;
  const double stored = plan.epilogue.empty() ? 1 : 0.25;  // of the outputs
  // For a tile: filters, inputs and outputs.
  const double wavefronts =
      2 * products * shape.octets + 32 * steps + 16 * stored * shape.octets;
  const double each = static_cast<double>(plan.items()) / plan.workers;
  const double shared =
      each * plan.warpgroups * (kWavefront * tiles * wavefronts + kItem);
  const double item_time =
      kItemTime + kGroupTime * plan.part_groups + kWordTime * words +
      tiles * (kTileTime + kSliceTime * (plan.C * plan.slices - 1) +
               kProductTime * products * std::max(16, 4 * shape.octets));
  const double bytes = 4.0 * plan.batch *
                       (double{1} * plan.C * plan.H * plan.W +
                        stored * plan.M * plan.H_out * plan.W_out);
  const double memory = bytes / kBytesPerCycle / limits.multiprocessors *
                        (1 + kFew / plan.warpgroups);
  return std::pow(std::pow(shared, kPower) +
                      std::pow(std::ceil(each) * item_time, kPower) +
                      std::pow(memory, kPower),
                  1 / kPower) +
         kBeginAndEnd * item_time;
}

bool MakeWgmmaStripsPlan(const Problem& problem, const DeviceLimits& limits,
                         WgmmaStripsPlan* plan, const Epilogue& epilogue) {
  constexpr int kMostRows = 80, kMostParts = 64;
  double best = 0;
  for (int shape = 0; shape < kWgmmaStripsShapeCount; ++shape) {
    const int rows = kWgmmaStripsShapes[shape].rows;
    for (int strip_rows = rows; strip_rows <= kMostRows; strip_rows += rows) {
      for (int parts = 1; parts <= kMostParts; ++parts) {
        WgmmaStripsPlan tried;
        if (!SetWgmmaStripsPlan(problem, shape, strip_rows, parts, limits,
                                &tried, epilogue) ||
            tried.strip_rows != strip_rows || tried.parts != parts) {
          continue;
        }
        const double cost = WgmmaStripsCost(tried, limits);
        if (best == 0 || cost < best) {
          best = cost;
          *plan = tried;
        }
      }
    }
  }
  return best > 0;
}

double EstimateWgmmaStripsNs(const Problem& problem,
                             const DeviceLimits& limits) {
  // Fitted to 523 problems on an H200 (TimeModel). Memory is part of the plan's
  // own cost.
  constexpr TimeModel kModel = {/*launch_us=*/2.94, /*per_cycle=*/1.16,
                                /*per_byte=*/0, /*weight_ns=*/1.22};
  // A vector of filters that a thread copies to shared memory at first, when
  // nothing hides its latency.
  constexpr double kFilterVectorCycles = 178;
  WgmmaStripsPlan plan;
  if (!MakeWgmmaStripsPlan(problem, limits, &plan)) return -1;
  const double vectors = plan.filter_bytes() / 16.0 / (128 * plan.warpgroups);
  return EstimateNs(
      kModel, WgmmaStripsCost(plan, limits) + kFilterVectorCycles * vectors,
      problem, limits);
}

}  // namespace convlab::cuda
