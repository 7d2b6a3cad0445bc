#include "kernels/convolution/cuda/wgmma/plan.h"

#include <algorithm>
#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/output_tiles.h"
#include "kernels/convolution/cuda/lib/time_model.h"

namespace convlab::cuda {
namespace {

// The barriers and what else the kernel declares.
constexpr int kStaticSharedBytes = 1024;

// What MakeWgmmaPlan chooses.
struct Cut {
  int shape;           // of kWgmmaShapes
  int64_t slab_parts;  // bands of a slab; with WgmmaShape::direct, its tiles
  int phase_groups;
  int slab_buffers, stages;
};

// Of an image, the parts of which slabs are made (Cut::slab_parts).
int64_t ImageParts(const Problem& problem, const WgmmaShape& shape) {
  const int64_t bands = CeilDivide(problem.output_height(), shape.rows);
  if (shape.pool > 0) return 1;
  if (!shape.direct) return bands;
  return CeilDivide(bands * CeilDivide(problem.output_width(), shape.shifts),
                    kWgmmaUnits);
}

// Sets the problem's sizes and the steps, passes and groups of the products.
// False if the shape does not take the problem, or the cut.
bool SetProducts(const Problem& problem, const Cut& cut, WgmmaPlan* plan) {
  const WgmmaShape& shape = kWgmmaShapes[cut.shape];
  plan->shape = cut.shape;
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
      CeilDivide(int64_t{K + shape.shifts - 1} * plan->pixel_halves, 16);
  plan->groups = CeilDivide(plan->M, 8 * shape.octets);
  plan->phase_groups = std::min(cut.phase_groups, plan->groups);
  plan->slab_buffers = cut.slab_buffers, plan->stages = cut.stages;
  // With slabs of a warpgroup's own, or without stages, a slab is a phase.
  return shape.Takes(cut.slab_buffers, cut.stages) &&
         (cut.phase_groups >= plan->groups ||
          (!shape.own_slabs && !shape.direct));
}

// Sets the units and slabs of an image. False if there are too many.
bool SetSlabs(const Cut& cut, const Epilogue& epilogue, WgmmaPlan* plan) {
  const WgmmaShape& shape = kWgmmaShapes[cut.shape];
  const bool pools = shape.pool > 0;
  const int64_t image_bands =
      pools ? CeilDivide(epilogue.pool.Output(plan->H_out),
                         shape.rows / shape.pool)
            : CeilDivide(plan->H_out, shape.rows);
  plan->band_units = pools ? epilogue.pool.Output(plan->W_out)
                           : CeilDivide(plan->W_out, shape.shifts);
  const int64_t units = image_bands * plan->band_units;
  int64_t slab_units = units;
  if (!pools) {
    slab_units =
        std::min(units, cut.slab_parts *
                            (shape.direct ? kWgmmaUnits : plan->band_units));
  }
  const int64_t slabs = CeilDivide(units, slab_units);
  // The kernel counts an image's units and all slabs in 32 bits, and a few
  // beyond the last.
  constexpr int64_t kMost = (int64_t{1} << 31) - (1 << 20);
  if (units > kMost || plan->batch > kMost / slabs) return false;
  if (pools && cut.slab_buffers <= WgmmaSlabsOfTile(units)) return false;
  plan->units = units, plan->slab_units = slab_units, plan->slabs = slabs;
  // A slab that begins within a band reaches a part of one band more. After
  // as many slabs as a band has units, they begin where others did.
  const int64_t beginnings = shape.direct && !pools ? plan->band_units : 1;
  for (int64_t slab = 0; slab < std::min(slabs, beginnings); ++slab) {
    const int64_t first = slab * slab_units;
    const int64_t last = std::min(first + slab_units, units) - 1;
    const int bands = last / plan->band_units - first / plan->band_units + 1;
    plan->slab_bands = std::max(plan->slab_bands, bands);
  }
  // A slab's units fit into shared memory, so that Divide is exact.
  plan->units_magic = DivisionMagic(plan->band_units);
  plan->units_divisor = Divisor(plan->band_units);
  plan->pooled_area = pools ? epilogue.pool.Output(plan->H_out) *
                                  epilogue.pool.Output(plan->W_out)
                            : 0;
  plan->slab_magic = DivisionMagic(plan->slab_units);
  plan->slabs_divisor = Divisor(plan->slabs);
  return true;
}

// Sets where x's images stand in the problem's.
void SetInset(const Inset& inset, WgmmaPlan* plan) {
  plan->inset = inset;
  plan->gap_bytes = (plan->W - inset.width) * plan->pixel_halves * 2;
  // A slab's pixels fit into shared memory, so that Divide is exact.
  plan->columns_magic = DivisionMagic(inset.width);
}

// Divides shared memory among filters, slabs, stages and images. False if they
// do not fit.
bool SetMemory(int64_t shared_limit, WgmmaPlan* plan) {
  const WgmmaShape& shape = kWgmmaShapes[plan->shape];
  const int K = plan->K;
  const int filter_rows = K + 2 * (shape.vector_rows - 1);
  const int64_t group_bytes =
      int64_t{plan->steps} * filter_rows * shape.octets * shape.shifts * 256;
  if (int64_t{shape.parts} * plan->groups * group_bytes > shared_limit)
    return false;
  plan->group_bytes = group_bytes;
  plan->exponent_words = RoundUp(plan->groups * 8 * shape.octets, 32);
  plan->bias_words = shape.pool > 0 ? plan->exponent_words : 0;

  const int64_t pitch = int64_t{plan->W} * plan->pixel_halves / 2;
  const int64_t slab_rows = int64_t{plan->slab_bands} * shape.rows;
  // The last filter row's last step reads beyond the last row, and the step
  // after it is loaded in vain (TileProduct).
  const int64_t slab_words =
      RoundUp((slab_rows + K - 1) * pitch + int64_t{8} * (plan->steps + 1), 32);
  plan->merged = plan->slabs == 1 && plan->phase_groups == plan->groups;
  const int64_t rows = std::min<int64_t>(slab_rows, plan->H_out);
  const int64_t phase_filters = std::min<int64_t>(
      int64_t{plan->phase_groups} * 8 * shape.octets, plan->M);
  // Each filter begins where its target does, modulo 32 words.
  const int64_t stage_pitch = plan->merged
                                  ? int64_t{plan->H_out} * plan->W_out
                                  : RoundUp(rows * plan->W_out + 31, 32);
  const int64_t stage_words = RoundUp(stage_pitch * phase_filters + 31, 32);
  int64_t bytes = kStaticSharedBytes + plan->filter_bytes(shape.parts) +
                  4 * (plan->exponent_words + plan->bias_words +
                       int64_t{shape.parts} * plan->slab_buffers * slab_words +
                       plan->stages * stage_words);
  if (bytes > shared_limit) return false;
  plan->pitch = pitch, plan->slab_words = slab_words;
  plan->stage_pitch = stage_pitch, plan->stage_words = stage_words;

  // Images that are brought ahead: for each group of converters one that is
  // read and one that comes, or one.
  const int64_t image_words =
      int64_t{plan->C} * plan->inset.height * plan->inset.width;
  const int64_t raw_words = RoundUp(image_words, 32);
  for (const int each : {2, 1}) {
    const int raw_buffers = each * shape.converter_groups;
    const int64_t raw_bytes = int64_t{4} * raw_buffers * raw_words;
    if (raw_buffers <= shape.most_barriers() && plan->slabs == 1 &&
        image_words % 4 == 0 && bytes + raw_bytes <= shared_limit) {
      plan->raw_words = raw_words, plan->raw_buffers = raw_buffers;
      bytes += raw_bytes;
      break;
    }
  }
  plan->shared_bytes = bytes - kStaticSharedBytes;
  return true;
}

// Makes the plan of a cut; false if there is none.
bool MakePlan(const Problem& problem, const Epilogue& epilogue,
              const Inset& inset, const Cut& cut, const DeviceLimits& limits,
              WgmmaPlan* plan) {
  *plan = {};
  if (!SetProducts(problem, cut, plan) || !SetSlabs(cut, epilogue, plan)) {
    return false;
  }
  SetInset(inset, plan);
  return SetMemory(limits.shared_per_block, plan);
}

// Estimated cycles of the whole convolution.
double Cost(const WgmmaPlan& plan, const DeviceLimits& limits) {
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
  const double rows = std::min(plan.slab_bands * shape.rows, plan.H_out);
  const double bands = std::min<double>(
      plan.slab_bands,
      static_cast<double>(plan.H_out) / plan.slabs / shape.rows + 0.999);
  const double tiles =
      plan.groups *
      (shape.pool > 0
           ? static_cast<double>(plan.units) / kWgmmaColumns
           : CeilDivide(shape.direct
                            ? CeilDivide(plan.units, plan.slabs)
                            : static_cast<int64_t>(bands) * plan.band_units,
                        kWgmmaUnits));
  const int vectors = shape.rows / shape.vector_rows;
  const double products = 1.0 * shape.products() * plan.steps * vectors *
                          (plan.K + shape.vector_rows - 1) *
                          std::max(13.0, 0.5 * N);
  // Of a window one output.
  const int stored =
      shape.pool > 0 ? shape.rows / shape.pool : shape.rows * shape.shifts;
  const double stage =
      (shape.direct ? kStored : kStaged) * stored * shape.octets * 4;
  const double tile = kWaiting * shape.multipliers * products + stage + kTile;
  // Warpgroups that find no tile in a slab need the next one, if it is there.
  const double busy = std::min<double>(shape.multipliers,
                                       kConverted * tiles * plan.slab_buffers);
  const double tiles_of_one =
      shape.own_slabs ? tiles : std::max(1.0, tiles / shape.multipliers);
  double multiply = shape.own_slabs
                        ? (tiles * tile + kOwnSlab) / shape.multipliers
                        : tiles * tile / busy + kSlab;
  const double pixels = (rows + plan.K - 1) * plan.W;
  const double output_rows =
      shape.direct ? static_cast<double>(plan.H_out) / plan.slabs : rows;
  const double outputs =
      (shape.pool > 0 ? stored * plan.units : output_rows * plan.W_out) *
      plan.M;
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
  const double waves = static_cast<double>(
      CeilDivide(plan.slab_count(), limits.multiprocessors));
  return (waves + 0.5) * slab;
}

// A plan and its cost, if there is one.
struct Best {
  double cost = -1;
  WgmmaPlan plan;
};

// Replaces `best` by a cheaper plan of this cut, with any number of buffers.
void TryBuffers(const Problem& problem, const Epilogue& epilogue,
                const Inset& inset, Cut cut, const DeviceLimits& limits,
                Best* best) {
  const WgmmaShape& shape = kWgmmaShapes[cut.shape];
  const int most_stages = shape.direct ? 0 : 2;
  for (cut.slab_buffers = 2; cut.slab_buffers <= shape.most_buffers();
       ++cut.slab_buffers) {
    for (cut.stages = std::min(most_stages, 1); cut.stages <= most_stages;
         ++cut.stages) {
      WgmmaPlan plan;
      if (!MakePlan(problem, epilogue, inset, cut, limits, &plan)) continue;
      // Of equal cost two stages; and few buffers, but as many as there are for
      // slabs of their own while images still come ahead, or where tiles read
      // several while each group of converters has two images.
      const int images = shape.pool > 0 ? 2 * shape.converter_groups : 1;
      const bool many =
          (shape.own_slabs || shape.pool > 0) && plan.raw_buffers >= images;
      const double cost = Cost(plan, limits) * (cut.stages == 1 ? 1.01 : 1) *
                          (1 + (many ? -0.002 : 0.001) * cut.slab_buffers);
      if (best->cost < 0 || cost < best->cost) *best = {cost, plan};
    }
  }
}

// Whether the shape's outputs are those of the epilogue.
bool Makes(const WgmmaShape& shape, const Epilogue& epilogue) {
  if (epilogue.empty()) return shape.pool == 0;
  return shape.pool > 0 && shape.pool == epilogue.pool.size &&
         shape.pool == epilogue.pool.stride;
}

}  // namespace

bool MakeWgmmaPlan(const Problem& problem, int parts,
                   const DeviceLimits& limits, WgmmaPlan* plan,
                   const Epilogue& epilogue, const Inset* inset) {
  const Inset whole = {0, 0, static_cast<int>(problem.height),
                       static_cast<int>(problem.width)};
  Best best;
  for (int shape = 0; shape < kWgmmaShapeCount; ++shape) {
    const WgmmaShape& s = kWgmmaShapes[shape];
    if (s.kernel_size != problem.kernel_size || s.parts != parts ||
        !Makes(s, epilogue)) {
      continue;
    }
    const int64_t image_parts = ImageParts(problem, s);
    const int groups = CeilDivide(problem.filters, 8 * s.octets);
    for (int64_t slab_parts = image_parts;;) {
      for (int phase_groups = groups;;
           phase_groups = CeilDivide(phase_groups, 2)) {
        TryBuffers(problem, epilogue, inset == nullptr ? whole : *inset,
                   {shape, slab_parts, phase_groups, 0, 0}, limits, &best);
        if (phase_groups == 1) break;
      }
      if (slab_parts == 1) break;
      // The least number of slabs that makes them smaller.
      slab_parts =
          CeilDivide(image_parts, CeilDivide(image_parts, slab_parts - 1));
    }
  }
  if (best.cost < 0) return false;
  *plan = best.plan;
  return true;
}

OutputTiles SlabTiles(const WgmmaPlan& plan) {
  const WgmmaShape& shape = kWgmmaShapes[plan.shape];
  // A column of windows counts as a unit.
  const int unit_columns = shape.pool > 0 ? shape.pool : shape.shifts;
  return {plan.H_out,      plan.W_out, plan.slabs,
          /*across=*/1,    plan.W_out, plan.slab_units,
          plan.band_units, shape.rows, unit_columns};
}

double EstimateWgmmaNs(const Problem& problem, int parts,
                       const DeviceLimits& limits) {
  constexpr TimeModel kTwoParts = {/*launch_us=*/6.79, /*per_cycle=*/0.903,
                                   /*per_byte=*/0.292, /*weight_ns=*/0.824};
  constexpr TimeModel kOnePart = {/*launch_us=*/7.35, /*per_cycle=*/0.878,
                                  /*per_byte=*/0.503, /*weight_ns=*/0.163};
  WgmmaPlan plan;
  if (!MakeWgmmaPlan(problem, parts, limits, &plan)) return -1;
  return EstimateNs(parts == 2 ? kTwoParts : kOnePart, Cost(plan, limits),
                    problem, limits);
}

}  // namespace convlab::cuda
