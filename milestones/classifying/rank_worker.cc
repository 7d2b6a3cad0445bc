#include "milestones/classifying/rank_worker.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/op_time.h"
#include "milestones/classifying/device.h"
#include "milestones/classifying/input.h"
#include "milestones/classifying/rank_messages.h"
#include "milestones/classifying/rank_slots.h"
#include "milestones/classifying/stream.h"

namespace convlab {
namespace {

// What rank 0 has to end the run after it has failed.
constexpr std::chrono::seconds kPatience(2);

// Pieces from rank 0.
class RankFeed : public PieceFeed {
 public:
  // `images` is null if rank 0 reads them, which it does into `slots` if there
  // are any.
  RankFeed(Ranks& ranks, ImageFiles* images, const RankSlots& slots)
      : ranks_(ranks), images_(images), slots_(slots) {
    ranks_.Start(
        [this](RankMessage message) { Receive(std::move(message)); },
        [this](int, const absl::Status& why) { End(why, kRunFailed); });
  }

  ~RankFeed() override { ranks_.Stop(); }

  absl::StatusOr<bool> Take(int worker, Piece& piece) override {
    ranks_.Send(0, kTakeMessage, PackTake({worker, SlotOf(piece)}));
    std::string bytes;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      std::deque<std::string>& pieces = pieces_[worker];
      changed_.wait(lock, [&] {
        return over_ || none_.count(worker) > 0 || !pieces.empty();
      });
      if (over_ || pieces.empty()) return false;
      bytes = std::move(pieces.front());
      pieces.pop_front();
    }
    // What comes may be what another thread of the worker asked for, in that
    // one's slot. That thread gets what this one asked for, in this one's slot,
    // so that no two pieces ever have the same.
    uint8_t* const own = piece.shared;
    piece.shared = nullptr;
    ASSIGN_OR_RETURN(const RankTake take, UnpackPiece(bytes, piece));
    if (images_ == nullptr) {
      piece.shared = slots_.Find(ranks_.rank(), take.slot);
      const std::lock_guard<std::mutex> lock(mutex_);
      shared_pieces_[worker] += piece.shared != nullptr;
      return true;
    }
    piece.shared = own;  // the worker's own memory
    ASSIGN_OR_RETURN(piece.read_ns,
                     HostNs([&] { return ReadPixels(*images_, piece); }));
    return true;
  }

  // Pieces of the worker that did not come by a message.
  int64_t SharedPieces(int worker) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return shared_pieces_[worker];
  }

  void Give(int worker, Piece& piece) override {
    ranks_.Send(0, kAnswersMessage, PackAnswers(worker, piece));
  }

  void Lose(int worker, const absl::Status& why) override {
    const absl::Status refused = CatchRefusals([&] {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        none_.insert(worker);
        changed_.notify_all();
      }
      ranks_.Send(0, kLoseMessage, PackText(worker, why.message()));
      return absl::OkStatus();
    });
    if (!refused.ok()) End(refused, kRunFailed);
  }

  // Waits until rank 0 has ended the run; how.
  struct Ending {
    absl::Status status;  // not OK: rank 0 is lost
    int end = kRunFailed;
  };
  Ending WaitForEnd() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return over_; });
    return ending_;
  }

 private:
  // The slot that the piece has, or else one that none has yet; -1 if all are
  // given out.
  int SlotOf(const Piece& piece) {
    if (images_ != nullptr) return -1;
    if (piece.shared != nullptr) {
      return slots_.NumberOf(ranks_.rank(), piece.shared);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    return given_ < slots_.count() ? given_++ : -1;
  }

  void Receive(RankMessage message) {
    if (message.kind == kEndMessage) {
      const absl::StatusOr<RankText> text = UnpackText(message.bytes);
      ranks_.Release(0);
      End(text.status(), text.ok() ? text->worker : kRunFailed);
      return;
    }
    // Both begin with the worker.
    int worker = 0;
    if (message.bytes.size() < sizeof(worker)) {
      End(absl::InternalError(
              absl::StrCat("rank 0 sent a message of ", message.bytes.size(),
                           " bytes, expected at least ", sizeof(worker))),
          kRunFailed);
      return;
    }
    std::memcpy(&worker, message.bytes.data(), sizeof(worker));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (message.kind == kPieceMessage) {
      pieces_[worker].push_back(std::move(message.bytes));
    } else {
      none_.insert(worker);
    }
    changed_.notify_all();
  }

  void End(const absl::Status& status, int end) {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    ending_ = {status, end};
    changed_.notify_all();
  }

  Ranks& ranks_;
  ImageFiles* const images_;
  const RankSlots& slots_;
  std::mutex mutex_;
  int given_ = 0;  // slots
  std::condition_variable changed_;
  std::map<int, std::deque<std::string>> pieces_;  // by worker
  std::set<int> none_;                             // workers without more
  std::map<int, int64_t> shared_pieces_;           // by worker
  bool over_ = false;
  Ending ending_;
};

// What this rank has before it begins.
struct Prepared {
  std::vector<ClassifyDevice> devices;
  ClassifyInput input;  // if it reads
};

absl::Status Prepare(const ClassifyOptions& options, const RankJob& job,
                     int local_rank, Prepared& prepared) {
  ASSIGN_OR_RETURN(prepared.devices, ChooseDevices(options, local_rank));
  if (!options.read_each) return absl::OkStatus();
  ASSIGN_OR_RETURN(prepared.input, OpenInput(options));
  ASSIGN_OR_RETURN(const std::string digest, prepared.input.images->Digest());
  if (digest == job.images) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(prepared.input.images->name(), " is not what rank 0 reads"));
}

// Page-locked, so that a GPU takes images from there; where the system refuses,
// they are copied first.
cuda::PinnedRange LockSlots(const RankSlots& slots,
                            const ClassifyDevice& device, int rank) {
  if (!device.gpu || slots.count() == 0) return {};
  const cuda::CurrentDevice current(device.index);
  if (!current.status().ok()) return {};
  auto range = cuda::PinnedRange::Lock(slots.Find(rank, 0), slots.bytes());
  return range.ok() ? *std::move(range) : cuda::PinnedRange();
}

// Computes pieces until there are no more, and sends what was done.
void Work(const ClassifyOptions& options, const RankJob& job,
          const NetworkWeights& weights, const Prepared& prepared,
          const RankSlots& slots, Ranks& ranks, RankFeed& feed) {
  const Network& network = *options.model.network;
  const int64_t piece_bytes = job.block * job.image_size * job.image_size;
  const WorkerJob worker_job = {
      network,
      weights,
      job.image_size,
      {network.Classes(), options.logits, job.readers},
      /*stages=*/false,
      options.read_each ? piece_bytes : 0,
      {}};
  const cuda::PinnedRange pinned =
      LockSlots(slots, prepared.devices[0], ranks.rank());
  std::vector<int> numbers;
  for (size_t i = 0; i < prepared.devices.size(); ++i) {
    numbers.push_back(static_cast<int>(i));
    ranks.Send(0, kReadyMessage,
               PackText(numbers.back(), prepared.devices[i].text));
  }
  LocalWorkers workers(prepared.devices, worker_job, feed, numbers);
  workers.WaitReady();
  ranks.Send(0, kReadyMessage, PackText(-1, ""));
  workers.Begin();
  std::vector<WorkerResult> results = workers.Join();
  for (size_t i = 0; i < results.size(); ++i) {
    WorkerResult& result = results[i];
    result.share.shared_pieces = feed.SharedPieces(numbers[i]);
    result.share.rank = ranks.rank();
    result.share.host = ranks.place(ranks.rank()).host;
    ranks.Send(0, kShareMessage, PackText(0, ToJson(result.share)));
  }
}

}  // namespace

absl::Status WorkForRankZero(const ClassifyOptions& options, Ranks& ranks,
                             bool& in_order) {
  std::string bytes;
  RETURN_IF_ERROR(ranks.Broadcast(bytes));
  ASSIGN_OR_RETURN(const RankJob job, UnpackJob(bytes));
  if (!job.ok) return absl::OkStatus();
  in_order = false;
  RETURN_IF_ERROR(ranks.Broadcast(bytes));
  ASSIGN_OR_RETURN(const NetworkWeights weights, UnpackWeights(bytes));
  Prepared prepared;
  const absl::Status ready =
      Prepare(options, job, ranks.local_rank(), prepared);
  const RankSlots slots =
      RankSlots::Join(ranks, job, job.block * job.image_size * job.image_size);
  RankFeed feed(ranks, prepared.input.images.get(), slots);
  if (ready.ok()) {
    Work(options, job, weights, prepared, slots, ranks, feed);
  } else {
    ranks.Send(0, kLoseMessage, PackText(-1, ready.message()));
  }
  ranks.Send(0, kShareMessage, PackText(-1, ""));
  const RankFeed::Ending ending = feed.WaitForEnd();
  in_order = ending.end == kInOrder;
  if (ending.status.ok() && ending.end == kRunFailed) {
    // Rank 0 ends this process. One that ended by itself would be taken for the
    // cause.
    std::this_thread::sleep_for(kPatience);
  }
  return ending.status;
}

}  // namespace convlab
