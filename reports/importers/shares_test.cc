#include "reports/importers/shares.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ProfileEntry Entry(const std::string& name, std::optional<int64_t> total,
                   std::optional<double> printed = std::nullopt) {
  ProfileEntry entry;
  entry.name = name;
  entry.total_ns = total;
  entry.printed_share = printed;
  return entry;
}

std::vector<std::string> Names(const ShareList& list) {
  std::vector<std::string> names;
  for (const Share& share : list.shares) names.push_back(share.entry.name);
  return names;
}

TEST(Shares, StopAtTheFirstThatBringsThemOver) {
  const ProfileSection section{
      {Entry("c", 150), Entry("a", 500), Entry("d", 100), Entry("b", 250)}, ""};
  const ShareList list = LargestShares(section, 90);
  // 90.0 does not exceed 90.
  EXPECT_THAT(Names(list), ElementsAre("a", "b", "c", "d"));
  EXPECT_DOUBLE_EQ(list.shares[2].cumulative, 0.9);
  EXPECT_DOUBLE_EQ(list.shares[1].share, 0.25);
  EXPECT_EQ(list.entries, 4);
  EXPECT_TRUE(list.exceeds);
  EXPECT_THAT(Names(LargestShares(section, 89.9)), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Names(LargestShares(section, 0)), ElementsAre("a"));
  EXPECT_FALSE(LargestShares(section, 100).exceeds);
  EXPECT_THAT(ShareNotes(section, list, "nsys", 90), IsEmpty());
}

TEST(Shares, ComeFromTimesWhereTheyAreWhole) {
  // The printed ones are rounded.
  const ProfileSection section{{Entry("a", 6666, 0.67), Entry("b", 3334, 0.33)},
                               ""};
  const ShareList list = LargestShares(section, 90);
  EXPECT_FALSE(list.from_printed);
  EXPECT_DOUBLE_EQ(list.shares[0].share, 0.6666);
}

TEST(Shares, AreThePrintedOnesWhereTimesAreNotAll) {
  const ProfileSection section{
      {Entry("a", 4172, 0.4172), Entry("b", 3301, 0.3301)}, ""};
  const ShareList list = LargestShares(section, 90);
  EXPECT_TRUE(list.from_printed);
  EXPECT_FALSE(list.exceeds);
  EXPECT_DOUBLE_EQ(list.shares[1].cumulative, 0.7473);
  EXPECT_THAT(
      ShareNotes(section, list, "nvprof", 90),
      ElementsAre(HasSubstr("nvprof's printed percentages, of which the "
                            "2 listed make up 74.73 %"),
                  HasSubstr("74.73 %, which does not exceed 90 %")));
}

TEST(Shares, ContradictionsOfPrintedOnes) {
  const auto find = [](const std::vector<ProfileEntry>& entries) {
    const ProfileEntry* const found = FindContradiction(entries);
    return found == nullptr ? "" : found->name;
  };
  EXPECT_EQ(find({Entry("a", 600, 0.6), Entry("b", 400, 0.4)}), "");
  EXPECT_EQ(find({Entry("a", 600, 0.4), Entry("b", 400, 0.6)}), "a");
  // This holds for an incomplete list too.
  EXPECT_EQ(find({Entry("a", 400, 0.4), Entry("b", 300, 0.3)}), "");
  EXPECT_EQ(find({Entry("a", 400, 0.4), Entry("b", 100, 0.3)}), "b");
  EXPECT_EQ(find({Entry("a", 0, 0.5), Entry("b", 0, 0.5)}), "");
}

TEST(Shares, SayWhatTheSourceLacks) {
  const ProfileSection section{{Entry("a", 100)}, "copies: not in the file"};
  EXPECT_THAT(ShareNotes(section, LargestShares(section, 90), "nsys", 90),
              ElementsAre("copies: not in the file"));
}

TEST(Shares, OfEntriesWithoutTimes) {
  const ProfileSection section{{Entry("a", std::nullopt), Entry("b", 10)}, ""};
  const ShareList list = LargestShares(section, 90);
  EXPECT_THAT(Names(list), ElementsAre("b"));
  EXPECT_EQ(list.without_time, 1);
  EXPECT_THAT(ShareNotes(section, list, "CUPTI", 90), SizeIs(1));
  const ProfileSection empty{{}, "not in the file"};
  EXPECT_THAT(LargestShares(empty, 90).shares, IsEmpty());
  EXPECT_THAT(ShareNotes(empty, LargestShares(empty, 90), "nsys", 90),
              IsEmpty());
  const ProfileSection zero{{Entry("a", 0), Entry("b", 0)}, ""};
  EXPECT_THAT(LargestShares(zero, 90).shares, SizeIs(2));
}

}  // namespace
}  // namespace convlab
