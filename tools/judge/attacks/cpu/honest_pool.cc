// A thread that is started in the first call and stays, waiting for work.
// Nothing to catch: between calls it does nothing.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "convolve.h"

static std::mutex mutex;
static std::condition_variable changed;
static std::function<void()> work;

static void Serve() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [] { return work != nullptr; });
    work();
    work = nullptr;
    changed.notify_all();
  }
}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  static std::thread* const thread = new std::thread(Serve);
  if (!thread->joinable()) return;
  const int half = B / 2;
  const size_t in = size_t{1} * half * C * H * W;
  const size_t out = OutputSize(half, H, W, M, K);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    work = [=] { Convolve(x, k, y, half, C, H, W, M, K); };
  }
  changed.notify_all();
  Convolve(x + in, k, y + out, B - half, C, H, W, M, K);
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [] { return work == nullptr; });
}
