// Milestone 4 in a submission: the ladder and its optimizations.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/deliverables/submission_testing.h"
#include "reports/document/writers.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

SubmissionOptions Choosing(const std::vector<std::string>& optimizations,
                           const std::string& base = "") {
  SubmissionOptions options = For("m4");
  options.optimizations = optimizations;
  options.base = base;
  return options;
}

std::string Written(const Records& records, const SubmissionOptions& options) {
  return WriteMarkdown(Made(records, options).document);
}

TEST(LadderSubmission, LadderHasBaseLibraryAndFloor) {
  const std::string ladder =
      Section(Markdown(CompleteRecords(), "m4"), "4.1 The ladder");
  // 2.28688 GB at 4.8 TB/s and 121.1 GFLOP at 330 TFLOP/s: 0.476 + 0.367 ms.
  EXPECT_THAT(
      ladder,
      AllOf(HasSubstr("| `naive`, the base | fp32 | 10.000 + 30.000 | 40.000 | "
                      "– | – | 2.1 % | 3e-07 | 9,000 |"),
            HasSubstr("| `fast` | fp32 | 2.500 + 7.500 | 10.000 | 4.00× | "
                      "4.00× | 8.4 % | 3e-07 | 9,000 |"),
            HasSubstr("| `final`: `fast` | fp32 | 10.000 + 30.000 | 40.000 |"),
            HasSubstr("cuDNN 9, the best of 12 plans, kernel time | fp32 | "
                      "2.000 + 2.000 | 4.000 | – | 10.00× |"),
            HasSubstr("do not overlap"), Not(HasSubstr("`slow`"))));
  EXPECT_THAT(Section(Markdown(CompleteRecords(), "m4"), "Appendix A"),
              AllOf(HasSubstr("| 3 | `slow` | 5.000 + 15.000 | 20.000 |"),
                    HasSubstr("| 4 | `odd` | rejected: too odd | – |")));
}

TEST(LadderSubmission, QuestionsAreAnsweredByTimesAndCounters) {
  const std::string section =
      Section(Markdown(CompleteRecords(), "m4"), "4.2 Optimization: fast");
  EXPECT_THAT(
      section,
      AllOf(HasSubstr("### What is it?\n\n*Generated:* What rung 2 is.\n"),
            HasSubstr("### Why should it help?\n\n*Generated:* Why rung 2"),
            HasSubstr("| 100 | 0.025 + 0.075 | 0.100 | 0.100 + 0.300 | 0.400 | "
                      "4.00× | beyond the spread | 90 |"),
            HasSubstr("](charts/counters-fast.svg)"),
            HasSubstr("*Generated:* It helped at 10,000 images: the op times' "
                      "sum is 10.000 ms, naive has 40.000 ms, so it is 4.00 "
                      "times as fast (beyond the spread)."),
            HasSubstr("14.72 TFLOP/s, 8.4 % of the floor"),
            HasSubstr("bound by device memory (75 % of its peak)")));
  EXPECT_THAT(Section(Markdown(CompleteRecords(), "m4"), "Appendix C"),
              HasSubstr("| `fast` | `fast_kernel` | 4.0000ms | 1.500 GB | 75.0 "
                        "| 40.0 | – | 33.5 | 72 | – | – |"));
}

TEST(LadderSubmission, EachIsComparedWithTheChosenOneBefore) {
  const std::string chain =
      Written(CompleteRecords(), Choosing({"fast", "slow", "odd"}));
  EXPECT_THAT(
      Section(chain, "4.3 Optimization: slow"),
      AllOf(HasSubstr("It did not help"), HasSubstr("2.00 times as slow"),
            HasSubstr("fast has 10.000 ms"),
            HasSubstr("bound by waiting: device memory is at 5 % and the "
                      "multiprocessors at 40 %")));
  EXPECT_THAT(Section(chain, "4.4 Optimization: odd"),
              AllOf(HasSubstr("It was not timed:** rejected: too odd"),
                    Not(HasSubstr("0.000"))));
  EXPECT_THAT(Section(chain, "4.1 The ladder"),
              HasSubstr("| `slow` | fp16 | 5.000 + 15.000 | 20.000 | 0.50× | "
                        "2.00× |"));
}

TEST(LadderSubmission, OrAllWithADeclaredBase) {
  const std::string based =
      Written(CompleteRecords(), Choosing({"fast", "slow"}, "naive"));
  EXPECT_THAT(Section(based, "4.3 Optimization: slow"),
              AllOf(HasSubstr("It helped"), HasSubstr("naive has 40.000 ms"),
                    Not(HasSubstr("fast_kernel"))));
  EXPECT_THAT(Section(based, "4.1 The ladder"),
              AllOf(HasSubstr("| `slow` | fp16 | 5.000 + 15.000 | 20.000 | "
                              "2.00× | 3.8 % |"),
                    Not(HasSubstr("over the one before"))));
  // The order of the optimizations is the student's.
  EXPECT_THAT(
      Headings(
          Made(CompleteRecords(), Choosing({"slow", "fast"}, "fast")).document),
      ElementsAre("Summary", "4.1 The ladder", "4.2 Optimization: slow",
                  "4.3 Optimization: fast", "Appendix A: All rungs",
                  "Appendix B: The roofline's numbers",
                  "Appendix C: The hardware counters"));
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
    return Section(Written(records, Choosing({"fast", "slow"})),
                   "4.3 Optimization: slow");
  };
  EXPECT_THAT(verdict(), HasSubstr("The counters do not show why"));
  count("fast", 10e6, 40);
  count("slow", 20e6, 90);
  EXPECT_THAT(verdict(),
              HasSubstr("The reason is more work than before: the busiest "
                        "unit of the multiprocessors is at work for 18.000ms, "
                        "with fast for 4.0000ms."));
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
  const std::string markdown = Markdown(records, "m4");
  EXPECT_THAT(Section(markdown, "4.1 The ladder"),
              HasSubstr("| `fast`, the base | fp32 | 2.500 + 7.500 |"));
  EXPECT_THAT(Section(markdown, "Appendix A"),
              HasSubstr("| 1 | `naive` | FAILED: wrong |"));
}

TEST(LadderSubmission, UnknownVariantsAreRefused) {
  const auto error = [](const SubmissionOptions& options) {
    return std::string(
        MakeSubmission(CompleteRecords(), options).status().message());
  };
  EXPECT_THAT(error(Choosing({"slower"})), HasSubstr("optimization 'slower'"));
  EXPECT_THAT(error(Choosing({}, "none")), HasSubstr("base 'none'"));
}

TEST(LadderSubmission, UnknownGpuHasNoFloor) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    if (run.record.device == "gpu") run.record.gpu.name = "NVIDIA X1";
  }
  const std::string markdown = Markdown(records, "m4");
  EXPECT_THAT(markdown, AllOf(HasSubstr("no data sheet of NVIDIA X1"),
                              Not(HasSubstr(" % of the floor"))));
  EXPECT_THAT(markdown, Not(HasSubstr("charts/roofline")));
}

}  // namespace
}  // namespace convlab
