// A progress bar on standard error, shown only on a terminal, and notices.
#ifndef MILESTONES_PROGRESS_H_
#define MILESTONES_PROGRESS_H_

#include <chrono>
#include <functional>
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

// Returns a function that says that a kernel lets the program wait, for so many
// seconds of the `limit` that each call has; 0 seconds: not any more. On a
// terminal it shows each wait in the bar's place. Otherwise it says once, by
// `tell`, what is waited for: one line for what may be a hundred calls.
std::function<void(double seconds)> WaitNotice(
    double limit, const std::string& what,
    const std::function<void(const std::string&)>& tell);

// Formats the bar, "[######      ]  50 %, 3 s left", from the share of the work
// and the seconds that it took.
std::string ProgressLine(double share, double seconds, int columns = 80);
// "no answer from the kernel for 5 s, it has 60 s", or as much as there is room
// for.
std::string WaitLine(double seconds, double limit, int columns = 80);

}  // namespace convlab

#endif  // MILESTONES_PROGRESS_H_
