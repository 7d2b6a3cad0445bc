#include "milestones/classifying/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace convlab {

InterruptGuard::InterruptGuard(std::function<void()> clean_up)
    : clean_up_(std::move(clean_up)) {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old;
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) {
      continue;
    }
    sigaddset(&signals_, signal);
    any_ = signal;
  }
  if (any_ == 0) return;
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  thread_ = std::thread([this] { Wait(); });
}

InterruptGuard::~InterruptGuard() {
  if (any_ == 0) return;
  done_ = true;
  // It waits for the signal with sigwait, so that nothing is terminated.
  // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread)
  pthread_kill(thread_.native_handle(), any_);
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
  // Nothing ends the first process of a container by itself.
  _exit(128 + signal);
}

}  // namespace convlab
