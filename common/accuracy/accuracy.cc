#include "common/accuracy/accuracy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace convlab {

absl::string_view Name(AccuracyClass accuracy) {
  switch (accuracy) {
    case AccuracyClass::kFp32:
      return "fp32";
    case AccuracyClass::kFp32Normwise:
      return "fp32-normwise";
    case AccuracyClass::kTf32:
      return "tf32";
    case AccuracyClass::kFp16:
      return "fp16";
    case AccuracyClass::kBf16:
      return "bf16";
  }
  return "";
}

std::optional<AccuracyClass> FindAccuracyClass(absl::string_view name) {
  for (const AccuracyClass accuracy : kAccuracyClasses) {
    if (Name(accuracy) == name) return accuracy;
  }
  return std::nullopt;
}

bool IsFloat32(AccuracyClass accuracy) {
  return accuracy == AccuracyClass::kFp32 ||
         accuracy == AccuracyClass::kFp32Normwise;
}

double MaxRelativeError(AccuracyClass accuracy) {
  switch (accuracy) {
    case AccuracyClass::kFp32:
    case AccuracyClass::kFp32Normwise:
      return 1e-6;
    case AccuracyClass::kTf32:
      return 5e-4;
    case AccuracyClass::kFp16:
      return 1e-3;
    case AccuracyClass::kBf16:
      return 5e-3;
  }
  return 0;
}

double MaxRelativeError(AccuracyClass accuracy, int64_t terms) {
  constexpr double kUsualTerms = 2048;
  return MaxRelativeError(accuracy) *
         std::max(1.0, std::sqrt(static_cast<double>(terms) / kUsualTerms));
}

int64_t MaxChangedAnswers(AccuracyClass accuracy) {
  return IsFloat32(accuracy) ? 0 : 5;
}

absl::Status CheckError(double error, AccuracyClass accuracy) {
  const double allowed = MaxRelativeError(accuracy);
  // Not "error > allowed": NaN must not pass.
  if (error <= allowed) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "relative error %.2g against float64, expected at most %.0e in class %s",
      error, allowed, Name(accuracy)));
}

}  // namespace convlab
