#include "tools/bench/options.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "common/status/status.h"
#include "kernels/convolution/fastest.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/judge/source/interface.h"

namespace convlab {
namespace {

constexpr AccuracyClass kClasses[] = {
    AccuracyClass::kFp32, AccuracyClass::kFp32Normwise, AccuracyClass::kTf32,
    AccuracyClass::kFp16};

bool Holds(const std::vector<AccuracyClass>& classes, AccuracyClass accuracy) {
  return std::find(classes.begin(), classes.end(), accuracy) != classes.end();
}

}  // namespace

absl::StatusOr<std::vector<AccuracyClass>> ParseClasses(
    absl::string_view text) {
  if (text == "all") return std::vector(kClasses, std::end(kClasses));
  std::vector<AccuracyClass> classes;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const auto* const found =
        std::find_if(kClasses, std::end(kClasses),
                     [&](AccuracyClass one) { return Name(one) == name; });
    if (found == std::end(kClasses)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown class '", name, "', expected ",
                       absl::StrJoin(kClasses, ", ",
                                     [](std::string* out, AccuracyClass one) {
                                       absl::StrAppend(out, Name(one));
                                     }),
                       " or all"));
    }
    if (!Holds(classes, *found)) classes.push_back(*found);
  }
  return classes;
}

absl::string_view PeerName(Backend backend) {
  return backend == Backend::kCuda ? "cudnn" : "onednn";
}

bool PeerHolds(Backend backend, const std::vector<AccuracyClass>& classes) {
  return backend == Backend::kCuda || Holds(classes, AccuracyClass::kFp32);
}

absl::StatusOr<std::vector<const Variant*>> VariantsFor(
    const BenchOptions& options, const Problem& problem) {
  std::vector<const Variant*> variants = options.variants;
  if (options.fastest) {
    ASSIGN_OR_RETURN(const Variant* fastest,
                     FastestVariant(options.backend, problem));
    if (std::find(variants.begin(), variants.end(), fastest) ==
        variants.end()) {
      variants.push_back(fastest);
    }
  }
  return variants;
}

absl::StatusOr<ChosenVariants> ParseVariants(
    absl::string_view text, Backend backend,
    const std::vector<AccuracyClass>& classes, bool peers) {
  ChosenVariants chosen;
  chosen.peers = peers && PeerHolds(backend, classes);
  if (text == "all") {
    for (const Variant* variant : Variants()) {
      if (variant->backend == backend && Holds(classes, variant->accuracy)) {
        chosen.variants.push_back(variant);
      }
    }
    return chosen;
  }
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    if (name == PeerName(backend)) {
      if (!PeerHolds(backend, classes)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", name, "' is of class fp32, which --class leaves out"));
      }
      chosen.peers = true;
      continue;
    }
    if (name == "final") {
      if (!Holds(classes, AccuracyClass::kFp32)) {
        return absl::InvalidArgumentError(
            "'final' takes variants of class fp32, which --class leaves out");
      }
      chosen.fastest = true;
      continue;
    }
    ASSIGN_OR_RETURN(const Variant* variant, FindVariant(backend, name));
    if (!Holds(classes, variant->accuracy)) {
      return absl::InvalidArgumentError(
          absl::StrCat("variant '", name, "' is of class ",
                       Name(variant->accuracy), ", which --class leaves out"));
    }
    chosen.variants.push_back(variant);
  }
  return chosen;
}

absl::StatusOr<std::vector<CompiledKernel>> CompileKernels(
    const std::vector<std::string>& paths, Backend backend,
    const std::string& folder) {
  CompileOptions compile;
  compile.folder = folder;
  if (backend == Backend::kCuda) {
    ASSIGN_OR_RETURN(const cuda::DeviceFacts device, cuda::FindDevice());
    compile.compute_capability = device.compute_capability;
  }
  std::vector<CompiledKernel> kernels;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const KernelSource source,
                     ReadKernelSource(UserPath(path)));
    const bool gpu = UsesGpu(source.kernel_interface);
    if (source.kernel_interface != KernelInterface::kLibrary &&
        gpu != (backend == Backend::kCuda)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, gpu ? " runs on the GPU" : " runs on the CPU",
                       ", but the benchmark is on the ",
                       gpu ? "CPU" : "GPU: add --device cpu"));
    }
    ASSIGN_OR_RETURN(CompiledKernel kernel, CompileKernel(source, compile));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace convlab
