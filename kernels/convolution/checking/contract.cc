#include "kernels/convolution/checking/contract.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/accuracy/contract.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

// Outputs that a worker compares at a time.
constexpr int64_t kGrain = 1 << 14;

}  // namespace

ContractReference::ContractReference(const Problem& problem, const float* x,
                                     const float* k, Workers& workers)
    : problem_(problem) {
  ReferenceSums sums = ReferenceWithMagnitudes(problem, x, k, workers);
  y_ = std::move(sums.y);
  magnitude_ = std::move(sums.magnitude);
  plain_ = Worst(sums.plain.data(), workers).factor;
  allowed_ = AllowedFactor(plain_);
}

double ContractReference::FactorAt(int64_t index, float y) const {
  return ErrorFactor(y, {y_[index], magnitude_[index],
                         problem_.kernel_elements() / problem_.filters});
}

WorstOutput ContractReference::Worst(const float* y, Workers& workers) const {
  std::vector<WorstOutput> worst(workers.count());
  workers.For(y_.size(), kGrain, [&](int worker, int64_t begin, int64_t end) {
    WorstOutput& mine = worst[worker];
    for (int64_t i = begin; i < end; ++i) {
      const double factor = FactorAt(i, y[i]);
      if (factor > mine.factor) mine = {factor, 0, i};
    }
  });
  WorstOutput all =
      *std::max_element(worst.begin(), worst.end(),
                        [](const WorstOutput& a, const WorstOutput& b) {
                          return a.factor < b.factor ||
                                 (a.factor == b.factor && a.index > b.index);
                        });
  all.allowed = allowed_;
  return all;
}

absl::Status ContractReference::Check(const float* y, absl::string_view variant,
                                      absl::string_view data,
                                      Workers& workers) const {
  const WorstOutput worst = Worst(y, workers);
  if (worst.ok()) return absl::OkStatus();
  const int64_t width = problem_.output_width();
  const int64_t height = problem_.output_height();
  const int64_t plane = worst.index / (width * height);
  return absl::DataLossError(absl::StrFormat(
      "%s on %s: output (b=%d, m=%d, h=%d, w=%d) is %.9g, float64 gives %.9g "
      "from products of %.3g in sum: c = %.3g, expected at most %.3g (the "
      "plain "
      "loop has %.2g); the data are %s",
      variant, ToString(problem_), plane / problem_.filters,
      plane % problem_.filters, worst.index / width % height,
      worst.index % width, y[worst.index], y_[worst.index],
      magnitude_[worst.index], worst.factor, worst.allowed, plain_, data));
}

}  // namespace convlab
