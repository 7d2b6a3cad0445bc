#include "milestones/classifying/device.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/parallel/parallel.h"
#include "common/record/bench_record.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "kernels/compiled/compiled.h"
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

// Shares of the threads.
std::vector<ClassifyDevice> CpuDevices(const ClassifyOptions& options) {
  std::vector<ClassifyDevice> devices;
  const int workers = std::max(1, options.workers);
  for (int i = 0; i < workers; ++i) {
    // The first ones have one more where they cannot have as many.
    const int threads =
        std::max(1, (options.threads + workers - 1 - i) / workers);
    devices.push_back(
        {false, i, threads,
         absl::StrCat(workers == 1 ? "the CPU" : absl::StrCat("CPU worker ", i),
                      ", ", threads, " thread", threads == 1 ? "" : "s", ", ",
                      Name(ChosenCpuTarget())),
         "", std::string(Name(ChosenCpuTarget()))});
  }
  return devices;
}

absl::StatusOr<std::vector<ClassifyDevice>> GpuDevices(
    const ClassifyOptions& options, int local_rank) {
  if (options.workers > 0) {
    return absl::InvalidArgumentError(
        "--workers is of the CPU, and this runs on a GPU: expected --device "
        "cpu too, or no --workers");
  }
  const int there = cuda::CountDevices();
  const int count =
      options.gpus.value_or(1) == kAllGpus ? there : options.gpus.value_or(1);
  if (count > there) {
    return absl::UnavailableError(absl::StrCat(
        "--gpus is ", count, ", and there ",
        there == 1 ? "is 1 GPU" : absl::StrCat("are ", there, " GPUs")));
  }
  std::vector<ClassifyDevice> devices;
  for (int i = 0; i < count; ++i) {
    const int index = (local_rank * count + i) % there;
    const std::string name =
        there == 1 ? "the GPU" : absl::StrCat("GPU ", index);
    const cuda::CurrentDevice current(index);
    RETURN_IF_ERROR(Annotate(current.status(), name));
    const absl::StatusOr<cuda::DeviceFacts> facts = cuda::FindDevice();
    if (!facts.ok()) return Annotate(facts.status(), name);
    devices.push_back({true, index, std::max(1, options.threads / count),
                       absl::StrCat(name, ", ", facts->name), facts->pci_bus_id,
                       facts->name});
  }
  return devices;
}

}  // namespace

absl::StatusOr<std::vector<ClassifyDevice>> ChooseDevices(
    const ClassifyOptions& options, int local_rank) {
  // Looking for a GPU starts the driver.
  if (options.device == Device::kCpu) return CpuDevices(options);
  const absl::StatusOr<cuda::DeviceFacts> first = cuda::FindDevice();
  if (!first.ok()) {
    if (options.device == Device::kAuto && !options.gpus) {
      return CpuDevices(options);
    }
    return absl::UnavailableError(absl::StrCat(
        first.status().message(),
        "; use --device cpu, or carry the bundle (bazel build //tools:bundle) "
        "to a machine with a GPU"));
  }
  return GpuDevices(options, local_rank);
}

namespace {

// Memory for pieces from which the GPU takes images without another copy. Where
// the system refuses it, pieces have ordinary memory.
std::vector<cuda::PinnedBuffer> MakePieceMemory(const ClassifyDevice& device,
                                                const WorkerJob& job) {
  std::vector<cuda::PinnedBuffer> memory;
  if (!device.gpu || job.piece_bytes == 0) return memory;
  for (int i = 0; i < PiecesOf(job.options.readers); ++i) {
    auto buffer = cuda::PinnedBuffer::Allocate(job.piece_bytes);
    if (!buffer.ok()) break;
    memory.push_back(*std::move(buffer));
  }
  return memory;
}

absl::StatusOr<std::unique_ptr<CompiledNetwork>> Compile(
    const ClassifyDevice& device, const WorkerJob& job, Workers& workers) {
  if (device.gpu && job.gpu_piece > 0) {
    return CompileForGpuInPieces(job.network, job.weights, job.image_size,
                                 job.gpu_piece, workers);
  }
  return (device.gpu ? CompileForGpu : CompileForCpu)(job.network, job.weights,
                                                      job.image_size, workers);
}

}  // namespace

int64_t GpuPieceOf(const std::vector<ClassifyDevice>& devices,
                   const Network& network) {
  std::optional<int64_t> least;
  for (const ClassifyDevice& device : devices) {
    if (!device.gpu) continue;
    const cuda::CurrentDevice current(device.index);
    if (!current.status().ok()) continue;
    const absl::StatusOr<int64_t> images = GpuPieceImages(network);
    if (!images.ok()) continue;
    least = std::min(least.value_or(*images), *images);
  }
  return least.value_or(0);
}

WorkerResult RunWorker(const ClassifyDevice& device, const WorkerJob& job,
                       PieceFeed& feed, int worker) {
  WorkerResult result;
  bool told = false;
  result.status = CatchRefusals([&]() -> absl::Status {
    result.share.device = device.text;
    result.share.pci_bus_id = device.pci_bus_id;
    result.share.threads = device.threads;
    std::optional<cuda::CurrentDevice> current;
    if (device.gpu) {
      current.emplace(device.index);
      RETURN_IF_ERROR(current->status());
    }
    const Clock::time_point start = Clock::now();
    Workers workers(device.threads);
    ASSIGN_OR_RETURN(const auto compiled, Compile(device, job, workers));
    const std::vector<cuda::PinnedBuffer> memory = MakePieceMemory(device, job);
    WorkerOptions worker_options = job.options;
    for (const cuda::PinnedBuffer& buffer : memory) {
      worker_options.memory.push_back(static_cast<uint8_t*>(buffer.data()));
    }
    result.share.compile_ns =
        std::chrono::nanoseconds(Clock::now() - start).count();
    told = true;
    job.compiled();
    RETURN_IF_ERROR(
        WorkOnPieces(feed, worker, *compiled, worker_options, result.share));
    if (job.stages && result.share.images > 0) {
      result.stage_ns = compiled->StageNs();
      result.stage_images = compiled->StageImages();
      result.stage_kernels = compiled->StageKernels();
    }
    return absl::OkStatus();
  });
  // What failed among pieces is told.
  if (!result.status.ok() && result.share.lost.empty()) {
    feed.Lose(worker, result.status);
    result.share.lost = std::string(result.status.message());
  }
  if (!told) job.compiled();
  return result;
}

absl::StatusOr<Rates> MeasureRates(const ClassifyDevice& device) {
  if (!device.gpu) {
    Workers workers(device.threads);
    return MeasureCpuRates(workers);
  }
  const cuda::CurrentDevice current(device.index);
  RETURN_IF_ERROR(current.status());
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
