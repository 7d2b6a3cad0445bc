#include "common/status/status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace convlab {

int ExitStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return 2;
    case absl::StatusCode::kUnavailable:
      return 3;
    default:
      return 1;
  }
}

absl::Status Annotate(const absl::Status& status, absl::string_view where) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(where, ": ", status.message()));
}

std::string OneLine(absl::string_view text) {
  std::string line;
  for (const char c : text) {
    line += absl::ascii_iscntrl(static_cast<unsigned char>(c))
                ? absl::CHexEscape(absl::string_view(&c, 1))
                : std::string(1, c);
  }
  return line;
}

}  // namespace convlab
