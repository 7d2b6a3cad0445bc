#include "milestones/course_output.h"

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

TEST(Progress, DrawsShareAndTimeLeft) {
  EXPECT_EQ(ProgressLine(0.5, 3),
            "[###############               ]  50 %, 3 s left");
  EXPECT_EQ(ProgressLine(0, 0), "[                              ]   0 %");
  EXPECT_EQ(ProgressLine(1, 90),
            "[##############################] 100 %, 0 s left");
  EXPECT_EQ(ProgressLine(0.25, 60),
            "[#######                       ]  25 %, 3 min left");
}

}  // namespace
}  // namespace convlab
