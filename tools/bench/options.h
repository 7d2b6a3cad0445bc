// What a benchmark run is asked for.
#ifndef TOOLS_BENCH_OPTIONS_H_
#define TOOLS_BENCH_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/convolution/accuracy.h"
#include "kernels/convolution/convolution.h"
#include "kernels/measure/stopping.h"
#include "tools/bench/layers.h"

namespace convlab {

struct BenchOptions {
  Backend backend = Backend::kCuda;
  std::vector<NamedLayer> layers;
  std::vector<const Variant*> variants;
  bool peers = true;  // the library too
  std::vector<AccuracyClass> classes;
  StoppingRule rule;
  bool verbose = false;
};

// "fp32", a list "fp32,fp16", or "all" for the three classes that a library is
// measured in.
absl::StatusOr<std::vector<AccuracyClass>> ParseClasses(absl::string_view text);

// "cudnn" or "onednn": the library that the backend's variants are compared
// with.
absl::string_view PeerName(Backend backend);

struct ChosenVariants {
  std::vector<const Variant*> variants;
  bool peers = false;
};

// The backend's variants of these classes for "all"; for a list those that it
// names, of whatever rung, with the peer's name for the library alone.
// InvalidArgument for an unknown name, or one whose class was not asked for.
absl::StatusOr<ChosenVariants> ParseVariants(
    absl::string_view text, Backend backend,
    const std::vector<AccuracyClass>& classes, bool peers);

// DataLoss if a relative error exceeds what the class allows, or is no number.
absl::Status CheckError(double error, AccuracyClass accuracy);

}  // namespace convlab

#endif  // TOOLS_BENCH_OPTIONS_H_
