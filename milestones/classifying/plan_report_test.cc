#include "milestones/classifying/plan_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

PlanReport ReportFa19() {
  const Network& network = **FindNetwork("fa19");
  Rates rates;
  rates.fp32_tflops = 0.1;
  rates.memory_gbs = 10;
  return ReportPlan(network, MakePlan(network), 1000, 28,
                    {1000000, 2000000, 3000000, 4000},
                    {"front", "front", "matrix", "matrix"}, "a device", rates);
}

TEST(PlanReport, CountsOperationsAndBytes) {
  const PlanReport report = ReportFa19();
  ASSERT_EQ(report.stages.size(), 4u);
  const StageReport& load = report.stages[0];
  EXPECT_EQ(load.least_bytes, 1000 * 784);
  EXPECT_EQ(load.bytes, 1000 * (784 + 4 * 4900));
  EXPECT_EQ(load.floor_ns, 78400);  // 784,000 bytes at 10 GB/s
  const StageReport& convolution = report.stages[1];
  EXPECT_EQ(convolution.name, "conv 1");
  EXPECT_EQ(convolution.flops, 1000.0 * 2 * 25 * 12 * 66 * 66);
  EXPECT_EQ(convolution.layer_flops, convolution.flops);
  EXPECT_EQ(convolution.bytes, 4.0 * (1000 * (4900 + 13068) + 300));
  // The convolution writes what tanh reads and writes and the pooling reads.
  EXPECT_EQ(convolution.layer_bytes,
            4.0 * (1000 * (4900 + 4 * 52272 + 13068) + 300));
  EXPECT_EQ(convolution.floor_ns, convolution.flops / 100);
  const StageReport& matrix = report.stages[2];
  EXPECT_EQ(matrix.name, "conv 2, fc 1");
  EXPECT_EQ(matrix.least_bytes, 4.0 * (13068 * 160 + 160));
  EXPECT_EQ(matrix.ns, 3000000);
  EXPECT_LT(matrix.flops, matrix.layer_flops / 4);
  EXPECT_EQ(report.stages[3].least_bytes, 4.0 * (1610 + 1000 * 10));
}

TEST(PlanReport, TheTableHasAllStagesAndTheirSum) {
  const std::string table = PlanTable(ReportFa19());
  EXPECT_THAT(table, HasSubstr("Plan of fa19 for 1000 images on a device\n"));
  for (const char* text : {"\nenlarge ", "\nconv 1 ", "\nconv 2, fc 1 ",
                           "\nfc 2 ", "\nall ", "fused tanh, pool 2x2 [front]",
                           "[matrix]", "100 GFLOP/s and 10.0 GB/s"}) {
    EXPECT_THAT(table, HasSubstr(text));
  }
}

TEST(PlanReport, SaysFromHowManyImagesTimesAreScaled) {
  PlanReport report = ReportFa19();
  EXPECT_THAT(PlanTable(report), ::testing::Not(HasSubstr("scaled")));
  report.timed_images = 1000;
  EXPECT_THAT(PlanTable(report), ::testing::Not(HasSubstr("scaled")));
  report.timed_images = 256;
  EXPECT_THAT(
      PlanTable(report),
      HasSubstr("\nTime: that of 256 images at a time, scaled to all.\n"));
}

TEST(PlanReport, ThePictureHasABoxForEachStage) {
  const std::string picture = PlanPicture(ReportFa19());
  size_t boxes = 0;
  for (size_t at = 0;
       (at = picture.find("class=\"stage\"", at)) != std::string::npos; ++at) {
    ++boxes;
  }
  EXPECT_EQ(boxes, 4u);
  EXPECT_THAT(picture, ::testing::Not(HasSubstr("24 x 29 x 29")));
  EXPECT_THAT(picture, HasSubstr("12 x 33 x 33"));
}

// An ONNX file's name is the network's.
TEST(PlanReport, NamesAreNoMarkup) {
  PlanReport report = ReportFa19();
  report.network = "a&b";
  report.device = "<x>";
  const std::string svg = PlanPicture(report);
  EXPECT_THAT(svg, HasSubstr("The plan of a&amp;b<"));
  EXPECT_THAT(svg, HasSubstr("images on &lt;x&gt;:"));
}

}  // namespace
}  // namespace convlab
