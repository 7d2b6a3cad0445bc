#include "kernels/convolution/cuda/wgmma_plan.h"

#include <algorithm>

#include "kernels/convolution/cuda/split_layout.h"

namespace convlab::cuda {
namespace {

constexpr int64_t RoundUp(int64_t a, int64_t b) { return SplitParts(a, b) * b; }

// Products that a sum may collect: each cuts off up to one bit of the sum, and
// the error of 42 was measured at 9e-7.
constexpr int kMostProducts = 42;

// The barriers and what else the kernel declares.
constexpr int kStaticSharedBytes = 1024;

}  // namespace

bool SetWgmmaPlan(const Problem& problem, int shape_index, int slab_blocks,
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
  plan->steps = SplitParts(int64_t{K} * plan->pixel_halves, 16);
  plan->passes = SplitParts(plan->steps, kMostProducts / K);
  plan->pass_steps = SplitParts(plan->steps, plan->passes);
  plan->groups = SplitParts(plan->M, int64_t{8} * shape.octets);
  // Each group of converters fills a buffer of its own. With slabs of their own
  // warpgroups read one each while another is filled, and a slab is a phase.
  if (shape.converter_groups > slab_buffers ||
      (shape.own_slabs &&
       (slab_buffers <= shape.consumers || phase_groups < plan->groups))) {
    return false;
  }
  // The kernel counts slabs in 32 bits, and a few beyond the last.
  constexpr int64_t kMostSlabs = (int64_t{1} << 31) - (1 << 20);
  if (problem.batch *
          SplitParts(plan->H_out, int64_t{slab_blocks} * shape.rows) >
      kMostSlabs) {
    return false;
  }
  const int filter_rows = K + 2 * (shape.vector_rows - 1);
  const int64_t group_bytes =
      int64_t{plan->steps} * filter_rows * shape.octets * 256;
  if (int64_t{2} * plan->groups * group_bytes > shared_limit) return false;
  plan->group_bytes = group_bytes;

  plan->slab_blocks = slab_blocks;
  plan->slabs = SplitParts(plan->H_out, int64_t{slab_blocks} * shape.rows);
  const int64_t pitch = int64_t{plan->W} * plan->pixel_halves / 2;
  // The last filter row's last step reads beyond the last row.
  const int64_t slab_words =
      RoundUp((int64_t{slab_blocks} * shape.rows + K - 1) * pitch +
                  int64_t{8} * plan->steps,
              32);
  plan->phase_groups = std::min(phase_groups, plan->groups);
  plan->merged = plan->slabs == 1 && plan->phase_groups == plan->groups;
  const int64_t rows =
      std::min<int64_t>(int64_t{slab_blocks} * shape.rows, plan->H_out);
  const int64_t phase_filters = std::min<int64_t>(
      int64_t{plan->phase_groups} * 8 * shape.octets, plan->M);
  // Each filter begins where its target does, modulo 32 words.
  const int64_t stage_pitch = plan->merged
                                  ? int64_t{plan->H_out} * plan->W_out
                                  : RoundUp(rows * plan->W_out + 31, 32);
  const int64_t stage_words = RoundUp(stage_pitch * phase_filters + 31, 32);
  const int64_t bytes =
      plan->filter_bytes() +
      4 * (int64_t{2} * slab_buffers * slab_words + stages * stage_words);
  int64_t bytes_with_raw = bytes;
  if (bytes + kStaticSharedBytes > shared_limit) return false;
  const int64_t image_words = int64_t{plan->C} * plan->H * plan->W;
  if (plan->slabs == 1 && image_words % 4 == 0) {
    const int64_t raw_words = RoundUp(image_words, 32);
    const int raw_buffers = 2 * shape.converter_groups;
    bytes_with_raw += int64_t{4} * raw_buffers * raw_words;
    if (bytes_with_raw + kStaticSharedBytes <= shared_limit) {
      plan->raw_words = raw_words, plan->raw_buffers = raw_buffers;
    } else {
      bytes_with_raw = bytes;
    }
  }
  // A slab's units fit into shared memory, so that SplitDivide is exact.
  plan->width_magic = SplitMagic(plan->W_out);
  plan->pitch = pitch, plan->slab_words = slab_words;
  plan->stage_pitch = stage_pitch, plan->stage_words = stage_words;
  plan->slab_buffers = slab_buffers, plan->stages = stages;
  plan->shared_bytes = bytes_with_raw;
  return true;
}

double WgmmaCost(const WgmmaPlan& plan, int multiprocessors) {
  // Cycles of one multiprocessor, as they were measured on an H200; what counts
  // is how they compare.
  constexpr double kBytesPerCycle = 16;  // of device memory
  constexpr double kTile = 1900;         // to begin and to end one
  constexpr double kWaiting = 1.5;       // of a tile for its products
  constexpr double kStaged = 40;         // a value of each thread's output
  constexpr double kSlab = 2200, kOwnSlab = 1300;  // of a warpgroup for one
  // Of converters, for what they load at once, and to hand a slab on.
  constexpr double kLoads = 2500, kLoadsAhead = 1000, kHandOn = 900;
  constexpr double kRead = 700, kBytesRead = 30;  // the copy engine a stage
  const WgmmaShape& shape = kWgmmaShapes[plan.shape];
  const int N = 8 * shape.octets * shape.vector_rows;
  const double rows = std::min(plan.slab_blocks * shape.rows, plan.H_out);
  const double blocks = std::min<double>(
      plan.slab_blocks,
      static_cast<double>(plan.H_out) / plan.slabs / shape.rows + 0.999);
  const double tiles =
      SplitParts(static_cast<int64_t>(blocks) * plan.W_out, kWgmmaUnits) *
      plan.groups;
  const int vectors = shape.rows / shape.vector_rows;
  const double products = 3.0 * plan.steps * vectors *
                          (plan.K + shape.vector_rows - 1) *
                          std::max(16.0, 0.58 * N);
  const double stage = kStaged * plan.passes * shape.rows * shape.octets * 4;
  const double tile = kWaiting * products + stage + kTile;
  // Warpgroups that find no tile in a slab need the next one.
  const double busy =
      std::min<double>(shape.consumers, tiles * (plan.slab_buffers - 1));
  const double tiles_of_one =
      shape.own_slabs ? tiles : std::max(1.0, tiles / shape.consumers);
  double multiply = shape.own_slabs
                        ? (tiles * tile + kOwnSlab) / shape.consumers
                        : tiles * tile / busy + kSlab;
  const double pixels = (rows + plan.K - 1) * plan.W;
  const double outputs = rows * plan.W_out * static_cast<double>(plan.M);
  // A stage is taken from its first tile until it was read.
  multiply = std::max(
      {multiply, tiles * products,
       ((tiles_of_one - 1) * tile + stage + kRead + 4 * outputs / kBytesRead) /
           plan.stages});
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

bool MakeWgmmaPlan(const Problem& problem, int multiprocessors,
                   int shared_limit, WgmmaPlan* plan) {
  double best = 0;
  bool found = false;
  for (int shape = 0; shape < kWgmmaShapeCount; ++shape) {
    if (kWgmmaShapes[shape].kernel_size != problem.kernel_size) continue;
    const int64_t blocks =
        SplitParts(problem.output_height(), kWgmmaShapes[shape].rows);
    const int groups =
        SplitParts(problem.filters, int64_t{8} * kWgmmaShapes[shape].octets);
    for (int64_t slab_blocks = blocks;;) {
      for (int phase_groups = groups;; phase_groups = (phase_groups + 1) / 2) {
        for (int buffers = 2; buffers <= kWgmmaMostBuffers; ++buffers) {
          for (int stages = 1; stages <= 2; ++stages) {
            WgmmaPlan tried;
            if (!SetWgmmaPlan(problem, shape, slab_blocks, phase_groups,
                              buffers, stages, shared_limit, &tried)) {
              continue;
            }
            // Of equal cost two stages, and few buffers.
            const double cost = WgmmaCost(tried, multiprocessors) *
                                (stages == 1 ? 1.01 : 1) *
                                (1 + 0.001 * buffers);
            if (!found || cost < best) {
              found = true, best = cost;
              *plan = tried;
            }
          }
        }
        if (phase_groups == 1) break;
      }
      if (slab_blocks == 1) break;
      // The least number of slabs that makes them smaller.
      slab_blocks = SplitParts(blocks, SplitParts(blocks, slab_blocks - 1));
    }
  }
  return found;
}

}  // namespace convlab::cuda
