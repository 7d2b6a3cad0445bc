#include "milestones/progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace convlab {

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
               ProgressLine(share, elapsed.count()).c_str());
}

std::string ProgressLine(double share, double seconds) {
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(share * kWidth);
  std::string line =
      absl::StrFormat("[%-*s] %3.0f %%", kWidth, std::string(filled, '#'),
                      std::floor(share * 100));
  if (share > 0) {
    const double left = seconds * (1 - share) / share;
    absl::StrAppend(&line, left < 120
                               ? absl::StrFormat(", %.0f s left", left)
                               : absl::StrFormat(", %.0f min left", left / 60));
  }
  return line;
}

}  // namespace convlab
