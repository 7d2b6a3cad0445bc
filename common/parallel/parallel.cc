#include "common/parallel/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "unsupported/Eigen/CXX11/ThreadPool"

namespace convlab {

struct Workers::Pool : Eigen::ThreadPool {
  using Eigen::ThreadPool::ThreadPool;
};

int Workers::Available() {
  // glibc counts the cores of the process's affinity mask.
  return std::max(1u, std::thread::hardware_concurrency());
}

Workers::Workers(int count) : count_(std::max(1, count)) {
  // The caller's thread is the last worker.
  if (count_ > 1) pool_ = std::make_unique<Pool>(count_ - 1);
}

Workers::~Workers() = default;

void Workers::For(int64_t items, int64_t grain, const Work& work) {
  grain = std::max<int64_t>(1, grain);
  std::atomic<int64_t> next{0};
  const auto run = [&](int worker) {
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= items) return;
      work(worker, begin, std::min(items, begin + grain));
    }
  };
  const int64_t pieces = (items + grain - 1) / grain;
  const int helpers = static_cast<int>(std::min<int64_t>(
                          count_, std::max<int64_t>(pieces, 1))) -
                      1;
  Eigen::Barrier done(helpers);
  for (int helper = 0; helper < helpers; ++helper) {
    pool_->Schedule([&, helper] {
      run(helper);
      done.Notify();
    });
  }
  run(count_ - 1);
  done.Wait();
}

}  // namespace convlab
