// The options of a benchmark run.
#ifndef TOOLS_BENCH_OPTIONS_H_
#define TOOLS_BENCH_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/accuracy/accuracy.h"
#include "kernels/convolution/checking/families.h"
#include "kernels/convolution/convolution.h"
#include "kernels/judge/source/compile.h"
#include "kernels/measure/stopping.h"
#include "tools/bench/layers.h"

namespace convlab {

// The provider of a contributed kernel's row; its variant is the kernel's name.
inline constexpr char kKernelProvider[] = "kernel";

// The seed of all data.
inline constexpr uint64_t kDataSeed = 1;

struct BenchOptions {
  Backend backend = Backend::kCuda;
  std::vector<NamedLayer> layers;
  std::vector<CompiledKernel> kernels;  // of --kernel
  std::vector<const Variant*> variants;
  bool fastest = false;  // also the variant that `final` takes for the layer
  bool peers = true;     // also the library
  std::vector<AccuracyClass> classes;
  const DataFamily* data = &DataFamilies()[0];  // on which times are taken
  StoppingRule rule;
  int threads = 0;  // threads of the CPU; 0: one for each core
  bool verbose = false;
  bool wide = true;  // tables have all columns

  Recipe recipe() const { return RecipeOf(*data, kDataSeed); }
  // Random values of both signs and one scale, for which all classes have a
  // bound; for others only fp32 has one.
  bool ordinary_data() const { return data == &DataFamilies()[0]; }
};

// "fp32", a list "fp32,fp16", or "all" for the classes that a library is
// measured in.
absl::StatusOr<std::vector<AccuracyClass>> ParseClasses(absl::string_view text);

// "cudnn" or "onednn": the library that the backend's variants are compared
// with.
absl::string_view PeerName(Backend backend);

// Whether the peer has results in any of these classes: cuDNN has in each,
// oneDNN in fp32.
bool PeerHolds(Backend backend, const std::vector<AccuracyClass>& classes);

// The variants to measure on the problem: those of the options, and the choice
// of `final` unless it is one of them. The error says why `final` takes none.
absl::StatusOr<std::vector<const Variant*>> VariantsFor(
    const BenchOptions& options, const Problem& problem);

struct ChosenVariants {
  std::vector<const Variant*> variants;
  bool fastest = false;
  bool peers = false;
};

// Parses --variants: "all" stands for the backend's variants of these classes;
// a list names variants, "final" for the choice of `final`, and the peer for
// the library alone. `peers` requests the library in those of these classes
// that it has. Returns InvalidArgument for an unknown name, or a variant whose
// class was not requested.
absl::StatusOr<ChosenVariants> ParseVariants(
    absl::string_view text, Backend backend,
    const std::vector<AccuracyClass>& classes, bool peers);

// Compiles contributed kernels, which must be the backend's, into `folder`.
absl::StatusOr<std::vector<CompiledKernel>> CompileKernels(
    const std::vector<std::string>& paths, Backend backend,
    const std::string& folder);

}  // namespace convlab

#endif  // TOOLS_BENCH_OPTIONS_H_
