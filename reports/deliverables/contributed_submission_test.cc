// A participant's kernel in a submission: the first in every table, list and
// chart, with our rungs beside it.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/deliverables/submission.h"
#include "reports/deliverables/submission_testing.h"
#include "reports/document/writers.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Complete records, and runs of `mine` at all sizes.
Records WithKernel() {
  Records records = CompleteRecords();
  const auto add = [&](const std::string& path, RunRecord record) {
    records.runs.push_back({path, std::move(record)});
  };
  add("runs/k2.json", Contributed(TestRecord("m2", "cpu", 1000, "x"), "mine"));
  for (const int64_t size : {100, 1000, 10000}) {
    add("runs/k3.json",
        Contributed(TestRecord("m3", "gpu", size, "x"), "mine"));
  }
  add("runs/k5.json",
      Contributed(TestRecord("final", "gpu", 10000, "x"), "mine"));
  for (NamedRecord& run : records.runs) {
    if (run.record.milestone != "m4") continue;
    const RunRecord kernel =
        Contributed(TestRecord("m4", "gpu", run.record.size, "x"), "mine");
    LadderRun& rung = run.record.ladder.emplace_back();
    rung.variant = "mine";
    rung.relative_error = 3e-7;
    rung.convolutions = kernel.convolutions;
    rung.correct = kernel.correct;
    run.record.variants["mine"] = kernel.variants.at("mine");
  }
  return records;
}

std::string ChartOf(const Records& records, const std::string& milestone,
                    const std::string& name) {
  const auto files = ChartFiles(Made(records, For(milestone)).document);
  const auto found = files.find(name + ".svg");
  return found == files.end() ? "no chart " + name : found->second;
}

TEST(ContributedSubmission, TheKernelLeadsEveryTable) {
  const Records records = WithKernel();
  EXPECT_THAT(Markdown(records, "m2"),
              HasSubstr("| Kernel | mine, mini-dnn, prolog and epilog: right "
                        "on 30 of 30 problems, class fp32, source mine |"));
  EXPECT_THAT(Section(Markdown(records, "m2"), "2.1 Whole"),
              ContainsRegex("\\| \\*\\*mine\\*\\* \\(contributed\\) \\| "
                            "1,000[^\n]*\n\\| `naive` \\|"));
  EXPECT_THAT(Section(Markdown(records, "m2"), "2.2 Op times"),
              ContainsRegex("\\*\\*mine\\*\\* [^\n]*\n\\| `naive` \\|"));
  EXPECT_THAT(Section(Markdown(records, "m3"), "3.1 Correctness"),
              ContainsRegex("\\| 100 \\| \\*\\*mine[^\n]*\n\\| 1,000 \\| "
                            "\\*\\*mine[^\n]*\n\\| 10,000 \\| \\*\\*mine[^\n]*"
                            "\n\\| 100 \\| `naive`"));
  EXPECT_THAT(Section(Markdown(records, "m4"), "4.1 The ladder"),
              ContainsRegex("\\| \\*\\*mine\\*\\* \\(contributed\\) "
                            "\\| fp32 \\| 9.000 \\+ 27.000 \\| 36.000 \\| "
                            "1.11× \\| 1.11×[^\n]*\n\\| `naive`, the base"));
  EXPECT_THAT(Section(Markdown(records, "m4"), "Appendix A"),
              ContainsRegex("\\| – \\| \\*\\*mine[^\n]*\n\\| 1 \\| `naive`"));
  const std::string last = Markdown(records, "final");
  EXPECT_THAT(Section(last, "5.2 Final"),
              ContainsRegex("\\*\\*mine\\*\\*(.|\n)*\\| sum \\|(.|\n)*"
                            "`fast`(.|\n)*\\| sum \\|"));
  // The submission's entry is not our fastest rung.
  EXPECT_THAT(Section(last, "5.4 Ranking"), Not(HasSubstr("fast`")));
  EXPECT_THAT(Section(last, "5.3 Comparison"),
              ContainsRegex("\\| 1 \\| \\*\\*mine(.|\n)*\\| 1 \\| `fast`"));
}

TEST(ContributedSubmission, ItsSectionPlacesItAmongTheRungs) {
  const std::string markdown = Markdown(WithKernel(), "m4");
  EXPECT_THAT(
      Section(markdown, "4.2 Contributed kernel: mine"),
      AllOf(HasSubstr("The judge calls it right on 30 of 30 problems"),
            HasSubstr("36.000 ms: faster than 1 of the 2 rungs of class fp32"),
            HasSubstr("| 10,000 | 9.000 + 27.000 | 36.000 | 10.000 + 30.000 | "
                      "40.000 | 1.11× | beyond the spread | 9,000 |"),
            HasSubstr("### What does the profiler show?\n\nRead by ncu on the "
                      "layer with the most work, with at most 500 images:\n\n"
                      "```\nkernel_of_mine: memory 81 %\n```"),
            HasSubstr("### Why did it, or why not?\n\nNot answered yet"),
            Not(HasSubstr("Not measured"))));
  // Our rungs are discussed where they are asked for.
  EXPECT_THAT(markdown, Not(HasSubstr("Optimization: fast")));
  SubmissionOptions options = For("m4");
  options.optimizations = {"fast"};
  EXPECT_THAT(Headings(Made(WithKernel(), options).document)[3],
              "4.3 Optimization: fast");
}

TEST(ContributedSubmission, SeveralKernelsHaveAllTheirPlaces) {
  Records records = WithKernel();
  const auto add = [&](const char* milestone, const char* device,
                       int64_t size) {
    records.runs.push_back(
        {"runs/other.json",
         Contributed(TestRecord(milestone, device, size, "x"), "another")});
  };
  add("m2", "cpu", 1000);
  for (const int64_t size : {100, 1000, 10000}) add("m3", "gpu", size);
  add("final", "gpu", 10000);
  for (const char* milestone : {"m2", "m3", "final"}) {
    const std::string markdown = Markdown(records, milestone);
    EXPECT_THAT(Section(markdown, "Summary"),
                ContainsRegex("\n- \\*\\*another\\*\\*[^\n]*\n- "
                              "\\*\\*mine\\*\\*"))
        << milestone;
  }
  EXPECT_THAT(Section(Markdown(records, "m2"), "2.1 Whole"),
              ContainsRegex("\\*\\*another[^\n]*\n[^\n]*\\*\\*mine[^\n]*\n"
                            "\\| `naive`"));
  EXPECT_THAT(
      Section(Markdown(records, "m3"), "3.1 Correctness"),
      AllOf(HasSubstr("| 10,000 | **another**"),
            HasSubstr("| 10,000 | **mine**"), HasSubstr("| 10,000 | `naive`")));
  EXPECT_THAT(
      ChartOf(records, "m3", "m3-op-times"),
      AllOf(HasSubstr("another, conv. 2"), HasSubstr("naive, conv. 2")));
  EXPECT_THAT(Section(Markdown(records, "final"), "5.2 Final"),
              AllOf(HasSubstr("**another**"), HasSubstr("**mine**")));
}

TEST(ContributedSubmission, AWrongKernelHasItsReason) {
  Records records = WithKernel();
  for (NamedRecord& run : records.runs) {
    for (LadderRun& rung : run.record.ladder) {
      if (rung.variant != "mine") continue;
      rung.failure = "FAILED: wrong";
      rung.convolutions.clear();
      VerificationRecord& found = *run.record.variants["mine"].verification;
      found.outcome = "wrong";
      found.reason = {"m = 0, h = 65: got 0, expected 1.5"};
    }
  }
  EXPECT_THAT(Section(Markdown(records, "m4"), "4.2 Contributed kernel"),
              AllOf(HasSubstr("The judge calls it wrong"),
                    HasSubstr("```\nm = 0, h = 65: got 0, expected 1.5\n```"),
                    HasSubstr("**It was not timed:** FAILED: wrong")));
}

TEST(ContributedSubmission, AKernelWithoutTimesIsTold) {
  Records records = CompleteRecords();
  for (const char* milestone : {"m2", "m3", "final"}) {
    RunRecord run =
        Contributed(TestRecord(milestone, "gpu", 1000, "x"), "mine");
    run.convolutions.clear();
    VerificationRecord& found = *run.variants["mine"].verification;
    found.outcome = "crashed";
    found.reason = {"B=8: SIGSEGV"};
    run.output = {"FAILED: SIGSEGV"};
    records.failed.push_back({"runs/f.json", run});
  }
  constexpr char kTold[] =
      "**mine** (contributed, crashed) has no op times of 1,000 images. The "
      "judge calls it crashed: B=8: SIGSEGV.";
  for (const char* milestone : {"m2", "m3", "final"}) {
    const std::string markdown = Markdown(records, milestone);
    EXPECT_THAT(markdown.substr(0, markdown.find("| Network |")),
                AllOf(HasSubstr(kTold), HasSubstr("| Kernel | mine, ")))
        << milestone;
  }
  EXPECT_THAT(Section(Markdown(records, "m2"), "2.1 Whole"), HasSubstr(kTold));
  EXPECT_THAT(Section(Markdown(records, "m3"), "3.1 Corr"), HasSubstr(kTold));
  EXPECT_THAT(Markdown(records, "m3"), HasSubstr("```\nFAILED: SIGSEGV\n"));
}

TEST(ContributedSubmission, ChartsShowItInItsOwnColour) {
  const Records records = WithKernel();
  EXPECT_THAT(ChartOf(records, "m4", "ladder"),
              AllOf(HasSubstr(">contributed, class fp32</text>"),
                    HasSubstr("font-weight=\"bold\">mine</text>"),
                    HasSubstr("<title>mine: 9.000 + 27.000 = 36.000 ms")));
  EXPECT_THAT(ChartOf(records, "m4", "roofline"),
              HasSubstr("<title>mine, convolution 1: 2.90 TFLOP/s"));
  EXPECT_THAT(ChartOf(records, "m3", "m3-op-times"),
              AllOf(HasSubstr("<title>mine, conv. 1: 0.09, "),
                    HasSubstr("<title>naive, conv. 1: 0.1, ")));
  EXPECT_THAT(ChartOf(CompleteRecords(), "m4", "ladder"),
              Not(HasSubstr("contributed")));
}

}  // namespace
}  // namespace convlab
