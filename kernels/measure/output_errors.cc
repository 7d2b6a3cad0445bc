#include "kernels/measure/output_errors.h"

#include <cstring>

#include "common/status/status.h"
#include "kernels/measure/error_kernels.h"

namespace convlab::cuda {

absl::StatusOr<OutputErrors> OutputErrors::Create() {
  OutputErrors errors;
  ASSIGN_OR_RETURN(errors.sums_, DeviceBuffer::Allocate(sizeof(ErrorSumsBits)));
  return errors;
}

absl::StatusOr<MeasuredError> OutputErrors::Whole(const Problem& problem,
                                                  const float* x,
                                                  const float* k,
                                                  const float* y) const {
  return Errors(problem, x, k, y, problem.output_elements(), /*drawn=*/false,
                /*seed=*/0);
}

absl::StatusOr<MeasuredError> OutputErrors::Drawn(const Problem& problem,
                                                  const float* x,
                                                  const float* k,
                                                  const float* y, int64_t count,
                                                  uint64_t seed) const {
  return Errors(problem, x, k, y, count, /*drawn=*/true, seed);
}

absl::StatusOr<MeasuredError> OutputErrors::Errors(
    const Problem& problem, const float* x, const float* k, const float* y,
    int64_t count, bool drawn, uint64_t seed) const {
  RETURN_IF_ERROR(FillBytes(sums_.data(), 0, sums_.bytes()));
  RETURN_IF_ERROR(
      ToStatus(LaunchErrors(problem, x, k, y, count, drawn, seed,
                            static_cast<ErrorSumsBits*>(sums_.data()))));
  ErrorSumsBits bits;
  RETURN_IF_ERROR(CopyToHost(&bits, sums_.data(), sizeof(bits)));
  ErrorSums sums;
  sums.difference = bits.difference;
  sums.norm = bits.norm;
  static_assert(sizeof(bits.factor) == sizeof(sums.factor));
  std::memcpy(&sums.factor, &bits.factor, sizeof(sums.factor));
  std::memcpy(&sums.plain, &bits.plain, sizeof(sums.plain));
  return ErrorOf(sums);
}

}  // namespace convlab::cuda
