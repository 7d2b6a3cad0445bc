#include "kernels/convolution/fastest.h"

#include <iterator>
#include <vector>

#include "absl/types/span.h"
#include "common/status/status.h"
#include "kernels/convolution/variants.h"

namespace convlab {
namespace {

// Best first, of those that take the problem; the last of all takes everything
// that its backend can hold. The records of the course's nine layers and of
// their neighbours stand in reports/measured.
constexpr const char* kOneChannelOnGpu[] = {"wgmma_strips", "tensor_strips"};
constexpr const char* kOneChannelNarrowOnGpu[] = {"tensor_strips"};
constexpr const char* kOneChannelFewOutputsOnGpu[] = {"register_tiled"};
constexpr const char* kOneChannelLargeFilterOnGpu[] = {"tensor_split"};
constexpr const char* kSeveralChannelsOnGpu[] = {"tensor_wgmma",
                                                 "tensor_split"};
constexpr const char* kGeneralOnGpu[] = {"tuned", "layer_sizes", "naive"};
constexpr const char* kGeneralOnCpu[] = {"dense_lanes"};

// Whether the products of wgmma_strips are filled: 40 or 48 columns by filters,
// of which larger ones make fewer, and 64 rows by an image's outputs.
bool FillsWarpgroups(const Problem& problem) {
  const int64_t few_filters = problem.kernel_size <= 5 ? 5 : 6;
  constexpr int64_t kFewPixels = 1 << 10;
  return problem.filters >= few_filters &&
         problem.output_height() * problem.output_width() >= kFewPixels;
}

}  // namespace

absl::StatusOr<const Variant*> FastestVariant(Backend backend,
                                              const Problem& problem) {
  std::vector<const char*> names;
  if (backend == Backend::kCuda) {
    const auto add = [&](absl::Span<const char* const> more) {
      names.insert(names.end(), more.begin(), more.end());
    };
    // One image of the course's first layers has up to 52,000 outputs, a
    // hundred of the smallest 1.2 million: with few, a second kernel that
    // arranges the filters takes longer than the convolution.
    constexpr int64_t kFewOutputs = 1 << 18;
    if (problem.channels > 1) {
      add(kSeveralChannelsOnGpu);
    } else if (problem.output_elements() < kFewOutputs) {
      add(kOneChannelFewOutputsOnGpu);
    } else if (problem.kernel_size <= 7 && !FillsWarpgroups(problem)) {
      add(kOneChannelNarrowOnGpu);
    } else if (problem.kernel_size <= 7) {
      add(kOneChannelOnGpu);
    } else {
      add(kOneChannelLargeFilterOnGpu);
    }
    add(kGeneralOnGpu);
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
