// Loops over all cores.
//
//   Workers workers(Workers::Available());
//   workers.For(images, /*grain=*/1, [&](int worker, int64_t begin, int64_t
//   end) {
//     float* workspace = workspaces[worker].data();
//     for (int64_t image = begin; image < end; ++image) ...
//   });
#ifndef COMMON_PARALLEL_PARALLEL_H_
#define COMMON_PARALLEL_PARALLEL_H_

#include <cstdint>
#include <functional>
#include <memory>

namespace convlab {

// A fixed set of threads, including the caller's. For may be called from one
// thread at a time, and not from inside `work`. After a fork the child's first
// For starts threads of the child's own.
class Workers {
 public:
  // `worker` is in [0, count()); no two calls with the same `worker` overlap.
  using Work = std::function<void(int worker, int64_t begin, int64_t end)>;

  // The number of cores in this process's affinity mask.
  static int Available();

  // Throws std::system_error, as std::thread does, if the system refuses that
  // many threads.
  explicit Workers(int count);
  ~Workers();

  int count() const { return count_; }

  // Calls `work` on pieces of `grain` items that cover [0, items), as workers
  // become free, and returns when all calls have returned. If one throws
  // (std::bad_alloc), the remaining pieces are skipped and the exception is
  // rethrown. Throws std::system_error in a child of a fork, as the constructor
  // does.
  void For(int64_t items, int64_t grain, const Work& work);

 private:
  struct Pool;

  // Null for one worker.
  std::unique_ptr<Pool> StartPool() const;
  // Forgets the pool if a fork has left its threads behind.
  void LeaveParentsThreads();

  const int count_;
  int forks_;  // of this process when the pool was started
  std::unique_ptr<Pool> pool_;
};

}  // namespace convlab

#endif  // COMMON_PARALLEL_PARALLEL_H_
