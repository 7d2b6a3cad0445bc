#include "kernels/convolution/fastest.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/convolution/variants.h"

namespace convlab {

absl::StatusOr<const Variant*> FastestVariant(Backend backend,
                                              const Problem& problem,
                                              const Resources& resources,
                                              AccuracyClass accuracy,
                                              const AroundNs& around_ns) {
  RETURN_IF_ERROR(CheckProblem(problem));
  // In the order of estimates, so that a plan is made once for the estimate,
  // and again by `supports` only for the variants up to the one that is
  // returned.
  std::vector<std::pair<double, const Variant*>> candidates;
  for (const Variant* variant : Variants()) {
    if (variant->backend != backend || variant->estimate_ns == nullptr ||
        variant->accuracy > accuracy ||
        (resources.recorded && !variant->recordable)) {
      continue;
    }
    absl::StatusOr<double> ns = variant->estimate_ns(problem, resources);
    // One that could not be asked is no reason to take a slower one.
    if (!ns.ok() && !absl::IsUnimplemented(ns.status())) return ns.status();
    if (ns.ok() && around_ns != nullptr) {
      ASSIGN_OR_RETURN(const double around, around_ns(*variant));
      *ns += around;
    }
    candidates.emplace_back(ns.value_or(std::numeric_limits<double>::max()),
                            variant);
  }
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  absl::Status declined = absl::UnimplementedError(
      absl::StrCat("no variant on the ", Name(backend), " estimates its time"));
  for (const auto& [ns, variant] : candidates) {
    declined = variant->supports(problem, resources);
    if (declined.ok()) return variant;
    if (!absl::IsUnimplemented(declined)) return declined;
  }
  return declined;
}

}  // namespace convlab
