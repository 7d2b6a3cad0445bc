// What a call of the library costs the host: the time of convlab_run on a GPU,
// which queues work and returns, for some problems, and on the CPU for one that
// is too small to take time itself.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "convlab/include/convlab/convlab.hpp"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

// Runs between two waits, so that the queue never is full; and how often.
constexpr int kCalls = 200, kRounds = 50;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The median over rounds of a call's time, in nanoseconds.
template <typename Call, typename Wait>
double MedianNs(const Call& call, const Wait& wait) {
  std::vector<double> times;
  call();
  wait();
  for (int round = 0; round < kRounds; ++round) {
    const int64_t begin = NowNs();
    for (int i = 0; i < kCalls; ++i) call();
    times.push_back(static_cast<double>(NowNs() - begin) / kCalls);
    wait();
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

convlab_problem ProblemOf(int64_t channels, int64_t size, int64_t filters,
                          int64_t kernel_size) {
  convlab_problem problem = CONVLAB_PROBLEM_INIT;
  problem.channels = channels;
  problem.height = problem.width = size;
  problem.filters = filters;
  problem.kernel_height = problem.kernel_width = kernel_size;
  return problem;
}

void PrintCpu() {
  Options options;
  options.threads = 1;
  const Plan plan(ProblemOf(1, 1, 1, 1), options);
  const float x = 1, weight = 1;
  float y = 0;
  std::printf("CPU, 1 product: %.0f ns\n",
              MedianNs([&] { plan.Run(&x, &weight, nullptr, &y); }, [] {}));
}

absl::Status PrintGpu(const char* what, const convlab_problem& problem,
                      int flags) {
  Options options;
  options.device = 0;
  options.flags = flags;
  const Plan plan(problem, options);
  const convlab_info& info = plan.info();
  using cuda::DeviceBuffer;
  ASSIGN_OR_RETURN(const auto x, DeviceBuffer::Allocate(info.input_bytes));
  ASSIGN_OR_RETURN(const auto w, DeviceBuffer::Allocate(info.weight_bytes));
  ASSIGN_OR_RETURN(const auto y, DeviceBuffer::Allocate(info.output_bytes));
  ASSIGN_OR_RETURN(const auto workspace,
                   DeviceBuffer::Allocate(info.workspace_bytes + 1));
  RETURN_IF_ERROR(cuda::FillBytes(x.data(), 0, x.bytes()));
  RETURN_IF_ERROR(cuda::FillBytes(w.data(), 0, w.bytes()));
  absl::Status waited;
  const double ns = MedianNs(
      [&] {
        plan.Run(x.floats(), w.floats(), nullptr, y.floats(), workspace.data());
      },
      [&waited] { waited.Update(cuda::Synchronize()); });
  std::printf("GPU, %s, by %s, %s: %.0f ns\n", what, info.kernel,
              flags == 0 ? "pointers checked" : "pointers trusted", ns);
  return waited;
}

absl::Status Print() {
  try {
    PrintCpu();
    if (cuda::CountDevices() == 0) {
      std::printf("there is no GPU\n");
      return absl::OkStatus();
    }
    convlab_problem padded = ProblemOf(1, 28, 8, 5);
    padded.padding_top = padded.padding_left = 2;
    padded.padding_bottom = padded.padding_right = 2;
    convlab_problem strided = ProblemOf(3, 32, 8, 3);
    strided.stride_height = strided.stride_width = 2;
    const std::pair<const char*, convlab_problem> problems[] = {
        {"one kernel", ProblemOf(1, 28, 6, 5)},
        {"with padding", padded},
        {"with strides", strided}};
    for (const auto& [what, problem] : problems) {
      for (const int flags : {0, CONVLAB_TRUST_POINTERS}) {
        RETURN_IF_ERROR(PrintGpu(what, problem, flags));
      }
    }
  } catch (const Error& error) {
    return absl::InternalError(error.what());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main() { return convlab::RunMain("overhead", convlab::Print); }
