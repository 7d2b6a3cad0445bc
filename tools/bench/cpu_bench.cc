#include "tools/bench/cpu_bench.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/accuracy/accuracy.h"
#include "common/hash/mix.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/baseline/onednn.h"
#include "kernels/measure/cpu_ceilings.h"
#include "kernels/measure/hard_limits.h"
#include "kernels/measure/op_time.h"
#include "kernels/measure/sampled_reference.h"
#include "tools/bench/host_tensors.h"
#include "tools/bench/kernel_bench.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

// A pause between implementations: threads that spin for a while before they
// sleep, as oneDNN's do with some settings of OMP_WAIT_POLICY, would take cores
// from the next one.
constexpr auto kPause = std::chrono::milliseconds(5);

// Roughly the time of a convolution.
constexpr double kFmaSeconds = 0.02;

int64_t Nanoseconds(Clock::duration duration) {
  return std::chrono::nanoseconds(duration).count();
}

// One implementation that takes part in the rounds of a layer.
struct Contestant {
  Measurement measurement;
  std::function<absl::Status()> run;
  std::function<absl::Status()> poison;
  std::function<absl::Status()> collect;  // copies the output to the tensors' y
  // Whether it computes on the tensors. A library has its own copy of the first
  // inputs.
  bool shares_tensors = true;
  int drawn_sample = 0;  // whose whole output is checked, from 1
  int64_t spent_ns = 0;  // in its turns, with everything round the sample
  bool done = false;
};

class CpuBench {
 public:
  CpuBench(const BenchOptions& options, Workers& workers, BenchRecord& record,
           Report& report)
      : options_(options),
        workers_(workers),
        record_(record),
        report_(report),
        triad_(workers) {
    // Rounds of the multiply-adds for kFmaSeconds.
    RunFma(workers_, fma_rounds_);
    const Clock::time_point start = Clock::now();
    RunFma(workers_, fma_rounds_);
    const std::chrono::duration<double> seconds = Clock::now() - start;
    fma_rounds_ = std::max<int64_t>(
        1, fma_rounds_ * kFmaSeconds / std::max(seconds.count(), 1e-9));
    triad_.Run();
  }

  absl::Status MeasureLayer(const NamedLayer& layer) {
    BenchTensors tensors(layer.problem, options_.recipe(),
                         options_.ordinary_data(), workers_);
    std::vector<Contestant> contestants;
    ASSIGN_OR_RETURN(const std::vector<const Variant*> variants,
                     VariantsFor(options_, layer.problem));
    for (const Variant* variant : variants) {
      Admit(layer, tensors, MakeVariant(layer, *variant, tensors),
            {"convlab", variant->name, variant->accuracy}, contestants);
    }
    if (options_.peers) {
      for (const auto& [layout, name] :
           {std::pair(OneDnnLayout::kNchw, "nchw"),
            std::pair(OneDnnLayout::kPreferred, "preferred")}) {
        Admit(layer, tensors, MakeOneDnn(layer, layout, tensors),
              {"onednn", name, AccuracyClass::kFp32}, contestants);
      }
    }
    const Ceilings ceilings = RunRounds(layer, tensors, contestants);
    const HardLimits limits = Limits();
    for (const Contestant& contestant : contestants) {
      const Measurement& measurement = contestant.measurement;
      const absl::Status possible =
          CheckLimits(layer.problem, /*products=*/1, measurement.bytes,
                      Median(measurement.samples_ns), limits);
      if (possible.ok()) {
        report_.Add(layer, measurement, ceilings);
      } else {
        Fail(layer, measurement, possible);
      }
    }
    RETURN_IF_ERROR(
        MeasureKernels(options_, layer, workers_, ceilings, limits, report_));
    report_.PrintLayer();
    return absl::OkStatus();
  }

  // The ceilings of all layers' rounds so far.
  Ceilings OverallCeilings() const { return Derive(fma_ns_, triad_ns_); }

 private:
  struct Name {
    const char* provider;
    const char* variant;
    AccuracyClass accuracy;
  };

  absl::StatusOr<Contestant> MakeVariant(const NamedLayer& layer,
                                         const Variant& variant,
                                         BenchTensors& tensors) {
    Resources resources;
    resources.workers = &workers_;
    ASSIGN_OR_RETURN(auto made, variant.Create(layer.problem, resources));
    const std::shared_ptr<Convolution> convolution = std::move(made);
    Contestant contestant;
    contestant.run = [convolution, &tensors] {
      return convolution->Run(tensors.x(), tensors.k(), tensors.y(),
                              /*stream=*/nullptr);
    };
    contestant.poison = [&tensors] {
      tensors.Poison();
      return absl::OkStatus();
    };
    contestant.collect = [] { return absl::OkStatus(); };
    return contestant;
  }

  absl::StatusOr<Contestant> MakeOneDnn(const NamedLayer& layer,
                                        OneDnnLayout layout,
                                        BenchTensors& tensors) {
    ASSIGN_OR_RETURN(const std::string version, OpenOneDnn());
    record_.peer = absl::StrCat("oneDNN ", version);
    ASSIGN_OR_RETURN(auto made, OneDnnConvolution::Create(
                                    layer.problem, layout, workers_.count(),
                                    tensors.x(), tensors.k()));
    if (options_.verbose) {
      report_.Tell(
          absl::StrCat(layer.name, " oneDNN ",
                       layout == OneDnnLayout::kNchw ? "nchw" : "preferred",
                       ": ", made->implementation()));
    }
    const std::shared_ptr<OneDnnConvolution> convolution = std::move(made);
    Contestant contestant;
    contestant.run = [convolution] { return convolution->Run(); };
    contestant.poison = [convolution, &tensors] {
      tensors.Poison();
      convolution->Poison();
      return absl::OkStatus();
    };
    contestant.collect = [convolution, &tensors] {
      return convolution->Read(tensors.y());
    };
    contestant.shares_tensors = false;
    return contestant;
  }

  // Verifies the contestant, which also warms it up, and admits it to the
  // rounds.
  void Admit(const NamedLayer& layer, BenchTensors& tensors,
             absl::StatusOr<Contestant> made, const Name& name,
             std::vector<Contestant>& contestants) {
    report_.Progress(absl::StrCat(layer.name, ": verifying ", name.provider,
                                  " ", name.variant));
    const auto verify = [&]() -> absl::Status {
      RETURN_IF_ERROR(made.status());
      Measurement& measurement = made->measurement;
      measurement.provider = name.provider;
      measurement.variant = name.variant;
      measurement.accuracy = name.accuracy;
      measurement.bytes = layer.problem.min_bytes();
      RETURN_IF_ERROR(made->poison());
      RETURN_IF_ERROR(made->run());
      RETURN_IF_ERROR(made->collect());
      ASSIGN_OR_RETURN(const MeasuredError error, tensors.Error());
      measurement.error = error.relative;
      measurement.worst = error.worst;
      RETURN_IF_ERROR(tensors.CheckUse());
      return CheckMeasured(error, name.accuracy, options_.ordinary_data());
    };
    const absl::Status status = verify();
    // What this one may have done to them is not the next one's fault.
    tensors.Restore();
    if (status.ok()) {
      // Any of those that the rule is sure to ask for, if time does not end
      // them: then it is the last.
      made->drawn_sample =
          static_cast<int>(1 + NextRandom() % options_.rule.min_samples);
      contestants.push_back(*std::move(made));
      return;
    }
    report_.Omit(
        layer, name.provider, name.variant, name.accuracy, status.message(),
        !absl::IsUnimplemented(status) && !absl::IsUnavailable(status));
  }

  // Takes a sample and checks what it computed.
  absl::Status TakeSample(Contestant& contestant, BenchTensors& tensors) {
    Measurement& measurement = contestant.measurement;
    const Clock::time_point turn = Clock::now();
    if (contestant.shares_tensors) tensors.Renew(NextRandom());
    std::this_thread::sleep_for(kPause);
    const Clock::time_point flush = Clock::now();
    triad_.Run();
    triad_ns_.push_back(Nanoseconds(Clock::now() - flush));
    ASSIGN_OR_RETURN(const int64_t ns, HostNs(contestant.run));
    measurement.samples_ns.push_back(ns);
    if (contestant.shares_tensors) {
      RETURN_IF_ERROR(tensors.CheckUse());
      RETURN_IF_ERROR(
          tensors.CheckDrawnOutputs(measurement.accuracy, NextRandom()));
    }
    contestant.spent_ns += Nanoseconds(Clock::now() - turn);
    contestant.done = EnoughSamples(measurement.samples_ns,
                                    contestant.spent_ns * 1e-9, options_.rule);
    const int sample = static_cast<int>(measurement.samples_ns.size());
    if (sample != contestant.drawn_sample &&
        !(contestant.done && sample < contestant.drawn_sample)) {
      return absl::OkStatus();
    }
    if (!contestant.shares_tensors) {
      tensors.Restore();
      RETURN_IF_ERROR(contestant.collect());
    }
    return tensors.CheckWholeOutput(measurement.accuracy, NextRandom());
  }

  // Runs the contestants in turn until each has enough samples; one that fails
  // is dropped.
  Ceilings RunRounds(const NamedLayer& layer, BenchTensors& tensors,
                     std::vector<Contestant>& contestants) {
    const size_t first_fma = fma_ns_.size(), first_triad = triad_ns_.size();
    for (int round = 1;; ++round) {
      bool any = false;
      for (size_t i = 0; i < contestants.size(); ++i) {
        Contestant& contestant = contestants[i];
        const Measurement& measurement = contestant.measurement;
        if (contestant.done) continue;
        any = true;
        report_.Progress(absl::StrCat(layer.name, ": round ", round, ", ",
                                      measurement.provider, " ",
                                      measurement.variant));
        const absl::Status status = TakeSample(contestant, tensors);
        if (status.ok()) continue;
        Fail(layer, measurement,
             Annotate(status, absl::StrCat("sample ", round)));
        contestants.erase(contestants.begin() + i--);
      }
      if (!any) break;
      std::this_thread::sleep_for(kPause);
      const Clock::time_point start = Clock::now();
      RunFma(workers_, fma_rounds_);
      fma_ns_.push_back(Nanoseconds(Clock::now() - start));
    }
    return Derive({fma_ns_.begin() + first_fma, fma_ns_.end()},
                  {triad_ns_.begin() + first_triad, triad_ns_.end()});
  }

  void Fail(const NamedLayer& layer, const Measurement& measurement,
            const absl::Status& status) {
    report_.Omit(layer, measurement.provider, measurement.variant,
                 measurement.accuracy, status.message(), /*failed=*/true);
  }

  uint64_t NextRandom() { return Mix(record_.check_seed, random_++); }

  // By the best multiply-adds of all rounds so far, which is what the machine
  // can do.
  HardLimits Limits() const {
    if (fma_ns_.empty()) return {};
    return LimitsOfCpu(FmaTflops(static_cast<double>(
        *std::min_element(fma_ns_.begin(), fma_ns_.end()))));
  }

  double FmaTflops(double ns) const {
    return 1e-3 * fma_rounds_ * workers_.count() * kFmaRoundFlops / ns;
  }

  Ceilings Derive(const std::vector<int64_t>& fma_ns,
                  const std::vector<int64_t>& triad_ns) const {
    Ceilings ceilings;
    if (!fma_ns.empty()) {
      ceilings.fp32_tflops = FmaTflops(Median(fma_ns));
    }
    if (!triad_ns.empty())
      ceilings.triad_gbs = triad_.bytes() / Median(triad_ns);
    return ceilings;
  }

  const BenchOptions& options_;
  Workers& workers_;
  BenchRecord& record_;
  Report& report_;
  Triad triad_;
  int64_t fma_rounds_ = 100000;
  uint64_t random_ = 0;  // numbers drawn so far
  std::vector<int64_t> fma_ns_, triad_ns_;
};

// A lower bound of the memory in bytes that measuring the problem takes: the
// tensors, copies of the inputs, and the library's copies in both layouts. A
// double, since it may exceed 64 bits.
double LeastMemory(const Problem& problem, bool peers) {
  const double x = 4.0 * problem.input_elements();
  const double k = 4.0 * problem.kernel_elements();
  const double y = 4.0 * problem.output_elements();
  return 2 * (x + k) + y + (peers ? 2 * (x + k + y) : 0);
}

// Returns ResourceExhausted if the host has less memory: the system may grant
// the allocation and kill the process later. `host_bytes` is 0 if it is not
// known.
absl::Status CheckMemory(const NamedLayer& layer, bool peers,
                         int64_t host_bytes) {
  const double bytes = LeastMemory(layer.problem, peers);
  if (host_bytes == 0 || bytes <= static_cast<double>(host_bytes)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "there is not enough memory: ", layer.name, " (", ToString(layer.problem),
      ") takes at least ", FormatBytes(bytes), ", and the host has ",
      FormatBytes(static_cast<double>(host_bytes))));
}

}  // namespace

absl::Status BenchCpu(const BenchOptions& options, Workers& workers,
                      BenchRecord& record, Report& report) {
  // Checked first, not after hours of measuring other layers.
  for (const NamedLayer& layer : options.layers) {
    RETURN_IF_ERROR(
        CheckMemory(layer, options.peers, record.host.memory_bytes));
  }
  CpuBench bench(options, workers, record, report);
  for (const NamedLayer& layer : options.layers) {
    report.BeginLayer(layer);
    RETURN_IF_ERROR(bench.MeasureLayer(layer));
  }
  record.ceilings = bench.OverallCeilings();
  report.Tell(absl::StrCat(record.host.cpu, ", ", workers.count(), " threads, ",
                           WidestFma(), ", ", CeilingsLine(record.ceilings)));
  return absl::OkStatus();
}

}  // namespace convlab
