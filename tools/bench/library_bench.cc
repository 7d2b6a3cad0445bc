#include "tools/bench/library_bench.h"

#include <algorithm>
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
#include "kernels/measure/bare_launches.h"
#include "kernels/measure/op_time.h"

namespace convlab {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceStream;

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

// Calls sample(i) for as many samples as the options say, from 0 on. Before
// them, what sample(-1) measures does not count: it loads code and fills
// caches.
template <typename Sample>
absl::Status ForSamples(const LibraryBenchOptions& options,
                        const Sample& sample) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  };
  RETURN_IF_ERROR(sample(-1));
  for (int i = 0; i < options.samples && (i < 3 || seconds() < options.seconds);
       ++i) {
    RETURN_IF_ERROR(sample(i));
  }
  return absl::OkStatus();
}

// The median of what measure() returns, the nanoseconds of `calls` calls; of
// one of them.
template <typename Measure>
absl::StatusOr<double> MedianNs(const LibraryBenchOptions& options, int calls,
                                const Measure& measure) {
  std::vector<int64_t> times;
  RETURN_IF_ERROR(ForSamples(options, [&](int i) -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t ns, measure());
    if (i >= 0) times.push_back(ns);
    return absl::OkStatus();
  }));
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
  // In the default stream unless another is given.
  void Run(CUstream_st* stream = nullptr) const {
    plan_.Run(x_.data(), weights_.data(), nullptr, y_.data(), workspace_.data(),
              stream);
  }
  void RunPrepared(CUstream_st* stream = nullptr) const {
    plan_.RunPrepared(x_.data(), prepared_.data(), nullptr, y_.data(),
                      workspace_.data(), stream);
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
  record.calls.push_back({"one product", plan.info().kernel, /*launches=*/0, ns,
                          /*launches_ns=*/0, ns});
  return absl::OkStatus();
}

// Measures the host's time of a call that queues kernels on the GPU, behind
// others that have not ended yet; by turns, so that clocks and neighbours of
// the host are the same, that of launching the same kernels with the same
// arguments, in both ways in which they may have been launched. The faster one
// counts, so that what the call takes besides its launches is rather too much.
// `call` takes a stream.
template <typename Call>
absl::Status MeasureQueueing(const LibraryBenchOptions& options,
                             const DeviceStream& stream, const Call& call,
                             LibraryCall& measured) {
  ASSIGN_OR_RETURN(const cuda::BareLaunches bare,
                   cuda::BareLaunches::Of(stream, [&] {
                     call(stream.get());
                     return absl::OkStatus();
                   }));
  measured.launches = bare.count();
  std::vector<int64_t> calls, launches, besides;
  absl::Status launched;
  const auto launch = [&launched, &bare](bool overlapping) {
    return [&launched, &bare, overlapping] {
      launched.Update(bare.Start(overlapping));
    };
  };
  const auto host_ns = [](const auto& of) -> absl::StatusOr<int64_t> {
    RETURN_IF_ERROR(cuda::Synchronize());
    return HostNsOf(kCalls, of);
  };
  RETURN_IF_ERROR(ForSamples(options, [&](int i) -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t plain_ns, host_ns(launch(false)));
    ASSIGN_OR_RETURN(const int64_t overlapping_ns, host_ns(launch(true)));
    ASSIGN_OR_RETURN(const int64_t call_ns, host_ns([&] { call(nullptr); }));
    if (i < 0) return launched;
    calls.push_back(call_ns);
    launches.push_back(std::min(plain_ns, overlapping_ns));
    besides.push_back(call_ns - launches.back());
    return launched;
  }));
  measured.ns = Median(calls) / kCalls;
  measured.launches_ns = Median(launches) / kCalls;
  measured.overhead_ns = Median(besides) / kCalls;
  return absl::OkStatus();
}

absl::Status BenchCallsOnGpu(const LibraryBenchOptions& options,
                             LibraryRecord& record) {
  // tensor_split arranges its filters before it runs, and pools by a kernel of
  // its own.
  const struct {
    const char *name, *kernel;
    NamedProblem problem;
    int pool;
  } cases[] = {
      {"with strides", "general", {"", 1, 3, 32, 32, 8, 3, 2, 0}, 0},
      {"without", "few_images", {"", 1, 1, 28, 28, 6, 5, 1, 0}, 0},
      {"filters arranged", "tensor_split", {"", 1, 1, 28, 28, 8, 5, 1, 2}, 0},
      {"and pooled", "tensor_split", {"", 1, 1, 28, 28, 8, 5, 1, 2}, 2}};
  ASSIGN_OR_RETURN(const DeviceStream stream, DeviceStream::Create());
  for (const auto& one : cases) {
    for (const int flags : {0, CONVLAB_TRUST_POINTERS}) {
      convlab_problem problem = ProblemOf(one.problem);
      problem.pool_size = problem.pool_stride = one.pool;
      ASSIGN_OR_RETURN(
          const OnGpu run,
          OnGpu::Make(problem, flags | CONVLAB_CAPTURABLE, one.kernel));
      const auto add = [&](const char* how, const auto& call) -> absl::Status {
        LibraryCall measured;
        measured.name =
            absl::StrCat(one.name, how, flags == 0 ? "" : ", pointers trusted");
        measured.kernel = run.info().kernel;
        RETURN_IF_ERROR(MeasureQueueing(options, stream, call, measured));
        record.calls.push_back(measured);
        return absl::OkStatus();
      };
      RETURN_IF_ERROR(add("", [&run](CUstream_st* in) { run.Run(in); }));
      RETURN_IF_ERROR(add(", weights prepared",
                          [&run](CUstream_st* in) { run.RunPrepared(in); }));
    }
  }
  return cuda::Synchronize();
}

absl::StatusOr<LibraryRow> BenchOnGpu(const LibraryBenchOptions& options,
                                      const NamedProblem& problem) {
  ASSIGN_OR_RETURN(const OnGpu run,
                   OnGpu::Make(ProblemOf(problem),
                               CONVLAB_CAPTURABLE | CONVLAB_TRUST_POINTERS));
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
                "calls by the host's clock, ", kCalls,
                " in a row by turns with launches of the same kernels; problems"
                " by device events around ",
                kRuns, " runs in a row of plans that can be captured, warm L2")
          : "by the host's clock, warm caches";
  try {
    RETURN_IF_ERROR(options.gpu ? BenchCallsOnGpu(options, record)
                                : BenchCallsOnCpu(options, record));
    absl::PrintF("%-48s %-12s %9s %9s %13s %11s\n", "call", "kernel",
                 "median ns", "launches", "CUDA's ns", "besides them");
    for (const LibraryCall& call : record.calls) {
      absl::PrintF("%-48s %-12s %9.0f %9d %13.0f %12.0f\n", call.name,
                   call.kernel, call.ns, call.launches, call.launches_ns,
                   call.overhead_ns);
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
