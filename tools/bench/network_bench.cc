#include "tools/bench/network_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "common/weights/parameters.h"
#include "common/weights/weights.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/library.h"
#include "kernels/measure/gpu_timer.h"
#include "kernels/measure/sm_clock.h"
#include "tools/bench/gpus_bench.h"
#include "tools/bench/network_calls.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kImageSize = 28;
// The first call loads the kernels, and the second records the work.
constexpr int kWarmUps = 3;
// Calls of one provider before it is another's turn, and the time after which
// there is no further one in a turn.
constexpr int kTurn = 10;
constexpr std::chrono::milliseconds kLongTurn(50);
constexpr size_t kMostSamples = 10000;

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

ImageSet RandomImages(int64_t count) {
  ImageSet images = {count, kImageSize, kImageSize, {}};
  images.pixels.resize(count * kImageSize * kImageSize);
  std::mt19937 generator(2);
  for (uint8_t& pixel : images.pixels) {
    pixel = static_cast<uint8_t>(generator());
  }
  return images;
}

// The sample at a share of all: of 200 samples the 198th has 0.99.
double Percentile(const std::vector<int64_t>& sorted, double share) {
  const auto rank = static_cast<int64_t>(
      std::ceil(share * static_cast<double>(sorted.size()) - 1e-9));
  return static_cast<double>(
      sorted[std::clamp<int64_t>(rank - 1, 0, sorted.size() - 1)]);
}

// A call with its times.
struct TimedCall {
  NetworkCall call;
  std::vector<int64_t> samples_ns;
  std::vector<int64_t> clocks_mhz;
  int64_t runs = 0;
};

class NetworkBench {
 public:
  NetworkBench(const NetworkBenchOptions& options, Workers& workers,
               NetworkRecord& record)
      : options_(options), workers_(workers), record_(record) {}

  absl::Status OpenGpu() {
    ASSIGN_OR_RETURN(const cuda::DeviceFacts device, cuda::FindDevice());
    ASSIGN_OR_RETURN(GpuTimer timer, GpuTimer::Create());
    timer_ = std::move(timer);
    const absl::StatusOr<SmClock> clock = SmClock::Open(device.pci_bus_id);
    if (clock.ok()) clock_ = *clock;
    return absl::OkStatus();
  }

  absl::Status MeasureNetwork(const Network& network,
                              const NetworkWeights& weights) {
    const ImageSet images = RandomImages(
        *std::max_element(options_.batches.begin(), options_.batches.end()));
    const NetworkCase one = {network, weights, images, options_.backend};
    ASSIGN_OR_RETURN(const std::vector<float> logits,
                     LayerByLayer(one, workers_));
    for (const int64_t count : options_.batches) {
      RETURN_IF_ERROR(
          Annotate(MeasureCount(one, logits, count),
                   absl::StrCat(network.name, ", ", count, " images")));
      RETURN_IF_ERROR(
          Annotate(MeasureSeveral(one, logits, count),
                   absl::StrCat(network.name, ", ", count,
                                " images on several GPUs at once")));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status MeasureCount(const NetworkCase& one,
                            const std::vector<float>& logits, int64_t count) {
    const int classes = one.network.Classes();
    ASSIGN_OR_RETURN(std::vector<NetworkCall> ours,
                     OurCalls(one, count, workers_));
    for (NetworkCall& call : ours) {
      RETURN_IF_ERROR(Annotate(Verify(call, logits, classes),
                               absl::StrCat(call.provider, ", ", call.path)));
    }
    std::vector<NetworkCall> peers = FindPeers(one, logits, count);
    for (NetworkCall& call : ours) {
      std::vector<TimedCall> timed;
      timed.push_back({std::move(call), {}, {}});
      for (NetworkCall& peer : peers) {
        if (peer.path != timed[0].call.path) continue;
        timed.push_back({std::move(peer), {}, {}});
      }
      RETURN_IF_ERROR(Measure(timed));
      std::vector<NetworkRow> rows;
      rows.reserve(timed.size());
      for (const TimedCall& each : timed) {
        rows.push_back(RowOf(one.network, count, each));
      }
      for (const NetworkRow& row : rows) {
        const NetworkRow* const peer = rows.size() > 1 ? &rows[1] : nullptr;
        std::fputs(NetworkTableLine(row, peer, options_.wide).c_str(), stdout);
        record_.rows.push_back(row);
      }
      std::fflush(stdout);
    }
    return absl::OkStatus();
  }

  // The device's path on 1, 2, 4 ... GPUs, whose answers must be the same bits.
  absl::Status MeasureSeveral(const NetworkCase& one,
                              const std::vector<float>& logits, int64_t count) {
    const int classes = one.network.Classes();
    for (int gpus = 1; gpus <= options_.gpus;
         gpus = gpus < options_.gpus ? std::min(2 * gpus, options_.gpus)
                                     : gpus + 1) {
      ASSIGN_OR_RETURN(
          const GpusTimes times,
          MeasureGpus(one, {gpus, count, options_.samples, options_.seconds,
                            std::max(1, workers_.count() / gpus)}));
      for (int gpu = 0; gpu < gpus; ++gpu) {
        RETURN_IF_ERROR(CheckAnswers(times.answers[gpu], logits, classes));
        if (times.answers[gpu].logits != times.answers[0].logits) {
          return absl::InternalError(
              absl::StrCat("GPU ", gpu, " has other logits than GPU 0"));
        }
      }
      TimedCall timed = {
          {"convlab", kDevicesPath, {}, {}, {}, nullptr}, times.samples_ns, {}};
      NetworkRow row = RowOf(one.network, count * gpus, timed);
      row.gpus = gpus;
      std::fputs(NetworkTableLine(row, nullptr, options_.wide).c_str(), stdout);
      std::fflush(stdout);
      record_.rows.push_back(row);
    }
    return absl::OkStatus();
  }

  // The peer's calls whose answers are right; the others are omissions.
  std::vector<NetworkCall> FindPeers(const NetworkCase& one,
                                     const std::vector<float>& logits,
                                     int64_t count) {
    if (!options_.peers || one.backend == Backend::kCpu) return {};
    const auto omit = [&](const std::string& path, const absl::Status& why) {
      record_.omissions.push_back(
          {one.network.name, count, "cudnn", path, OneLine(why.message())});
      absl::FPrintF(stderr,
                    "bench: not measured: %s, %d images, cudnn %s: %s\n",
                    one.network.name, count, path, OneLine(why.message()));
    };
    auto calls = PeerCalls(one, count, workers_);
    if (!calls.ok()) {
      omit("", calls.status());
      return {};
    }
    std::vector<NetworkCall> right;
    for (NetworkCall& call : *calls) {
      const absl::Status status = Verify(call, logits, one.network.Classes());
      if (status.ok()) {
        right.push_back(std::move(call));
      } else {
        omit(call.path, status);
      }
    }
    return right;
  }

  static absl::Status Verify(const NetworkCall& call,
                             const std::vector<float>& logits, int classes) {
    // The last of them is replayed, as the timed ones are.
    for (int i = 0; i < kWarmUps; ++i) RETURN_IF_ERROR(call.run());
    if (call.path != kHostPath) RETURN_IF_ERROR(cuda::Synchronize());
    ASSIGN_OR_RETURN(const CallAnswers answers, call.answers());
    return CheckAnswers(answers, logits, classes);
  }

  absl::Status Measure(std::vector<TimedCall>& calls) {
    const auto start = Clock::now();
    const double seconds = options_.seconds * static_cast<double>(calls.size());
    for (bool enough = false; !enough;) {
      for (TimedCall& one : calls) {
        RETURN_IF_ERROR(one.call.path == kHostPath ? TakeHostTurn(one)
                                                   : TakeDeviceTurn(one));
      }
      const std::chrono::duration<double> passed = Clock::now() - start;
      size_t samples = kMostSamples;
      for (const TimedCall& one : calls) {
        samples = std::min(samples, one.samples_ns.size());
      }
      enough = samples >= static_cast<size_t>(options_.samples) &&
               (samples >= kMostSamples || passed.count() >= seconds);
    }
    return absl::OkStatus();
  }

  absl::Status TakeHostTurn(TimedCall& one) const {
    const auto turn = Clock::now();
    for (int i = 0; i < kTurn && Clock::now() - turn < kLongTurn; ++i) {
      const auto start = Clock::now();
      RETURN_IF_ERROR(one.call.run());
      one.samples_ns.push_back(
          std::chrono::nanoseconds(Clock::now() - start).count());
      ++one.runs;
    }
    if (!clock_) return absl::OkStatus();
    // A clock that cannot be read is left out.
    const absl::StatusOr<int> megahertz = clock_->Megahertz();
    if (megahertz.ok()) one.clocks_mhz.push_back(*megahertz);
    return absl::OkStatus();
  }

  absl::Status TakeDeviceTurn(TimedCall& one) {
    StoppingRule rule;
    rule.min_samples = rule.max_samples = kTurn;
    rule.max_seconds = HUGE_VAL;
    ASSIGN_OR_RETURN(const GpuTimes times, timer_->Time(one.call.run, rule));
    one.samples_ns.insert(one.samples_ns.end(), times.samples_ns.begin(),
                          times.samples_ns.end());
    if (times.sm_clock_mhz) {
      one.clocks_mhz.push_back(std::llround(*times.sm_clock_mhz));
    }
    return absl::OkStatus();
  }

  static NetworkRow RowOf(const Network& network, int64_t count,
                          const TimedCall& one) {
    std::vector<int64_t> sorted = one.samples_ns;
    std::sort(sorted.begin(), sorted.end());
    NetworkRow row;
    row.network = network.name;
    row.images = count;
    row.provider = one.call.provider;
    row.path = one.call.path;
    row.p50_us = Percentile(sorted, 0.5) * 1e-3;
    row.p90_us = Percentile(sorted, 0.9) * 1e-3;
    row.p99_us = Percentile(sorted, 0.99) * 1e-3;
    row.least_us = static_cast<double>(sorted.front()) * 1e-3;
    row.images_per_s = static_cast<double>(count) / (row.p50_us * 1e-6);
    row.samples = static_cast<int>(sorted.size());
    if (!one.clocks_mhz.empty()) row.sm_clock_mhz = Median(one.clocks_mhz);
    row.plans = one.call.plans;
    if (one.call.compiled == nullptr) return row;
    const auto runs = static_cast<double>(one.runs + kWarmUps);
    for (const int64_t ns : one.call.compiled->StageNs()) {
      row.stages_us.push_back(static_cast<double>(ns) * 1e-3 / runs);
    }
    return row;
  }

  const NetworkBenchOptions& options_;
  Workers& workers_;
  NetworkRecord& record_;
  std::optional<GpuTimer> timer_;
  std::optional<SmClock> clock_;
};

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

absl::StatusOr<std::vector<NetworkWeights>> LoadWeightsOf(
    const std::vector<const Network*>& networks, const std::string& folder) {
  std::vector<NetworkWeights> weights;
  for (const Network* network : networks) {
    ASSIGN_OR_RETURN(
        weights.emplace_back(),
        LoadWeights(absl::StrCat(folder, "/", network->name, ".safetensors"),
                    *network));
  }
  return weights;
}

std::string NetworkTableHead(bool wide) {
  if (!wide) {
    return absl::StrFormat("%-14s %7s %-7s %-8s %6s %10s %10s %11s %7s\n",
                           "network", "images", "path", "by", "n", "p50", "p99",
                           "images/s", "x peer");
  }
  return absl::StrFormat(
      "%-14s %7s %-7s %-8s %6s %10s %10s %10s %10s %11s %5s %7s  %s\n",
      "network", "images", "path", "by", "n", "p50", "p90", "p99", "least",
      "images/s", "MHz", "x peer", "stages");
}

std::string NetworkTableLine(const NetworkRow& row, const NetworkRow* peer,
                             bool wide) {
  const std::string ratio =
      peer == nullptr || peer->provider == row.provider
          ? "-"
          : absl::StrFormat("%.2f", peer->p50_us / row.p50_us);
  if (!wide) {
    return absl::StrFormat("%-14s %7d %-7s %-8s %6d %10.1f %10.1f %11.0f %7s\n",
                           row.network, row.images, row.path, row.provider,
                           row.samples, row.p50_us, row.p99_us,
                           row.images_per_s, ratio);
  }
  std::string stages;
  for (const double us : row.stages_us) {
    absl::StrAppendFormat(&stages, " %.1f", us);
  }
  return absl::StrFormat(
      "%-14s %7d %-7s %-8s %6d %10.1f %10.1f %10.1f %10.1f %11.0f %5s %7s %s\n",
      row.network, row.images, row.path, row.provider, row.samples, row.p50_us,
      row.p90_us, row.p99_us, row.least_us, row.images_per_s,
      row.sm_clock_mhz ? absl::StrFormat("%.0f", *row.sm_clock_mhz) : "-",
      ratio, stages);
}

absl::Status BenchNetworks(const NetworkBenchOptions& options, Workers& workers,
                           NetworkRecord& record) {
  NetworkBench bench(options, workers, record);
  const bool gpu = options.backend == Backend::kCuda;
  if (gpu) RETURN_IF_ERROR(bench.OpenGpu());
  absl::PrintF(
      "Whole networks as compiled wholes on the %s, us: host, from %dx%d bytes "
      "in host memory to labels there, by the host's clock%s; the stages' own "
      "time, enlarging first.\n%s",
      gpu ? "GPU" : "CPU", kImageSize, kImageSize,
      gpu ? "; device, the same in device memory; floats, from enlarged images "
            "in device memory to logits there, both by device events from a "
            "cold L2"
          : "",
      NetworkTableHead(options.wide));
  record.method = absl::StrCat(
      "providers in turns of at most ", kTurn, " calls; path host: host clock",
      gpu ? "; paths device and floats: device events, L2 flushed before each; "
            "path devices: host clock over rounds of calls on all GPUs, from a "
            "warm L2"
          : "",
      "; percentiles by nearest rank; ",
      options.weights.empty() ? "random weights" : "weights from files");
  absl::Status status;
  for (size_t i = 0; i < options.networks.size(); ++i) {
    const Network& network = *options.networks[i];
    status = bench.MeasureNetwork(network, options.weights.empty()
                                               ? RandomWeights(network)
                                               : options.weights[i]);
    if (!status.ok()) break;
  }
  for (const cuda::Library* library : cuda::OpenedLibraries()) {
    const std::string version = cuda::ToString(library->version);
    record.gpu.libraries[library->name] = version;
    if (library->name == "cuDNN") record.peer = absl::StrCat("cuDNN ", version);
  }
  return status;
}

}  // namespace convlab
