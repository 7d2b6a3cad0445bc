// The device on which classify runs.
#ifndef MILESTONES_CLASSIFYING_DEVICE_H_
#define MILESTONES_CLASSIFYING_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/hardware/rates.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/weights.h"
#include "kernels/compiled/compiled.h"
#include "milestones/classifying/options.h"

namespace convlab {

struct ClassifyDevice {
  bool gpu;
  std::string text;  // "the GPU, NVIDIA H200"
};

// The device that the user asked for, by default a GPU if there is one.
// Unavailable, with the alternatives, if it is not there.
absl::StatusOr<ClassifyDevice> ChooseDevice(const ClassifyOptions& options);

absl::StatusOr<std::unique_ptr<CompiledNetwork>> Compile(
    const ClassifyDevice& device, const Network& network,
    const NetworkWeights& weights, int image_size, Workers& workers);

// The rates of float32 and memory that the device reaches now, by short
// measurements. On a GPU float32 is what three products of halves give, if that
// is more than multiply-adds in float32.
absl::StatusOr<Rates> MeasureRates(const ClassifyDevice& device,
                                   Workers& workers);

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_DEVICE_H_
