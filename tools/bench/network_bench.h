// Whole networks as compiled wholes: how long a call takes from images to
// labels, beside a library's kernels in the same run.
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
#include "common/record/network_record.h"
#include "common/weights/weights.h"
#include "kernels/convolution/convolution.h"

namespace convlab {

// Names of networks, separated by commas, each once.
absl::StatusOr<std::vector<const Network*>> ParseNetworks(
    absl::string_view text);

// The weights of each, from FOLDER/NAME.safetensors.
absl::StatusOr<std::vector<NetworkWeights>> LoadWeightsOf(
    const std::vector<const Network*>& networks, const std::string& folder);

struct NetworkBenchOptions {
  std::vector<const Network*> networks;
  std::vector<NetworkWeights> weights;  // of each; none: random ones
  std::vector<int64_t> batches;         // images of a call, each once
  Backend backend;
  bool peers = true;   // also the library; there is none on the CPU
  int samples = 20;    // at least
  double seconds = 5;  // and no more after that, for each kind of call
  bool wide = true;    // the table has all columns
  int gpus = 0;  // also on 1, 2, 4 ... to so many at the same time; 0: not
};

// The table's head and one of its lines. `peer` is the library's row of the
// same calls, or null. If not wide, the main columns.
std::string NetworkTableHead(bool wide);
std::string NetworkTableLine(const NetworkRow& row, const NetworkRow* peer,
                             bool wide);

// Adds to the record, and prints, a row for each network, number of images,
// path and provider, whose calls take turns. Images, of 28 x 28 bytes, and
// weights that are not given are random. Before it is timed, each call is
// compared with the network layer by layer: if the answers differ that is an
// error for ours, and an omission for the library.
absl::Status BenchNetworks(const NetworkBenchOptions& options, Workers& workers,
                           NetworkRecord& record);

}  // namespace convlab

#endif  // TOOLS_BENCH_NETWORK_BENCH_H_
