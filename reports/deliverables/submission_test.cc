#include "reports/deliverables/submission.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

TEST(Submission, DeliverablesAccumulateInTheCoursesOrder) {
  const std::vector<std::string> all = {
      "1.1 Kernels that together take more than 90 % of the GPU's time",
      "1.2 CUDA API calls that together take more than 90 % of the API's time",
      "1.3 How kernels differ from API calls",
      "1.4 Output and run time of the baseline on the CPU",
      "1.5 Output and run time of the baseline on the GPU",
      "2.1 Whole program execution time",
      "2.2 Op times on the CPU",
      "3.1 Correctness and timing with three data set sizes",
      "3.2 The profile, with the calls of the convolution's kernel",
      "4.1 The ladder",
      "4.2 Rung 1: naive",
      "4.3 Rung 2: fast",
      "4.4 Rung 3: slow",
      "4.5 Rung 4: odd",
      "5.1 Final op times",
      "5.2 Comparison with cuDNN",
      "5.3 Ranking",
      "5.4 References"};
  const Records records = CompleteRecords();
  size_t count = 0;
  for (const auto& [milestone, headings] :
       {std::pair("m1", 5), {"m2", 7}, {"m3", 9}, {"m4", 14}, {"final", 18}}) {
    count = headings;
    EXPECT_EQ(Headings(Made(records, For(milestone)).document),
              std::vector<std::string>(all.begin(), all.begin() + headings));
  }
  EXPECT_EQ(count, all.size());
}

TEST(Submission, CompleteRecordsLackNothingButOthers) {
  const Submission alone = Made(CompleteRecords(), For("final"));
  EXPECT_THAT(alone.incomplete, IsEmpty());
  EXPECT_THAT(Section(WriteMarkdown(alone.document, {}), "5.3 Ranking"),
              AllOf(HasSubstr("entry in class fp32 is its fastest correct run, "
                              "`m4: fast`, with **10.000 ms**"),
                    HasSubstr("in class fp16"),
                    HasSubstr("9,000 of 10,000 images right"),
                    HasSubstr("all participants' records")));
  SubmissionOptions options = For("final");
  options.participants = {{"others", CompleteRecords()}};
  const Submission ranked = Made(CompleteRecords(), options);
  EXPECT_THAT(ranked.incomplete, IsEmpty());
  EXPECT_THAT(WriteMarkdown(ranked.document, {}),
              HasSubstr("| 1 | others | 10.000 | 9.950 – 10.050 | 3 | "
                        "`m4: fast` | fp32 |"));
}

TEST(Submission, ListsOfKernelsAndApiCalls) {
  const std::string markdown = Markdown(CompleteRecords(), "m1");
  const std::string kernels = Section(markdown, "1.1 Kernels");
  EXPECT_THAT(
      kernels,
      AllOf(HasSubstr("2 of 3 kernels, copies and memsets together take more "
                      "than 90 % of 100.00ms"),
            HasSubstr("| `NaiveKernel(float*)` | 80.00 | 80.00 | 80.000ms | 2 "
                      "| 40.000ms | 60.000ms |\n"),
            HasSubstr("| `[CUDA memcpy HtoD]` | 15.00 | 95.00 | 15.000ms | 1 | "
                      "15.000ms | 15.000ms |\n"),
            HasSubstr("| 1 other | 5.00 | 100.00 | – | – | – | – |\n"),
            Not(HasSubstr("SoftmaxKernel"))));
  EXPECT_THAT(
      Section(markdown, "1.2 CUDA API"),
      AllOf(HasSubstr("| `cudaFree` | 65.00 | 65.00 | 130.00ms | 11 | "),
            HasSubstr(" | 30.00 | 95.00 | 60.000ms | 4 | ")));
}

TEST(Submission, ExplanationHoldsTheRunsNumbers) {
  EXPECT_THAT(
      Section(Markdown(CompleteRecords(), "m1"), "1.3 How"),
      AllOf(HasSubstr("at work for 100.00ms in 4 kernels, copies and memsets"),
            HasSubstr("18 API calls took 200.00ms"),
            HasSubstr("the longest call of `cudaFree` took 128.00ms, the 10 "
                      "other calls together 2.0000ms"),
            HasSubstr("from 0.0 to 128.0 ms, before anything ran on the GPU "
                      "(the first copy or kernel began at 129.0 ms)"),
            HasSubstr("leads the list of API calls"),
            HasSubstr("| kernel | `NaiveKernel(float*)` | 149.000 | "
                      "209.000 | 60.000 |")));
}

TEST(Submission, WithoutAContextCallNothingIsClaimed) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    if (!run.record.profile) continue;
    run.record.profile->api_calls.entries[0].max_ns = 5 * kMs;
  }
  EXPECT_THAT(Section(Markdown(records, "m1"), "1.3 How"),
              AllOf(HasSubstr("cannot be separated from the rest"),
                    Not(HasSubstr("created the context"))));
}

TEST(Submission, RunsAreVerbatimWithTheirTimes) {
  const std::string markdown = Markdown(CompleteRecords(), "m1");
  EXPECT_THAT(
      Section(markdown, "1.4 Output"),
      AllOf(HasSubstr("`m1 fa19 10000` on A CPU, 16 threads"),
            HasSubstr("```\nNew Inference\nOp Time: 0.001000\nran m1 on the "
                      "cpu\n```"),
            HasSubstr("**1.500 s**")));
  EXPECT_THAT(Section(markdown, "1.5 Output"), HasSubstr("ran m1 on the gpu"));
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
              HasSubstr("`convlab m1 --record 'a b.json' --profile=p.json "
                        "--data 'images/it'\\''s'` on A CPU"));
  EXPECT_THAT(Section(markdown, "1.5 Output"),
              HasSubstr("--record 'my runs/m1-fa19-gpu.json'`"));
}

TEST(Submission, TheTraceBesideTheRecordIsItsTimeline) {
  Records records = CompleteRecords();
  const std::string trace = records.traces["runs/m.trace.json"];
  records.traces["other/m.trace.json"] = R"json({"traceEvents":[
{"ph":"X","name":"other","cat":"kernel","ts":0,"dur":1}]})json";
  EXPECT_THAT(Section(Markdown(records, "m1"), "1.3 How"),
              AllOf(HasSubstr("149.000"), Not(HasSubstr("`other`"))));
  // Of two traces that are not beside a record, neither is used.
  records.traces.erase("runs/m.trace.json");
  records.traces["more/m.trace.json"] = trace;
  EXPECT_THAT(Section(Markdown(records, "m1"), "1.3 How"),
              HasSubstr("is not among the records"));
}

TEST(Submission, LinesOverSizesAreOfOneVariant) {
  Records records = CompleteRecords();
  records.runs.push_back({"a", TestRecord("m2", "cpu", 100, "naive")});
  records.runs.push_back({"b", TestRecord("m2", "cpu", 100, "fast")});
  const auto lines = [&] {
    std::string data = "no chart";
    for (const Chart& chart : ChartsOf(Made(records, For("m2")).document)) {
      if (chart.name == "m2-op-times") data = chart.data;
    }
    return data;
  };
  EXPECT_THAT(lines(),
              HasSubstr("# convolution 1\n100 0.100000\n1000 1.000000"));
  records.runs.push_back({"c", TestRecord("m2", "cpu", 10000, "fast")});
  EXPECT_THAT(lines(), HasSubstr("# convolution 1\n100 0.100000\n10000 10."));
  records.runs.push_back({"d", TestRecord("m2", "cpu", 20000, "alone")});
  EXPECT_EQ(lines(), "no chart");
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

TEST(Submission, CpuTimes) {
  const std::string markdown = Markdown(CompleteRecords(), "m2");
  EXPECT_THAT(Section(markdown, "2.1 Whole"),
              HasSubstr("| `naive` | 1,000 | 16 | 1.500 | 0.25 | 0.00 | – | "
                        "900 (90.00 %) |"));
  EXPECT_THAT(Section(markdown, "2.2 Op times"),
              HasSubstr("| `naive` | 1,000 | 3 | 1.000 | 3.000 | 4.000 | "
                        "3681.0 |"));
}

TEST(Submission, ThreeSizesAndTheTwoCalls) {
  const std::string markdown = Markdown(CompleteRecords(), "m3");
  EXPECT_THAT(
      Section(markdown, "3.1 Correctness"),
      AllOf(HasSubstr("| 100 | `naive` | 0.9 | 90 | 90 | 0.100 | 0.300 | 0.400 "
                      "| 1.500 |"),
            HasSubstr("| 10,000 | `naive` | 0.9 | 9,000 | 9,000 | 10.000 | "
                      "30.000 | 40.000 |"),
            HasSubstr("every run has that number")));
  EXPECT_THAT(
      Section(markdown, "3.2 The profile"),
      HasSubstr("The convolution's kernel `NaiveKernel(float*)` is in the "
                "profile with 2 calls, one for each convolution of the "
                "network; the shortest took 20.000ms, the longest 60.000ms."));
}

TEST(Submission, WrongAnswersAreNoEntry) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    run.record.correct = 10;
    for (LadderRun& rung : run.record.ladder) rung.correct = 10;
  }
  const Submission made = Made(records, For("final"));
  EXPECT_THAT(made.incomplete, ElementsAre("5.3 Ranking"));
  EXPECT_THAT(Section(WriteMarkdown(made.document, {}), "5.3 Ranking"),
              HasSubstr("\n- `m4: naive and 1 other`: 10 correct answers, "
                        "expected 9,000\n"));
}

TEST(Submission, WrongAnswersAreSaid) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    if (run.record.milestone == "m3") run.record.correct = 10;
  }
  EXPECT_THAT(Section(Markdown(records, "m3"), "3.1 Correctness"),
              HasSubstr("Not every run has it"));
}

TEST(Submission, FinalTimesBesideTheLibrary) {
  const std::string markdown = Markdown(CompleteRecords(), "final");
  EXPECT_THAT(
      Section(markdown, "5.1 Final"),
      HasSubstr("| 1: 1 × 70 × 70, 12 filters of 5 × 5 | `fast` | "
                "10.000 | 9.950 – 10.050 | 9.900 | 3 | 2.61 | 4.8 % |"));
  EXPECT_THAT(Section(markdown, "5.2 Comparison"),
              AllOf(HasSubstr("| 1 | `fast` | fp32 | 9.000 | cuDNN 9, GEMM "
                              "NCHW, the best of 12 plans, fp32 | 2.000 | "
                              "0.22× |"),
                    HasSubstr("| sum |  |  | 36.000 |  | 4.000 | 0.11× |")));
  EXPECT_THAT(Section(markdown, "5.4 References"), HasSubstr("Fashion-MNIST"));
}

TEST(Submission, WhatIsMissingNamesItsCommand) {
  const Submission submission = Made(
      Without([](const RunRecord& record) { return record.milestone != "m2"; }),
      For("final"));
  const std::string markdown = WriteMarkdown(submission.document, {});
  EXPECT_THAT(submission.incomplete, SizeIs(11));
  for (const char* command :
       {"m1 -- fa19 --device cpu --record runs/m1-fa19-cpu.json",
        "m1 -- fa19 --device gpu --record runs/m1-fa19-gpu.json",
        "m1 -- fa19 --device gpu --profile runs/m1-fa19.trace.json --record "
        "runs/m1-fa19-traced.json",
        "m3 -- fa19 100 --record runs/m3-fa19-100.json",
        "m3 -- fa19 10000 --record runs/m3-fa19-10000.json",
        "m3 -- fa19 --device gpu --profile runs/m3-fa19.trace.json --record "
        "runs/m3-fa19-traced.json",
        "m4 -- fa19 10000 --record runs/m4-fa19-10000.json",
        "final -- fa19 --device gpu --repeat 5 --record "
        "runs/final-fa19.json"}) {
    EXPECT_THAT(markdown,
                HasSubstr(absl::StrCat("`bazel run //milestones:", command)));
  }
  EXPECT_THAT(Markdown(Without([](const RunRecord& record) {
                         return record.milestone == "m4" && record.size == 100;
                       }),
                       "m4"),
              HasSubstr("m4 -- fa19 100 --record runs/m4-fa19-100.json"));
  Records uncounted = CompleteRecords();
  uncounted.counters.erase("slow");
  EXPECT_THAT(Section(Markdown(uncounted, "m4"), "4.4 Rung 3"),
              HasSubstr("tools/measure_ncu.sh BUNDLE runs/ncu-fa19 fa19 slow"));
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
  EXPECT_THAT(WriteHtml(document, {}),
              AllOf(HasSubstr("&lt;script&gt;|`x`"), Not(HasSubstr("<script")),
                    HasSubstr("A|da, &lt;b&gt;")));
  EXPECT_THAT(WriteMarkdown(document, {}),
              HasSubstr("| Team | &lt;script\\>\\|\\`x\\` |"));
}

}  // namespace
}  // namespace convlab
