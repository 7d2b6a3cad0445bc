#include "milestones/classifying/stream.h"

#include <algorithm>
#include <utility>

#include "common/status/main.h"
#include "common/status/status.h"
#include "kernels/measure/op_time.h"

namespace convlab {
namespace {

// On the GPU a piece's first copies and last kernels have nothing beside them.
constexpr int64_t kGpuImages = 4096, kMostGpuImages = 65536;
constexpr int64_t kGpuPieces = 256;  // of all images, if they are many
// On the CPU a thread should have a whole batch.
constexpr int64_t kCpuImages = 4096, kThreadImages = 512;
constexpr int64_t kCpuPieces = 256;  // so that all workers end together
constexpr int64_t kPieceBytes = 64 << 20;

}  // namespace

LocalWorkers::LocalWorkers(const std::vector<ClassifyDevice>& devices,
                           const WorkerJob& job, PieceFeed& feed,
                           const std::vector<int>& numbers)
    : job_(job), feed_(feed), results_(devices.size()) {
  job_.compiled = [this] { Ready(); };
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto work = [this, i, device = devices[i], number = numbers[i]] {
      results_[i] = RunWorker(device, job_, feed_, number);
    };
    const absl::Status started = CatchRefusals([&] {
      threads_.Start(work);
      return absl::OkStatus();
    });
    if (started.ok()) continue;
    results_[i].status = started;
    results_[i].share.lost = std::string(started.message());
    feed_.Lose(numbers[i], started);
    const std::lock_guard<std::mutex> lock(mutex_);
    ++ready_;
  }
}

LocalWorkers::~LocalWorkers() { Join(); }

void LocalWorkers::Ready() {
  std::unique_lock<std::mutex> lock(mutex_);
  ++ready_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return begun_; });
}

void LocalWorkers::WaitReady() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return ready_ == results_.size(); });
}

void LocalWorkers::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  begun_ = true;
  changed_.notify_all();
}

std::vector<WorkerResult> LocalWorkers::Join() {
  Begin();
  threads_.Join();
  return std::move(results_);
}

absl::StatusOr<int64_t> WriteAnswers(
    Deal& deal, Output& output,
    const std::function<void(int64_t done)>& progress) {
  int64_t write_ns = 0;
  Piece piece;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, deal.Next(piece));
    if (!more) return write_ns;
    const absl::StatusOr<int64_t> ns =
        HostNs([&] { return output.Write(piece); });
    if (!ns.ok()) {
      deal.Fail(ns.status());
      return ns.status();
    }
    write_ns += *ns;
    progress(output.done());
  }
}

int64_t PieceImages(bool gpu, int64_t count, int64_t image_bytes, int threads) {
  const int64_t least = gpu ? kGpuImages : kThreadImages * threads;
  const int64_t most = gpu ? kMostGpuImages : std::max(kCpuImages, least);
  const int64_t share =
      gpu ? count / kGpuPieces / least * least : count / kCpuPieces;
  return std::clamp<int64_t>(kPieceBytes / image_bytes, 1,
                             std::clamp(share, least, most));
}

}  // namespace convlab
