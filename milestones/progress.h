// A progress bar on standard error, shown only on a terminal.
#ifndef MILESTONES_PROGRESS_H_
#define MILESTONES_PROGRESS_H_

#include <chrono>
#include <string>

namespace convlab {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // erases the bar

  // Draws `share`, 0 to 1, of the work done.
  void Show(double share);

 private:
  const bool visible_;
  const std::chrono::steady_clock::time_point start_;
};

// Formats the bar, "[######      ]  50 %, 3 s left", from the share of the work
// and the seconds that it took.
std::string ProgressLine(double share, double seconds, int columns = 80);

}  // namespace convlab

#endif  // MILESTONES_PROGRESS_H_
