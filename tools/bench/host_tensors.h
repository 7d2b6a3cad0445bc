// The tensors of a convolution that is measured on the CPU, and the checks of
// what it makes of them.
#ifndef TOOLS_BENCH_HOST_TENSORS_H_
#define TOOLS_BENCH_HOST_TENSORS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/accuracy/accuracy.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/checking/recipe.h"
#include "kernels/convolution/problem.h"
#include "kernels/measure/renewal.h"
#include "kernels/measure/sampled_reference.h"

namespace convlab {

// Floats between two red zones.
class GuardedFloats {
 public:
  // All floats are NaN at first.
  explicit GuardedFloats(int64_t size);
  float* data() { return values_.data() + kZone; }
  const float* data() const { return values_.data() + kZone; }
  int64_t size() const {
    return static_cast<int64_t>(values_.size()) - 2 * kZone;
  }
  void Poison();
  // The elements that hold what Poison wrote.
  int64_t CountPoisoned() const;
  bool ZonesAreIntact() const;
  void RestoreZones();

 private:
  static constexpr int64_t kZone = 1024;
  std::vector<float> values_;
};

class BenchTensors {
 public:
  // Makes the recipe's data; `ordinary` if they are random values of both signs
  // and one scale. The workers must outlive the tensors.
  BenchTensors(const Problem& problem, const Recipe& recipe, bool ordinary,
               Workers& workers);

  const float* x() const { return x_.data(); }
  const float* k() const { return k_.data(); }
  float* y() { return y_.data(); }

  // Changes what x and k hold, so that no earlier output is right (renewal.h).
  void Renew(uint64_t seed);
  // Makes x and k what they were at first.
  void Restore();
  void Poison() { y_.Poison(); }

  // The error of some images of the poisoned y, on the first inputs; DataLoss
  // if any element was not written.
  absl::StatusOr<MeasuredError> Error() const;

  // DataLoss if the inputs are not what they were, or something was written
  // beside a tensor.
  absl::Status CheckUse() const;
  // DataLoss unless outputs that the seed draws are right by the class.
  absl::Status CheckDrawnOutputs(AccuracyClass accuracy, uint64_t seed) const;
  // The same for the whole output: ordinary data by the judge's check
  // (kernels/judge/check.h). Its bound is for such data only, so that of others
  // each output is compared with float64.
  absl::Status CheckWholeOutput(AccuracyClass accuracy, uint64_t seed);

 private:
  int64_t image_elements() const {
    return problem_.input_elements() / problem_.batch;
  }
  // Image b of x as it should be.
  const float* ExpectedImage(int64_t b) const;
  void Place();

  const Problem problem_;
  const Recipe recipe_;
  const bool ordinary_;
  Workers& workers_;
  const ConvolutionData first_;
  Renewal now_;  // what x and k hold
  GuardedFloats x_, k_, y_;
  const SampledReference reference_;
};

}  // namespace convlab

#endif  // TOOLS_BENCH_HOST_TENSORS_H_
