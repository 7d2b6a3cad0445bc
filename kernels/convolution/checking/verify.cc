#include "kernels/convolution/checking/verify.h"

#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/accuracy/accuracy.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/contract.h"
#include "kernels/convolution/checking/host_run.h"
#include "kernels/convolution/checking/mismatch.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/convolution/checking/reference.h"

namespace convlab {

absl::StatusOr<double> Verify(const Variant& variant, const Problem& problem,
                              const Resources& resources) {
  // The check precedes allocations by the problem's size.
  RETURN_IF_ERROR(CheckProblem(problem));
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> x(problem.input_elements());
  std::vector<float> k(problem.kernel_elements());
  for (float& value : x) value = distribution(generator);
  for (float& value : k) value = distribution(generator);
  ASSIGN_OR_RETURN(const std::vector<float> y,
                   RunOnHostTensors(variant, problem, resources, x, k));
  const ContractReference contract(problem, x.data(), k.data(),
                                   *resources.workers);
  const std::vector<double>& reference = contract.y();
  const double error = RelativeError(y.data(), reference);
  const absl::Status status = CheckError(error, variant.accuracy);
  if (status.ok()) {
    if (variant.accuracy == AccuracyClass::kFp32) {
      RETURN_IF_ERROR(
          contract.Check(y.data(), variant.name, "random", *resources.workers));
    }
    return error;
  }
  // Single elements exceed the error of the whole output.
  const Tolerance tolerance = {10 * MaxRelativeError(variant.accuracy)};
  const std::vector<std::string> mismatches =
      DescribeMismatch(problem, y, reference, tolerance, kPoisonedWord,
                       {x, k, {}, {}})
          .lines;
  return absl::DataLossError(absl::StrCat(
      variant.name, " on ", ToString(problem), ": ", status.message(),
      mismatches.empty() ? "" : "; ", absl::StrJoin(mismatches, "; ")));
}

}  // namespace convlab
