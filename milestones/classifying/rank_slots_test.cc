#include "milestones/classifying/rank_slots.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "common/ranks/quiet_ranks.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

constexpr int kSlots = 3;
constexpr int64_t kSlotBytes = 5000;

// A process of each host.
QuietRanks RanksOf(int rank, const std::vector<std::string>& hosts) {
  std::vector<RankPlace> places;
  for (const std::string& host : hosts) places.push_back({host, 1});
  return QuietRanks(rank, std::move(places));
}

RankJob JobOf(const RankSlots& slots) {
  RankJob job;
  job.shared = slots.handle();
  job.slots = slots.count();
  return job;
}

TEST(RankSlots, RanksOfTheHostFindTheirOwn) {
  const std::vector<std::string> hosts = {"a", "a", "b", "a"};
  const QuietRanks zero = RanksOf(0, hosts);
  const RankSlots made = RankSlots::Make(zero, kSlots, kSlotBytes);
  ASSERT_EQ(made.count(), kSlots);
  for (const int rank : {1, 3}) {
    const QuietRanks ranks = RanksOf(rank, hosts);
    const RankSlots joined = RankSlots::Join(ranks, JobOf(made), kSlotBytes);
    ASSERT_EQ(joined.count(), kSlots);
    for (int slot = 0; slot < kSlots; ++slot) {
      // Each of another content: none lies within another.
      const auto value = static_cast<uint8_t>(10 * rank + slot);
      std::fill_n(made.Find(rank, slot), kSlotBytes, value);
    }
    for (int slot = 0; slot < kSlots; ++slot) {
      const uint8_t* const place = joined.Find(rank, slot);
      EXPECT_EQ(place[0], 10 * rank + slot);
      EXPECT_EQ(place[kSlotBytes - 1], 10 * rank + slot);
      EXPECT_EQ(joined.NumberOf(rank, place), slot);
    }
    EXPECT_EQ(joined.NumberOf(rank, joined.Find(rank, 0) + 1), -1);
  }
  // The first rank's are as they were.
  EXPECT_EQ(made.Find(1, kSlots - 1)[kSlotBytes - 1], 10 + kSlots - 1);
  for (const auto& [rank, slot] : std::vector<std::pair<int, int>>{
           {0, 0}, {2, 0}, {4, 0}, {-1, 0}, {1, -1}, {1, kSlots}}) {
    EXPECT_EQ(made.Find(rank, slot), nullptr) << rank << " " << slot;
  }
}

TEST(RankSlots, WhereTheyCannotBeThereAreNone) {
  const QuietRanks apart = RanksOf(0, {"a", "b"}), alone = RanksOf(0, {"a"}),
                   both = RanksOf(0, {"a", "a"});
  EXPECT_EQ(RankSlots::Make(apart, kSlots, kSlotBytes).count(), 0);
  EXPECT_EQ(RankSlots::Make(alone, kSlots, kSlotBytes).count(), 0);
  const RankSlots made = RankSlots::Make(both, kSlots, kSlotBytes);
  ASSERT_EQ(made.count(), kSlots);
  const QuietRanks elsewhere = RanksOf(1, {"a", "b"}),
                   other = RanksOf(1, {"a", "a"});
  EXPECT_EQ(RankSlots::Join(elsewhere, JobOf(made), kSlotBytes).count(), 0);
  EXPECT_EQ(RankSlots::Join(other, {}, kSlotBytes).count(), 0);
  // Larger than what rank 0 made.
  EXPECT_EQ(RankSlots::Join(other, JobOf(made), 2 * kSlotBytes).count(), 0);
  setenv("CONVLAB_SHARED_MEMORY", "0", 1);
  EXPECT_EQ(RankSlots::Make(both, kSlots, kSlotBytes).count(), 0);
  unsetenv("CONVLAB_SHARED_MEMORY");
}

}  // namespace
}  // namespace convlab
