// What streams gain a program: a convolution from host memory to host memory,
// in slices whose uploads, kernels and downloads overlap. As an operation on
// tensors that are on the device already, the variant `streams` gains nothing.
#ifndef KERNELS_MEASURE_OVERLAP_H_
#define KERNELS_MEASURE_OVERLAP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"

namespace convlab {

// A convolution whose tensors are in host memory, made ready for one problem.
class SlicedConvolution {
 public:
  // Each slice is computed by `variant`, of Backend::kCuda. Cuts the batch into
  // `slices` (fewer if it has fewer images) of equal size, the last perhaps
  // smaller. Slices take turns in `streams` streams, each with device memory
  // for one slice: with one stream a slice is uploaded, computed and downloaded
  // before the next; with three all three go on at a time. InvalidArgument for
  // a bad problem or number, Unavailable without a GPU, Unimplemented if the
  // variant does not take a slice.
  static absl::StatusOr<std::unique_ptr<SlicedConvolution>> Create(
      const Variant& variant, const Problem& problem, int64_t slices,
      int streams);
  virtual ~SlicedConvolution() = default;

  // Returns when y is complete. Only with x and y in pinned memory
  // (kernels/cuda/device.h) can copies overlap.
  virtual absl::Status Run(const float* x, const float* k, float* y) = 0;
};

// One sample per repetition, host clock round Run, in nanoseconds.
struct OverlapTimes {
  std::vector<int64_t> serial_ns;      // one stream
  std::vector<int64_t> overlapped_ns;  // three streams
};

// Times the same slices in one stream and in three, after a warm-up, on random
// tensors in pinned memory. Internal if the two results differ in any bit,
// DataLoss if the first or the last image errs more than the variant's class
// allows.
absl::StatusOr<OverlapTimes> MeasureStreams(const Variant& variant,
                                            const Problem& problem,
                                            int64_t slices,
                                            int repetitions = 5);

}  // namespace convlab

#endif  // KERNELS_MEASURE_OVERLAP_H_
