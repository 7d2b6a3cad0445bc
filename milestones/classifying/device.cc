#include "milestones/classifying/device.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/record/bench_record.h"
#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/cpu_ceilings.h"
#include "kernels/measure/gpu_ceilings.h"
#include "kernels/simd/cpu_target.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// All threads together.
Rates MeasureCpuRates(Workers& workers) {
  constexpr int64_t kRounds = 2000000;
  constexpr int kTimes = 3;
  Triad triad(workers);
  triad.Run();
  Rates rates;
  for (int i = 0; i < kTimes; ++i) {
    Clock::time_point start = Clock::now();
    RunFma(workers, kRounds);
    const double tflops = 1e-12 * kRounds * workers.count() * kFmaRoundFlops /
                          SecondsSince(start);
    rates.fp32_tflops = std::max(rates.fp32_tflops.value_or(0), tflops);
    start = Clock::now();
    triad.Run();
    rates.memory_gbs = std::max(rates.memory_gbs.value_or(0),
                                1e-9 * triad.bytes() / SecondsSince(start));
  }
  return rates;
}

}  // namespace

absl::StatusOr<ClassifyDevice> ChooseDevice(const ClassifyOptions& options) {
  const ClassifyDevice cpu = {
      false, absl::StrCat("the CPU, ", options.threads, " thread",
                          options.threads == 1 ? "" : "s", ", ",
                          Name(ChosenCpuTarget()))};
  if (options.device == Device::kCpu) return cpu;
  const auto gpu = cuda::FindDevice();
  if (gpu.ok())
    return ClassifyDevice{true, absl::StrCat("the GPU, ", gpu->name)};
  if (options.device == Device::kAuto) return cpu;
  return absl::UnavailableError(absl::StrCat(
      gpu.status().message(),
      "; use --device cpu, or carry the bundle (bazel build //tools:bundle) to "
      "a machine with a GPU"));
}

absl::StatusOr<std::unique_ptr<CompiledNetwork>> Compile(
    const ClassifyDevice& device, const Network& network,
    const NetworkWeights& weights, int image_size, Workers& workers) {
  return device.gpu ? CompileForGpu(network, weights, image_size, workers)
                    : CompileForCpu(network, weights, image_size, workers);
}

absl::StatusOr<Rates> MeasureRates(const ClassifyDevice& device,
                                   Workers& workers) {
  if (!device.gpu) return MeasureCpuRates(workers);
  ASSIGN_OR_RETURN(const Ceilings ceilings, MeasureGpuCeilings());
  Rates rates = RatesOf(ceilings);
  constexpr double kProducts = 3;
  rates.fp32_tflops = std::max(rates.fp32_tflops.value_or(0),
                               rates.fp16_tflops.value_or(0) / kProducts);
  if (rates.fp32_tflops == 0.0 || !rates.memory_gbs.has_value()) {
    return absl::InternalError("the GPU's rates could not be measured");
  }
  return rates;
}

}  // namespace convlab
