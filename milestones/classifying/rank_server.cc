#include "milestones/classifying/rank_server.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/status/main.h"
#include "common/status/status.h"

namespace convlab {

RankServer::RankServer(Ranks& ranks, Deal& deal,
                       const RankServerOptions& options)
    : ranks_(ranks), deal_(deal), options_(options) {
  ranks_.Start([this](const RankMessage& message) { Receive(message); },
               [this](int rank, const absl::Status& why) { Lose(rank, why); });
}

RankServer::~RankServer() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  threads_.Join();
  if (!told_end_) SendEnd(kRunFailed);
  ranks_.Stop();
}

void RankServer::SendEnd(RunEnd end) {
  told_end_ = true;
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    ranks_.Send(rank, kEndMessage, PackText(end, ""));
  }
}

void RankServer::WaitReady() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] {
    for (int rank = 1; rank < ranks_.size(); ++rank) {
      if (ready_.count(rank) + lost_.count(rank) == 0) return false;
    }
    return true;
  });
}

void RankServer::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int i = 0; i < options_.readers; ++i) {
    threads_.Start([this] {
      const absl::Status status = CatchRefusals([this] {
        Serve();
        return absl::OkStatus();
      });
      if (!status.ok()) deal_.Fail(status);
    });
  }
}

std::vector<ClassifyShare> RankServer::End() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] {
    for (int rank = 1; rank < ranks_.size(); ++rank) {
      if (finished_.count(rank) + lost_.count(rank) == 0) return false;
    }
    return true;
  });
  SendEnd(lost_.empty() ? kInOrder : kRankLost);
  return shares_;
}

bool RankServer::lost_any() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !lost_.empty();
}

int RankServer::Number(const WorkerOfRank& worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = numbers_.find(worker);
  return found == numbers_.end() ? -1 : found->second;
}

void RankServer::Receive(const RankMessage& message) {
  const absl::Status status =
      message.kind == kAnswersMessage ? ReceiveAnswers(message)
      : message.kind == kTakeMessage  ? ReceiveTake(message)
                                      : ReceiveText(message);
  if (!status.ok()) deal_.Fail(Annotate(status, ranks_.Name(message.from)));
}

absl::Status RankServer::ReceiveAnswers(const RankMessage& message) {
  Piece piece;
  ASSIGN_OR_RETURN(const int worker, UnpackAnswers(message.bytes, piece));
  RETURN_IF_ERROR(CheckAnswers(piece, deal_.CountOf(piece.number),
                               options_.classes, options_.logits));
  const int number = Number({message.from, worker});
  if (number >= 0) deal_.Give(number, piece);
  return absl::OkStatus();
}

absl::Status RankServer::ReceiveTake(const RankMessage& message) {
  ASSIGN_OR_RETURN(const RankTake take, UnpackTake(message.bytes));
  const std::lock_guard<std::mutex> lock(mutex_);
  wanting_.push_back({message.from, take});
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status RankServer::ReceiveText(const RankMessage& message) {
  const int rank = message.from;
  ASSIGN_OR_RETURN(const RankText text, UnpackText(message.bytes));
  const WorkerOfRank worker = {rank, text.worker};
  if (message.kind == kLoseMessage) {
    const absl::Status why = absl::InternalError(text.text);
    const int number = Number(worker);
    if (number >= 0) {
      deal_.Lose(number, why);
    } else {
      deal_.LoseRank(rank, Annotate(why, ranks_.Name(rank)));
    }
    return absl::OkStatus();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (message.kind == kReadyMessage) {
    ready_.insert(rank);
  } else if (message.kind == kWorkerMessage) {
    numbers_[worker] =
        deal_.AddWorker(absl::StrCat(ranks_.Name(rank), ", ", text.text), rank);
  } else if (message.kind == kDoneMessage) {
    // One that could not begin was never ready.
    ready_.insert(rank);
    finished_.insert(rank);
    ranks_.Release(rank);
  } else if (message.kind == kShareMessage) {
    absl::StatusOr<ClassifyShare> share = ParseClassifyShare(text.text);
    RETURN_IF_ERROR(Annotate(share.status(), "its share"));
    shares_.push_back(*std::move(share));
  }
  changed_.notify_all();
  return absl::OkStatus();
}

void RankServer::Lose(int rank, const absl::Status& why) {
  deal_.LoseRank(rank, why);
  const std::lock_guard<std::mutex> lock(mutex_);
  lost_.insert(rank);
  changed_.notify_all();
}

// A worker waits for a piece as long as any other would. One whose rank shares
// memory finds the images there.
void RankServer::Serve() {
  Piece piece;
  for (;;) {
    Wish wish;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return ended_ || !wanting_.empty(); });
      if (ended_) return;
      wish = wanting_.front();
      wanting_.pop_front();
    }
    RankTake& take = wish.take;
    const int number = Number({wish.rank, take.worker});
    bool taken = false;
    piece.shared = options_.slots == nullptr
                       ? nullptr
                       : options_.slots->Find(wish.rank, take.slot);
    if (piece.shared == nullptr) take.slot = -1;
    if (number >= 0 && options_.read_each) {
      taken = deal_.TakeNumber(number, piece);
    } else if (number >= 0) {
      // Its error is the deal's, and ends the run.
      taken = deal_.Take(number, piece).value_or(false);
    }
    if (taken) {
      const bool there = options_.read_each || piece.shared != nullptr;
      ranks_.Send(wish.rank, kPieceMessage,
                  PackPiece(take, piece,
                            there ? 0 : piece.count * options_.image_bytes));
    } else {
      ranks_.Send(wish.rank, kNoneMessage, PackText(take.worker, ""));
    }
  }
}

}  // namespace convlab
