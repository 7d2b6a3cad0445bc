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

// A fixed set of threads, the caller's among them. For may be called from one
// thread at a time and not from inside its own work.
class Workers {
 public:
  // `worker` is in [0, count()) and no two calls with the same one overlap.
  using Work = std::function<void(int worker, int64_t begin, int64_t end)>;

  // The cores that this process may run on, by its affinity mask.
  static int Available();

  // Throws what std::thread throws (std::system_error) if the system refuses
  // that many.
  explicit Workers(int count);
  ~Workers();

  int count() const { return count_; }

  // Covers [0, items) with calls of `work` on pieces of `grain` items, handed
  // out as workers become free, and returns when all of them are done. If one
  // throws (std::bad_alloc), the rest are left out and it is thrown on.
  void For(int64_t items, int64_t grain, const Work& work);

 private:
  struct Pool;
  const int count_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace convlab

#endif  // COMMON_PARALLEL_PARALLEL_H_
