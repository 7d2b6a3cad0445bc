#include "kernels/convolution/cuda/direct/plan.h"

#include <algorithm>
#include <cstdint>

#include "common/math/rounding.h"

namespace convlab::cuda {
namespace {

// A load from shared memory is served 128 bytes at a time, in as many cycles as
// words fall on one of the 32 banks. Returns the most of the first warp's.
int BankConflicts(const DirectTile& tile, const DirectPlan& plan, int pitch) {
  const int words = tile.vector * tile.element_bytes / 4;
  if (words == 0) return 1;  // halves: neighbours share a word
  const int lanes = 32 / words;
  int worst = 0;
  for (int turn = 0; turn < words; ++turn) {
    int uses[32] = {};
    for (int lane = turn * lanes; lane < (turn + 1) * lanes; ++lane) {
      const int element = lane / plan.threads_x % plan.threads_y * pitch +
                          lane % plan.threads_x * tile.columns;
      for (int i = 0; i < words; ++i) {
        const int bank = (element * tile.element_bytes / 4 + i) % 32;
        worst = std::max(worst, ++uses[bank]);
      }
    }
  }
  return worst;
}

// Cuts filters and columns: a block takes all filters if they are few, then
// whole rows, both cut into equal parts. Returns how many rows of threads are
// left.
int SetFiltersAndColumns(const DirectTile& tile, DirectPlan* plan) {
  constexpr int kMaxThreadsM = 8;
  plan->filter_blocks = plan->threads_m = 1;
  if (!tile.constant_filters) {
    const int groups_m = CeilDivide(plan->M, tile.filters);
    plan->filter_blocks = CeilDivide(groups_m, kMaxThreadsM);
    plan->threads_m = CeilDivide(groups_m, plan->filter_blocks);
  }
  const int groups_x = CeilDivide(plan->W_out, tile.columns);
  plan->tiles_x = CeilDivide(groups_x, tile.threads / plan->threads_m);
  plan->threads_x = CeilDivide(groups_x, plan->tiles_x);
  return tile.threads / (plan->threads_m * plan->threads_x);
}

// Cuts rows for up to most_y rows of threads, and pads the inputs' rows to the
// distance that costs the fewest conflicts of banks.
void SetRows(const DirectTile& tile, int most_y, DirectPlan* plan) {
  const int groups_y = CeilDivide(plan->H_out, tile.rows);
  plan->tiles_y = CeilDivide(groups_y, most_y);
  plan->threads_y = CeilDivide(groups_y, plan->tiles_y);
  plan->rows = plan->threads_y * tile.rows + plan->K - 1;
  plan->columns =
      std::min(plan->threads_x * tile.columns + plan->K - 1, plan->W);
  // Rows that are vectors in memory are copied as such.
  const int step = plan->W % 4 == 0                      ? 4
                   : plan->W % 2 == 0 && tile.vector < 2 ? 2
                                                         : tile.vector;
  const int least = RoundUp(plan->columns, step);
  plan->pitch = least;
  for (int pitch = least; pitch < least + 128 / tile.element_bytes;
       pitch += step) {
    if (BankConflicts(tile, *plan, pitch) <
        BankConflicts(tile, *plan, plan->pitch)) {
      plan->pitch = pitch;
    }
  }
}

// Cuts the channels into as few equal chunks as fit into `bytes` of shared
// memory; false if one channel does not.
bool SetChannels(const DirectTile& tile, int64_t bytes, DirectPlan* plan) {
  for (int channels = plan->C;;) {
    // The last row's last vector may end beyond the row.
    const int64_t inputs =
        RoundUp(int64_t{channels} * plan->rows * plan->pitch + tile.columns +
                    plan->K + 4,
                16);
    const int64_t filters = tile.constant_filters
                                ? 0
                                : int64_t{channels} * plan->K * plan->K *
                                      plan->threads_m * tile.filters;
    plan->channels = channels;
    plan->chunks = CeilDivide(plan->C, channels);
    plan->shared_bytes =
        tile.element_bytes * (tile.buffers * inputs +
                              (plan->chunks > 1 ? tile.buffers : 1) * filters);
    if (plan->shared_bytes <= bytes) {
      plan->input_elements = static_cast<int>(inputs);
      plan->filter_elements = static_cast<int>(filters);
      return true;
    }
    if (channels == 1) return false;
    // The next smaller number of channels that cuts them evenly.
    channels = CeilDivide(plan->C, CeilDivide(plan->C, channels - 1));
  }
}

}  // namespace

bool MakeDirectPlan(const DirectTile& tile, const Problem& problem,
                    const DeviceLimits& limits, DirectPlan* plan) {
  plan->C = problem.channels, plan->H = problem.height;
  plan->W = problem.width, plan->M = problem.filters;
  plan->K = problem.kernel_size;
  plan->H_out = problem.output_height(), plan->W_out = problem.output_width();
  plan->batch = problem.batch;

  const int threads_y = SetFiltersAndColumns(tile, plan);
  // Two blocks should live on a multiprocessor; if one channel is too much for
  // that, a block gets what it may have, and then fewer rows.
  for (int most_y = std::min(threads_y, CeilDivide(plan->H_out, tile.rows));
       most_y >= 1; most_y /= 2) {
    SetRows(tile, most_y, plan);
    if (SetChannels(tile, limits.shared_per_multiprocessor / 2 - 1024, plan) ||
        SetChannels(tile, limits.shared_per_block, plan)) {
      return true;
    }
  }
  return false;
}

void SetVectors(const float* x, const float* y, const DirectTile& tile,
                int most_floats, DirectPlan* plan) {
  const auto largest = [](auto fits) { return fits(4) ? 4 : fits(2) ? 2 : 1; };
  const auto aligned = [](const float* tensor, int floats) {
    return reinterpret_cast<uintptr_t>(tensor) % (sizeof(float) * floats) == 0;
  };
  plan->store_floats = largest([&](int floats) {
    return plan->W_out % floats == 0 && aligned(y, floats);
  });
  const int copy_floats = largest([&](int floats) {
    return floats <= most_floats && plan->W % floats == 0 &&
           plan->columns % floats == 0 && plan->pitch % floats == 0 &&
           (plan->tiles_x == 1 ||
            plan->threads_x * tile.columns % floats == 0) &&
           aligned(x, floats);
  });
  plan->steps = MakeTileSteps(
      plan->block_threads(), copy_floats, plan->rows, plan->columns, plan->W,
      int64_t{plan->H} * plan->W, plan->pitch, plan->rows * plan->pitch);
}

double Padding(const DirectTile& tile, const DirectPlan& plan) {
  const double filter_groups = tile.constant_filters
                                   ? CeilDivide(plan.M, tile.filters)
                                   : plan.filter_blocks;
  return filter_groups * plan.tiles_x * plan.tiles_y * plan.block_threads() *
         tile.filters * tile.rows * tile.columns /
         (static_cast<double>(plan.M) * plan.H_out * plan.W_out);
}

}  // namespace convlab::cuda
