#include "kernels/convolution/checking/verify.h"

#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/host_run.h"
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
  const double error = RelativeError(
      y.data(),
      ReferenceConvolution(problem, x.data(), k.data(), *resources.workers));
  RETURN_IF_ERROR(
      Annotate(CheckError(error, variant.accuracy),
               absl::StrCat(variant.name, " on ", ToString(problem))));
  return error;
}

}  // namespace convlab
