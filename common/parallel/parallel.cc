#include "common/parallel/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "Eigen/Core"
#include "common/math/rounding.h"
#include "common/parallel/loop_workers.h"

// The vectors of Eigen's pool (MaxSizeVector) use what malloc returns even if
// that is null. Here such an allocation throws std::bad_alloc instead.
namespace Eigen::internal {
inline void* AlignedMallocOrThrow(std::size_t size, std::size_t alignment) {
  void* const memory = handmade_aligned_malloc(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  // A vector counts an element before it is made: if that throws, a vector in
  // the element's place is destroyed, which is to own nothing.
  std::memset(memory, 0, size);
  return memory;
}
}  // namespace Eigen::internal
#define handmade_aligned_malloc AlignedMallocOrThrow
#include "unsupported/Eigen/CXX11/ThreadPool"
#undef handmade_aligned_malloc

namespace convlab {

namespace {

// Threads for Eigen's pool. If the system refuses one, the pool's destructor
// would wait for it forever; so the pool runs without it, and its owner checks
// for the error.
struct Environment : Eigen::StlThreadEnvironment {
  Environment(std::exception_ptr* its_failure,
              std::shared_ptr<std::atomic<int>> its_running)
      : failure(its_failure), running(std::move(its_running)) {}

  EnvThread* CreateThread(std::function<void()> work) {
    if (*failure != nullptr) return nullptr;
    try {
      ++*running;
      return new EnvThread([work = std::move(work), counter = running] {
        work();
        --*counter;
      });
    } catch (const std::exception&) {
      --*running;
      *failure = std::current_exception();
      return nullptr;
    }
  }

  std::exception_ptr* const failure;
  const std::shared_ptr<std::atomic<int>> running;  // threads
};

thread_local int loop_workers = 1;

// How often this process was made by a fork. A child has none of its parent's
// threads.
const std::atomic<int>& Forks() {
  static std::atomic<int> forks{0};
  // If it is refused, forks stay unknown, as if there were none.
  [[maybe_unused]] static const int refused =
      pthread_atfork(nullptr, nullptr, [] { ++forks; });
  return forks;
}

}  // namespace

int TakeLoopWorkers() { return std::exchange(loop_workers, 1); }

struct Workers::Pool : Eigen::ThreadPoolTempl<Environment> {
  using ThreadPoolTempl::ThreadPoolTempl;
};

int Workers::Available() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    return std::max(1, CPU_COUNT(&cores));
  }
  // The machine has more cores than a cpu_set_t has bits.
  return std::max(1u, std::thread::hardware_concurrency());
}

Workers::Workers(int count)
    : count_(std::max(1, count)), forks_(Forks()), pool_(StartPool()) {}

std::unique_ptr<Workers::Pool> Workers::StartPool() const {
  if (count_ == 1) return nullptr;
  // The caller's thread is the last worker.
  std::exception_ptr failure;
  const auto running = std::make_shared<std::atomic<int>>(0);
  auto pool =
      std::make_unique<Pool>(count_ - 1, Environment(&failure, running));
  if (failure == nullptr) return pool;
  // A thread that is about to wait when the pool is cancelled misses the
  // signal, and the pool's destructor would wait for that thread.
  while (*running > 0) {
    pool->Cancel();
    std::this_thread::yield();
  }
  pool.reset();
  std::rethrow_exception(failure);
}

void Workers::LeaveParentsThreads() {
  if (forks_ == Forks()) return;
  // Its destructor would wait for them.
  static_cast<void>(pool_.release());
}

Workers::~Workers() { LeaveParentsThreads(); }

void Workers::For(int64_t items, int64_t grain, const Work& work) {
  grain = std::max<int64_t>(1, grain);
  const int64_t pieces = CeilDivide(items, grain);
  const int helpers = static_cast<int>(std::min<int64_t>(
                          count_, std::max<int64_t>(pieces, 1))) -
                      1;
  loop_workers = std::max(loop_workers, helpers + 1);
  if (helpers == 0) {  // the caller alone
    for (int64_t begin = 0; begin < items; begin += grain) {
      work(count_ - 1, begin, std::min(items, begin + grain));
    }
    return;
  }
  LeaveParentsThreads();
  if (pool_ == nullptr) pool_ = StartPool();
  forks_ = Forks();
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;  // the first
  const auto run = [&](int worker) {
    try {
      for (;;) {
        const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= items) return;
        work(worker, begin, std::min(items, begin + grain));
      }
    } catch (...) {
      next = items;
      const std::lock_guard<std::mutex> lock(mutex);
      if (failure == nullptr) failure = std::current_exception();
    }
  };
  Eigen::Barrier done(helpers);
  std::atomic<int> helper{0};
  const auto help = [&] {
    run(helper.fetch_add(1, std::memory_order_relaxed));
    done.Notify();
  };
  // A function of one pointer is kept without memory of its own.
  for (int i = 0; i < helpers; ++i) {
    pool_->Schedule([&help] { help(); });
  }
  run(count_ - 1);
  done.Wait();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace convlab
