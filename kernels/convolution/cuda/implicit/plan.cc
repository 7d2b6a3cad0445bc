#include "kernels/convolution/cuda/implicit/plan.h"

#include <algorithm>
#include <cstdint>

#include "common/math/rounding.h"

namespace convlab::cuda {
namespace {

// More words or taps do not fit anywhere.
constexpr int64_t kMostWords = 1 << 16;
// The kernels divide a tile's positions by its columns in floats.
constexpr int kMostPositions = 1 << 15;

// Cycles that the first loads of `inputs` take for their words' banks.
int InputCycles(const ImplicitPlan& plan) {
  constexpr int kQuads = 64;
  int cycles = 0;
  for (int quad = 0; quad < kQuads && 4 * quad < plan.taps(); ++quad) {
    // Two lanes meet on a bank without harm if they want the same word.
    int words[32][4];
    int uses[32] = {};
    int worst = 0;
    for (int t = 0; t < 4; ++t) {
      const int tap = 4 * quad + t;
      const int offset =
          tap < plan.taps() ? ImplicitTap(plan, tap).Offset(plan) : 0;
      for (int g = 0; g < 8; ++g) {
        const int word = offset + g;
        const int bank = word % 32;
        bool known = false;
        for (int i = 0; i < uses[bank]; ++i) known |= words[bank][i] == word;
        if (!known) words[bank][uses[bank]++] = word;
        if (uses[bank] > worst) worst = uses[bank];
      }
    }
    cycles += worst;
  }
  return cycles;
}

// Sets the distances of rows and planes, which decide which banks a load
// needs. With few planes a load has taps of several rows, so rows are padded
// too.
void PadInputs(ImplicitPlan* plan) {
  ImplicitPlan best = *plan;
  int best_cycles = 1 << 30;
  const int row_padding = plan->planes < 4 ? 16 : 1;
  for (int i = 0; i < row_padding; ++i) {
    plan->pitch = plan->input_columns() + i;
    for (int j = 0; j < 32; ++j) {
      plan->plane_words = plan->input_rows() * plan->pitch + j;
      const int cycles = InputCycles(*plan);
      if (cycles < best_cycles) best = *plan, best_cycles = cycles;
    }
  }
  *plan = best;
}

// Sizes that do not depend on the tiles. Two values of a word are two channels
// or, where that pads less, two columns.
void SetProduct(const Problem& problem, int word_values,
                const ImplicitShape& shape, ImplicitPlan* plan) {
  plan->C = problem.channels, plan->H = problem.height;
  plan->W = problem.width, plan->M = problem.filters;
  plan->K = problem.kernel_size;
  plan->H_out = problem.output_height(), plan->W_out = problem.output_width();
  plan->batch = problem.batch;
  plan->filter_blocks = CeilDivide(plan->M, shape.filters());
  const bool pairs = word_values == 2;
  const bool pair_columns =
      pairs && problem.channels * CeilDivide(plan->K, 2) <
                   CeilDivide(problem.channels, 2) * plan->K;
  plan->plane_channels = pairs && !pair_columns ? 2 : 1;
  plan->word_columns = pair_columns ? 2 : 1;
}

// Cuts an image into equal tiles, about tiles_x across and tiles_y down.
void SetTiles(int tiles_x, int tiles_y, ImplicitPlan* plan) {
  plan->columns = CeilDivide(plan->W_out, tiles_x);
  plan->rows = CeilDivide(plan->H_out, tiles_y);
  plan->tiles_x = CeilDivide(plan->W_out, plan->columns);
  plan->tiles_y = CeilDivide(plan->H_out, plan->rows);
}

// Whether `planes` planes of a tile fit into `bytes` of shared memory.
bool PlanesFit(const ImplicitShape& shape, int planes, int64_t bytes,
               ImplicitPlan* plan) {
  plan->planes = planes;
  PadInputs(plan);
  plan->chunks = CeilDivide(CeilDivide(plan->C, plan->plane_channels), planes);
  plan->steps = CeilDivide(plan->taps(), kImplicitStepWords);
  plan->shared_bytes =
      4 * (int64_t{plan->input_words()} + plan->filter_words(shape.tiles_n) +
           int64_t{plan->steps} * kImplicitStepWords);
  return plan->shared_bytes <= bytes;
}

// All channels at once in strips, if these do not become much lower than the
// filter: the rows that two strips share are loaded twice.
bool CutIntoStrips(const ImplicitShape& shape, int64_t bytes,
                   ImplicitPlan* plan) {
  const int planes = CeilDivide(plan->C, plan->plane_channels);
  for (int strips = 1;; ++strips) {
    SetTiles(1, strips, plan);
    if (plan->rows < plan->K && strips > 1) return false;
    const int64_t words =
        int64_t{planes} * plan->input_rows() * plan->input_columns();
    const int64_t taps = int64_t{planes} * plan->K * plan->row_taps();
    if (words < kMostWords && taps < kMostWords &&
        plan->rows * plan->columns < kMostPositions &&
        PlanesFit(shape, planes, bytes, plan)) {
      return true;
    }
    if (plan->rows == 1) return false;
  }
}

// As few equal chunks of channels as let a tile fit into `bytes`.
bool CutIntoChunks(const ImplicitShape& shape, int64_t bytes,
                   ImplicitPlan* plan) {
  const int all_planes = CeilDivide(plan->C, plan->plane_channels);
  const int64_t plane_words =
      int64_t{plan->input_rows()} * plan->input_columns();
  if (plane_words > kMostWords) return false;
  int planes = std::min<int64_t>(all_planes, kMostWords / plane_words);
  for (;;) {
    if (int64_t{plan->K} * plan->K * planes < kMostWords &&
        PlanesFit(shape, planes, bytes, plan)) {
      return true;
    }
    if (planes == 1) return false;
    planes = CeilDivide(all_planes, CeilDivide(all_planes, planes - 1));
  }
}

bool Cut(const ImplicitShape& shape, const DeviceLimits& limits,
         ImplicitPlan* plan) {
  // Two blocks on a multiprocessor if possible.
  const int64_t half = limits.shared_per_multiprocessor / 2 - 1024;
  if (CutIntoStrips(shape, half, plan)) return true;
  // With chunks, the sums of all positions of a tile live in the warps'
  // registers while the chunks come.
  for (int positions = kImplicitWarps * shape.positions(); positions >= 1;
       positions /= 2) {
    const int tiles_x = CeilDivide(plan->W_out, positions);
    const int columns = CeilDivide(plan->W_out, tiles_x);
    const int rows = std::min(positions / columns, plan->H_out);
    SetTiles(tiles_x, CeilDivide(plan->H_out, rows), plan);
    if (CutIntoChunks(shape, half, plan) ||
        CutIntoChunks(shape, limits.shared_per_block, plan)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool MakeImplicitPlan(const Problem& problem, int word_values,
                      const ImplicitShape& shape, const DeviceLimits& limits,
                      ImplicitPlan* plan) {
  SetProduct(problem, word_values, shape, plan);
  if (!Cut(shape, limits, plan)) return false;
  plan->copy = MakeTileSteps(kImplicitThreads, /*floats=*/1, plan->input_rows(),
                             plan->input_columns(), plan->W,
                             int64_t{plan->plane_channels} * plan->H * plan->W,
                             plan->pitch, plan->plane_words);
  return true;
}

// The shape that pads the filters least, where loading the positions' words
// costs as much as two tiles of filters.
int ChooseImplicitShape(const Problem& problem, int word_values,
                        const DeviceLimits& limits, ImplicitPlan* plan) {
  const auto cost = [&](const ImplicitShape& shape) {
    return CeilDivide(problem.filters, shape.filters()) * (shape.tiles_n + 2);
  };
  int best = 0;
  for (int i = 1; i < kImplicitShapeCount; ++i) {
    if (cost(kImplicitShapes[i]) < cost(kImplicitShapes[best])) best = i;
  }
  return MakeImplicitPlan(problem, word_values, kImplicitShapes[best], limits,
                          plan)
             ? best
             : -1;
}

}  // namespace convlab::cuda
