// The host's part of mend.cuh: what a kernel is given to mend its outputs.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_MENDER_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_MENDER_H_

#include <cstdint>

#include "kernels/convolution/cuda/lib/arranging_kernel.h"
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

constexpr int kMostLossy = 1024;  // inputs whose places a block remembers

// The places, row * W + column, of the lossy inputs that a block has found, and
// the bits of the largest loss; how many inputs are kept, zeros apart; and
// whether all outputs of some filter are looked at.
struct LossyInputs {
  int count;
  uint32_t lost;
  int kept;
  int all_over;
  int places[kMostLossy];
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
    constexpr int kLeast = sizeof(LossyInputs);
    return bytes < kLeast ? kLeast : bytes;
  }

 private:
  MendPlan plan_ = {};
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_MENDER_H_
