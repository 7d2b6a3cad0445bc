#include "tools/bench/library_bench.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "convlab/include/convlab/convlab.hpp"
#include "kernels/cuda/device.h"
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
  static absl::StatusOr<OnGpu> Make(const convlab_problem& problem, int flags) {
    Options options;
    options.device = 0;
    options.flags = flags;
    OnGpu made(Plan(problem, options));
    const convlab_info& info = made.plan_.info();
    for (const auto& [buffer, bytes] :
         {std::pair(&made.x_, info.input_bytes),
          std::pair(&made.weights_, info.weight_bytes),
          std::pair(&made.y_, info.output_bytes),
          std::pair(&made.workspace_, info.workspace_bytes + 1)}) {
      ASSIGN_OR_RETURN(*buffer, DeviceBuffer::Allocate(bytes));
      RETURN_IF_ERROR(cuda::FillBytes(buffer->data(), 0, bytes));
    }
    return made;
  }

  const convlab_info& info() const { return plan_.info(); }
  void Run() const {
    plan_.Run(x_.data(), weights_.data(), nullptr, y_.data(),
              workspace_.data());
  }

 private:
  explicit OnGpu(Plan plan) : plan_(std::move(plan)) {}

  Plan plan_;
  DeviceBuffer x_, weights_, y_, workspace_;
};

absl::Status BenchCalls(const LibraryBenchOptions& options,
                        LibraryRecord& record) {
  if (!options.gpu) {
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
    record.calls.push_back({"one product", plan.info().kernel, ns});
    return absl::OkStatus();
  }
  const std::pair<const char*, NamedProblem> problems[] = {
      {"a variant", {"", 1, 1, 28, 28, 6, 5, 1, 0}},
      {"with padding", {"", 1, 1, 28, 28, 8, 5, 1, 2}},
      {"with strides", {"", 1, 3, 32, 32, 8, 3, 2, 0}}};
  for (const auto& [name, problem] : problems) {
    for (const int flags : {0, CONVLAB_TRUST_POINTERS}) {
      ASSIGN_OR_RETURN(const OnGpu run, OnGpu::Make(ProblemOf(problem), flags));
      ASSIGN_OR_RETURN(
          const double ns,
          MedianNs(options, kCalls, [&]() -> absl::StatusOr<int64_t> {
            RETURN_IF_ERROR(cuda::Synchronize());
            return HostNsOf(kCalls, [&run] { run.Run(); });
          }));
      record.calls.push_back(
          {absl::StrCat(name, flags == 0 ? "" : ", pointers trusted"),
           run.info().kernel, ns});
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
  ASSIGN_OR_RETURN(const double ns,
                   MedianNs(options, kRuns, [&]() -> absl::StatusOr<int64_t> {
                     RETURN_IF_ERROR(begin.Record());
                     for (int i = 0; i < kRuns; ++i) run.Run();
                     RETURN_IF_ERROR(end.Record());
                     return end.Since(begin);
                   }));
  return LibraryRow{problem.name, Describe(problem), run.info().kernel,
                    run.info().estimated_ns * 1e-3, ns * 1e-3};
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
  ASSIGN_OR_RETURN(const double ns, MedianNs(options, 1, [&] {
                     return HostNsOf(1, [&] {
                       plan.Run(x.data(), weights.data(), nullptr, y.data());
                     });
                   }));
  return LibraryRow{problem.name, Describe(problem), info.kernel,
                    info.estimated_ns * 1e-3, ns * 1e-3};
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
    RETURN_IF_ERROR(BenchCalls(options, record));
    for (const LibraryCall& call : record.calls) {
      absl::PrintF("call, %s (%s): %.0f ns\n", call.name, call.kernel, call.ns);
    }
    absl::PrintF("\n%-18s %-14s %12s %12s  %s\n", "problem", "kernel",
                 "estimate us", "median us", "operation");
    for (const NamedProblem& problem : kProblems) {
      ASSIGN_OR_RETURN(const LibraryRow row,
                       options.gpu ? BenchOnGpu(options, problem)
                                   : BenchOnCpu(options, problem));
      absl::PrintF("%-18s %-14s %12.1f %12.1f  %s\n", row.name, row.kernel,
                   row.estimated_us, row.us, row.operation);
      std::fflush(stdout);
      record.rows.push_back(row);
    }
  } catch (const Error& error) {
    return absl::InternalError(error.what());
  }
  return absl::OkStatus();
}

}  // namespace convlab
