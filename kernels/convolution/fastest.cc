#include "kernels/convolution/fastest.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/convolution/variants.h"

namespace convlab {

absl::StatusOr<const Variant*> FastestVariant(Backend backend,
                                              const Problem& problem,
                                              const Resources& resources) {
  RETURN_IF_ERROR(CheckProblem(problem));
  const Variant* fastest = nullptr;
  double least_ns = 0;
  absl::Status declined = absl::UnimplementedError(
      absl::StrCat("no variant on the ", Name(backend), " estimates its time"));
  for (const Variant* variant : Variants()) {
    if (variant->backend != backend || variant->estimate_ns == nullptr ||
        variant->accuracy != AccuracyClass::kFp32) {
      continue;
    }
    const std::optional<double> ns = variant->estimate_ns(problem, resources);
    if (!ns.has_value()) {
      const absl::Status reason = variant->supports(problem, resources);
      if (!reason.ok()) declined = reason;
    } else if (fastest == nullptr || *ns < least_ns) {
      fastest = variant;
      least_ns = *ns;
    }
  }
  if (fastest != nullptr) return fastest;
  return declined;
}

}  // namespace convlab
