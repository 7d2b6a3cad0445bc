// One layer of the course, measured on the GPU.
#ifndef TOOLS_SWEEP_LAYER_H_
#define TOOLS_SWEEP_LAYER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/convolution/convolution.h"
#include "kernels/cuda/device.h"

namespace convlab {

// A convolution by its name, "fa19-L2" for the second of fa19 (a network of one
// convolution may leave out "-L1"), or by its sizes, "B,C,H,W,M,K". `batch` is
// the named layers'. The error says what there is.
absl::StatusOr<Problem> ParseLayer(absl::string_view text, int64_t batch);

// The value below which `share` (0 to 1) of the samples lie, interpolated.
double Quantile(std::vector<int64_t> samples, double share);

// A problem's tensors on the GPU: random inputs and weights in [-1, 1], and
// what some of the images become in float64.
class Layer {
 public:
  // Unavailable without a GPU, ResourceExhausted without enough memory.
  static absl::StatusOr<Layer> Create(const Problem& problem);

  // Runs the convolution on a poisoned output. The relative error of the first
  // and last images and some in between; NaN or infinity if one of their
  // elements was not written.
  absl::StatusOr<double> Verify(Convolution& convolution);

  // Kernel times in nanoseconds, by device events, with the second-level cache
  // flushed before each run; a first run is not counted.
  absl::StatusOr<std::vector<int64_t>> Time(Convolution& convolution,
                                            int samples);

 private:
  Layer() = default;

  Problem problem_;
  std::vector<int64_t> checked_;   // images
  std::vector<double> reference_;  // theirs, one after another
  cuda::DeviceBuffer x_, k_, y_, flush_;
};

}  // namespace convlab

#endif  // TOOLS_SWEEP_LAYER_H_
