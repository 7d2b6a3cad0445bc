// The place of a contributed kernel among this project's own variants.
#ifndef MILESTONES_STANDING_H_
#define MILESTONES_STANDING_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/convolution/convolution.h"
#include "milestones/session.h"

namespace convlab {

// The op times of a network's convolutions, summed.
struct RungTime {
  const Variant* variant;
  double ns;
};

// The times of one machine, against which any number of kernels is compared.
struct Standing {
  int64_t images = 0;             // for which the times hold
  int64_t measured_images = 0;    // fewer on the CPU, scaled up
  std::vector<RungTime> lessons;  // in the order of the ladder
  double fastest_ns = 0;          // by the choice of `final` for each layer
  // cuDNN's fastest algorithm by its own search; negative if not measured.
  double cudnn_ns = 0;
  std::optional<double>
      floor_ns;  // of float32, where the GPU's rates are known
};

// Measures the lessons of the session's backend on the network's layers, each a
// few times, the choice of `final`, and on the GPU cuDNN. A lesson that does
// not take a layer is left out.
absl::StatusOr<Standing> MeasureStanding(Session& session);

// The lines of the verdict that compare: the share of the floor, the place on
// the ladder and against the library, and the next lesson with its reason.
// `op_ns` is the sum of the kernel's op times.
std::vector<std::string> DescribeStanding(const Standing& standing,
                                          double op_ns);

}  // namespace convlab

#endif  // MILESTONES_STANDING_H_
