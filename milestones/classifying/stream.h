// Classifies a stream of images: workers take pieces of it as they become free,
// and what they answer is written in order.
#ifndef MILESTONES_CLASSIFYING_STREAM_H_
#define MILESTONES_CLASSIFYING_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/parallel/joining_threads.h"
#include "milestones/classifying/deal.h"
#include "milestones/classifying/device.h"
#include "milestones/classifying/output.h"

namespace convlab {

// Workers of this process, a thread for each, which wait when they are ready.
class LocalWorkers {
 public:
  // `numbers`: of the devices' workers in the feed, in the devices' order. What
  // the job refers to and the feed must outlive it.
  LocalWorkers(const std::vector<ClassifyDevice>& devices, const WorkerJob& job,
               PieceFeed& feed, const std::vector<int>& numbers);
  ~LocalWorkers();

  // Waits until all networks are compiled, or lost.
  void WaitReady();
  void Begin();
  // Waits for their end. In the order of the devices.
  std::vector<WorkerResult> Join();

 private:
  void Ready();

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t ready_ = 0;
  bool begun_ = false;
  WorkerJob job_;
  PieceFeed& feed_;
  std::vector<WorkerResult> results_;
  JoiningThreads threads_;
};

// Writes what is answered until the end, and returns the nanoseconds that the
// writing took. `progress` is called after each piece.
absl::StatusOr<int64_t> WriteAnswers(
    Deal& deal, Output& output,
    const std::function<void(int64_t done)>& progress);

// Images of a piece of `count` images of so many bytes: many, so that a device
// has enough for its own pieces, but few enough that each of several devices
// has its share. On the GPU it is a function of these numbers alone. An image's
// last bits depend on it there, and on WorkerJob::gpu_piece.
int64_t PieceImages(bool gpu, int64_t count, int64_t image_bytes, int threads);

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_STREAM_H_
