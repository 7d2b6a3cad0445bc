// The pieces of a rank's workers, which rank 0 deals.
#ifndef MILESTONES_CLASSIFYING_RANK_FEED_H_
#define MILESTONES_CLASSIFYING_RANK_FEED_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dataset/image_files.h"
#include "common/ranks/ranks.h"
#include "milestones/classifying/deal.h"
#include "milestones/classifying/rank_messages.h"
#include "milestones/classifying/rank_slots.h"

namespace convlab {

// Asks rank 0 for pieces, and sends it their answers. What the constructor is
// given must outlive it.
class RankFeed : public PieceFeed {
 public:
  // Where this rank reads the images itself, they come from `images`, to the
  // memory that the worker gave the piece, which a GPU may reach. Where rank 0
  // reads them, `images` is null; rank 0 reads to `slots` if there are any, and
  // sends the others.
  RankFeed(Ranks& ranks, ImageFiles* images, const RankSlots& slots);
  ~RankFeed() override;

  absl::StatusOr<bool> Take(int worker, Piece& piece) override;
  void Give(int worker, Piece& piece) override;
  void Lose(int worker, const absl::Status& why) override;

  // Pieces of the worker that did not come by a message.
  int64_t SharedPieces(int worker);

  // Waits until rank 0 has ended the run; how.
  struct Ending {
    absl::Status status;  // not OK: rank 0 is lost
    int end = kRunFailed;
  };
  Ending WaitForEnd();

 private:
  int SlotOf(const Piece& piece);
  void Receive(RankMessage message);
  void End(const absl::Status& status, int end);

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

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_RANK_FEED_H_
