// What a benchmark run is asked for.
#ifndef TOOLS_BENCH_OPTIONS_H_
#define TOOLS_BENCH_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/accuracy/accuracy.h"
#include "kernels/convolution/convolution.h"
#include "kernels/measure/stopping.h"
#include "tools/bench/layers.h"

namespace convlab {

struct BenchOptions {
  Backend backend = Backend::kCuda;
  std::vector<NamedLayer> layers;
  std::vector<const Variant*> variants;
  bool fastest = false;  // what `final` takes for the layer, too
  bool peers = true;     // the library too
  std::vector<AccuracyClass> classes;
  StoppingRule rule;
  int threads = 0;  // of the CPU; 0: one for each core
  bool verbose = false;
};

// "fp32", a list "fp32,fp16", or "all" for the three classes that a library is
// measured in.
absl::StatusOr<std::vector<AccuracyClass>> ParseClasses(absl::string_view text);

// "cudnn" or "onednn": the library that the backend's variants are compared
// with.
absl::string_view PeerName(Backend backend);

// Whether it is measured in any of these classes: cuDNN in each, oneDNN in
// fp32.
bool PeerHolds(Backend backend, const std::vector<AccuracyClass>& classes);

// The variants to measure on the problem: those of the options, and what
// `final` takes unless it is one of them. The error says why `final` has none.
absl::StatusOr<std::vector<const Variant*>> VariantsFor(
    const BenchOptions& options, const Problem& problem);

struct ChosenVariants {
  std::vector<const Variant*> variants;
  bool fastest = false;
  bool peers = false;
};

// The backend's variants of these classes for "all"; for a list those that it
// names, of whatever rung, with "final" for what `final` takes and the peer's
// name for the library alone. `peers` asks for the library, as far as it is
// measured in these classes. InvalidArgument for an unknown name, or one whose
// class was not asked for.
absl::StatusOr<ChosenVariants> ParseVariants(
    absl::string_view text, Backend backend,
    const std::vector<AccuracyClass>& classes, bool peers);

}  // namespace convlab

#endif  // TOOLS_BENCH_OPTIONS_H_
