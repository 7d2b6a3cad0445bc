// In place of network.cc in a build without the CUDA Toolkit, or with one that
// lacks cuDNN 9 or cuBLAS.
#include "absl/status/status.h"
#include "common/status/status.h"
#include "kernels/baseline/layers.h"
#include "kernels/baseline/network.h"

namespace convlab {

absl::StatusOr<std::vector<std::string>> FindBaselinePlans(const Network&,
                                                           int64_t, Workers&) {
  return MakeBaselineLayers().status();
}

absl::StatusOr<std::unique_ptr<DeviceNetwork>> MakeBaselineNetwork(
    const Network&, const NetworkWeights&, int, Pixels, int64_t,
    const std::vector<std::string>&) {
  return MakeBaselineLayers().status();
}

}  // namespace convlab
