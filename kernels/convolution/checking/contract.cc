#include "kernels/convolution/checking/contract.h"

#include <algorithm>
#include <cmath>

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
    : problem_(problem),
      height_(problem.output_height()),
      width_(problem.output_width()) {
  ReferenceSums sums = ReferenceWithMagnitudes(problem, x, k, workers);
  y_ = std::move(sums.y);
  magnitude_ = std::move(sums.magnitude);
  plain_ = Worst(sums.plain.data(), workers).factor;
  // Where it is wrong itself, as with infinities beside sums that overflow, it
  // allows nothing to others.
  if (!std::isfinite(plain_)) plain_ = 0;
  allowed_ = AllowedFactor(plain_);
}

ContractReference ContractReference::Pooled(const MaxPool& pool,
                                            Workers& workers) const {
  ContractReference pooled = *this;
  Epilogue epilogue;
  epilogue.pool = pool;
  pooled.y_ = ReferenceEpilogue(problem_, epilogue, y_, workers);
  pooled.magnitude_ =
      ReferenceEpilogue(problem_, epilogue, magnitude_, workers);
  pooled.pooled_ = true;
  pooled.height_ = pool.Output(height_);
  pooled.width_ = pool.Output(width_);
  return pooled;
}

double ContractReference::FactorAt(int64_t index, float y) const {
  if (pooled_ && std::isfinite(y_[index]) && MayOverflow(magnitude_[index])) {
    return 0;
  }
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
  const int64_t plane = worst.index / (width_ * height_);
  return absl::DataLossError(absl::StrFormat(
      "%s on %s: output (b=%d, m=%d, h=%d, w=%d) is %.9g, float64 gives %.9g "
      "from products of %.3g in sum: c = %.3g, expected at most %.3g (the "
      "plain "
      "loop has %.2g); the data are %s",
      variant, ToString(problem_), plane / problem_.filters,
      plane % problem_.filters, worst.index / width_ % height_,
      worst.index % width_, y[worst.index], y_[worst.index],
      magnitude_[worst.index], worst.factor, worst.allowed, plain_, data));
}

}  // namespace convlab
