#include "milestones/classifying/interrupt.h"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace convlab {

InterruptGuard::InterruptGuard(std::function<void()> clean_up)
    : clean_up_(std::move(clean_up)) {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&signals_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  thread_ = std::thread([this] { Wait(); });
}

InterruptGuard::~InterruptGuard() {
  done_ = true;
  // It waits for the signal with sigwait, so that nothing is terminated.
  // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread)
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void InterruptGuard::Wait() {
  int signal = 0;
  while (sigwait(&signals_, &signal) != 0) {
  }
  if (done_) return;
  clean_up_();
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  std::raise(signal);
}

}  // namespace convlab
