// oneDNN's convolution, the peer of the CPU's ladder. The library is opened at
// run time.
#ifndef KERNELS_BASELINE_ONEDNN_H_
#define KERNELS_BASELINE_ONEDNN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// Returns the version, such as "2.6.3". Opens the library when first called;
// Unavailable if it is missing or does not run on OpenMP's threads, whose
// number can be set. These threads sleep while they wait, as Workers do, unless
// the environment sets OMP_WAIT_POLICY.
absl::StatusOr<std::string> OpenOneDnn();

enum class OneDnnLayout {
  kNchw,       // x and y as problem.h has them
  kPreferred,  // x and y in the library's preferred layout
};

// A convolution in float32, prepared for one problem.
class OneDnnConvolution {
 public:
  // Copies x and k (sizes as in problem.h) to the library's layouts; weights
  // are always in its own. Uses `threads` threads. Returns Unavailable as
  // OpenOneDnn does, and Unimplemented if the library does not support the
  // problem.
  static absl::StatusOr<std::unique_ptr<OneDnnConvolution>> Create(
      const Problem& problem, OneDnnLayout layout, int threads, const float* x,
      const float* k);
  virtual ~OneDnnConvolution() = default;

  // Runs the convolution alone; returns when it is complete.
  virtual absl::Status Run() = 0;

  // Fills the output with NaN.
  virtual void Poison() = 0;
  // Copies the output to y, in NCHW.
  virtual absl::Status Read(float* y) = 0;

  // The library's name of its kernel: "jit:avx512_core".
  virtual const std::string& implementation() const = 0;
};

}  // namespace convlab

#endif  // KERNELS_BASELINE_ONEDNN_H_
