#include "milestones/classifying/rank_slots.h"

#include <cstdlib>
#include <utility>

#include "common/math/rounding.h"

namespace convlab {
namespace {

constexpr int64_t kPageBytes = 4096;

bool OnHostOfRankZero(const Ranks& ranks, int rank) {
  return ranks.place(rank).host == ranks.place(0).host;
}

// The others of rank 0's host that come before this one.
int Before(const Ranks& ranks, int rank) {
  int before = 0;
  for (int i = 1; i < rank; ++i) before += OnHostOfRankZero(ranks, i) ? 1 : 0;
  return before;
}

// For tests, and for a host where this goes wrong.
bool SwitchedOff() {
  const char* const value = std::getenv("CONVLAB_SHARED_MEMORY");
  return value != nullptr && std::string(value) == "0";
}

}  // namespace

RankSlots::RankSlots(const Ranks& ranks, std::unique_ptr<SharedSegment> memory,
                     int count, int64_t slot_bytes)
    : ranks_(&ranks),
      memory_(std::move(memory)),
      count_(count),
      slot_bytes_(RoundUp(slot_bytes, kPageBytes)),
      handle_(memory_->handle()) {}

RankSlots RankSlots::Make(const Ranks& ranks, int slots, int64_t slot_bytes) {
  const int others = Before(ranks, ranks.size());
  if (others == 0 || SwitchedOff()) return {};
  auto memory = SharedSegment::Create(int64_t{others} * slots *
                                      RoundUp(slot_bytes, kPageBytes));
  if (!memory.ok()) return {};
  return RankSlots(ranks, *std::move(memory), slots, slot_bytes);
}

RankSlots RankSlots::Join(const Ranks& ranks, const RankJob& job,
                          int64_t slot_bytes) {
  if (job.shared.empty() || !OnHostOfRankZero(ranks, ranks.rank())) return {};
  auto memory = SharedSegment::Open(job.shared);
  if (!memory.ok()) return {};
  RankSlots slots(ranks, *std::move(memory), job.slots, slot_bytes);
  // Not of this run's size.
  if (slots.Find(ranks.rank(), job.slots - 1) == nullptr) return {};
  return slots;
}

uint8_t* RankSlots::Find(int rank, int slot) const {
  if (slot < 0 || slot >= count_ || rank <= 0 || rank >= ranks_->size() ||
      !OnHostOfRankZero(*ranks_, rank)) {
    return nullptr;
  }
  const int64_t number = int64_t{Before(*ranks_, rank)} * count_ + slot;
  if ((number + 1) * slot_bytes_ > memory_->bytes()) return nullptr;
  return memory_->data() + number * slot_bytes_;
}

int RankSlots::NumberOf(int rank, const uint8_t* place) const {
  for (int slot = 0; slot < count_; ++slot) {
    if (Find(rank, slot) == place) return slot;
  }
  return -1;
}

}  // namespace convlab
