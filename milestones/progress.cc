#include "milestones/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace convlab {
namespace {

// A line that is longer than the terminal is wide would not be replaced.
int Columns() {
  winsize size = {};
  const bool is_known =
      ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

}  // namespace

ProgressBar::ProgressBar()
    : visible_(isatty(STDERR_FILENO)),
      start_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::Show(double share) {
  if (!visible_) return;
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start_;
  std::fprintf(stderr, "\r%s\x1b[K",
               ProgressLine(share, elapsed.count(), Columns()).c_str());
}

std::function<void(double seconds)> WaitNotice(
    double limit, const std::string& what,
    const std::function<void(const std::string&)>& tell) {
  if (isatty(STDERR_FILENO)) {
    return [limit](double seconds) {
      std::fprintf(
          stderr, "\r%s\x1b[K",
          seconds > 0 ? WaitLine(seconds, limit, Columns()).c_str() : "");
    };
  }
  return [=, told = false](double seconds) mutable {
    if (seconds > 0 && !told) {
      tell(absl::StrCat(what, ": ", WaitLine(seconds, limit, INT_MAX)));
      told = true;
    }
  };
}

std::string ProgressLine(double share, double seconds, int columns) {
  constexpr int kWidest = 30, kText = 24;  // what stands behind the bar
  const int width = std::clamp(columns - kText, 1, kWidest);
  const int filled = static_cast<int>(share * width);
  std::string line =
      absl::StrFormat("[%-*s] %3.0f %%", width, std::string(filled, '#'),
                      std::floor(share * 100));
  if (share > 0) {
    const double left = seconds * (1 - share) / share;
    absl::StrAppend(&line, left < 120
                               ? absl::StrFormat(", %.0f s left", left)
                               : absl::StrFormat(", %.0f min left", left / 60));
  }
  return line;
}

std::string WaitLine(double seconds, double limit, int columns) {
  const std::string line = absl::StrFormat(
      "no answer from the kernel for %.0f s, it has %g s", seconds, limit);
  return line.substr(0, std::max(columns - 1, 0));
}

}  // namespace convlab
