// The interface that every variant of the convolution implements.
//
//   ASSIGN_OR_RETURN(auto convolution, variant.Create(problem, resources));
//   RETURN_IF_ERROR(convolution->Run(x, k, y));
#ifndef KERNELS_CONVOLUTION_CONVOLUTION_H_
#define KERNELS_CONVOLUTION_CONVOLUTION_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/accuracy.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// InvalidArgument, naming the dimension, unless all dimensions are positive,
// the kernel fits into the image and the FLOPs and bytes can be counted in 63
// bits.
absl::Status CheckProblem(const Problem& problem);

// "B=100 C=12 H=33 W=33 M=24 K=5"
std::string ToString(const Problem& problem);

enum class Backend { kCpu, kCuda };

absl::string_view Name(Backend backend);         // "cpu", "cuda"
absl::string_view Name(AccuracyClass accuracy);  // "fp32", ...
// The largest error that the class allows.
double MaxRelativeError(AccuracyClass accuracy);

// What a variant may use. Outlives every convolution created with it.
struct Resources {
  Workers* workers = nullptr;
};

// A variant made ready for one problem, its workspace allocated.
class Convolution {
 public:
  virtual ~Convolution() = default;

  // Computes y from x and k, which lie on the host for Backend::kCpu and on the
  // device for Backend::kCuda. Everything that is done to the weights is done
  // here, so that the time of Run is the whole operation's.
  virtual absl::Status Run(const float* x, const float* k, float* y) = 0;
};

// One implementation. Its rung is its place in the table of variants.h.
struct Variant {
  const char* name;
  Backend backend;
  AccuracyClass accuracy;
  const char* summary;  // what it does, one sentence for reports
  const char* reason;   // why it should be faster than the rung before

  // Whether the variant takes a valid problem; otherwise the reason it does
  // not.
  absl::Status (*supports)(const Problem& problem);
  // Called by Create, for problems that are valid and supported.
  absl::StatusOr<std::unique_ptr<Convolution>> (*make)(
      const Problem& problem, const Resources& resources);

  // Whether sums of products of small integers come out exactly, as they do
  // unless the algorithm computes with other numbers than the tensors'.
  bool exact_on_integers = true;

  // Whether it has code for several CPU targets (kernels/simd/cpu_target.h), of
  // which Create takes the chosen one.
  bool by_cpu_target = false;

  // Checks the problem and makes the convolution ready for it.
  absl::StatusOr<std::unique_ptr<Convolution>> Create(
      const Problem& problem, const Resources& resources) const;
};

// For a variant that takes every problem.
absl::Status SupportsAll(const Problem& problem);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CONVOLUTION_H_
