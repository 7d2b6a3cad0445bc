// Ends the program in order when it is interrupted.
#ifndef MILESTONES_CLASSIFYING_INTERRUPT_H_
#define MILESTONES_CLASSIFYING_INTERRUPT_H_

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace convlab {

// While it lives, SIGINT, SIGTERM and SIGHUP call `clean_up` in a thread of its
// own, whatever the others wait for; then the signal ends the program as usual,
// so that a shell sees what it was. Those that the caller has ignored, as nohup
// does SIGHUP, stay ignored. To be created before other threads, which inherit
// that they leave these signals alone.
class InterruptGuard {
 public:
  explicit InterruptGuard(std::function<void()> clean_up);
  ~InterruptGuard();

 private:
  void Wait();

  const std::function<void()> clean_up_;
  sigset_t signals_;
  int any_ = 0;      // one of them; 0: all are ignored
  sigset_t before_;  // the signals that were blocked
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_INTERRUPT_H_
