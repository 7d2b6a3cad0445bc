// The content of each milestone's deliverables.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/deliverables/submission_testing.h"
#include "reports/document/writers.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Milestones, ListsOfKernelsAndApiCalls) {
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

TEST(Milestones, ExplanationHoldsTheRunsNumbers) {
  EXPECT_THAT(
      Section(Markdown(CompleteRecords(), "m1"), "1.3 How"),
      AllOf(HasSubstr("at work for 100.00ms in 4 kernels, copies and memsets"),
            HasSubstr("18 API calls took 200.00ms"),
            HasSubstr("the longest call of `cudaFree` took 128.00ms, the 10 "
                      "other calls together 2.0000ms"),
            HasSubstr("from 0.0 to 128.0 ms, before anything ran on the GPU "
                      "(the first copy or kernel began at 129.0 ms)"),
            HasSubstr("leads the list of API calls")));
  EXPECT_THAT(Section(Markdown(CompleteRecords(), "m1"), "Appendix A"),
              HasSubstr("| kernel | `NaiveKernel(float*)` | 149.000 | "
                        "209.000 | 60.000 |"));
}

TEST(Milestones, WithoutAContextCallNothingIsClaimed) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    if (!run.record.profile) continue;
    run.record.profile->api_calls.entries[0].max_ns = 5 * kMs;
  }
  EXPECT_THAT(Section(Markdown(records, "m1"), "1.3 How"),
              AllOf(HasSubstr("cannot be separated from the rest"),
                    Not(HasSubstr("created the context"))));
}

TEST(Milestones, RunsAreVerbatimWithTheirTimes) {
  const std::string markdown = Markdown(CompleteRecords(), "m1");
  EXPECT_THAT(
      Section(markdown, "1.4 Output"),
      AllOf(HasSubstr("`bazel run //milestones:m1 -- fa19 10000` on A CPU, "
                      "up to 16 threads"),
            HasSubstr("```\nNew Inference\nOp Time: 0.001000\nran m1 on the "
                      "cpu\n```"),
            HasSubstr("**1.500 s**")));
  EXPECT_THAT(Section(markdown, "1.5 Output"), HasSubstr("ran m1 on the gpu"));
}

TEST(Milestones, ThreeSizesOfTheUsersOwnAreEnough) {
  Records records = CompleteRecords();
  const auto take = [&](int64_t from, int64_t to) {
    for (NamedRecord& run : records.runs) {
      if (run.record.size != from || run.record.device != "gpu") continue;
      run.record = run.record.ladder.empty()
                       ? TestRecord(run.record.milestone, "gpu", to, "naive")
                       : TestLadder(to);
    }
  };
  take(100, 20);
  for (const char* milestone : {"m3", "m4"}) {
    const std::string markdown = Markdown(records, milestone);
    EXPECT_THAT(markdown, AllOf(HasSubstr("\n| 20 | "),
                                Not(HasSubstr("with 100 images"))))
        << milestone;
  }
  take(20, 1000);
  for (const char* milestone : {"m3", "m4"}) {
    EXPECT_THAT(Markdown(records, milestone), HasSubstr("with 100 images"))
        << milestone;
  }
}

TEST(Milestones, LinesOverSizesAreOfOneVariant) {
  Records records = CompleteRecords();
  records.runs.push_back({"a", TestRecord("m2", "cpu", 100, "naive")});
  records.runs.push_back({"b", TestRecord("m2", "cpu", 100, "fast")});
  const auto lines = [&] {
    const auto files = ChartFiles(Made(records, For("m2")).document);
    const auto found = files.find("m2-op-times.svg");
    return found == files.end() ? "no chart" : found->second;
  };
  EXPECT_THAT(lines(), AllOf(HasSubstr(">m2, fa19, naive</text>"),
                             HasSubstr("<title>convolution 1: 0.1, images "
                                       "(logarithmic): 100</title>")));
  records.runs.push_back({"c", TestRecord("m2", "cpu", 10000, "fast")});
  EXPECT_THAT(lines(), AllOf(HasSubstr(">m2, fa19, fast</text>"),
                             HasSubstr("<title>convolution 1: 10, images "
                                       "(logarithmic): 10,000</title>")));
  records.runs.push_back({"d", TestRecord("m2", "cpu", 20000, "alone")});
  EXPECT_EQ(lines(), "no chart");
}

TEST(Milestones, ALadderOfTheCpuStandsInTheAppendix) {
  Records records = CompleteRecords();
  RunRecord ladder = TestLadder(1000);
  ladder.device = "cpu";
  ladder.gpu = {};
  ladder.peers.clear();
  ladder.host = records.runs[0].record.host;
  records.runs.push_back({"l", ladder});
  EXPECT_THAT(Section(Markdown(records, "m2"), "Appendix A: All rungs"),
              AllOf(HasSubstr("| `fast` | 0.250 + 0.750 | 1.000 | 4.00× |"),
                    HasSubstr("charts/all-rungs.svg")));
  EXPECT_THAT(Markdown(records, "m2"), HasSubstr("Appendix B: What the runs"));
}

TEST(Milestones, FinalSaysWhyItsOwnRunDoesNotCount) {
  Records records = CompleteRecords();
  for (NamedRecord& run : records.runs) {
    if (run.record.milestone == "m3") run.record = Verified(run.record);
    if (run.record.milestone == "final") run.record.correct = 1;
  }
  EXPECT_THAT(
      Section(Markdown(records, "final"), "5.4 Ranking"),
      AllOf(HasSubstr("**Not counted:** `final: fast`: "),
            HasSubstr("To run it again: `bazel run //milestones:final -- fa19 "
                      "--device gpu --repeat 5 --record ")));
}

// Variants of one size are a ladder of the CPU.
TEST(Milestones, TheCpusLadderIsTheSummarysChart) {
  Records records = CompleteRecords();
  RunRecord fast = TestRecord("m2", "cpu", 1000, "fast");
  for (ConvolutionRecord& convolution : fast.convolutions) {
    for (int64_t& ns : convolution.op_time_ns) ns /= 2;
  }
  records.runs.push_back({"b", fast});
  const Submission made = Made(records, For("m2"));
  const auto files = ChartFiles(made.document);
  ASSERT_EQ(files.count("m2-ladder.svg"), 1);
  EXPECT_THAT(files.at("m2-ladder.svg"), HasSubstr(">2 ms, 2.00×</text>"));
  EXPECT_THAT(WriteMarkdown(made.document),
              HasSubstr("- `fast`: the op times of 1,000 images add up to "
                        "**2.000 ms**"));
}

TEST(Milestones, CpuTimes) {
  const std::string markdown = Markdown(CompleteRecords(), "m2");
  EXPECT_THAT(
      Section(markdown, "2.1 Whole"),
      HasSubstr(
          "| `naive` | 1,000 | up to 16 threads | 1.500 | 0.25 | 0.00 | – | "
          "900 |"));
  EXPECT_THAT(Section(markdown, "2.2 Op times"),
              HasSubstr("| `naive` | 1,000 | 3 | 1.000 | 3.000 | 4.000 | "
                        "3681.0 |"));
}

TEST(Milestones, ThreeSizesAndTheTwoCalls) {
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

TEST(Milestones, FinalTimesBesideTheLibrary) {
  const std::string markdown = Markdown(CompleteRecords(), "final");
  EXPECT_THAT(
      Section(markdown, "5.2 Final"),
      HasSubstr("| 1: 1 × 70 × 70, 12 filters of 5 × 5 | `fast` | "
                "10.000 | 9.950 – 10.050 | 9.900 | 3 | 2.61 | 4.8 % |"));
  EXPECT_THAT(Section(markdown, "5.3 Comparison"),
              AllOf(HasSubstr("| 1 | `fast` | fp32 | 9.000 | cuDNN 9, GEMM "
                              "NCHW, the best of 12 plans, fp32 | 2.000 | "
                              "0.22× |"),
                    HasSubstr("| sum |  |  | 36.000 |  | 4.000 | 0.11× |")));
  EXPECT_THAT(Section(markdown, "5.5 References"), HasSubstr("Fashion-MNIST"));
}

}  // namespace
}  // namespace convlab
