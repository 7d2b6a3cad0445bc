// Whole networks as compiled wholes: how long a call takes from images in host
// memory to logits there.
#ifndef TOOLS_BENCH_NETWORK_BENCH_H_
#define TOOLS_BENCH_NETWORK_BENCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/convolution.h"

namespace convlab {

// Names of networks, separated by commas, each once.
absl::StatusOr<std::vector<const Network*>> ParseNetworks(
    absl::string_view text);

struct NetworkBenchOptions {
  std::vector<const Network*> networks;
  std::vector<int64_t> batches;  // images of a call
  Backend backend;
  int samples = 20;    // at least
  double seconds = 5;  // and no more after that, for each number of images
};

// Prints a row for each network and number of images, which are 28 x 28 bytes.
// Weights and images are random.
absl::Status BenchNetworks(const NetworkBenchOptions& options,
                           Workers& workers);

}  // namespace convlab

#endif  // TOOLS_BENCH_NETWORK_BENCH_H_
