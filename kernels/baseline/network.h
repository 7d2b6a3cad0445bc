// A whole network layer by layer: cuDNN's convolutions, cuBLAS's matrices, and
// our own kernels for what is between them. It is the peer of a network that is
// compiled as a whole (kernels/compiled).
#ifndef KERNELS_BASELINE_NETWORK_H_
#define KERNELS_BASELINE_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/weights.h"
#include "kernels/compiled/device_network.h"

namespace convlab {

// The names of cuDNN's fastest plans for the network's convolutions on `count`
// images, in NCHW and float32 without tensor cores (of class fp32-normwise or
// fp32), by timing each of them.
absl::StatusOr<std::vector<std::string>> FindBaselinePlans(
    const Network& network, int64_t count, Workers& workers);

// The network by these plans. It takes `count` images and no other number.
// `image_size` is that of bytes. Unavailable, with the reason, without a GPU,
// cuDNN or cuBLAS.
absl::StatusOr<std::unique_ptr<DeviceNetwork>> MakeBaselineNetwork(
    const Network& network, const NetworkWeights& weights, int image_size,
    Pixels pixels, int64_t count, const std::vector<std::string>& plans);

}  // namespace convlab

#endif  // KERNELS_BASELINE_NETWORK_H_
