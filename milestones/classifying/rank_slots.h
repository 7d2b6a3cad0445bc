// The memory in which rank 0 hands the images of pieces to the ranks of its own
// host: it reads them to where a rank's worker computes from. A message would
// take two copies more, in parts that wait for both sides.
#ifndef MILESTONES_CLASSIFYING_RANK_SLOTS_H_
#define MILESTONES_CLASSIFYING_RANK_SLOTS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/ranks/ranks.h"
#include "common/ranks/shared_memory.h"
#include "milestones/classifying/rank_messages.h"

namespace convlab {

// count() slots for each rank of rank 0's host except rank 0, the slots of one
// rank behind those of another.
class RankSlots {
 public:
  // None.
  RankSlots() = default;

  // For rank 0: `slots` for each rank, of at least slot_bytes. None if rank 0
  // is alone on its host, or if the system refuses: then messages carry the
  // images.
  static RankSlots Make(const Ranks& ranks, int slots, int64_t slot_bytes);
  // For another rank: those that rank 0 made. None if it made none, or if they
  // cannot be reached.
  static RankSlots Join(const Ranks& ranks, const RankJob& job,
                        int64_t slot_bytes);

  // Of each rank.
  int count() const { return count_; }
  int64_t bytes() const { return count_ * slot_bytes_; }
  const std::string& handle() const { return handle_; }
  // Null if the rank has no such slot.
  uint8_t* Find(int rank, int slot) const;
  // The rank's slot that begins there; -1 if none does.
  int NumberOf(int rank, const uint8_t* place) const;

 private:
  RankSlots(const Ranks& ranks, std::unique_ptr<SharedSegment> memory,
            int count, int64_t slot_bytes);

  const Ranks* ranks_ = nullptr;
  std::unique_ptr<SharedSegment> memory_;
  int count_ = 0;
  int64_t slot_bytes_ = 0;
  std::string handle_;
};

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_RANK_SLOTS_H_
