#include "tools/bench/network_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/status/status.h"
#include "common/weights/parameters.h"
#include "common/weights/weights.h"
#include "kernels/compiled/compiled.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kImageSize = 28;
// The first call loads the kernels, and the second records the work.
constexpr int kWarmUps = 5;

std::vector<float> Random(const std::vector<int64_t>& shape,
                          std::mt19937& generator) {
  const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1},
                                        std::multiplies<>());
  // About as large as trained ones.
  std::uniform_real_distribution<float> distribution(-0.05f, 0.05f);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

NetworkWeights RandomWeights(const Network& network) {
  std::mt19937 generator(1);
  NetworkWeights weights;
  weights.layers.resize(network.layers.size());
  for (const LayerParameters& parameters : ParametersOf(network)) {
    LayerWeights& layer = weights.layers[parameters.layer];
    layer.weight = Random(parameters.weight_shape, generator);
    if (parameters.has_bias) {
      layer.bias = Random(parameters.bias_shape(), generator);
    }
  }
  return weights;
}

// The times of calls with so many images, in nanoseconds, sorted.
absl::StatusOr<std::vector<int64_t>> TimeCalls(
    const NetworkBenchOptions& options, CompiledNetwork& compiled,
    const std::vector<uint8_t>& images, int64_t count,
    std::vector<float>& logits) {
  constexpr size_t kMostSamples = 10000;
  std::vector<int64_t> samples;
  const auto deadline =
      Clock::now() + std::chrono::duration<double>(options.seconds);
  for (int i = 0; samples.size() < kMostSamples; ++i) {
    const auto start = Clock::now();
    RETURN_IF_ERROR(compiled.Run(images.data(), count, logits.data()));
    const auto end = Clock::now();
    if (i < kWarmUps) continue;
    samples.push_back(std::chrono::nanoseconds(end - start).count());
    const bool enough = static_cast<int>(samples.size()) >= options.samples;
    if (enough && end >= deadline) break;
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

// The sample at a share of all: of 200 samples the 198th has 0.99.
int64_t Percentile(const std::vector<int64_t>& sorted, double share) {
  const auto rank = static_cast<int64_t>(
      std::ceil(share * static_cast<double>(sorted.size()) - 1e-9));
  return sorted[std::clamp<int64_t>(rank - 1, 0, sorted.size() - 1)];
}

absl::Status BenchNetwork(const NetworkBenchOptions& options,
                          const Network& network, Workers& workers) {
  const NetworkWeights weights = RandomWeights(network);
  const int64_t most =
      *std::max_element(options.batches.begin(), options.batches.end());
  std::vector<uint8_t> images(most * kImageSize * kImageSize);
  std::mt19937 generator(2);
  for (uint8_t& pixel : images) pixel = static_cast<uint8_t>(generator());
  std::vector<float> logits(most * network.Classes());
  for (const int64_t count : options.batches) {
    // One for each number of images, whose stages it times.
    ASSIGN_OR_RETURN(
        const auto compiled,
        (options.backend == Backend::kCuda ? CompileForGpu : CompileForCpu)(
            network, weights, kImageSize, workers));
    ASSIGN_OR_RETURN(const std::vector<int64_t> samples,
                     TimeCalls(options, *compiled, images, count, logits));
    const double calls = static_cast<double>(samples.size()) + kWarmUps;
    double stages = 0;
    std::string each;
    for (const int64_t ns : compiled->StageNs()) {
      stages += ns / calls;
      absl::StrAppendFormat(&each, " %.1f", ns / calls * 1e-3);
    }
    const double median = static_cast<double>(Percentile(samples, 0.5));
    absl::PrintF("%-14s %8d %6d %10.1f %10.1f %10.1f %12.0f %10.1f %s\n",
                 network.name, count, samples.size(), median * 1e-3,
                 Percentile(samples, 0.99) * 1e-3, samples.front() * 1e-3,
                 count / (median * 1e-9), stages * 1e-3, each);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<const Network*>> ParseNetworks(
    absl::string_view text) {
  std::vector<const Network*> networks;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(const Network* const network, FindNetwork(name));
    if (std::count(networks.begin(), networks.end(), network) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--network names ", network->name, " twice"));
    }
    networks.push_back(network);
  }
  return networks;
}

absl::Status BenchNetworks(const NetworkBenchOptions& options,
                           Workers& workers) {
  absl::PrintF(
      "Whole networks as compiled wholes on the %s: images of %dx%d bytes in "
      "host memory to logits there, us by the host's clock; the stages' own "
      "time, all and each (enlarging first)%s.\n"
      "%-14s %8s %6s %10s %10s %10s %12s %10s\n",
      options.backend == Backend::kCuda ? "GPU" : "CPU", kImageSize, kImageSize,
      options.backend == Backend::kCuda ? ", by device events in one piece"
                                        : "",
      "network", "images", "n", "p50", "p99", "least", "images/s", "stages");
  for (const Network* network : options.networks) {
    RETURN_IF_ERROR(BenchNetwork(options, *network, workers));
  }
  return absl::OkStatus();
}

}  // namespace convlab
