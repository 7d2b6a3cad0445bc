#include "kernels/convolution/checking/parity_problems.h"

#include <initializer_list>
#include <iterator>
#include <set>
#include <string>

#include "common/network/network.h"

namespace convlab {
namespace {

// The layers of all networks at `batches`, each shape once.
void AddLayers(std::initializer_list<int64_t> batches,
               std::vector<Problem>& problems) {
  std::set<std::string> seen;
  for (const Network& network : Networks()) {
    for (const NetworkConvolution& layer : network.Convolutions()) {
      for (const int64_t batch : batches) {
        const Problem problem = {batch,
                                 layer.input.channels,
                                 layer.input.size,
                                 layer.input.size,
                                 layer.output.channels,
                                 layer.kernel_size};
        if (seen.insert(ToString(problem)).second) problems.push_back(problem);
      }
    }
  }
}

}  // namespace

std::vector<Problem> ParityProblems(Backend backend) {
  std::vector<Problem> problems;
  const Problem odd[] = {
      {1, 1, 1, 1, 1, 1},     // a single product
      {2, 3, 9, 9, 4, 1},     // K = 1
      {3, 2, 7, 7, 5, 7},     // H = W = K: one output position
      {2, 4, 5, 31, 3, 5},    // one output row
      {2, 4, 31, 5, 3, 5},    // one output column
      {2, 3, 13, 40, 6, 3},   // non-square images
      {2, 3, 40, 13, 6, 4},   // and an even kernel
      {2, 17, 12, 12, 8, 3},  // C = 17
      {2, 6, 20, 20, 1, 5},   // M = 1
      {2, 3, 16, 16, 50, 5},  // M = 50
      {1, 64, 10, 10, 128, 3},
      {1, 2, 30, 30, 3, 11},
      {1, 1, 300, 301, 2, 5},  // an image of many blocks
      {1, 1500, 8, 9, 2, 7},   // one unrolled column exceeds the workspace
      {257, 1, 6, 6, 2, 3},    // many small images
      // Few channels, and filter sizes that no layer has.
      {2, 1, 19, 22, 9, 6},
      {2, 1, 40, 37, 13, 4},
      {2, 1, 75, 33, 30, 7},
      {2, 1, 40, 51, 5, 9},
      {2, 1, 40, 40, 9, 10},
      {2, 2, 40, 41, 7, 6},
      {2, 2, 40, 38, 5, 8},
      {3, 3, 37, 43, 7, 7},
      {3, 4, 23, 31, 14, 5},
      {5, 2, 29, 27, 30, 3},
      {2, 3, 30, 35, 5, 9},
      {3, 8, 21, 23, 7, 2},
      {3, 5, 21, 23, 7, 5},
      {3, 2, 29, 31, 9, 8},
  };
  problems.insert(problems.end(), std::begin(odd), std::end(odd));
  if (backend == Backend::kCpu) {
    AddLayers({1, 3}, problems);
    // An output larger than any cache.
    problems.push_back({310, 1, 50, 26, 24, 3});
    // Every remainder of a register tile's filters and of a row's lanes.
    for (int64_t i = 1; i <= 13; ++i) {
      problems.push_back({2, 2, 7, 30 + i, i, 3});
      problems.push_back({1, 2, 4, 2 + i, 14 - i, 2});
    }
    return problems;
  }
  AddLayers({1, 7, 100}, problems);
  const Problem large[] = {
      {2, 2, 45, 50, 3, 37},   // a filter larger than any tile
      {8767, 2, 9, 8, 5, 3},   // a batch that nothing divides
      {70000, 1, 5, 4, 3, 3},  // more images than a grid has in y or z
      {3, 1, 5, 5, 70000, 3},  // and more filters
      // Many channels of many positions: an image is unrolled in parts.
      {1, 60, 161, 170, 3, 7},
      // Batches so large that a persistent block of threads computes ten pieces
      // of work and more.
      {3000, 6, 22, 22, 16, 5},
      {2000, 1, 48, 48, 6, 5},
      {600, 1, 70, 70, 12, 5},
      {1400, 3, 35, 41, 12, 7},
      {900, 12, 33, 33, 24, 7},
      {1500, 3, 13, 40, 47, 7},
      {1500, 3, 13, 41, 47, 7},
      {1500, 2, 30, 31, 24, 7},
      {1500, 8, 29, 31, 16, 5},
      {1400, 12, 33, 33, 24, 5},
      {1500, 4, 40, 40, 16, 7},
      {1500, 21, 22, 18, 7, 5},
      // Problems with several passes of wgmma's kernel.
      {1500, 8, 23, 32, 6, 7},
      {1500, 10, 8, 10, 8, 5},
      {1500, 17, 23, 14, 13, 5},
      {1500, 27, 14, 12, 23, 5},
      {1500, 25, 19, 21, 22, 5},
      {150, 1, 41, 39, 7, 5},  // few_images cuts it as a line
  };
  problems.insert(problems.end(), std::begin(large), std::end(large));
  return problems;
}

}  // namespace convlab
