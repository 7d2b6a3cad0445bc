#include "convlab/pool.h"

#include <pthread.h>

#include <atomic>
#include <map>
#include <new>
#include <set>

namespace convlab {
namespace {

// All pools that there are. Whoever holds its mutex may wait for a turn, but
// never the other way round.
struct Registry {
  std::mutex mutex;
  std::set<Pool*> pools;
  std::map<int, std::weak_ptr<Pool>> shared;  // by their number of threads
};

// Never destroyed, since a fork may come later than the end of main.
Registry& Pools() {
  static Registry& registry = *new Registry;
  return registry;
}

// Whether a thread that holds the registry waits for turns, to fork.
std::atomic<bool> forking{false};

// Before and after a fork, in the thread that calls it. In the child this
// thread is the only one and goes on as the owner of the mutexes.
void LockAll() {
  Registry& registry = Pools();
  registry.mutex.lock();
  forking = true;
  for (Pool* const pool : registry.pools) pool->mutex.lock();
}
void UnlockAll() {
  Registry& registry = Pools();
  for (Pool* const pool : registry.pools) pool->mutex.unlock();
  forking = false;
  registry.mutex.unlock();
}

}  // namespace

Pool::~Pool() {
  Registry& registry = Pools();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  registry.pools.erase(this);
}

std::unique_lock<std::mutex> Pool::TakeTurn() {
  if (forking) {
    const std::lock_guard<std::mutex> until_it_has(Pools().mutex);
  }
  return std::unique_lock<std::mutex>(mutex);
}

std::shared_ptr<Pool> FindPool(int threads) {
  Registry& registry = Pools();
  // Refused only for lack of memory; the next call tries again.
  [[maybe_unused]] static const bool handles_forks = [] {
    if (pthread_atfork(LockAll, UnlockAll, UnlockAll) == 0) return true;
    throw std::bad_alloc();
  }();
  const int count = threads == 0 ? Workers::Available() : threads;
  std::shared_ptr<Pool> pool;  // outlives the lock, which its destructor takes
  const std::lock_guard<std::mutex> lock(registry.mutex);
  std::weak_ptr<Pool> none;
  std::weak_ptr<Pool>& known = count == 1 ? none : registry.shared[count];
  pool = known.lock();
  if (pool != nullptr) return pool;
  pool = std::make_shared<Pool>(count);
  registry.pools.insert(pool.get());
  known = pool;
  return pool;
}

}  // namespace convlab
