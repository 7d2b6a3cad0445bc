#include "kernels/convolution/cuda/wgmma/plan.h"

#include <algorithm>

#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {
namespace {

constexpr int64_t RoundUp(int64_t a, int64_t b) { return SplitParts(a, b) * b; }

// Products that a sum may collect where operands have two parts: each cuts off
// up to one bit of the sum, and the error of 42 was measured at 9e-7. The class
// of one part allows a thousand times that, which filters that fit into shared
// memory do not reach.
constexpr int kMostProducts = 42;

// The barriers and what else the kernel declares.
constexpr int kStaticSharedBytes = 1024;

}  // namespace

bool SetWgmmaPlan(const Problem& problem, int shape_index, int slab_parts,
                  int phase_groups, int slab_buffers, int stages,
                  int shared_limit, WgmmaPlan* plan) {
  const WgmmaShape& shape = kWgmmaShapes[shape_index];
  *plan = {};
  plan->shape = shape_index;
  plan->batch = problem.batch;
  plan->C = problem.channels, plan->H = problem.height;
  plan->W = problem.width, plan->M = problem.filters;
  plan->H_out = problem.output_height(), plan->W_out = problem.output_width();
  const int K = plan->K = problem.kernel_size;
  plan->pixel_halves = RoundUp(plan->C, 2);
  if (shape.kernel_size != K || (plan->pixel_halves % 4 == 0) != shape.wide) {
    return false;
  }
  plan->steps =
      SplitParts(int64_t{K + shape.shifts - 1} * plan->pixel_halves, 16);
  plan->passes = shape.parts == 1
                     ? 1
                     : SplitParts(plan->steps,
                                  kMostProducts / (shape.one_sum ? 3 * K : K));
  plan->pass_steps = SplitParts(plan->steps, plan->passes);
  plan->groups = SplitParts(plan->M, int64_t{8} * shape.octets);
  // With slabs of a warpgroup's own, or without stages, a slab is a phase.
  if (!shape.Takes(slab_buffers, stages) ||
      ((shape.own_slabs || shape.direct) && phase_groups < plan->groups)) {
    return false;
  }
  plan->block_units = SplitParts(plan->W_out, shape.shifts);
  const int64_t units = SplitParts(plan->H_out, shape.rows) * plan->block_units;
  const int64_t slab_units = std::min<int64_t>(
      units,
      int64_t{slab_parts} * (shape.direct ? kWgmmaUnits : plan->block_units));
  const int64_t slabs = SplitParts(units, slab_units);
  // The kernel counts an image's units and all slabs in 32 bits, and a few
  // beyond the last.
  constexpr int64_t kMost = (int64_t{1} << 31) - (1 << 20);
  if (units > kMost || problem.batch > kMost / slabs) return false;
  plan->units = units, plan->slab_units = slab_units, plan->slabs = slabs;
  // A slab that begins within a block reaches a part of one block more. After
  // as many slabs as a block has units, they begin where others did.
  const int64_t beginnings = shape.direct ? plan->block_units : 1;
  int64_t slab_blocks = 0;
  for (int64_t slab = 0; slab < std::min(slabs, beginnings); ++slab) {
    const int64_t first = slab * slab_units;
    const int64_t last = std::min(first + slab_units, units) - 1;
    slab_blocks = std::max(
        slab_blocks, last / plan->block_units - first / plan->block_units + 1);
  }
  const int filter_rows = K + 2 * (shape.vector_rows - 1);
  const int64_t group_bytes =
      int64_t{plan->steps} * filter_rows * shape.octets * shape.shifts * 256;
  if (int64_t{shape.parts} * plan->groups * group_bytes > shared_limit) {
    return false;
  }
  plan->group_bytes = group_bytes;

  plan->slab_blocks = slab_blocks;
  const int64_t pitch = int64_t{plan->W} * plan->pixel_halves / 2;
  // The last filter row's last step reads beyond the last row.
  const int64_t slab_words = RoundUp(
      (slab_blocks * shape.rows + K - 1) * pitch + int64_t{8} * plan->steps,
      32);
  plan->phase_groups = std::min(phase_groups, plan->groups);
  plan->merged = plan->slabs == 1 && plan->phase_groups == plan->groups;
  const int64_t rows = std::min<int64_t>(slab_blocks * shape.rows, plan->H_out);
  const int64_t phase_filters = std::min<int64_t>(
      int64_t{plan->phase_groups} * 8 * shape.octets, plan->M);
  // Each filter begins where its target does, modulo 32 words.
  const int64_t stage_pitch = plan->merged
                                  ? int64_t{plan->H_out} * plan->W_out
                                  : RoundUp(rows * plan->W_out + 31, 32);
  const int64_t stage_words = RoundUp(stage_pitch * phase_filters + 31, 32);
  const int64_t bytes = plan->filter_bytes(shape.parts) +
                        4 * (int64_t{shape.parts} * slab_buffers * slab_words +
                             stages * stage_words);
  if (bytes + kStaticSharedBytes > shared_limit) return false;
  // Of each group of converters, one that is read and one that comes, or one.
  const int64_t image_words = int64_t{plan->C} * plan->H * plan->W;
  int64_t raw_bytes = 0;
  if (plan->slabs == 1 && image_words % 4 == 0) {
    const int64_t raw_words = RoundUp(image_words, 32);
    for (const int each : {2, 1}) {
      const int raw_buffers = each * shape.converter_groups;
      raw_bytes = int64_t{4} * raw_buffers * raw_words;
      if (bytes + raw_bytes + kStaticSharedBytes <= shared_limit) {
        plan->raw_words = raw_words, plan->raw_buffers = raw_buffers;
        break;
      }
      raw_bytes = 0;
    }
  }
  // A slab's units fit into shared memory, so that SplitDivide is exact.
  plan->units_magic = SplitMagic(plan->block_units);
  plan->units_divisor = Divisor(plan->block_units);
  plan->slabs_divisor = Divisor(plan->slabs);
  plan->pitch = pitch, plan->slab_words = slab_words;
  plan->stage_pitch = stage_pitch, plan->stage_words = stage_words;
  plan->slab_buffers = slab_buffers, plan->stages = stages;
  plan->shared_bytes = bytes + raw_bytes;
  return true;
}

double WgmmaCost(const WgmmaPlan& plan, int multiprocessors) {
  // Cycles of one multiprocessor, as they were measured on an H200; what counts
  // is how they compare.
  constexpr double kBytesPerCycle = 16;  // of device memory
  constexpr double kTile = 1900;         // to begin and to end one
  // Of a tile for its products and those of the other warpgroups.
  constexpr double kWaiting = 0.95;
  // A value of each thread's output, to a stage or to device memory.
  constexpr double kStaged = 20, kStored = 45;
  constexpr double kSlab = 1000, kOwnSlab = 1300;  // of a warpgroup for one
  // Of converters, for what they load at once, and to hand a slab on.
  constexpr double kLoads = 2500, kLoadsAhead = 1000, kHandOn = 900;
  constexpr double kConverted = 0.75;  // of the buffers, slabs to multiply
  constexpr double kRead = 700, kBytesRead = 30;  // the copy engine a stage
  const WgmmaShape& shape = kWgmmaShapes[plan.shape];
  const int N = 8 * shape.octets * shape.vector_rows * shape.shifts;
  const double rows = std::min(plan.slab_blocks * shape.rows, plan.H_out);
  const double blocks = std::min<double>(
      plan.slab_blocks,
      static_cast<double>(plan.H_out) / plan.slabs / shape.rows + 0.999);
  const double tiles =
      SplitParts(shape.direct ? SplitParts(plan.units, plan.slabs)
                              : static_cast<int64_t>(blocks) * plan.block_units,
                 kWgmmaUnits) *
      plan.groups;
  const int vectors = shape.rows / shape.vector_rows;
  const double products = 1.0 * shape.products() * plan.steps * vectors *
                          (plan.K + shape.vector_rows - 1) *
                          std::max(13.0, 0.5 * N);
  const double stage = (shape.direct ? kStored : kStaged) * plan.passes *
                       shape.rows * shape.octets * shape.shifts * 4;
  const double tile = kWaiting * shape.consumers * products + stage + kTile;
  // Warpgroups that find no tile in a slab need the next one, if it is there.
  const double busy =
      std::min<double>(shape.consumers, kConverted * tiles * plan.slab_buffers);
  const double tiles_of_one =
      shape.own_slabs ? tiles : std::max(1.0, tiles / shape.consumers);
  double multiply = shape.own_slabs
                        ? (tiles * tile + kOwnSlab) / shape.consumers
                        : tiles * tile / busy + kSlab;
  const double pixels = (rows + plan.K - 1) * plan.W;
  const double output_rows =
      shape.direct ? static_cast<double>(plan.H_out) / plan.slabs : rows;
  const double outputs = output_rows * plan.W_out * plan.M;
  multiply = std::max(multiply, tiles * products);
  // A stage is taken from its first tile until it was read.
  if (!shape.direct) {
    multiply = std::max(multiply, ((tiles_of_one - 1) * tile + stage + kRead +
                                   4 * outputs / kBytesRead) /
                                      plan.stages);
  }
  const int warps = shape.converter_warps() / shape.converter_groups;
  const auto rounds_of = [&](int units) {
    return WgmmaRounds(plan.C, static_cast<int>(pixels), shape.values(), units,
                       32 * warps);
  };
  const double convert =
      std::min(rounds_of(1), rounds_of(WgmmaManyUnits(shape.values()))) *
          (plan.raw_words > 0 ? kLoadsAhead : kLoads) +
      kHandOn;
  // Without a buffer to spare converters wait until a slab was multiplied.
  const double convert_period =
      (convert + (plan.slab_buffers > shape.converter_groups ? 0 : multiply)) /
      shape.converter_groups;
  const double slab =
      std::max({multiply, convert_period,
                4 * (pixels * plan.C + outputs) / kBytesPerCycle});
  const double waves =
      static_cast<double>(SplitParts(plan.slab_count(), multiprocessors));
  return (waves + 0.5) * slab;
}

bool MakeWgmmaPlan(const Problem& problem, int parts, int multiprocessors,
                   int shared_limit, WgmmaPlan* plan) {
  double best = 0;
  bool found = false;
  for (int shape = 0; shape < kWgmmaShapeCount; ++shape) {
    const WgmmaShape& s = kWgmmaShapes[shape];
    if (s.kernel_size != problem.kernel_size || s.parts != parts) continue;
    const int64_t blocks = SplitParts(problem.output_height(), s.rows);
    // Of an image, those of which a slab is made.
    const int64_t image_parts =
        s.direct
            ? SplitParts(blocks * SplitParts(problem.output_width(), s.shifts),
                         kWgmmaUnits)
            : blocks;
    const int groups = SplitParts(problem.filters, int64_t{8} * s.octets);
    for (int64_t slab_parts = image_parts;;) {
      for (int phase_groups = groups;; phase_groups = (phase_groups + 1) / 2) {
        for (int buffers = 2; buffers <= s.most_buffers(); ++buffers) {
          for (int stages = s.direct ? 0 : 1; stages <= (s.direct ? 0 : 2);
               ++stages) {
            WgmmaPlan tried;
            if (!SetWgmmaPlan(problem, shape, slab_parts, phase_groups, buffers,
                              stages, shared_limit, &tried)) {
              continue;
            }
            // Of equal cost two stages; and few buffers, but as many as there
            // are for slabs of their own, while images still come ahead.
            const bool many = s.own_slabs && tried.raw_buffers > 0;
            const double cost = WgmmaCost(tried, multiprocessors) *
                                (stages == 1 ? 1.01 : 1) *
                                (1 + (many ? -0.002 : 0.001) * buffers);
            if (!found || cost < best) {
              found = true, best = cost;
              *plan = tried;
            }
          }
        }
        if (phase_groups == 1) break;
      }
      if (slab_parts == 1) break;
      // The least number of slabs that makes them smaller.
      slab_parts =
          SplitParts(image_parts, SplitParts(image_parts, slab_parts - 1));
    }
  }
  return found;
}

double EstimateWgmmaNs(const Problem& problem, int parts,
                       const DeviceLimits& limits) {
  constexpr TimeModel kModel = {/*launch_us=*/6.79, /*per_cycle=*/0.903,
                                /*per_byte=*/0.292, /*weight_ns=*/0.824};
  WgmmaPlan plan;
  if (!MakeWgmmaPlan(problem, parts, limits.multiprocessors,
                     limits.shared_per_block, &plan)) {
    return -1;
  }
  return EstimateNs(kModel, WgmmaCost(plan, limits.multiprocessors), problem,
                    limits);
}

}  // namespace convlab::cuda
