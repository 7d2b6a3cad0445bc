#include "kernels/convolution/fastest.h"

#include <algorithm>
#include <cstdint>
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
constexpr const char* kFewImagesOnGpu[] = {"few_images"};
constexpr const char* kOneChannelFilledOnGpu[] = {"wgmma_strips"};
constexpr const char* kOneChannelOnGpu[] = {"tensor_strips", "tensor_split"};
constexpr const char* kFewChannelsOnGpu[] = {"tensor_strips"};
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

// Whether tensor_strips beats the others with several channels, as far as it
// was measured. tensor_wgmma multiplies faster, but always an even number of
// channels, filters in groups of 16 or 24, and 16 values of a filter row at a
// time; tensor_strips hides less, the more channels there are.
bool StripsAreFastest(const Problem& problem) {
  const int64_t C = problem.channels, M = problem.filters;
  const int64_t K = problem.kernel_size;
  if (C > 4) return false;
  // tensor_wgmma has no kernels for these, and tensor_split is slower.
  if (K % 2 == 0 || K > 9) return C == 2 || C * K <= 12;
  const auto up_to_multiple = [](int64_t n, int64_t of) {
    return (n + of - 1) / of * of;
  };
  const int64_t filters =
      std::min(up_to_multiple(M, 16), up_to_multiple(M, 24));
  const int64_t wgmma_products =
      up_to_multiple(K * up_to_multiple(C, 2), 16) / 16 * K * filters;
  const int64_t strips_products = C * (K <= 7 ? (K + 1) / 2 : K) * M;
  return 10 * C * strips_products <= 21 * wgmma_products;
}

}  // namespace

absl::StatusOr<const Variant*> FastestVariant(Backend backend,
                                              const Problem& problem) {
  std::vector<const char*> names;
  if (backend == Backend::kCuda) {
    const auto add = [&](absl::Span<const char* const> more) {
      names.insert(names.end(), more.begin(), more.end());
    };
    // Tensor cores pay from so many products on, or outputs, for with several
    // channels their time for one output grows with its products: before, the
    // filters' arrangement, a kernel of its own, takes too long, and there is
    // too little to do at the same time. That is 50 to 900 images of the
    // course's layers.
    constexpr int64_t kFewProducts = 1 << 28;
    constexpr int64_t kFewOutputs = 1 << 20;
    if (problem.channels > 1 ? problem.output_elements() < kFewOutputs
                             : problem.flops() / 2 < kFewProducts) {
      add(kFewImagesOnGpu);
    }
    if (problem.channels > 1) {
      if (StripsAreFastest(problem)) add(kFewChannelsOnGpu);
      add(kSeveralChannelsOnGpu);
    } else {
      if (FillsWarpgroups(problem)) add(kOneChannelFilledOnGpu);
      add(kOneChannelOnGpu);
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
