// Runs one variant on a network's layers, each once between cudaProfilerStart
// and cudaProfilerStop: what a profiler of hardware counters is to look at, and
// nothing else. tools/measure_ncu.sh is its user.
#include <cuda_profiler_api.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/flags/flags.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"
#include "kernels/inference/inference.h"

DEFINE_int64(batch, 10000, "images of each layer");
DEFINE_bool(list, false, "list the variants on the GPU, and end");

namespace convlab {
namespace {

// Any value will do: no kernel's work depends on it. All four bytes are equal;
// the float is 0.186.
constexpr uint8_t kValue = 0x3e;

absl::StatusOr<cuda::DeviceBuffer> Filled(int64_t floats) {
  ASSIGN_OR_RETURN(auto buffer, cuda::DeviceBuffer::Allocate(4 * floats));
  RETURN_IF_ERROR(cuda::FillBytes(buffer.data(), kValue, buffer.bytes()));
  return buffer;
}

absl::Status RunOnce(const Variant& variant, const Problem& problem,
                     const Resources& resources) {
  ASSIGN_OR_RETURN(const auto convolution, variant.Create(problem, resources));
  ASSIGN_OR_RETURN(const auto x, Filled(problem.input_elements()));
  ASSIGN_OR_RETURN(const auto k, Filled(problem.kernel_elements()));
  ASSIGN_OR_RETURN(const auto y, Filled(problem.output_elements()));
  // The first run loads code and libraries.
  RETURN_IF_ERROR(convolution->Run(x.floats(), k.floats(), y.floats()));
  RETURN_IF_ERROR(cuda::Synchronize());
  RETURN_IF_ERROR(
      cuda::ToStatus(cuda::Check(cudaProfilerStart(), "cudaProfilerStart")));
  RETURN_IF_ERROR(convolution->Run(x.floats(), k.floats(), y.floats()));
  RETURN_IF_ERROR(cuda::Synchronize());
  return cuda::ToStatus(cuda::Check(cudaProfilerStop(), "cudaProfilerStop"));
}

void PrintHelp() {
  std::printf(
      "usage: run_once VARIANT [NETWORK] [--flags]\n\n"
      "Runs one variant of the GPU once on each layer of the network (default "
      "fa19)\nthat it takes, between the marks by which a profiler starts and "
      "stops (ncu "
      "--profile-from-start\noff).\n\n%s\n",
      DescribeFlags(__FILE__).c_str());
}

absl::Status ParseAndRun(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags parsed, ParseFlags(args, __FILE__));
  if (parsed.help) {
    PrintHelp();
    return absl::OkStatus();
  }
  if (FLAGS_list) {
    for (const Variant* variant : Variants()) {
      if (variant->backend == Backend::kCuda) std::puts(variant->name);
    }
    return absl::OkStatus();
  }
  const std::vector<std::string>& names = parsed.positional;
  if (names.empty() || names.size() > 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        names.size(),
        " names are given, expected VARIANT [NETWORK]; --help says more"));
  }
  ASSIGN_OR_RETURN(const Variant* variant,
                   FindVariant(Backend::kCuda, names[0]));
  ASSIGN_OR_RETURN(const Network* network,
                   FindNetwork(names.size() > 1 ? names[1] : "fa19"));
  std::vector<Problem> problems;
  absl::Status declined;
  for (size_t i = 0; i < network->stages.size(); ++i) {
    const Problem problem = ConvolutionProblem(*network, i, FLAGS_batch);
    RETURN_IF_ERROR(CheckProblem(problem));
    declined = variant->supports(problem);
    if (declined.ok()) {
      problems.push_back(problem);
    } else {
      absl::FPrintF(stderr, "run_once: layer %d is left out: %s\n", i + 1,
                    OneLine(declined.message()));
    }
  }
  if (problems.empty()) return declined;
  RETURN_IF_ERROR(cuda::FindDevice().status());
  Workers workers(1);
  Resources resources;
  resources.workers = &workers;
  for (const Problem& problem : problems) {
    RETURN_IF_ERROR(RunOnce(*variant, problem, resources));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  const absl::Status status = convlab::ParseAndRun({argv + 1, argv + argc});
  if (!status.ok()) {
    absl::FPrintF(stderr, "run_once: %s\n", convlab::OneLine(status.message()));
  }
  return convlab::ExitStatus(status);
}
