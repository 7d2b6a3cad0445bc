#include "milestones/classifying/worker.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

#include "common/parallel/joining_threads.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "kernels/measure/op_time.h"

namespace convlab {
namespace {

// Pieces on their way between two threads.
class PieceQueue {
 public:
  void Push(Piece* piece) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pieces_.push_back(piece);
    changed_.notify_one();
  }

  // Null once the queue is closed and empty.
  Piece* Pop() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !pieces_.empty(); });
    if (pieces_.empty()) return nullptr;
    Piece* const piece = pieces_.front();
    pieces_.pop_front();
    return piece;
  }

  void Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece*> pieces_;
  bool closed_ = false;
};

// The threads that read pieces ahead.
class Readers {
 public:
  Readers(PieceFeed& feed, int worker, const WorkerOptions& options)
      : feed_(feed),
        worker_(worker),
        pieces_(PiecesOf(options.readers)),
        count_(options.readers),
        left_(options.readers) {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (i < options.memory.size()) pieces_[i].shared = options.memory[i];
      free_.Push(&pieces_[i]);
    }
  }

  ~Readers() {
    free_.Close();
    threads_.Join();
  }

  // Throws as std::thread does.
  void Start() {
    for (int i = 0; i < count_; ++i) {
      threads_.Start([this] { Read(); });
    }
  }

  Piece* Pop() { return ready_.Pop(); }
  void Free(Piece* piece) { free_.Push(piece); }

  int64_t read_ns() const { return read_ns_; }
  // The first error of a thread, once Pop has returned null.
  absl::Status failure() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }

 private:
  void Read() {
    const absl::Status status = CatchRefusals([&]() -> absl::Status {
      while (Piece* const piece = free_.Pop()) {
        ASSIGN_OR_RETURN(const bool taken, feed_.Take(worker_, *piece));
        if (!taken) break;
        read_ns_ += piece->read_ns;
        ready_.Push(piece);
      }
      return absl::OkStatus();
    });
    if (!status.ok()) {
      feed_.Lose(worker_, status);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (failure_.ok()) failure_ = status;
    }
    free_.Close();
    if (--left_ == 0) ready_.Close();
  }

  PieceFeed& feed_;
  const int worker_;
  std::vector<Piece> pieces_;
  PieceQueue free_, ready_;
  const int count_;
  std::atomic<int> left_;
  std::atomic<int64_t> read_ns_{0};
  std::mutex mutex_;
  absl::Status failure_;
  JoiningThreads threads_;
};

void FindAnswers(const std::vector<float>& logits, int classes, Piece& piece) {
  piece.answers.resize(piece.count);
  for (int64_t i = 0; i < piece.count; ++i) {
    piece.answers[i] = AnswerOf(&logits[i * classes], classes);
  }
}

// Until there are no more pieces.
absl::Status Compute(Readers& readers, PieceFeed& feed, int worker,
                     CompiledNetwork& network, const WorkerOptions& options,
                     ClassifyShare& share) {
  // The answers of one piece are looked for while the next one is computed.
  std::array<std::vector<float>, 2> spare;
  std::future<absl::Status> answering;
  for (size_t turn = 0; Piece* const piece = readers.Pop(); turn = 1 - turn) {
    std::vector<float>& out = options.logits ? piece->logits : spare[turn];
    out.resize(piece->count * options.classes);
    const absl::StatusOr<int64_t> ns = HostNs(
        [&] { return network.Run(piece->pixels(), piece->count, out.data()); });
    if (answering.valid()) RETURN_IF_ERROR(answering.get());
    RETURN_IF_ERROR(ns.status());
    share.compute_ns += *ns;
    ++share.pieces;
    share.images += piece->count;
    answering = std::async(std::launch::async, [&, piece] {
      absl::Status answered = CatchRefusals([&] {
        FindAnswers(out, options.classes, *piece);
        feed.Give(worker, *piece);
        readers.Free(piece);
        return absl::OkStatus();
      });
      // At once: the readers may wait for the end, which waits for the answers.
      if (!answered.ok()) feed.Lose(worker, answered);
      return answered;
    });
  }
  return answering.valid() ? answering.get() : absl::OkStatus();
}

}  // namespace

absl::Status WorkOnPieces(PieceFeed& feed, int worker, CompiledNetwork& network,
                          const WorkerOptions& options, ClassifyShare& share) {
  Readers readers(feed, worker, options);
  absl::Status status = CatchRefusals([&] {
    readers.Start();
    return Compute(readers, feed, worker, network, options, share);
  });
  // Before the readers are waited for, who may wait for pieces.
  if (!status.ok()) {
    feed.Lose(worker, status);
    share.lost = std::string(status.message());
  } else {
    share.lost = std::string(readers.failure().message());
  }
  share.read_ns += readers.read_ns();
  return status;
}

}  // namespace convlab
