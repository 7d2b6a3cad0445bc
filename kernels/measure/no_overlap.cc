// overlap.h in a build without the CUDA Toolkit.
#include "kernels/cuda/device.h"
#include "kernels/measure/overlap.h"

namespace convlab {

absl::StatusOr<std::unique_ptr<SlicedConvolution>> SlicedConvolution::Create(
    const Variant&, const Problem&, int64_t, int) {
  return cuda::FindDevice().status();
}

absl::StatusOr<OverlapTimes> MeasureStreams(const Variant&, const Problem&,
                                            int64_t, int) {
  return cuda::FindDevice().status();
}

}  // namespace convlab
