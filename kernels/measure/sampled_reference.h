// The reference of a convolution whose batch is too large to check as a whole:
// measurements compare some of its images.
#ifndef KERNELS_MEASURE_SAMPLED_REFERENCE_H_
#define KERNELS_MEASURE_SAMPLED_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/accuracy/accuracy.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/checking/contract.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// The images of a batch that are compared with the reference, in ascending
// order: all of a small batch, otherwise some at equal distances, including the
// first and the last.
std::vector<int64_t> CheckedImages(int64_t batch);

// How far an output is from the reference.
struct MeasuredError {
  double relative = 0;  // L2, RelativeError
  WorstOutput worst;    // by the contract of class fp32
};

// DataLoss if the error is not within the class: on `ordinary` data, random
// values of both signs and one scale, in the L2 norm; in class fp32 also by its
// contract, on all data.
absl::Status CheckMeasured(const MeasuredError& error, AccuracyClass accuracy,
                           bool ordinary);

// Sums over outputs, from which their error follows.
struct ErrorSums {
  double difference = 0, norm = 0;  // squares of y - y64, and of y64
  // The worst c by the contract of class fp32: of y, and of the plain loop in
  // float32.
  double factor = 0, plain = 0;
};
MeasuredError ErrorOf(const ErrorSums& sums);

// How many outputs of each sample are compared with the definition. Who leaves
// out one in a hundred is found out 99.997 % of the time.
inline constexpr int64_t kDrawnOutputs = 1024;

// The error of kDrawnOutputs elements of y that the seed chooses, each computed
// by the definition in float64. Tensors are in host memory, sizes as in
// problem.h.
MeasuredError DrawnError(const Problem& problem, const float* x, const float* k,
                         const float* y, uint64_t seed, Workers& workers);

// The same of all elements of y.
MeasuredError WholeError(const Problem& problem, const float* x, const float* k,
                         const float* y, Workers& workers);

// CheckMeasured for the outputs of DrawnError: in the L2 norm few outputs may
// be twice as far off as all are.
absl::Status CheckDrawn(const MeasuredError& error, AccuracyClass accuracy,
                        bool ordinary);

class SampledReference {
 public:
  // Writes image b of the input or of the output to `image`, as CHW.
  using ReadInput = std::function<void(int64_t b, float* image)>;
  using ReadOutput = std::function<absl::Status(int64_t b, float* image)>;

  // Computes the checked images of the valid `problem` in float64; k is MCKK.
  // The workers must outlive the reference.
  SampledReference(const Problem& problem, const ReadInput& read,
                   const float* k, Workers& workers);

  // The error of the checked images, or that of `read`.
  absl::StatusOr<MeasuredError> Error(const ReadOutput& read) const;

 private:
  std::vector<int64_t> images_;
  Workers* workers_;
  std::optional<ContractReference> reference_;  // of these images
};

}  // namespace convlab

#endif  // KERNELS_MEASURE_SAMPLED_REFERENCE_H_
