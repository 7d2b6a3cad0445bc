#include "tools/bench/gpus_bench.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/parallel/joining_threads.h"
#include "common/parallel/parallel.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

// A round is so long that beginning and ending it together does not count.
constexpr std::chrono::milliseconds kRound(100);
constexpr int kWarmUps = 3;

// Threads that begin a round together; the caller waits for the last of them.
class Rounds {
 public:
  explicit Rounds(int threads) : threads_(threads) {}

  // Of a thread: waits for the next round. 0: there is none.
  int Begin() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    const int round = round_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return round_ != round || over_; });
    return over_ ? 0 : calls_;
  }

  // Of the caller: waits until all threads wait.
  void WaitForAll() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ == threads_; });
  }

  void Start(int calls) {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_ = calls;
    ++round_;
    waiting_ = 0;
    changed_.notify_all();
  }

  void End() {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

 private:
  const int threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0, round_ = 0, calls_ = 0;
  bool over_ = false;
};

// A GPU's thread. All rounds are waited for, whatever fails.
absl::Status WorkOn(int gpu, const NetworkCase& one, const GpusOptions& options,
                    Rounds& rounds, CallAnswers& answers) {
  const cuda::CurrentDevice current(gpu);
  RETURN_IF_ERROR(current.status());
  Workers workers(options.threads);
  ASSIGN_OR_RETURN(const NetworkCall call,
                   OurDeviceCall(one, options.count, workers));
  for (int i = 0; i < kWarmUps; ++i) RETURN_IF_ERROR(call.run());
  RETURN_IF_ERROR(cuda::Synchronize());
  while (const int round = rounds.Begin()) {
    for (int i = 0; i < round; ++i) RETURN_IF_ERROR(call.run());
    RETURN_IF_ERROR(cuda::Synchronize());
  }
  ASSIGN_OR_RETURN(answers, call.answers());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GpusTimes> MeasureGpus(const NetworkCase& one,
                                      const GpusOptions& options) {
  GpusTimes times;
  times.answers.resize(options.gpus);
  std::vector<absl::Status> statuses(options.gpus);
  Rounds rounds(options.gpus);
  JoiningThreads threads;
  // Before they are joined, whatever ends this one.
  const absl::Cleanup end([&] { rounds.End(); });
  for (int gpu = 0; gpu < options.gpus; ++gpu) {
    threads.Start([&, gpu] {
      statuses[gpu] = CatchRefusals([&] {
        return WorkOn(gpu, one, options, rounds, times.answers[gpu]);
      });
      while (!statuses[gpu].ok() && rounds.Begin() != 0) {
      }
    });
  }
  rounds.WaitForAll();
  const Clock::time_point begin = Clock::now();
  for (int calls = 1;;) {
    const Clock::time_point start = Clock::now();
    rounds.Start(calls);
    rounds.WaitForAll();
    const Clock::duration took = Clock::now() - start;
    // The first rounds find out how many calls a round has.
    if (took < kRound / 2) {
      const bool ok =
          std::all_of(statuses.begin(), statuses.end(),
                      [](const absl::Status& status) { return status.ok(); });
      if (!ok) break;
      calls *= 2;
      continue;
    }
    times.samples_ns.push_back(std::chrono::nanoseconds(took).count() / calls);
    const std::chrono::duration<double> passed = Clock::now() - begin;
    if (times.samples_ns.size() >= static_cast<size_t>(options.samples) ||
        passed.count() > options.seconds) {
      break;
    }
  }
  rounds.End();
  threads.Join();
  for (int gpu = 0; gpu < options.gpus; ++gpu) {
    RETURN_IF_ERROR(Annotate(statuses[gpu], absl::StrCat("GPU ", gpu)));
  }
  return times;
}

}  // namespace convlab
