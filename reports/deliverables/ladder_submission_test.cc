// Milestone 4 in a submission: the ladder and its optimizations.
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/deliverables/submission_testing.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(LadderSubmission, LadderHasLibraryAndFloor) {
  const std::string ladder =
      Section(Markdown(CompleteRecords(), "m4"), "4.1 The ladder");
  // 2.28688 GB at 4.8 TB/s and 121.1 GFLOP at 330 TFLOP/s: 0.476 + 0.367 ms.
  EXPECT_THAT(
      ladder,
      AllOf(HasSubstr("| 2 | `fast` | 2.500 + 7.500 | 10.000 | 4.00× | 4.00× | "
                      "0.40× | 8.4 % | fp32 | 3e-07 | 9,000 |"),
            HasSubstr("| 4 | `odd` | rejected: too odd | – |"),
            HasSubstr("cuDNN 9, the best of 12 plans, kernel time | 2.000 + "
                      "2.000 | 4.000 | – | 10.00× |"),
            HasSubstr("do not overlap"), HasSubstr("60 % of its peak")));
}

TEST(LadderSubmission, OptimizationsSayWhatTheCountersAndTimesSay) {
  const std::string markdown = Markdown(CompleteRecords(), "m4");
  EXPECT_THAT(
      Section(markdown, "4.3 Rung 2: fast"),
      AllOf(HasSubstr("**What it does.** What rung 2 is."),
            HasSubstr("**Why it should help.** Why rung 2 should help."),
            HasSubstr("Rung 2 of 4, class fp32"),
            HasSubstr("| 100 | 0.025 + 0.075 | 0.100 | 0.100 + 0.300 | 0.400 | "
                      "4.00× | beyond the spread |"),
            HasSubstr("| `fast_kernel` | 4.0000ms | 1.500 GB | 75.0 | 40.0 | – "
                      "| 33.5 | 72 | – | – |"),
            HasSubstr("bound by device memory (75 % of its peak)"),
            HasSubstr("device memory 75.0 % (before: 5.0 %)"),
            HasSubstr("It helped at 10,000 images: the op times' sum is "
                      "10.000 ms, the rung before has 40.000 ms, so it is 4.00 "
                      "times as fast (beyond the spread)")));
  EXPECT_THAT(
      Section(markdown, "4.4 Rung 3: slow"),
      AllOf(HasSubstr("It did not help"), HasSubstr("2.00 times as slow"),
            HasSubstr("2.00 times as fast as the first rung"),
            HasSubstr("bound by waiting: device memory is at 5 % and the "
                      "multiprocessors at 40 %")));
  EXPECT_THAT(Section(markdown, "4.5 Rung 4: odd"),
              AllOf(HasSubstr("rejected: too odd"), Not(HasSubstr("0.000"))));
}

TEST(LadderSubmission, CountersOfTheWholeOperationSayWhyItDidNotHelp) {
  Records records = CompleteRecords();
  const auto count = [&](const char* variant, double ns, double sm_percent) {
    for (auto& counter : records.counters[variant].launches[0].counters) {
      if (counter.name == "gpu__time_duration.sum") counter.value = ns;
      if (absl::StartsWith(counter.name, "sm__throughput")) {
        counter.value = sm_percent;
      }
    }
  };
  const auto verdict = [&] {
    return Section(Markdown(records, "m4"), "4.4 Rung 3: slow");
  };
  EXPECT_THAT(verdict(), HasSubstr("The counters do not show why"));
  count("fast", 10e6, 40);
  count("slow", 20e6, 90);
  EXPECT_THAT(verdict(),
              HasSubstr("The reason is more work than before: the busiest "
                        "unit of the multiprocessors is at work for 18.000ms, "
                        "in the rung before for 4.0000ms."));
  count("slow", 20e6, 25);
  EXPECT_THAT(verdict(), HasSubstr("The reason is longer waiting: "));
  EXPECT_THAT(verdict(), HasSubstr("15.000ms and before 6.0000ms, is waiting"));
  records.counters.erase("fast");
  EXPECT_THAT(verdict(), Not(HasSubstr("The reason is")));
  EXPECT_THAT(verdict(), Not(HasSubstr("do not show why")));
}

TEST(LadderSubmission, RunsOfOneVariantAreNoLadder) {
  Records records = CompleteRecords();
  RunRecord alone = TestRecord("m4", "gpu", 10000, "naive");
  alone.started = "2027-01-01T00:00:00+00:00";
  records.runs.push_back({"runs/alone.json", alone});
  RunRecord failed = TestLadder(10000);
  failed.started = alone.started;
  for (LadderRun& run : failed.ladder) run.failure = "FAILED: wrong";
  records.runs.push_back({"runs/failed.json", failed});
  EXPECT_THAT(Made(records, For("m4")).incomplete, IsEmpty());
  // The ladder is shown without its first rung too.
  for (NamedRecord& run : records.runs) {
    if (!run.record.ladder.empty()) {
      run.record.ladder[0].failure = "FAILED: wrong";
      run.record.ladder[0].convolutions.clear();
    }
  }
  EXPECT_THAT(Section(Markdown(records, "m4"), "4.1 The ladder"),
              AllOf(HasSubstr("| 1 | `naive` | FAILED: wrong |"),
                    HasSubstr("| 2 | `fast` | 11.4 | 10.45 |")));
}

TEST(LadderSubmission, ChosenOptimizationsAlone) {
  SubmissionOptions options = For("m4");
  options.optimizations = {"slow"};
  EXPECT_THAT(Headings(Made(CompleteRecords(), options).document), SizeIs(11));
  options.optimizations = {"slower"};
  EXPECT_THAT(
      std::string(
          MakeSubmission(CompleteRecords(), options).status().message()),
      HasSubstr("'slower'"));
}

TEST(LadderSubmission, UnknownGpuHasNoFloor) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    if (run.record.device == "gpu") run.record.gpu.name = "NVIDIA X1";
  }
  const std::string markdown = Markdown(records, "final");
  EXPECT_THAT(markdown, AllOf(HasSubstr("no data sheet of NVIDIA X1"),
                              Not(HasSubstr(" % of the floor"))));
  EXPECT_THAT(markdown, Not(HasSubstr("charts/roofline")));
}

}  // namespace
}  // namespace convlab
