#include "milestones/classifying/rank_feed.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "kernels/measure/op_time.h"

namespace convlab {

RankFeed::RankFeed(Ranks& ranks, ImageFiles* images, const RankSlots& slots)
    : ranks_(ranks), images_(images), slots_(slots) {
  ranks_.Start([this](RankMessage message) { Receive(std::move(message)); },
               [this](int, const absl::Status& why) { End(why, kRunFailed); });
}

RankFeed::~RankFeed() { ranks_.Stop(); }

absl::StatusOr<bool> RankFeed::Take(int worker, Piece& piece) {
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

int64_t RankFeed::SharedPieces(int worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return shared_pieces_[worker];
}

void RankFeed::Give(int worker, Piece& piece) {
  ranks_.Send(0, kAnswersMessage, PackAnswers(worker, piece));
}

void RankFeed::Lose(int worker, const absl::Status& why) {
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

RankFeed::Ending RankFeed::WaitForEnd() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return over_; });
  return ending_;
}

// The slot that the piece has, or else one that none has yet; -1 if all are
// given out.
int RankFeed::SlotOf(const Piece& piece) {
  if (images_ != nullptr) return -1;
  if (piece.shared != nullptr) {
    return slots_.NumberOf(ranks_.rank(), piece.shared);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  return given_ < slots_.count() ? given_++ : -1;
}

void RankFeed::Receive(RankMessage message) {
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

void RankFeed::End(const absl::Status& status, int end) {
  const std::lock_guard<std::mutex> lock(mutex_);
  over_ = true;
  ending_ = {status, end};
  changed_.notify_all();
}

}  // namespace convlab
