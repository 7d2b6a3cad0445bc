// The host's part of mend.cuh: what a kernel is given to mend its outputs.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_MENDER_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_MENDER_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/arranging_kernel.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/output_tiles.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

struct MendPlan {
  int C, H, W, M, K;
  // Windows of pool x pool sums become an output, or pool is 1; and how many
  // rows and columns of outputs there are.
  int pool;
  int out_height, out_width;
  // Outputs side by side that an input reaches, of which the last may be none.
  int span;
  // Divisors by W, pool, span and span * span.
  Divisor by_width, by_pool, by_span, by_square;
  OutputTiles tiles;
  Epilogue epilogue;
  Inset inset;  // of x's images in the problem's, where those are padded
};

// What a kernel needs to mend its outputs.
struct Mend {
  const float* k;
  const ScaledFilter* filters;
  DoubtfulTile* tiles;
  MendPlan plan;
};

constexpr int kMostMendingGroups = 4;  // of a block
constexpr int kMostLossy = 512;        // inputs whose places a group remembers

constexpr int kMostBounds = 64;  // filters that are mended together

// An output of a filter is uncertain if it is neither less than `lower` nor
// more than `upper`.
struct OutputBounds {
  enum Look { kNowhere, kAroundLossyInputs, kEverywhere };

  float lower, upper;
  Look look;  // which outputs may be uncertain
};

// What the threads that mend a tile share: the places, row * W + column, of
// its lossy inputs and the bits of the largest loss; how many inputs are kept,
// zeros apart; the bounds of some filters, and whether all outputs of some
// filter are looked at.
struct LossyInputs {
  int count;
  uint32_t lost;
  int kept;
  int look_everywhere;
  int places[kMostLossy];
  OutputBounds bounds[kMostBounds];
};

// What a kernel with these tiles needs to mend its outputs.
class Mender {
 public:
  Mender() = default;
  Mender(const Problem& problem, const Epilogue& epilogue,
         const OutputTiles& tiles) {
    plan_.C = problem.channels, plan_.H = problem.height;
    plan_.W = problem.width, plan_.M = problem.filters;
    plan_.K = problem.kernel_size;
    plan_.pool = epilogue.pool.size == 0 ? 1 : epilogue.pool.size;
    plan_.out_height = epilogue.pool.Output(tiles.height);
    plan_.out_width = epilogue.pool.Output(tiles.width);
    plan_.span = (plan_.K + plan_.pool - 2) / plan_.pool + 1;
    plan_.by_width = Divisor(plan_.W), plan_.by_pool = Divisor(plan_.pool);
    plan_.by_span = Divisor(plan_.span);
    plan_.by_square = Divisor(plan_.span * plan_.span);
    plan_.tiles = tiles;
    plan_.epilogue = epilogue;
  }

  void UseBias(const float* bias) { plan_.epilogue.bias = bias; }
  // For kernels that load x without the zeros around it.
  void UseInset(const Inset& inset) { plan_.inset = inset; }

  Mend Arguments(const ArrangedFilters& filters) const {
    return {filters.k, filters.known, filters.doubtful, plan_};
  }
  // The dynamic shared memory to launch with for a kernel that uses so much.
  static constexpr int SharedBytes(int bytes) {
    constexpr int kLeast = kMostMendingGroups * sizeof(LossyInputs);
    return bytes < kLeast ? kLeast : bytes;
  }

 private:
  MendPlan plan_ = {};
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_MENDER_H_
