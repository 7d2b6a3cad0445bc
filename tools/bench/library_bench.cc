#include "tools/bench/library_bench.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "convlab/include/convlab/convlab.hpp"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_loads.h"
#include "kernels/measure/op_time.h"

namespace convlab {
namespace {

using cuda::DeviceBuffer;

struct NamedProblem {
  const char* name;
  int64_t batch, channels, height, width, filters, kernel, stride, padding;
};
constexpr NamedProblem kProblems[] = {
#include "convlab/measure/problems.inc"
};

// Calls between two waits, so that a GPU's queue never is full.
constexpr int kCalls = 200;
// Of prepared weights, as convlab.h says.
constexpr int kAlignment = 256;
// Runs of a problem between two events: the GPU never waits for the host.
constexpr int kRuns = 20;

// The median of what sample() returns, the nanoseconds of `calls` calls; of one
// of them.
template <typename Sample>
absl::StatusOr<double> MedianNs(const LibraryBenchOptions& options, int calls,
                                const Sample& sample) {
  std::vector<int64_t> times;
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  };
  RETURN_IF_ERROR(sample().status());  // loads code, fills caches
  while (static_cast<int>(times.size()) < options.samples &&
         (times.size() < 3 || seconds() < options.seconds)) {
    ASSIGN_OR_RETURN(times.emplace_back(), sample());
  }
  return Median(times) / calls;
}

// The host's time of `calls` calls.
template <typename Call>
absl::StatusOr<int64_t> HostNsOf(int calls, const Call& call) {
  return HostNs([&] {
    for (int i = 0; i < calls; ++i) call();
    return absl::OkStatus();
  });
}

convlab_problem ProblemOf(const NamedProblem& named) {
  convlab_problem problem = CONVLAB_PROBLEM_INIT;
  problem.batch = named.batch, problem.channels = named.channels;
  problem.height = named.height, problem.width = named.width;
  problem.filters = named.filters;
  problem.kernel_height = problem.kernel_width = named.kernel;
  problem.stride_height = problem.stride_width = named.stride;
  problem.padding_top = problem.padding_bottom = named.padding;
  problem.padding_left = problem.padding_right = named.padding;
  return problem;
}

std::string Describe(const NamedProblem& p) {
  return absl::StrCat(p.batch, "x", p.channels, "x", p.height, "x", p.width,
                      ", ", p.filters, " filters of ", p.kernel, "x", p.kernel,
                      ", stride ", p.stride, ", padding ", p.padding);
}

// A plan with device tensors of zeros.
class OnGpu {
 public:
  // By the kernel that is named, or the fastest by its estimate.
  static absl::StatusOr<OnGpu> Make(const convlab_problem& problem, int flags,
                                    const char* kernel = nullptr) {
    Options options;
    options.device = 0;
    options.flags = flags;
    options.kernel = kernel;
    OnGpu made(Plan(problem, options));
    const convlab_info& info = made.plan_.info();
    for (const auto& [buffer, bytes] :
         {std::pair(&made.x_, info.input_bytes),
          std::pair(&made.weights_, info.weight_bytes),
          std::pair(&made.prepared_, info.prepared_bytes),
          std::pair(&made.y_, info.output_bytes),
          std::pair(&made.workspace_, info.workspace_bytes + 1)}) {
      ASSIGN_OR_RETURN(*buffer, DeviceBuffer::Allocate(bytes));
      RETURN_IF_ERROR(cuda::FillBytes(buffer->data(), 0, bytes));
    }
    made.plan_.PrepareWeights(made.weights_.data(), made.prepared_.data());
    return made;
  }

  const convlab_info& info() const { return plan_.info(); }
  void Run() const {
    plan_.Run(x_.data(), weights_.data(), nullptr, y_.data(),
              workspace_.data());
  }
  void RunPrepared() const {
    plan_.RunPrepared(x_.data(), prepared_.data(), nullptr, y_.data(),
                      workspace_.data());
  }

 private:
  explicit OnGpu(Plan plan) : plan_(std::move(plan)) {}

  Plan plan_;
  DeviceBuffer x_, weights_, prepared_, y_, workspace_;
};

absl::Status BenchCallsOnCpu(const LibraryBenchOptions& options,
                             LibraryRecord& record) {
  Options one;
  one.threads = 1;
  const convlab_problem problem = CONVLAB_PROBLEM_INIT;
  const Plan plan(problem, one);
  const float x = 1, weight = 1;
  float y = 0;
  ASSIGN_OR_RETURN(const double ns, MedianNs(options, kCalls, [&] {
                     return HostNsOf(
                         kCalls, [&] { plan.Run(&x, &weight, nullptr, &y); });
                   }));
  record.calls.push_back(
      {"one product", plan.info().kernel, /*launches=*/0, ns, ns});
  return absl::OkStatus();
}

// The host's time of a call that queues work on the GPU, behind others that
// have not ended yet.
template <typename Call>
absl::StatusOr<double> QueueingNs(const LibraryBenchOptions& options,
                                  const Call& call) {
  return MedianNs(options, kCalls, [&]() -> absl::StatusOr<int64_t> {
    RETURN_IF_ERROR(cuda::Synchronize());
    return HostNsOf(kCalls, call);
  });
}

absl::Status BenchCallsOnGpu(const LibraryBenchOptions& options,
                             LibraryRecord& record) {
  absl::Status launched;
  ASSIGN_OR_RETURN(const double launch_ns, QueueingNs(options, [&launched] {
                     launched.Update(cuda::StartWait(0));
                   }));
  RETURN_IF_ERROR(launched);
  record.calls.push_back(
      {"a launch by the CUDA runtime", "", /*launches=*/1, launch_ns, 0});
  // Launches of a run, and of one with prepared weights. tensor_split arranges
  // its filters before, and padding is a kernel of its own.
  const struct {
    const char *name, *kernel;
    NamedProblem problem;
    int launches, prepared_launches;
  } cases[] = {
      {"with strides", "general", {"", 1, 3, 32, 32, 8, 3, 2, 0}, 1, 1},
      {"without", "few_images", {"", 1, 1, 28, 28, 6, 5, 1, 0}, 1, 1},
      {"filters arranged",
       "tensor_split",
       {"", 1, 1, 28, 28, 8, 5, 1, 0},
       2,
       1},
      {"with padding", "tensor_split", {"", 1, 1, 28, 28, 8, 5, 1, 2}, 3, 2}};
  for (const auto& one : cases) {
    for (const int flags : {0, CONVLAB_TRUST_POINTERS}) {
      ASSIGN_OR_RETURN(const OnGpu run,
                       OnGpu::Make(ProblemOf(one.problem), flags, one.kernel));
      const auto add = [&](const char* how, int launches,
                           const auto& call) -> absl::Status {
        ASSIGN_OR_RETURN(const double ns, QueueingNs(options, call));
        record.calls.push_back(
            {absl::StrCat(one.name, how,
                          flags == 0 ? "" : ", pointers trusted"),
             run.info().kernel, launches, ns, ns - launches * launch_ns});
        return absl::OkStatus();
      };
      RETURN_IF_ERROR(add("", one.launches, [&run] { run.Run(); }));
      RETURN_IF_ERROR(add(", weights prepared", one.prepared_launches,
                          [&run] { run.RunPrepared(); }));
    }
  }
  return cuda::Synchronize();
}

absl::StatusOr<LibraryRow> BenchOnGpu(const LibraryBenchOptions& options,
                                      const NamedProblem& problem) {
  ASSIGN_OR_RETURN(const OnGpu run,
                   OnGpu::Make(ProblemOf(problem), CONVLAB_TRUST_POINTERS));
  ASSIGN_OR_RETURN(cuda::Event begin, cuda::Event::Create());
  ASSIGN_OR_RETURN(cuda::Event end, cuda::Event::Create());
  const auto median_ns = [&](const auto& call) {
    return MedianNs(options, kRuns, [&]() -> absl::StatusOr<int64_t> {
      RETURN_IF_ERROR(begin.Record());
      for (int i = 0; i < kRuns; ++i) call();
      RETURN_IF_ERROR(end.Record());
      return end.Since(begin);
    });
  };
  ASSIGN_OR_RETURN(const double ns, median_ns([&run] { run.Run(); }));
  ASSIGN_OR_RETURN(const double prepared_ns,
                   median_ns([&run] { run.RunPrepared(); }));
  return LibraryRow{problem.name,      Describe(problem),
                    run.info().kernel, run.info().estimated_ns * 1e-3,
                    ns * 1e-3,         prepared_ns * 1e-3};
}

absl::StatusOr<LibraryRow> BenchOnCpu(const LibraryBenchOptions& options,
                                      const NamedProblem& problem) {
  Options threads;
  threads.threads = options.threads;
  const Plan plan(ProblemOf(problem), threads);
  const convlab_info& info = plan.info();
  const std::vector<float> x(info.input_bytes / 4, 1);
  const std::vector<float> weights(info.weight_bytes / 4, 1);
  std::vector<float> y(info.output_bytes / 4);
  std::vector<char> memory(info.prepared_bytes + kAlignment);
  void* prepared = memory.data();
  size_t space = memory.size();
  std::align(kAlignment, info.prepared_bytes, prepared, space);
  plan.PrepareWeights(weights.data(), prepared);
  const auto median_ns = [&](const auto& call) {
    return MedianNs(options, 1, [&call] { return HostNsOf(1, call); });
  };
  ASSIGN_OR_RETURN(const double ns, median_ns([&] {
                     plan.Run(x.data(), weights.data(), nullptr, y.data());
                   }));
  ASSIGN_OR_RETURN(const double prepared_ns, median_ns([&] {
                     plan.RunPrepared(x.data(), prepared, nullptr, y.data());
                   }));
  return LibraryRow{problem.name, Describe(problem),
                    info.kernel,  info.estimated_ns * 1e-3,
                    ns * 1e-3,    prepared_ns * 1e-3};
}

}  // namespace

absl::Status BenchLibrary(const LibraryBenchOptions& options,
                          LibraryRecord& record) {
  record.method =
      options.gpu
          ? absl::StrCat(
                "calls by the host's clock; problems by device events around ",
                kRuns, " runs in a row, warm L2")
          : "by the host's clock, warm caches";
  try {
    RETURN_IF_ERROR(options.gpu ? BenchCallsOnGpu(options, record)
                                : BenchCallsOnCpu(options, record));
    absl::PrintF("%-48s %-12s %9s %9s %12s\n", "call", "kernel", "launches",
                 "median ns", "besides them");
    for (const LibraryCall& call : record.calls) {
      absl::PrintF("%-48s %-12s %9d %9.0f %12.0f\n", call.name, call.kernel,
                   call.launches, call.ns, call.overhead_ns);
    }
    absl::PrintF("\n%-18s %-14s %12s %12s %12s  %s\n", "problem", "kernel",
                 "estimate us", "median us", "prepared us", "operation");
    for (const NamedProblem& problem : kProblems) {
      ASSIGN_OR_RETURN(const LibraryRow row,
                       options.gpu ? BenchOnGpu(options, problem)
                                   : BenchOnCpu(options, problem));
      const std::string estimate =
          row.estimated_us > 0 ? absl::StrFormat("%.1f", row.estimated_us)
                               : "-";
      absl::PrintF("%-18s %-14s %12s %12.1f %12.1f  %s\n", row.name, row.kernel,
                   estimate, row.us, row.prepared_us, row.operation);
      std::fflush(stdout);
      record.rows.push_back(row);
    }
  } catch (const Error& error) {
    return ToStatus(error);
  }
  return absl::OkStatus();
}

absl::Status ToStatus(const Error& error) {
  switch (error.status()) {
    case CONVLAB_INVALID_ARGUMENT:
      return absl::InvalidArgumentError(error.what());
    case CONVLAB_UNSUPPORTED:
      return absl::UnimplementedError(error.what());
    case CONVLAB_NO_DEVICE:
      return absl::UnavailableError(error.what());
    case CONVLAB_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(error.what());
    default:
      return absl::InternalError(error.what());
  }
}

}  // namespace convlab
