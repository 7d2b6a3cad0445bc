// The threads of plans on the CPU.
#ifndef CONVLAB_POOL_H_
#define CONVLAB_POOL_H_

#include <memory>
#include <mutex>

#include "common/parallel/parallel.h"

namespace convlab {

// Threads that plans share: each run uses all of them, so that runs take turns.
struct Pool {
  explicit Pool(int threads) : workers(threads) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // To be held for a turn. A thread whose turns follow each other without a gap
  // does not keep another one from a fork.
  std::unique_lock<std::mutex> TakeTurn();

  Workers workers;
  std::mutex mutex;
};

// The pool of so many threads, or of one for each core if it is 0, which lives
// as long as a plan has it. One thread is the caller's own, for which nobody
// need wait. A fork waits for the turns that other threads have, so that the
// child finds no mutex locked by a thread that it does not have. Throws
// std::bad_alloc, or std::system_error as Workers does.
std::shared_ptr<Pool> FindPool(int threads);

}  // namespace convlab

#endif  // CONVLAB_POOL_H_
