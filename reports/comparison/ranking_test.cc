#include "reports/comparison/ranking.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/document/writers.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A final run whose op times add up to `sum_ms`.
RunRecord Final(int64_t sum_ms, int64_t correct = 9000) {
  RunRecord record = TestRecord("final", "gpu", 10000, "mine");
  record.convolutions[0].op_time_ns = {sum_ms * kMs / 4};
  record.convolutions[1].op_time_ns = {sum_ms * kMs * 3 / 4};
  record.correct = correct;
  return record;
}

Participant Of(const std::string& name, std::vector<RunRecord> runs) {
  Participant participant;
  participant.name = name;
  for (RunRecord& run : runs) {
    participant.records.runs.push_back({name, std::move(run)});
  }
  return participant;
}

TEST(Ranking, DeviationsFromTheMedianGivePoints) {
  // Sums 4, 8, 12, 16: median 10, mean 10, standard deviation sqrt(20).
  const auto ranking =
      RankParticipants({Of("c", {Final(12)}), Of("a", {Final(4)}),
                        Of("d", {Final(16)}), Of("b", {Final(8)})},
                       {});
  ASSERT_TRUE(ranking.ok()) << ranking.status();
  EXPECT_DOUBLE_EQ(ranking->median_ns, 10e6);
  EXPECT_DOUBLE_EQ(ranking->deviation_ns, std::sqrt(20) * 1e6);
  ASSERT_EQ(ranking->ranks.size(), 4);
  EXPECT_EQ(ranking->ranks[0].name, "a");
  EXPECT_EQ(ranking->ranks[0].place, 1);
  EXPECT_DOUBLE_EQ(ranking->ranks[0].deviations, -6 / std::sqrt(20));
  EXPECT_DOUBLE_EQ(ranking->ranks[0].points, 80 + 60 / std::sqrt(20));
  EXPECT_EQ(ranking->ranks[3].name, "d");
  EXPECT_DOUBLE_EQ(ranking->ranks[3].points, 80 - 60 / std::sqrt(20));
}

TEST(Ranking, PointsStayWithinBounds) {
  EXPECT_EQ(Points(0), 80);
  EXPECT_EQ(Points(-2), 100);
  EXPECT_EQ(Points(-3), 100);
  EXPECT_EQ(Points(8), 0);
  EXPECT_EQ(Points(9), 0);
}

TEST(Ranking, BestCorrectRunCounts) {
  const auto ranking =
      RankParticipants({Of("a", {Final(12), Final(4, 8000), Final(8)}),
                        Of("b", {Final(8)}), Of("c", {Final(9)})},
                       {});
  ASSERT_TRUE(ranking.ok());
  // Equal sums share a rank, and the next one comes after both.
  EXPECT_EQ(ranking->ranks[0].sum_ns, 8 * kMs);
  EXPECT_EQ(ranking->ranks[0].place, 1);
  EXPECT_EQ(ranking->ranks[1].place, 1);
  EXPECT_EQ(ranking->ranks[2].place, 3);
}

TEST(Ranking, DisqualifiedWithTheReason) {
  RunRecord untold = Final(1);
  untold.weights_metadata.clear();
  RunRecord half = Final(7, 8997);
  half.variants["mine"].accuracy_class = "fp16";
  const auto ranking = RankParticipants(
      {Of("wrong", {Final(1, 1000)}), Of("traced", {Traced(Final(1))}),
       Of("half", {half}), Of("untold", {untold}), Of("right", {Final(9)})},
      {});
  ASSERT_TRUE(ranking.ok());
  const std::string text = WriteBlocks(DescribeRanking(*ranking, {}));
  EXPECT_THAT(text,
              AllOf(HasSubstr("1,000 correct answers, expected 9,000"),
                    HasSubstr("| traced       | –"),
                    HasSubstr("no run of fa19 with 10,000 images on the GPU"),
                    HasSubstr("does not say how many answers are right"),
                    HasSubstr("|    1 | half "), HasSubstr("|    2 | right ")));
  RankingOptions options;
  options.correct = 9000;
  EXPECT_EQ(RankParticipants({Of("untold", {untold})}, options)->ranks[0].place,
            1);
}

TEST(Ranking, LadderRunsCountAndTheBaselineDoesNot) {
  const auto ranking = RankParticipants(
      {Of("a", {TestLadder(10000), TestRecord("m1", "gpu", 10000, "cudnn")})},
      {});
  ASSERT_TRUE(ranking.ok());
  EXPECT_EQ(ranking->ranks[0].run, "m4: fast");
  EXPECT_EQ(ranking->ranks[0].points, 80);
}

TEST(Ranking, RunsOnTheCpuAreApart) {
  RunRecord cpu = Final(40);
  cpu.device = "cpu";
  const std::vector<Participant> one = {Of("a", {cpu, Final(4)})};
  auto ranking = RankParticipants(one, {});
  ASSERT_TRUE(ranking.ok()) << ranking.status();
  EXPECT_EQ(ranking->ranks[0].sum_ns, 4 * kMs);
  RankingOptions options;
  options.device = "cpu";
  ranking = RankParticipants(one, options);
  ASSERT_TRUE(ranking.ok()) << ranking.status();
  EXPECT_EQ(ranking->ranks[0].sum_ns, 40 * kMs);
}

TEST(Ranking, TwoOfOneNameAreRefused) {
  Participant first = Of("records", {Final(4)});
  Participant second = first;
  first.records.folder = "ada/records";
  second.records.folder = "bob/records";
  EXPECT_THAT(
      std::string(RankParticipants({first, second}, {}).status().message()),
      AllOf(HasSubstr("ada/records and bob/records"), HasSubstr("'records'")));
}

TEST(Ranking, DevicesAreNotMixed) {
  RunRecord other = Final(3);
  other.gpu.name = "Tesla T4";
  const std::vector<Participant> two = {Of("a", {Final(4)}), Of("b", {other})};
  EXPECT_THAT(std::string(RankParticipants(two, {}).status().message()),
              HasSubstr("a has a run on NVIDIA H200 and b one on Tesla T4"));
  RankingOptions options;
  options.any_device = true;
  EXPECT_TRUE(RankParticipants(two, options).ok());
}

TEST(Ranking, NamesAreEscaped) {
  const auto ranking = RankParticipants({Of("a|<b>", {Final(4)})}, {});
  EXPECT_THAT(WriteBlocks(DescribeRanking(*ranking, {})),
              AllOf(HasSubstr("a\\|&lt;b\\>"), Not(HasSubstr("<b>"))));
}

}  // namespace
}  // namespace convlab
