#include "reports/deliverables/submission.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/deliverables/deliverable.h"
#include "reports/deliverables/submission_testing.h"
#include "reports/document/writers.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Records Without(bool (*unwanted)(const RunRecord&)) {
  Records records = CompleteRecords();
  records.runs.erase(std::remove_if(records.runs.begin(), records.runs.end(),
                                    [&](const NamedRecord& run) {
                                      return unwanted(run.record);
                                    }),
                     records.runs.end());
  return records;
}

TEST(Submission, HoldsItsOwnDeliverablesInTheCoursesOrder) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> all = {
      {"m1",
       {"Summary",
        "1.1 Kernels that together take more than 90 % of the GPU's time",
        "1.2 CUDA API calls that together take more than 90 % of the API's "
        "time",
        "1.3 How kernels differ from API calls",
        "1.4 Output and run time of the baseline on the CPU",
        "1.5 Output and run time of the baseline on the GPU",
        "Appendix A: The longest events of the timeline"}},
      {"m2",
       {"Summary", "2.1 Whole program execution time",
        "2.2 Op times on the CPU", "Appendix A: What the runs printed"}},
      {"m3",
       {"Summary", "3.1 Correctness and timing with three data set sizes",
        "3.2 The profile, with the calls of the convolution's kernel",
        "Appendix A: What the runs printed",
        "Appendix B: The longest events of the timeline"}},
      {"m4",
       {"Summary", "4.1 The ladder", "4.2 Optimization: fast",
        "Appendix A: All rungs", "Appendix B: The roofline's numbers",
        "Appendix C: The hardware counters"}},
      {"final",
       {"Summary", "5.1 Optimization: fast", "5.2 Final op times",
        "5.3 Comparison with cuDNN", "5.4 Ranking", "5.5 References",
        "Appendix A: All rungs", "Appendix B: The hardware counters",
        "Appendix C: What the runs printed",
        "Appendix D: The longest events of the timeline"}}};
  const Records records = CompleteRecords();
  for (const auto& [milestone, headings] : all) {
    SubmissionOptions options = For(milestone);
    EXPECT_EQ(Headings(Made(records, options).document), headings);
    options.has_appendix = false;
    for (const std::string& heading :
         Headings(Made(records, options).document)) {
      EXPECT_THAT(heading, Not(HasSubstr("Appendix")));
    }
    EXPECT_THAT(
        WriteMarkdown(Made(records, options).document),
        AllOf(Not(HasSubstr("(#all-rungs)")), Not(HasSubstr("(#counters)")),
              Not(HasSubstr("(#events)"))));
  }
}

// Every link within the document has its target.
TEST(Submission, LinksLeadSomewhere) {
  for (const char* milestone : {"m1", "m2", "m3", "m4", "final"}) {
    const std::string html =
        WriteHtml(Made(CompleteRecords(), For(milestone)).document);
    size_t links = 0;
    for (size_t at = html.find("href=\"#"); at != std::string::npos;
         at = html.find("href=\"#", at + 1)) {
      const size_t begin = at + 7;
      const std::string id = html.substr(begin, html.find('"', begin) - begin);
      EXPECT_THAT(html, HasSubstr(absl::StrCat("id=\"", id, "\"")));
      ++links;
    }
    EXPECT_GT(links, 5);
  }
}

TEST(Submission, TheSummaryComesFirst) {
  const std::string summary =
      Section(Markdown(CompleteRecords(), "m3"), "Summary");
  EXPECT_THAT(
      summary,
      AllOf(HasSubstr("*Generated:* **What was asked.** The network with a "
                      "first convolution"),
            HasSubstr("- `naive`: the op times of 10,000 images add up to "
                      "**40.000 ms**, the whole program takes 1.500 s; 9,000 "
                      "are right."),
            HasSubstr("](charts/m3-time.svg)"),
            HasSubstr("- [3.1 Correctness and timing with three data set "
                      "sizes](#three-sizes)")));
}

TEST(Submission, ProseIsMarkedAndCanBeLeftOut) {
  SubmissionOptions options = For("m4");
  EXPECT_THAT(Markdown(CompleteRecords(), "m4"),
              HasSubstr("*Generated:* What rung 2 is."));
  options.has_prose = false;
  const std::string without =
      WriteMarkdown(Made(CompleteRecords(), options).document);
  EXPECT_THAT(without, AllOf(Not(HasSubstr("*Generated:*")),
                             Not(HasSubstr("What rung 2 is.")),
                             HasSubstr("### What is it?\n\nNot answered yet: "
                                       "`--notes`")));
}

TEST(Submission, CompleteRecordsLackNothingButOthers) {
  const Submission alone = Made(CompleteRecords(), For("final"));
  EXPECT_THAT(alone.incomplete, IsEmpty());
  EXPECT_THAT(Section(WriteMarkdown(alone.document), "5.4 Ranking"),
              AllOf(HasSubstr("entry in class fp32 is its fastest correct run, "
                              "`m4: fast`, with **10.000 ms**"),
                    HasSubstr("in class fp16"),
                    HasSubstr("9,000 of 10,000 images right"),
                    HasSubstr("all participants' records")));
  SubmissionOptions options = For("final");
  options.participants = {{"others", CompleteRecords()}};
  const Submission ranked = Made(CompleteRecords(), options);
  EXPECT_THAT(ranked.incomplete, IsEmpty());
  EXPECT_THAT(WriteMarkdown(ranked.document),
              HasSubstr("| 1 | others | 10.000 | 9.950 – 10.050 | 3 | "
                        "`m4: fast` | fp32 |"));
}

TEST(Submission, CommandsAreTheUsersWithoutTheMachinesFolders) {
  Records records = CompleteRecords();
  records.folder = "my runs";
  records.runs[0].record.command = {
      "/opt/bin/convlab",    "m1",     "--record",   "/tmp/x/a b.json",
      "--profile=/t/p.json", "--data", "images/it's"};
  records.runs.erase(records.runs.begin() + 1);
  const std::string markdown = Markdown(records, "m1");
  EXPECT_THAT(Section(markdown, "1.4 Output"),
              HasSubstr("`bazel run //milestones:m1 -- --profile=p.json --data "
                        "'images/it'\\''s'` on A CPU"));
  EXPECT_THAT(Section(markdown, "1.5 Output"),
              HasSubstr("--record 'my runs/m1-fa19-gpu.json'`"));
}

// What is quoted repeats the run, whatever the defaults are then.
TEST(Submission, CommandsNameTheVariantsThatRan) {
  RunRecord record = TestRecord("final", "gpu", 1000, "fast");
  record.command = {"final", "fa19", "--record=/x/a.json"};
  EXPECT_EQ(CommandText(record),
            "bazel run //milestones:final -- fa19 --variant fast");
  record.convolutions[1].variant = "slow";
  EXPECT_EQ(CommandText(record),
            "bazel run //milestones:final -- fa19 --variant fast,slow");
  record.command.push_back("--variant=fast");
  EXPECT_EQ(CommandText(record),
            "bazel run //milestones:final -- fa19 --variant=fast");
  EXPECT_EQ(CommandText(Contributed(record, "mine")),
            "bazel run //milestones:final -- fa19 --variant=fast");
}

TEST(Submission, TheTraceBesideTheRecordIsItsTimeline) {
  Records records = CompleteRecords();
  const std::string trace = records.traces["runs/m.trace.json"];
  records.traces["other/m.trace.json"] = R"json({"traceEvents":[
{"ph":"X","name":"other","cat":"kernel","ts":0,"dur":1}]})json";
  EXPECT_THAT(Section(Markdown(records, "m1"), "Appendix A"),
              AllOf(HasSubstr("149.000"), Not(HasSubstr("`other`"))));
  SubmissionOptions options = For("m1");
  options.out = "runs/report";
  EXPECT_THAT(WriteMarkdown(Made(records, options).document),
              HasSubstr("[m.trace.json](../m.trace.json)"));
  // Of two traces that are not beside a record, neither is used.
  records.traces.erase("runs/m.trace.json");
  records.traces["more/m.trace.json"] = trace;
  EXPECT_THAT(Section(Markdown(records, "m1"), "1.3 How"),
              HasSubstr("is not among the records"));
}

TEST(Submission, TracedTimesStandInNoTableOfTimes) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    if (!run.record.profile) continue;
    for (ConvolutionRecord& convolution : run.record.convolutions) {
      convolution.op_time_ns = {123456789};
    }
  }
  EXPECT_THAT(Markdown(records, "final"), Not(HasSubstr("123.4")));
}

TEST(Submission, WrongAnswersAreNoEntry) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    run.record.correct = 10;
    for (LadderRun& rung : run.record.ladder) rung.correct = 10;
  }
  const Submission made = Made(records, For("final"));
  EXPECT_THAT(made.incomplete, ElementsAre("5.4 Ranking"));
  EXPECT_THAT(Section(WriteMarkdown(made.document), "5.4 Ranking"),
              HasSubstr("\n- `m4: naive and 1 other`: 10 correct answers, "
                        "expected 9,000\n"));
}

TEST(Submission, WrongAnswersAreSaid) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    if (run.record.milestone == "m3") run.record.correct = 10;
  }
  EXPECT_THAT(Section(Markdown(records, "m3"), "3.1 Correctness"),
              AllOf(HasSubstr("Not every run has it"),
                    HasSubstr("| **✗ 10**, expected 9,000 | 9,000 |")));
}

TEST(Submission, WrongAnswersAreMarkedInEveryMilestone) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    run.record.correct = 10;
    for (LadderRun& rung : run.record.ladder) rung.correct = 10;
  }
  for (const char* milestone : {"m1", "m2", "m3", "m4", "final"}) {
    EXPECT_THAT(Markdown(records, milestone),
                AnyOf(HasSubstr("**✗ 10**, expected 9,000"),
                      HasSubstr("**✗ 10**, expected 900")))
        << milestone;
  }
  EXPECT_EQ(CountText(8999, 9000, {"fp32", "fp16"}).spans()[0].text,
            "8,999 (fp32: 9,000)");
  EXPECT_EQ(CountText(8999, 9000, {"fp32"}).spans()[0].text, "✗ 8,999");
}

TEST(Submission, WhatIsMissingNamesItsCommand) {
  const Records records =
      Without([](const RunRecord& record) { return record.milestone != "m2"; });
  const auto expect = [&](const char* milestone, size_t incomplete,
                          const std::vector<std::string>& commands) {
    const Submission submission = Made(records, For(milestone));
    EXPECT_THAT(submission.incomplete, SizeIs(incomplete)) << milestone;
    for (const std::string& command : commands) {
      EXPECT_THAT(WriteMarkdown(submission.document),
                  HasSubstr(absl::StrCat("`bazel run //milestones:", command)));
    }
  };
  expect("m1", 5,
         {"m1 -- fa19 --device cpu --record runs/m1-fa19-cpu.json",
          "m1 -- fa19 --device gpu --record runs/m1-fa19-gpu.json",
          "m1 -- fa19 --device gpu --profile runs/m1-fa19.trace.json --record "
          "runs/m1-fa19-traced.json"});
  expect("m3", 2,
         {"m3 -- fa19 100 --record runs/m3-fa19-100.json",
          "m3 -- fa19 10000 --record runs/m3-fa19-10000.json",
          "m3 -- fa19 --device gpu --profile runs/m3-fa19.trace.json --record "
          "runs/m3-fa19-traced.json"});
  expect("m4", 1, {"m4 -- fa19 10000 --record runs/m4-fa19-10000.json"});
  expect("final", 3,
         {"final -- fa19 --device gpu --repeat 5 --record "
          "runs/final-fa19.json"});
  EXPECT_THAT(Markdown(Without([](const RunRecord& record) {
                         return record.milestone == "m4" && record.size == 100;
                       }),
                       "m4"),
              HasSubstr("m4 -- fa19 100 --record runs/m4-fa19-100.json"));
  Records uncounted = CompleteRecords();
  uncounted.counters.erase("fast");
  EXPECT_THAT(Markdown(uncounted, "m4"),
              HasSubstr("tools/measure_ncu.sh BUNDLE runs/ncu-fa19 fa19 fast"));
}

TEST(Submission, BadInputIsRefused) {
  const auto error = [](const Records& records, const char* milestone) {
    return std::string(
        MakeSubmission(records, For(milestone)).status().message());
  };
  EXPECT_THAT(error(CompleteRecords(), "m5"),
              HasSubstr("unknown milestone 'm5'"));
  Records records = CompleteRecords();
  records.traces["runs/m.trace.json"] = "{\"traceEvents\": [";
  EXPECT_THAT(error(records, "m1"), HasSubstr("m.trace.json: not a Chrome"));
  records = CompleteRecords();
  records.runs[0].record.network = "sp19";
  EXPECT_THAT(error(records, "m1"), HasSubstr("one network"));
}

TEST(Submission, TeamIsTextInEveryFormat) {
  SubmissionOptions options = For("m1");
  options.team = "<script>|`x`";
  options.members = {"A|da", "<b>"};
  const Document document = Made(CompleteRecords(), options).document;
  EXPECT_THAT(WriteHtml(document),
              AllOf(HasSubstr("&lt;script&gt;|`x`"),
                    Not(HasSubstr("<script>|")), HasSubstr("A|da, &lt;b&gt;")));
  EXPECT_THAT(WriteMarkdown(document),
              HasSubstr("| Team | &lt;script\\>\\|\\`x\\` |"));
}

}  // namespace
}  // namespace convlab
