// The contract of class fp32 (common/accuracy/contract.h) for whole outputs:
// every output of every image is compared with float64.
//
//   const ContractReference reference(problem, x, k, workers);
//   RETURN_IF_ERROR(reference.Check(y, "naive", ToString(recipe), workers));
#ifndef KERNELS_CONVOLUTION_CHECKING_CONTRACT_H_
#define KERNELS_CONVOLUTION_CHECKING_CONTRACT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/network/layer.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// The output that is worst, by the c that the contract would need for it.
struct WorstOutput {
  double factor = 0;   // c; infinity if it is wrong at any c
  double allowed = 0;  // what the contract allows
  int64_t index = 0;   // in y
  // Not "factor > allowed": NaN must not pass.
  bool ok() const { return factor <= allowed; }
};

class ContractReference {
 public:
  // Computes y in float64, the sums of the products' magnitudes, and what the
  // plain loop in float32 over c, p and q gives. The problem is valid; sizes
  // are as in problem.h.
  ContractReference(const Problem& problem, const float* x, const float* k,
                    Workers& workers);

  // The reference of the same outputs after max pooling: a maximum is as wrong
  // as the worst of its window may be. Windows with sums that may overflow are
  // not judged: one that became negative infinity leaves a number.
  ContractReference Pooled(const MaxPool& pool, Workers& workers) const;

  WorstOutput Worst(const float* y, Workers& workers) const;

  // DataLoss if an output breaks the contract: the message has the worst of
  // them, its place and its c. `variant` and `data` say in words what was run,
  // and on what.
  absl::Status Check(const float* y, absl::string_view variant,
                     absl::string_view data, Workers& workers) const;

  const std::vector<double>& y() const { return y_; }
  // The worst c of the plain loop, and the largest that the contract allows.
  double plain_factor() const { return plain_; }
  double allowed_factor() const { return allowed_; }

 private:
  double FactorAt(int64_t index, float y) const;

  Problem problem_;
  int64_t height_, width_;  // of the outputs
  bool pooled_ = false;
  std::vector<double> y_;
  std::vector<double> magnitude_;
  double plain_ = 0, allowed_ = 0;
};

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_CONTRACT_H_
