#include "kernels/convolution/fastest.h"

#include <iterator>
#include <vector>

#include "common/status/status.h"
#include "kernels/convolution/variants.h"

namespace convlab {
namespace {

// A layer, whatever its batch, and the variant that won on it.
struct Choice {
  int compute_capability;
  int64_t channels, size, filters, kernel_size;
  const char* variant;
};

// From `m4` at 10,000 images; the records stand in reports/measured.
constexpr Choice kMeasured[] = {
    // The H200.
    {90, 1, 28, 50, 5, "layer_sizes"},      // fa17
    {90, 1, 72, 12, 7, "layer_sizes"},      // fa18
    {90, 12, 33, 24, 7, "tensor_wgmma"},    // fa18
    {90, 1, 48, 6, 5, "layer_sizes"},       // sp19
    {90, 1, 48, 12, 7, "tuned"},            // sp19-baseline
    {90, 12, 21, 24, 7, "register_tiled"},  // sp19-baseline
    {90, 6, 22, 16, 5, "tensor_wgmma"},     // sp19
    {90, 1, 70, 12, 5, "tuned"},            // fa19
    {90, 12, 33, 24, 5, "tensor_wgmma"},    // fa19
    {90, 1, 86, 4, 7, "layer_sizes"},       // fa20
    {90, 4, 40, 16, 7, "tensor_wgmma"},     // fa20
};

// Best first; the last takes everything that its backend can hold. One channel
// leaves little to multiply, and tensor cores wait for the output.
constexpr const char* kGeneralOnGpu[] = {"tuned", "layer_sizes", "naive"};
constexpr const char* kSeveralChannelsOnGpu[] = {"tensor_wgmma",
                                                 "tensor_split"};
constexpr const char* kGeneralOnCpu[] = {"dense_lanes"};

}  // namespace

absl::StatusOr<const Variant*> FastestVariant(Backend backend,
                                              int compute_capability,
                                              const Problem& problem) {
  std::vector<const char*> names;
  if (backend == Backend::kCuda) {
    for (const Choice& choice : kMeasured) {
      if (choice.compute_capability == compute_capability &&
          choice.channels == problem.channels &&
          choice.size == problem.height && choice.size == problem.width &&
          choice.filters == problem.filters &&
          choice.kernel_size == problem.kernel_size) {
        names.push_back(choice.variant);
      }
    }
    if (problem.channels > 1) {
      names.insert(names.end(), std::begin(kSeveralChannelsOnGpu),
                   std::end(kSeveralChannelsOnGpu));
    }
    names.insert(names.end(), std::begin(kGeneralOnGpu),
                 std::end(kGeneralOnGpu));
  } else {
    names.assign(std::begin(kGeneralOnCpu), std::end(kGeneralOnCpu));
  }
  absl::Status status;
  for (const char* name : names) {
    ASSIGN_OR_RETURN(const Variant* variant, FindVariant(backend, name));
    status = variant->supports(problem);
    if (status.ok()) return variant;
  }
  return status;
}

}  // namespace convlab
