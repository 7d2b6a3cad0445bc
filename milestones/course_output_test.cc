#include "milestones/course_output.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "milestones/progress.h"

namespace convlab {
namespace {

TEST(CourseOutput, OpTimesAreSecondsWithSixDecimals) {
  EXPECT_EQ(OpTimeLine(21170000), "Op Time: 0.021170");
  EXPECT_EQ(OpTimeLine(61423456789), "Op Time: 61.423457");
  EXPECT_EQ(OpTimeLine(499), "Op Time: 0.000000");
}

TEST(CourseOutput, SharesArePrintedAsPythonPrintsThem) {
  EXPECT_EQ(CorrectnessLine(7653, 10000, "ece408"),
            "Correctness: 0.7653 Model: ece408");
  EXPECT_EQ(CorrectnessLine(84, 100, "sp19"), "Correctness: 0.84 Model: sp19");
  EXPECT_EQ(CorrectnessLine(1, 1, "x"), "Correctness: 1.0 Model: x");
  EXPECT_EQ(CorrectnessLine(0, 7, "x"), "Correctness: 0.0 Model: x");
  EXPECT_EQ(CorrectnessLine(1, 3, "x"),
            "Correctness: 0.3333333333333333 Model: x");
  EXPECT_EQ(CorrectnessLine(1, 60000, "x"),
            "Correctness: 1.6666666666666667e-05 Model: x");
  EXPECT_EQ(CorrectnessLine(1, 10000, "x"), "Correctness: 0.0001 Model: x");
  EXPECT_EQ(EvalMetricLine(8236, 10000), "EvalMetric: {'accuracy': 0.8236}");
}

TEST(CourseOutput, TheTermsFromFa20OnPrintMilliseconds) {
  EXPECT_EQ(BatchSizeLine(10000), "Test batch size: 10000");
  EXPECT_THAT(ConvolutionLines(61812345, 1740000),
              ::testing::ElementsAre("Conv-GPU==", "Layer Time: 61.8123 ms",
                                     "Op Time: 1.74 ms"));
  EXPECT_THAT(ConvolutionLines(std::nullopt, 7425.3e6),
              ::testing::ElementsAre("Conv-CPU==", "Op Time: 7425.3 ms"));
  EXPECT_EQ(TestAccuracyLine(8714, 10000), "Test Accuracy: 0.8714");
  EXPECT_EQ(TestAccuracyLine(886, 1000), "Test Accuracy: 0.886");
  EXPECT_EQ(TestAccuracyLine(1, 1), "Test Accuracy: 1");
}

TEST(Progress, DrawsShareAndTimeLeft) {
  EXPECT_EQ(ProgressLine(0.5, 3),
            "[###############               ]  50 %, 3 s left");
  EXPECT_EQ(ProgressLine(0.5, 3, 34), "[#####     ]  50 %, 3 s left");
  EXPECT_EQ(ProgressLine(0, 0), "[                              ]   0 %");
  EXPECT_EQ(ProgressLine(1, 90),
            "[##############################] 100 %, 0 s left");
  EXPECT_EQ(ProgressLine(0.25, 60),
            "[#######                       ]  25 %, 3 min left");
}

TEST(Progress, AWaitIsToldWithItsLimit) {
  EXPECT_EQ(WaitLine(4.9, 60),
            "no answer from the kernel for 5 s, it has 60 s");
  EXPECT_EQ(WaitLine(12, 15, 20), "no answer from the ");
}

TEST(Progress, WithoutATerminalAWaitIsToldOnce) {
  if (isatty(STDERR_FILENO)) GTEST_SKIP() << "standard error is a terminal";
  std::vector<std::string> told;
  const auto notice = WaitNotice(
      60, "running", [&](const std::string& text) { told.push_back(text); });
  notice(0);
  for (const double seconds : {3.1, 4.1, 0.0, 3.2}) notice(seconds);
  EXPECT_EQ(told, std::vector<std::string>{"running: no answer from the kernel "
                                           "for 3 s, it has 60 s"});
}

}  // namespace
}  // namespace convlab
