#include "milestones/kernel_files.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// The backend of a file whose content says so.
Backend BackendOf(const KernelSource& source, const Milestone& milestone,
                  const CommandLine& line) {
  if (source.kernel_interface == KernelInterface::kLibrary) {
    return milestone.hardware == Hardware::kCpu || line.device == Device::kCpu
               ? Backend::kCpu
               : Backend::kCuda;
  }
  return UsesGpu(source.kernel_interface) ? Backend::kCuda : Backend::kCpu;
}

absl::string_view Where(Backend backend) {
  return backend == Backend::kCuda ? " runs on the GPU" : " runs on the CPU";
}

// InvalidArgument if the milestone or --device is of the other backend.
absl::Status CheckBackend(const KernelSource& source, Backend backend,
                          const Milestone& milestone, const CommandLine& line) {
  if (backend == Backend::kCuda && milestone.hardware == Hardware::kCpu) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.path, Where(backend), ", but ", milestone.name,
                     " is the ", milestone.title, "; use m3"));
  }
  const bool other = backend == Backend::kCuda ? line.device == Device::kCpu
                                               : line.device == Device::kGpu;
  if (!other) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(source.path, Where(backend), ", but --device is ",
                   backend == Backend::kCuda ? "cpu" : "gpu"));
}

}  // namespace

absl::StatusOr<std::vector<KernelSource>> ReadKernels(
    const Milestone& milestone, const CommandLine& line) {
  std::vector<KernelSource> sources;
  for (const std::string& path : line.kernels) {
    ASSIGN_OR_RETURN(KernelSource source, ReadKernelSource(path));
    const Backend backend = BackendOf(source, milestone, line);
    RETURN_IF_ERROR(CheckBackend(source, backend, milestone, line));
    for (const KernelSource& other : sources) {
      const Backend others = BackendOf(other, milestone, line);
      if (others != backend) {
        return absl::InvalidArgumentError(absl::StrCat(
            other.path, Where(others), " and ", source.path, Where(backend),
            ", expected kernels of one kind in a run"));
      }
      if (other.name == source.name) {
        return absl::InvalidArgumentError(
            absl::StrCat("two kernels are called ", source.name,
                         ", which would be one row: rename one of ", other.path,
                         " and ", source.path));
      }
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

Backend BackendOf(const std::vector<KernelSource>& kernels,
                  const Milestone& milestone, const CommandLine& line) {
  return BackendOf(kernels.front(), milestone, line);
}

}  // namespace convlab
