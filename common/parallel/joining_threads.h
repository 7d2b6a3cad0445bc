// Threads that are joined in the end, also where a later one cannot be started.
#ifndef COMMON_PARALLEL_JOINING_THREADS_H_
#define COMMON_PARALLEL_JOINING_THREADS_H_

#include <thread>
#include <utility>
#include <vector>

namespace convlab {

// Who holds it has to let its threads end before it goes. What a thread throws
// nobody catches (CatchRefusals in common/status/main.h).
class JoiningThreads {
 public:
  JoiningThreads() = default;
  ~JoiningThreads() { Join(); }
  JoiningThreads(const JoiningThreads&) = delete;
  JoiningThreads& operator=(const JoiningThreads&) = delete;

  // Throws as std::thread does; the threads that were started go on.
  template <typename Work>
  void Start(Work work) {
    threads_.emplace_back(std::move(work));
  }

  // Waits for all that were started.
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace convlab

#endif  // COMMON_PARALLEL_JOINING_THREADS_H_
