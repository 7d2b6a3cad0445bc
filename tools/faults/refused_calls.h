// Which calls of a program are refused, for the libraries that refuse them.
#ifndef TOOLS_FAULTS_REFUSED_CALLS_H_
#define TOOLS_FAULTS_REFUSED_CALLS_H_

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <unwind.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <vector>

// Tells the calls from each other that lead to here.
inline uint64_t HashOfStack() {
  uint64_t hash = 1;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* so_far) {
        auto& value = *static_cast<uint64_t*>(so_far);
        value = (value ^ _Unwind_GetIP(context)) * 0x9e3779b97f4a7c15u;
        value ^= value >> 29;
        return _URC_NO_REASON;
      },
      &hash);
  return hash;
}

// As the environment says:
//
//   CONVLAB_FAULT=7    the seventh call fails
//   CONVLAB_FAULT=7+   the seventh and all that follow fail
//   CONVLAB_FAULT=0    none fails
//   CONVLAB_FAULT_GPU=1  of those of this device; others are not counted
//   CONVLAB_FAULT_LOG=FILE  gets, when the program ends, how many there were,
//     and the numbers of those that came from a new place, one a line
class RefusedCalls {
 public:
  static constexpr int kNoGpu = -1;

  RefusedCalls() {
    const char* const fault = getenv("CONVLAB_FAULT");
    if (fault == nullptr) return;
    char* end = nullptr;
    first_ = strtol(fault, &end, 10);
    last_ = *end == '+' ? LONG_MAX : first_;
    if (const char* const gpu = getenv("CONVLAB_FAULT_GPU")) gpu_ = atoi(gpu);
    if (const char* const path = getenv("CONVLAB_FAULT_LOG")) log_ = path;
  }

  // For tests: the n-th call from now on fails, and no other; 0: none does.
  void Refuse(long n) {
    const std::lock_guard<std::mutex> lock(mutex_);
    first_ = last_ = n == 0 ? 0 : count_ + n;
  }

  bool has_log() const { return !log_.empty(); }
  // Whether all calls fail after the first that does.
  bool sticks() const { return last_ > first_; }

  // Whether only calls of one GPU count.
  bool of_one_gpu() const { return gpu_ != kNoGpu; }

  long count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }

  // Counts a call, which is the GPU's or no GPU's; whether it is refused.
  bool Next(uint64_t place, int gpu = kNoGpu) {
    if (of_one_gpu() && gpu != gpu_) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    if (places_.insert(place).second) first_calls_.push_back(count_);
    return count_ >= first_ && count_ <= last_;
  }

  void WriteLog() const {
    if (log_.empty()) return;
    const int file = open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0) return;
    dprintf(file, "%ld\n", count_);
    for (const long call : first_calls_) dprintf(file, "%ld\n", call);
    close(file);
  }

 private:
  std::mutex mutex_;
  long first_ = 0, last_ = 0, count_ = 0;
  int gpu_ = kNoGpu;
  std::string log_;
  std::set<uint64_t> places_;
  std::vector<long> first_calls_;
};

#endif  // TOOLS_FAULTS_REFUSED_CALLS_H_
