// oneDNN's convolution, which the CPU's ladder is compared with. The library is
// opened at run time.
#ifndef KERNELS_BASELINE_ONEDNN_H_
#define KERNELS_BASELINE_ONEDNN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// "2.6.3". Opens the library when first called; Unavailable where it is missing
// or does not run on OpenMP's threads, whose number can be set.
absl::StatusOr<std::string> OpenOneDnn();

enum class OneDnnLayout {
  kNchw,       // x and y as ours
  kPreferred,  // x and y in the layout that the library likes best
};

// A convolution in float32, made ready for one problem.
class OneDnnConvolution {
 public:
  // Takes copies of x and k (sizes as in problem.h) in the layouts that the
  // library wants: weights always are in its own. Uses `threads` threads.
  // Unavailable as OpenOneDnn, Unimplemented if the library does not do the
  // problem.
  static absl::StatusOr<std::unique_ptr<OneDnnConvolution>> Create(
      const Problem& problem, OneDnnLayout layout, int threads, const float* x,
      const float* k);
  virtual ~OneDnnConvolution() = default;

  // The convolution alone; returns when it is done.
  virtual absl::Status Run() = 0;

  // Fills the output with NaN.
  virtual void Poison() = 0;
  // Copies the output to y, in NCHW.
  virtual absl::Status Read(float* y) = 0;

  // What the library calls its kernel: "jit:avx512_core".
  virtual const std::string& implementation() const = 0;
};

}  // namespace convlab

#endif  // KERNELS_BASELINE_ONEDNN_H_
