#include "reports/program.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/program/program.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// The last line that is not blank.
std::string LastLine(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const size_t end = text.rfind('\n');
  return std::string(end == absl::string_view::npos ? text
                                                    : text.substr(end + 1));
}

}  // namespace

absl::Status RunProgram(const std::vector<std::string>& arguments,
                        const std::string& folder) {
  ProgramOptions options;
  options.folder = folder;
  ASSIGN_OR_RETURN(const ProgramResult result, RunProgram(arguments, options));
  if (result.exit_status == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(arguments[0], " failed: ", LastLine(result.output)));
}

size_t TerminalWidth() {
  winsize size = {};
  const bool is_known = isatty(STDOUT_FILENO) != 0 &&
                        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return is_known ? size.ws_col : 0;
}

}  // namespace convlab
