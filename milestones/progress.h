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

// Shows on a terminal, in the bar's place, that a kernel lets the program wait:
// for so many seconds, of those that it has; 0 seconds: not any more.
void ShowWait(double seconds, double limit);

// Formats the bar, "[######      ]  50 %, 3 s left", from the share of the work
// and the seconds that it took.
std::string ProgressLine(double share, double seconds, int columns = 80);
// "no answer from the kernel for 5 s, it has 60 s", or as much as there is room
// for.
std::string WaitLine(double seconds, double limit, int columns = 80);

}  // namespace convlab

#endif  // MILESTONES_PROGRESS_H_
