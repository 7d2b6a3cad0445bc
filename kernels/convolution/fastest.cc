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
constexpr const char* kWarpgroupsOnGpu[] = {"wgmma_strips"};
constexpr const char* kOneChannelOnGpu[] = {"tensor_strips", "tensor_split"};
constexpr const char* kFewChannelsOnGpu[] = {"tensor_strips"};
constexpr const char* kSeveralChannelsOnGpu[] = {"tensor_wgmma",
                                                 "tensor_split"};
constexpr const char* kGeneralOnGpu[] = {"tuned", "layer_sizes", "naive"};
constexpr const char* kGeneralOnCpu[] = {"dense_lanes"};

constexpr int64_t UpToMultiple(int64_t n, int64_t of) {
  return (n + of - 1) / of * of;
}

// Whether one channel fills the products of wgmma_strips: 40 columns or more by
// filters, of which larger ones make fewer, and 64 rows by an image's outputs,
// of which large filters, with more to multiply, need fewer.
bool FillsWarpgroups(const Problem& problem) {
  const int64_t K = problem.kernel_size;
  const int64_t few_filters = K <= 5 ? 5 : K <= 7 ? 6 : 8;
  const int64_t few_pixels = K <= 5 ? 1 << 10 : 400;
  return problem.filters >= few_filters &&
         problem.output_height() * problem.output_width() >= few_pixels;
}

// 16 values of a filter row at a time, of an even number of channels, for
// filters in groups of 16 or 24.
int64_t WgmmaProducts(const Problem& problem) {
  const int64_t K = problem.kernel_size, M = problem.filters;
  return UpToMultiple(K * UpToMultiple(problem.channels, 2), 16) / 16 * K *
         std::min(UpToMultiple(M, 16), UpToMultiple(M, 24));
}

// Whether the filters of wgmma_strips, which stay in shared memory, leave room
// there for strips of more than a few rows. By the plans that are taken, a
// filter has 256 bytes of each step, or 512 where it stands there with more
// shifts.
bool FiltersLeaveRoomForStrips(const Problem& problem) {
  constexpr int64_t kManyBytes = 120 << 10;
  const int64_t K = problem.kernel_size;
  const int64_t filter_bytes =
      K > 7 ? int64_t{9} * 512 : (K / 2 + 1) * (K <= 3 ? 512 : 256);
  return problem.channels * problem.filters * filter_bytes < kManyBytes;
}

// Whether wgmma_strips beats the others with several channels, as far as it was
// measured: C = 2 to 8, K = 2 to 8 and M = 4 to 64. Its products take 8 values
// of two filter rows and groups of mostly 4, 6 or 12 filters, and it hides
// less, the more steps there are.
bool WarpgroupStripsAreFastest(const Problem& problem) {
  const int64_t C = problem.channels, M = problem.filters;
  const int64_t K = problem.kernel_size;
  if (K > 7) return M >= 8;
  if (K % 2 == 0) return C <= 4;  // tensor_wgmma has no kernels for these
  const int64_t steps = (K + 1) / 2;
  int64_t products = C * steps * UpToMultiple(M, K == 7 ? 12 : 6);
  if (K == 7) products = std::min(products, C * 5 * UpToMultiple(M, 4));
  return C * K * products <= 19 * WgmmaProducts(problem);
}

// Whether tensor_strips beats the others with several channels, as far as it
// was measured. tensor_wgmma multiplies faster, but more of what is padding;
// tensor_strips hides less, the more channels there are.
bool StripsAreFastest(const Problem& problem) {
  const int64_t C = problem.channels, M = problem.filters;
  const int64_t K = problem.kernel_size;
  if (C > 4) return false;
  // tensor_wgmma has no kernels for these, and tensor_split is slower.
  if (K % 2 == 0 || K > 9) return C == 2 || C * K <= 12;
  const int64_t strips_products = C * (K <= 7 ? (K + 1) / 2 : K) * M;
  return 10 * C * strips_products <= 14 * WgmmaProducts(problem);
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
    if (FiltersLeaveRoomForStrips(problem) &&
        (problem.channels > 1 ? WarpgroupStripsAreFastest(problem)
                              : FillsWarpgroups(problem))) {
      add(kWarpgroupsOnGpu);
    }
    if (problem.channels > 1) {
      if (StripsAreFastest(problem)) add(kFewChannelsOnGpu);
      add(kSeveralChannelsOnGpu);
    } else {
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
