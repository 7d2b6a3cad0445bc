#include "reports/comparison/ranking.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/document/writers.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A verified final run in three samples, whose op times add up to `sum_ms`, and
// a quarter of a percent more and less. No two are equal.
RunRecord Final(int64_t sum_ms, int64_t correct = 9000) {
  RunRecord record = Verified(TestRecord("final", "gpu", 10000, "mine"));
  static int64_t runs = 0;
  const int64_t ns = sum_ms * kMs, spread = ns / 400, other = ++runs;
  record.convolutions[0].op_time_ns = {ns / 4, ns / 4 + spread + other,
                                       ns / 4 - spread};
  record.convolutions[1].op_time_ns = {ns - ns / 4, ns - ns / 4, ns - ns / 4};
  for (ConvolutionRecord& convolution : record.convolutions) {
    convolution.kernel_time_ns.clear();
  }
  record.correct = correct;
  return record;
}

Participant Of(const std::string& name, std::vector<RunRecord> runs) {
  Participant participant;
  participant.name = participant.records.folder = name;
  int number = 0;
  for (RunRecord& run : runs) {
    participant.records.runs.push_back(
        {name + "/" + std::to_string(++number) + ".json", std::move(run),
         SealState::kIntact});
  }
  return participant;
}

Ranking Ranked(const std::vector<Participant>& participants,
               const RankingOptions& options = {}) {
  const auto ranking = RankParticipants(participants, options);
  EXPECT_TRUE(ranking.ok()) << ranking.status();
  return ranking.value_or(Ranking());
}

// The reasons why the run, alone, is refused; empty if it is ranked.
std::string WhyNot(const RunRecord& run, const RankingOptions& options = {},
                   SealState seal = SealState::kIntact) {
  Participant participant = Of("a", {run});
  participant.records.runs[0].seal = seal;
  const Ranking ranking = Ranked({participant}, options);
  EXPECT_EQ(ranking.refusals.size() + ranking.sections.size(), 1u);
  return ranking.refusals.empty() ? "" : ranking.refusals[0].reason;
}

TEST(Ranking, DeviationsFromTheMedianGivePoints) {
  // Sums 4, 8, 12, 16: median 10, mean 10, standard deviation sqrt(20).
  const Ranking ranking = Ranked({Of("c", {Final(12)}), Of("a", {Final(4)}),
                                  Of("d", {Final(16)}), Of("b", {Final(8)})});
  ASSERT_THAT(ranking.sections, SizeIs(1));
  const RankingSection& section = ranking.sections[0];
  EXPECT_DOUBLE_EQ(section.median_ns, 10e6);
  EXPECT_DOUBLE_EQ(section.deviation_ns, std::sqrt(20) * 1e6);
  ASSERT_THAT(section.ranks, SizeIs(4));
  EXPECT_EQ(section.ranks[0].name, "a");
  EXPECT_EQ(section.ranks[0].place, 1);
  EXPECT_DOUBLE_EQ(section.ranks[0].deviations, -6 / std::sqrt(20));
  EXPECT_DOUBLE_EQ(section.ranks[0].points, 80 + 60 / std::sqrt(20));
  EXPECT_EQ(section.ranks[3].name, "d");
  EXPECT_DOUBLE_EQ(section.ranks[3].points, 80 - 60 / std::sqrt(20));
}

TEST(Ranking, PointsStayWithinBounds) {
  EXPECT_EQ(Points(0), 80);
  EXPECT_EQ(Points(-2), 100);
  EXPECT_EQ(Points(-3), 100);
  EXPECT_EQ(Points(8), 0);
  EXPECT_EQ(Points(9), 0);
}

TEST(Ranking, BestCorrectRunCounts) {
  const Ranking ranking =
      Ranked({Of("a", {Final(12), Final(4, 8000), Final(8)}),
              Of("b", {Final(8)}), Of("c", {Final(9)})});
  const std::vector<Rank>& ranks = ranking.sections[0].ranks;
  EXPECT_EQ(ranks[0].sum.median, 8 * kMs);
  // The next place comes after both.
  EXPECT_EQ(ranks[0].place, 1);
  EXPECT_EQ(ranks[1].place, 1);
  EXPECT_EQ(ranks[2].place, 3);
  ASSERT_THAT(ranking.refusals, SizeIs(1));
  EXPECT_EQ(ranking.refusals[0].reason,
            "8,000 correct answers, expected 9,000");
}

TEST(Ranking, OverlappingMiddleHalvesAreATie) {
  const auto of = [](std::vector<int64_t> microseconds) {
    RunRecord record = Final(4);
    for (int64_t& us : microseconds) us *= 1000;
    record.convolutions[0].op_time_ns = microseconds;
    record.convolutions[1].op_time_ns.assign(microseconds.size(), 3 * kMs);
    return record;
  };
  // Medians 1000, 1010, 1020: the second overlaps the first, and the third the
  // second alone, which leads no place.
  const Ranking ranking = Ranked({Of("c", {of({1014, 1020, 1026})}),
                                  Of("b", {of({1004, 1010, 1022})}),
                                  Of("a", {of({994, 1000, 1014})})});
  const std::vector<Rank>& ranks = ranking.sections[0].ranks;
  ASSERT_THAT(ranks, SizeIs(3));
  EXPECT_EQ(ranks[0].name, "a");
  EXPECT_EQ(ranks[1].place, 1);
  EXPECT_EQ(ranks[2].name, "c");
  EXPECT_EQ(ranks[2].place, 3);
}

TEST(Ranking, ClassesAreRankedApart) {
  RunRecord half = Final(2, 8997);
  half.variants["mine"].accuracy_class = "fp16";
  RunRecord tensor = Final(3);
  tensor.variants["mine"].accuracy_class = "tf32";
  const Ranking ranking =
      Ranked({Of("a", {half, Final(9)}), Of("b", {tensor})});
  ASSERT_THAT(ranking.sections, SizeIs(3));
  EXPECT_EQ(ranking.sections[0].accuracy_class, "fp32");
  EXPECT_EQ(ranking.sections[0].ranks[0].sum.median, 9 * kMs);
  EXPECT_EQ(ranking.sections[1].accuracy_class, "tf32");
  EXPECT_EQ(ranking.sections[1].ranks[0].name, "b");
  EXPECT_EQ(ranking.sections[2].accuracy_class, "fp16");
  EXPECT_EQ(ranking.sections[2].ranks[0].name, "a");
}

TEST(Ranking, KernelsWhoseOpTimeDoesNotCountAreRankedByTheWholeOperation) {
  RunRecord prolog = Contributed(Final(1), "prolog");
  prolog.variants["prolog"].verification->op_time_counts = false;
  EXPECT_THAT(WhyNot(prolog), HasSubstr("no times of the whole operation"));
  for (ConvolutionRecord& convolution : prolog.convolutions) {
    convolution.whole_time_ns = {50 * kMs, 51 * kMs, 52 * kMs};
  }
  const Ranking ranking = Ranked({Of("a", {prolog}), Of("b", {Final(9)})});
  ASSERT_THAT(ranking.sections, SizeIs(2));
  EXPECT_THAT(ranking.sections[0].ranks, SizeIs(1));
  EXPECT_EQ(ranking.sections[0].ranks[0].name, "b");
  EXPECT_EQ(ranking.sections[1].measure, Measure::kWholeTime);
  EXPECT_EQ(ranking.sections[1].ranks[0].sum.median, 102 * kMs);
}

TEST(Ranking, WhatIsNotVerifiedIsRefused) {
  RunRecord run = Final(8);
  run.variants["mine"].verification.reset();
  EXPECT_THAT(WhyNot(run), HasSubstr("not verified"));
  run = Contributed(Final(8), "mine");
  EXPECT_EQ(WhyNot(run), "");
  VerificationRecord& verification = *run.variants["mine"].verification;
  verification.outcome = "restricted";
  EXPECT_EQ(WhyNot(run), "");
  EXPECT_EQ(Ranked({Of("a", {run})}).sections[0].ranks[0].run,
            "final: mine, restricted");
  verification.quick = true;
  EXPECT_THAT(WhyNot(run), HasSubstr("judged by --quick"));
  verification.quick = false;
  verification.outcome = "wrong";
  verification.reason = {"the last column of every row", "more"};
  EXPECT_THAT(WhyNot(run),
              HasSubstr("the judge calls it wrong: the last column of every "
                        "row"));
  run = Final(8);
  run.variants["mine"].verification->problems_right = 0;
  EXPECT_THAT(WhyNot(run), HasSubstr("not verified"));
  run = Final(8);
  run.variants["mine"].verification->relative_error = 0.01;
  EXPECT_THAT(WhyNot(run), HasSubstr("a relative error of 1e-02, where class "
                                     "fp32 allows"));
}

TEST(Ranking, ContributedKernelsAreOfTheClassThatWasFound) {
  RunRecord run = Contributed(Final(8), "mine");
  run.variants["mine"].verification->accuracy_class = "fp16";
  run.variants["mine"].verification->relative_error = 1e-4;
  EXPECT_EQ(Ranked({Of("a", {run})}).sections[0].accuracy_class, "fp16");
}

TEST(Ranking, SealsAreChecked) {
  RankingOptions keyed;
  keyed.keyed = true;
  EXPECT_EQ(WhyNot(Final(8), {}, SealState::kIntact), "");
  EXPECT_THAT(WhyNot(Final(8), {}, SealState::kEdited), HasSubstr("edited"));
  EXPECT_THAT(WhyNot(Final(8), {}, SealState::kUnsealed),
              HasSubstr("no seal, which every run with a verification has"));
  EXPECT_THAT(WhyNot(Final(8), {}, SealState::kOtherKey),
              HasSubstr("sealed with a key, which --seal_key names"));
  EXPECT_EQ(WhyNot(Final(8), keyed, SealState::kIntact), "");
  EXPECT_THAT(WhyNot(Final(8), keyed, SealState::kOtherKey),
              HasSubstr("not sealed with the key"));
}

TEST(Ranking, EveryRepetitionsCountIsThatOfTheNetwork) {
  RunRecord run = Final(8);
  run.repetitions_correct = {9000, 1000, 9000};
  EXPECT_THAT(WhyNot(run), HasSubstr("1,000 correct answers in repetition 2, "
                                     "expected 9,000"));
  // A weight file of one's own does not change what the network's has.
  run = Final(8, 9500);
  run.weights_metadata["correct_10000"] = "9500";
  EXPECT_EQ(WhyNot(run), "");
  RankingOptions options;
  options.correct = {{10000, 9000}};
  EXPECT_THAT(WhyNot(run, options), HasSubstr("9,500 correct answers"));
  run = Final(8);
  run.weights_metadata.clear();
  EXPECT_THAT(WhyNot(run),
              HasSubstr("does not say how many answers are right"));
  EXPECT_EQ(WhyNot(run, options), "");
}

TEST(Ranking, ImpossibleTimesAreRefused) {
  RunRecord run = Final(8);
  run.convolutions[1].op_time_ns = {kMs / 5, kMs / 5, kMs / 5};
  EXPECT_THAT(WhyNot(run), HasSubstr("time 2, 0.200 ms, is below the floor of "
                                     "NVIDIA H200, 0.367 ms"));
  run = Final(8);
  run.convolutions[0].kernel_time_ns = {3 * kMs, 3 * kMs, 3 * kMs};
  EXPECT_THAT(WhyNot(run), HasSubstr("op time 1, 2.000 ms, is below its kernel "
                                     "time, 3.000 ms"));
  run = Final(8);
  run.usage.elapsed_ns = 10 * kMs;
  EXPECT_THAT(WhyNot(run),
              HasSubstr("impossible: its samples add up to 24.000 ms, and the "
                        "program ran for 10.000 ms"));
}

TEST(Ranking, WhatWasPrintedMustFit) {
  RunRecord run = Final(8);
  run.output = {"Op Time: 0.002000", "Op Time: 6.000 ms",
                "Correctness: 0.9 Model: fa19"};
  EXPECT_EQ(WhyNot(run), "");
  run.output[1] = "Op Time: 6 ms";
  EXPECT_EQ(WhyNot(run), "");
  run.output[1] = "Op Time: 5.999 ms";
  EXPECT_THAT(WhyNot(run), HasSubstr("'Op Time: 5.999 ms'"));
  run.output[0] = "Op Time: 0.001000";
  EXPECT_THAT(WhyNot(run), HasSubstr("it printed 'Op Time: 0.001000', but the "
                                     "median of its samples is 2.000 ms"));
  run.output = {"Op Time: 0.002000"};
  EXPECT_THAT(WhyNot(run), HasSubstr("it printed 1 op time, but has 2"));
  run.output = {"Test Accuracy: 0.8714"};
  EXPECT_THAT(WhyNot(run), HasSubstr("it printed 'Test Accuracy: 0.8714', but "
                                     "has 9,000 correct answers"));
  RunRecord ladder = Verified(TestLadder(10000));
  ladder.output = {"== naive ==\nOp Time: 0.010000", "Op Time: 0.030000",
                   "== fast ==", "Op Time: 0.002500", "Op Time: 0.007400"};
  const Ranking ranking = Ranked({Of("a", {ladder})});
  ASSERT_THAT(ranking.refusals, SizeIs(1));
  EXPECT_EQ(ranking.refusals[0].run, "m4: fast");
}

TEST(Ranking, OfCopiesTheEarliestStays) {
  RunRecord original = Final(8);
  RunRecord copy = original;
  copy.started = "2026-11-21T06:00:00+00:00";
  const Ranking ranking =
      Ranked({Of("late", {copy, Final(12)}), Of("early", {original})});
  const std::vector<Rank>& ranks = ranking.sections[0].ranks;
  EXPECT_EQ(ranks[0].name, "early");
  EXPECT_EQ(ranks[1].name, "late");
  EXPECT_EQ(ranks[1].sum.median, 12 * kMs);
  ASSERT_THAT(ranking.refusals, SizeIs(1));
  EXPECT_THAT(ranking.refusals[0].reason,
              HasSubstr("a copy of a run of early"));
}

TEST(Ranking, AnAlteredCopyDoesNotMakeACopyOfTheOriginal) {
  const RunRecord original = Final(8);
  RunRecord altered = original;
  altered.started = "2001-01-01T00:00:00+00:00";
  altered.output = {"Op Time: 0.002000"};
  const Ranking ranking =
      Ranked({Of("cheat", {altered}), Of("honest", {original})});
  ASSERT_THAT(ranking.sections[0].ranks, SizeIs(1));
  EXPECT_EQ(ranking.sections[0].ranks[0].name, "honest");
  ASSERT_THAT(ranking.refusals, SizeIs(1));
  EXPECT_EQ(ranking.refusals[0].name, "cheat");
}

TEST(Ranking, KernelsThatFailedAreNoCopiesOfEachOther) {
  RunRecord ladder = Verified(TestLadder(10000));
  ladder.variants["odd"].verification->kernel = KernelRecord{"odd", "", "", {}};
  const Ranking ranking = Ranked({Of("ada", {ladder}), Of("bob", {ladder})});
  ASSERT_THAT(ranking.refusals, SizeIs(2));
  for (const RefusedRun& refusal : ranking.refusals) {
    EXPECT_EQ(refusal.reason, "rejected: too odd");
  }
}

TEST(Ranking, BrokenFoldersAndFilesAreRows) {
  Participant broken = Of("broken", {Final(8)});
  broken.records.broken = {{"broken/x.json", "not valid JSON at byte 3"}};
  Participant failed;
  failed.name = "failed";
  failed.failure = "it holds no run record";
  const Ranking ranking =
      Ranked({broken, failed, Of("traced", {Traced(Final(1))})});
  EXPECT_THAT(ranking.sections, SizeIs(1));
  ASSERT_THAT(ranking.refusals, SizeIs(3));
  EXPECT_EQ(ranking.refusals[0].run, "x.json");
  EXPECT_EQ(ranking.refusals[0].reason, "not valid JSON at byte 3");
  EXPECT_EQ(ranking.refusals[1].reason, "it holds no run record");
  EXPECT_EQ(ranking.refusals[2].reason,
            "no run of fa19 with 10,000 images on the GPU");
}

TEST(Ranking, LadderRunsCountAndTheBaselineDoesNot) {
  RunRecord ladder = Verified(TestLadder(10000));
  const Ranking ranking =
      Ranked({Of("a", {ladder, TestRecord("m1", "gpu", 10000, "cudnn")})});
  EXPECT_EQ(ranking.sections[0].ranks[0].run, "m4: fast");
  EXPECT_EQ(ranking.sections[0].ranks[0].points, 80);
  // A variant of ours that failed is no row; a participant's kernel is.
  EXPECT_THAT(ranking.refusals, IsEmpty());
  ladder.variants["odd"].verification->kernel = KernelRecord{"odd", "", "", {}};
  const Ranking with_kernel = Ranked({Of("a", {ladder})});
  ASSERT_THAT(with_kernel.refusals, SizeIs(1));
  EXPECT_EQ(with_kernel.refusals[0].run, "m4: odd");
  EXPECT_EQ(with_kernel.refusals[0].reason, "rejected: too odd");
  // Our rungs are not the entry of somebody who brought a kernel.
  EXPECT_THAT(with_kernel.sections, IsEmpty());
}

TEST(Ranking, PooledSamplesAreOfOneKernel) {
  RankingOptions options;
  options.pool = true;
  const auto of = [](const char* name, int64_t sum_ms) {
    RunRecord run = Final(sum_ms);
    run.variants = {{name, run.variants["mine"]}};
    for (ConvolutionRecord& one : run.convolutions) one.variant = name;
    return run;
  };
  const std::vector<RunRecord> runs = {of("mine", 8), of("mine", 10),
                                       of("mine", 9)};
  const Ranking alone = Ranked({Of("a", runs)}, options);
  EXPECT_EQ(alone.sections[0].ranks[0].sum.samples, 9u);
  EXPECT_DOUBLE_EQ(alone.sections[0].ranks[0].sum.median, 9e6);
  const Ranking two =
      Ranked({Of("a", {runs[0], of("other", 4), runs[1]})}, options);
  EXPECT_EQ(two.sections[0].ranks[0].run, "final: other");
  EXPECT_EQ(two.sections[0].ranks[0].sum.samples, 3u);
}

TEST(Ranking, RunsOnTheCpuAreApart) {
  RunRecord cpu = Final(40);
  cpu.device = "cpu";
  const std::vector<Participant> one = {Of("a", {cpu, Final(4)})};
  EXPECT_EQ(Ranked(one).sections[0].ranks[0].sum.median, 4 * kMs);
  RankingOptions options;
  options.device = "cpu";
  EXPECT_EQ(Ranked(one, options).sections[0].ranks[0].sum.median, 40 * kMs);
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
  RunRecord other = Final(30);
  other.gpu.name = "Tesla T4";
  const std::vector<Participant> two = {Of("a", {Final(4)}), Of("b", {other})};
  EXPECT_THAT(std::string(RankParticipants(two, {}).status().message()),
              HasSubstr("a has a run on NVIDIA H200 and b one on Tesla T4"));
  RankingOptions options;
  options.any_device = true;
  EXPECT_TRUE(RankParticipants(two, options).ok());
}

TEST(Ranking, ADeviationNeedsTwoParticipants) {
  const auto text = [](const std::vector<Participant>& participants) {
    return WriteBlocks(DescribeRanking(Ranked(participants), {}));
  };
  EXPECT_THAT(text({Of("a", {Final(4)})}),
              Not(HasSubstr("standard deviation 0.000")));
  EXPECT_THAT(text({Of("a", {Final(4)}), Of("b", {Final(8)})}),
              HasSubstr("Median 6.000 ms, standard deviation 2.000 ms."));
}

TEST(Ranking, ASumOutsideOfItsQuartilesIsExplained) {
  const auto text = [](std::vector<int64_t> first,
                       std::vector<int64_t> second) {
    RunRecord record = Final(4);
    record.convolutions[0].op_time_ns = std::move(first);
    record.convolutions[1].op_time_ns = std::move(second);
    return WriteBlocks(DescribeRanking(Ranked({Of("a", {record})}), {}));
  };
  // The medians add up to 2.8 ms, the repetitions to 2.8, 2.8 and 3.4 ms.
  EXPECT_THAT(
      text({kMs, kMs, 24 * kMs / 10}, {18 * kMs / 10, 18 * kMs / 10, kMs}),
      Not(HasSubstr("outside of its quartiles")));
  // The medians add up to 2 ms, the repetitions to 2.8, 2.9 and 2 ms.
  EXPECT_THAT(text({kMs, 19 * kMs / 10, kMs}, {18 * kMs / 10, kMs, kMs}),
              HasSubstr("outside of its quartiles"));
}

TEST(Ranking, NamesAreEscaped) {
  const Ranking ranking = Ranked({Of("a|<b>", {Final(4)})});
  EXPECT_THAT(WriteBlocks(DescribeRanking(ranking, {})),
              AllOf(HasSubstr("a\\|&lt;b\\>"), Not(HasSubstr("<b>"))));
  EXPECT_THAT(RankingPage(ranking, {}, "/x"), Not(HasSubstr("<b>")));
}

TEST(Ranking, ThePageHasHistoriesAndLinks) {
  RunRecord later = Final(6);
  later.started = "2026-11-22T05:00:00+00:00";
  Participant ada = Of("ada", {later, Final(8)});
  ada.reports = {"/class/ada/submission.html"};
  const Ranking ranking = Ranked({ada, Of("bob", {Final(7)})});
  ASSERT_THAT(ranking.histories, SizeIs(2));
  std::vector<double> sums;
  for (const History::Entry& entry : ranking.histories[0].entries) {
    sums.push_back(entry.sum_ns);
  }
  EXPECT_THAT(sums, ElementsAre(8 * kMs, 6 * kMs));
  const std::string page = RankingPage(ranking, {}, "/class/pages");
  EXPECT_THAT(
      page,
      AllOf(HasSubstr("<table class=\"sortable\">"), HasSubstr("<script>"),
            HasSubstr("href=\"../ada/submission.html\""),
            HasSubstr("href=\"#history-1\">ada</a>"),
            HasSubstr("<h3 id=\"history-1\">ada</h3>"), HasSubstr("<svg ")));
}

}  // namespace
}  // namespace convlab
