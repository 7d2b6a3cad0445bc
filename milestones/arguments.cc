#include "milestones/arguments.h"

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace convlab {

absl::StatusOr<int64_t> ParseSize(const std::string& text) {
  int64_t size;
  if (!absl::SimpleAtoi(text, &size)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "size is '", text, "', expected a whole number of images"));
  }
  if (size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("size is ", size, ", expected at least 1"));
  }
  return size;
}

bool LooksLikeSize(absl::string_view text) {
  return !text.empty() &&
         (absl::ascii_isdigit(text[0]) || text[0] == '-' || text[0] == '+');
}

absl::StatusOr<Device> ParseDevice(const std::string& text) {
  if (text == "auto") return Device::kAuto;
  if (text == "cpu") return Device::kCpu;
  if (text == "gpu") return Device::kGpu;
  return absl::InvalidArgumentError(
      absl::StrCat("--device is '", text, "', expected auto, cpu or gpu"));
}

bool StrictByDefault() {
  const char* const ci = std::getenv("CI");
  return ci != nullptr && *ci != '\0';
}

absl::Status CheckRange(const char* flag, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, " is ", value, ", expected ", least, " to ", most));
}

}  // namespace convlab
