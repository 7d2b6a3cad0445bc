// Pieces of a stream of images, dealt to workers as they become free, and their
// answers in order again. Where a piece begins does not depend on who computes
// it, nor, on GPUs, how it is cut further (WorkerJob::gpu_piece), so that on
// devices of one model the answers do not either.
#ifndef MILESTONES_CLASSIFYING_DEAL_H_
#define MILESTONES_CLASSIFYING_DEAL_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dataset/image_files.h"
#include "kernels/compiled/compiled.h"

namespace convlab {

struct Piece {
  int64_t number = 0;
  int64_t first = 0, count = 0;  // images
  // The images: at `shared`, memory of another owner with room for any piece,
  // or, if that is null, in `own`, which may be larger.
  std::vector<uint8_t> own;
  uint8_t* shared = nullptr;
  int64_t read_ns = 0;  // what reading them took
  std::vector<Answer> answers;
  std::vector<float> logits;  // only if they are asked for

  const uint8_t* pixels() const {
    return shared != nullptr ? shared : own.data();
  }
  // Room for so many bytes of images.
  uint8_t* Room(size_t bytes) {
    if (shared != nullptr) return shared;
    // All pieces but the last one have as many: mostly there is room already.
    if (own.size() < bytes) own.resize(bytes);
    return own.data();
  }
};

// Reads the piece's images, and makes room for them.
absl::Status ReadPixels(ImageFiles& images, Piece& piece);

// Where a worker gets its pieces and leaves their answers: the images of this
// process, or another one that deals. Any thread may call.
class PieceFeed {
 public:
  virtual ~PieceFeed() = default;

  // Waits for a piece for the worker, and reads its images. False: there are no
  // more, or the run has ended. With an error the worker is lost; the feed
  // decides whether the run ends. Where the images are read for all workers, it
  // does; a rank that reads by itself is lost like one whose network failed.
  virtual absl::StatusOr<bool> Take(int worker, Piece& piece) = 0;
  // Takes the answers out of the piece.
  virtual void Give(int worker, Piece& piece) = 0;
  // The worker failed: it gets no more, and others get what it has taken. Does
  // not throw: where that needs memory and there is none, the run ends.
  virtual void Lose(int worker, const absl::Status& why) = 0;
};

// How a stream is cut and dealt.
struct DealOptions {
  int64_t first = 0;  // images that were answered before
  int64_t count = 0;  // the end
  int64_t block = 1;  // images of a piece
  // Pieces that may be dealt and not yet written: a bound of memory.
  int64_t window = 1;
  // The ranks that add workers (AddWorker), of which so many may be lost.
  int ranks = 1;
  int tolerate = 0;
  // Called when one is lost and the run goes on.
  std::function<void(const std::string& text)> tell;
};

class Deal : public PieceFeed {
 public:
  // `images` must outlive it.
  Deal(ImageFiles& images, const DealOptions& options);

  // Adds a worker before or while others work; returns its number. `name` is
  // for messages. Workers of one rank are lost together.
  int AddWorker(const std::string& name, int rank);

  absl::StatusOr<bool> Take(int worker, Piece& piece) override;
  // The same without the images, which another process reads.
  bool TakeNumber(int worker, Piece& piece);
  // The images of the piece of this number; 0 if there is none.
  int64_t CountOf(int64_t number) const;
  void Give(int worker, Piece& piece) override;
  void Lose(int worker, const absl::Status& why) override;
  // All workers of a rank.
  void LoseRank(int rank, const absl::Status& why);

  // Waits for the next piece in order; false behind the last one. The error
  // that ended the run, if there was one.
  absl::StatusOr<bool> Next(Piece& piece);

  // Ends the run with an error.
  void Fail(const absl::Status& why);

 private:
  struct Worker {
    std::string name;
    int rank;
    bool lost = false;
  };

  bool ended() const { return !failure_.ok() || written_ == pieces_; }
  int64_t FirstOf(int64_t number) const;
  bool StillHas(int worker, int64_t number) const;
  void LoseLocked(int rank, const std::string& name, const absl::Status& why);
  void TakeAway(int rank, const std::string& name, const absl::Status& why);
  absl::Status ReadOrRecall(Piece& piece);

  ImageFiles& images_;
  const DealOptions options_;
  const int64_t image_bytes_;
  const int64_t pieces_;
  // Images that are read forward: a piece's number is taken and read at once.
  std::mutex reading_;
  // Pixels of the pieces that are out and could not be read again.
  std::map<int64_t, std::vector<uint8_t>> kept_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Worker> workers_;
  std::map<int64_t, int> out_;         // pieces that workers have
  std::vector<int64_t> returned_;      // by those that were lost
  std::map<int64_t, Piece> answered_;  // not yet written
  int64_t next_ = 0, written_ = 0;     // pieces
  std::set<int> lost_ranks_;
  absl::Status failure_;
};

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_DEAL_H_
