// What an accuracy class is called and which errors it allows. Everything that
// verifies a convolution asks CheckError, so that a result passes everywhere or
// nowhere, with the same message.
#ifndef COMMON_ACCURACY_ACCURACY_H_
#define COMMON_ACCURACY_ACCURACY_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/accuracy/accuracy_class.h"

namespace convlab {

// "fp32", "tf32", "fp16", "bf16".
absl::string_view Name(AccuracyClass accuracy);

// The class of that name, as records hold it; absent for other texts.
std::optional<AccuracyClass> FindAccuracyClass(absl::string_view name);

// The largest relative L2 error against float64 that the class allows.
double MaxRelativeError(AccuracyClass accuracy);

// DataLoss, with both numbers, if the relative L2 error exceeds what the class
// allows or is no number.
absl::Status CheckError(double error, AccuracyClass accuracy);

}  // namespace convlab

#endif  // COMMON_ACCURACY_ACCURACY_H_
