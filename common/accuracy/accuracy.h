// The names of accuracy classes and the errors that they allow. All
// verification of convolutions uses CheckError, so that a result passes
// everywhere or nowhere, with the same message.
#ifndef COMMON_ACCURACY_ACCURACY_H_
#define COMMON_ACCURACY_ACCURACY_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/accuracy/accuracy_class.h"

namespace convlab {

// All classes, from the tightest on.
inline constexpr AccuracyClass kAccuracyClasses[] = {
    AccuracyClass::kFp32, AccuracyClass::kFp32Normwise, AccuracyClass::kTf32,
    AccuracyClass::kFp16, AccuracyClass::kBf16};

// "fp32", "fp32-normwise", "tf32", "fp16", "bf16".
absl::string_view Name(AccuracyClass accuracy);

// The class of that name, as records write it; absent for other names.
std::optional<AccuracyClass> FindAccuracyClass(absl::string_view name);

// Whether the class computes in float32, whatever its errors promise.
bool IsFloat32(AccuracyClass accuracy);

// The largest relative L2 error against float64 that the class allows on
// ordinary data: random values of both signs and of one scale. For kFp32 that
// is not all (contract.h).
double MaxRelativeError(AccuracyClass accuracy);

// The same for outputs that each sum `terms` products. The classes are stated
// for sums like those of the course's layers; the rounding errors of longer
// ones grow with the square root of their length.
double MaxRelativeError(AccuracyClass accuracy, int64_t terms);

// The number by which a network's correct answers may differ from those of a
// float32 computation: 0 where that is one, and a few in the other classes,
// which round differently.
int64_t MaxChangedAnswers(AccuracyClass accuracy);

// DataLoss, with both numbers, if the relative L2 error exceeds the bound of
// the class or is NaN.
absl::Status CheckError(double error, AccuracyClass accuracy);

}  // namespace convlab

#endif  // COMMON_ACCURACY_ACCURACY_H_
