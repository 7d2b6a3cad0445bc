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

Chart ChartOf(const Records& records, const std::string& name) {
  for (Chart& chart : ChartsOf(Made(records, For("final")).document)) {
    if (chart.name == name) return chart;
  }
  return {};
}

TEST(ContributedSubmission, TheKernelLeadsEveryTable) {
  const std::string markdown = Markdown(WithKernel(), "final");
  EXPECT_THAT(markdown,
              HasSubstr("| Kernel | mine, mini-dnn, prolog and epilog: right "
                        "on 30 of 30 problems, class fp32, source mine |"));
  EXPECT_THAT(Section(markdown, "2.1 Whole"),
              ContainsRegex("\\| \\*\\*mine\\*\\* \\(contributed\\) \\| "
                            "1,000[^\n]*\n\\| `naive` \\|"));
  EXPECT_THAT(Section(markdown, "2.2 Op times"),
              ContainsRegex("\\*\\*mine\\*\\* [^\n]*\n\\| `naive` \\|"));
  EXPECT_THAT(Section(markdown, "3.1 Correctness"),
              ContainsRegex("\\| 100 \\| \\*\\*mine[^\n]*\n\\| 1,000 \\| "
                            "\\*\\*mine[^\n]*\n\\| 10,000 \\| \\*\\*mine[^\n]*"
                            "\n\\| 100 \\| `naive`"));
  EXPECT_THAT(Section(markdown, "4.1 The ladder"),
              ContainsRegex("\\| – \\| \\*\\*mine\\*\\* \\(contributed\\) "
                            "\\| 9.000 \\+ 27.000 \\| 36.000 \\| – \\| 1.11×"
                            "[^\n]*\n\\| 1 \\| `naive`"));
  EXPECT_THAT(Section(markdown, "5.1 Final"),
              ContainsRegex("\\*\\*mine\\*\\*(.|\n)*\\| sum \\|(.|\n)*"
                            "`fast`(.|\n)*\\| sum \\|"));
  // The submission's entry is not our fastest rung.
  EXPECT_THAT(Section(markdown, "5.3 Ranking"), Not(HasSubstr("fast`")));
  EXPECT_THAT(Section(markdown, "5.2 Comparison"),
              ContainsRegex("\\| 1 \\| \\*\\*mine(.|\n)*\\| 1 \\| `fast`"));
}

TEST(ContributedSubmission, ItsSectionPlacesItAmongTheRungs) {
  const std::string section =
      Section(Markdown(WithKernel(), "m4"), "4.2 Contributed kernel: mine");
  EXPECT_THAT(
      section,
      AllOf(HasSubstr("The judge calls it right on 30 of 30 problems"),
            HasSubstr("36.000 ms: faster than 1 of the 2 rungs of class fp32"),
            HasSubstr("| `naive`, the first rung | fp32 | 40.000 | 1.11× | "
                      "beyond the spread |"),
            HasSubstr("| `fast`, the fastest rung of its class | fp32 | "
                      "10.000 | 0.28× |"),
            HasSubstr("| cuDNN 9, kernel time | fp32 | 4.000 | 0.11× | – |"),
            HasSubstr("| 10,000 | 9.000 + 27.000 | 36.000 |"),
            Not(HasSubstr("Not measured"))));
  EXPECT_THAT(Markdown(WithKernel(), "m4"), HasSubstr("4.3 Rung 1: naive"));
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
                    HasSubstr("**It was not timed.** FAILED: wrong")));
}

TEST(ContributedSubmission, ChartsShowItInItsOwnColour) {
  const Records records = WithKernel();
  const Chart ladder = ChartOf(records, "ladder");
  EXPECT_THAT(ladder.data, HasSubstr("\n\"mine\" 36.0000\n\"naive\" 40.0000"));
  EXPECT_THAT(ladder.script, AllOf(HasSubstr("($0<1?$2:NaN)"),
                                   HasSubstr("title 'contributed'")));
  EXPECT_THAT(ChartOf(records, "roofline").data,
              HasSubstr("\n\n\n11.429 2.9040 \"mine\"\n"));
  EXPECT_THAT(ChartOf(records, "m3-op-times").data,
              AllOf(HasSubstr("# convolution 1, contributed\n100 0.090000"),
                    HasSubstr("# convolution 1\n100 0.100000")));
  EXPECT_THAT(ChartOf(CompleteRecords(), "ladder").script,
              Not(HasSubstr("contributed")));
}

}  // namespace
}  // namespace convlab
