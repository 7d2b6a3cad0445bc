#include "reports/deliverables/charts.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/document/writers.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Charts, LadderHasDotsSpeedupsLibraryAndFloors) {
  const Chart chart = LadderChart("l", TestLadder(10000));
  for (const std::string& svg : {chart.wide, chart.narrow}) {
    EXPECT_THAT(
        svg,
        AllOf(HasSubstr("<title>fast: 2.500 + 7.500 = 10.000 ms, class fp32<"),
              HasSubstr(">10 ms, 4.00×</text>"), HasSubstr(">40 ms</text>"),
              HasSubstr(">cuDNN 9: 4</text>"),
              HasSubstr(">floor of fp32: 0.844</text>"),
              HasSubstr(">class fp16</text>"),
              HasSubstr("the least is 10 ms by fast\""),
              Not(HasSubstr("contributed"))));
  }
  // The fastest of class fp32 stands out.
  EXPECT_THAT(chart.wide, HasSubstr("font-weight=\"bold\">fast</text>"));
  EXPECT_THAT(chart.wide, Not(HasSubstr("font-weight=\"bold\">slow</text>")));
  RunRecord alone = TestLadder(10000);
  alone.peers.clear();
  alone.gpu.name = "NVIDIA X1";
  EXPECT_THAT(LadderChart("l", alone).wide,
              AllOf(Not(HasSubstr("cuDNN")), Not(HasSubstr("floor"))));
}

TEST(Charts, ALongLadderIsTwoChartsOnOneAxis) {
  RunRecord record = TestLadder(10000);
  EXPECT_EQ(LadderCharts("l", record).size(), 1u);
  for (auto& [name, variant] : record.variants) variant.track = "lesson";
  for (int i = 0; i < 16; ++i) {
    const std::string name = absl::StrCat(i % 2 == 0 ? "path" : "apart", i);
    record.ladder.push_back(record.ladder[0]);
    record.ladder.back().variant = name;
    record.variants[name] = record.variants["naive"];
    record.variants[name].track = i % 2 == 0 ? "lesson" : "specialty";
  }
  const std::vector<Chart> charts = LadderCharts("l", record);
  ASSERT_EQ(charts.size(), 2u);
  EXPECT_EQ(charts[1].name, "l-apart");
  EXPECT_THAT(charts[0].wide,
              AllOf(HasSubstr(">fast</text>"), HasSubstr(">path14</text>"),
                    Not(HasSubstr(">apart15</text>"))));
  // Compared with the path's first, on an axis that reaches its fastest.
  EXPECT_THAT(charts[1].wide,
              AllOf(HasSubstr(">apart15</text>"), HasSubstr(">10</text>"),
                    HasSubstr(">40 ms, 1.00×</text>"),
                    Not(HasSubstr(">path14</text>"))));
}

TEST(Charts, SpeedupsAreBarsFromZero) {
  const std::vector<Contender> contenders = ContendersOf(TestLadder(10000));
  const std::string svg = SpeedupChart("s", "t", contenders, "naive").wide;
  EXPECT_THAT(svg,
              AllOf(HasSubstr("<title>fast: 10 ms, 4.00×, class fp32</title>"),
                    HasSubstr(">1.00×</text>"), HasSubstr(">2.00×</text>"),
                    HasSubstr(">times as fast as naive</text>"),
                    HasSubstr(">0</text>"), HasSubstr("the most is 4.00×")));
}

TEST(Charts, TextIsOnlyText) {
  RunRecord record = TestLadder(100);
  record.gpu.name = "<script>\"&\n";
  record.ladder[0].variant = "a\"<b>";
  record.variants["a\"<b>"] = record.variants["naive"];
  const std::string svg = LadderChart("l", record).wide;
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<b>")),
                         HasSubstr("&lt;script&gt;&quot;&amp;\\n"),
                         HasSubstr("a&quot;&lt;b&gt;")));
}

TEST(Charts, RooflineNamesEachPointAndRoof) {
  const Chart chart = RooflineChart("r", "t", ContendersOf(TestLadder(10000)),
                                    *DataSheetRates("NVIDIA H200"));
  for (const std::string& svg : {chart.wide, chart.narrow}) {
    EXPECT_THAT(svg,
                AllOf(HasSubstr("<title>naive, convolution 1: 2.61 TFLOP/s at "
                                "11.4 FLOP/byte</title>"),
                      HasSubstr("<title>fast, convolution 2: 16.15 TFLOP/s at "
                                "91.0 FLOP/byte</title>"),
                      HasSubstr(">memory: 4.80 TB/s</text>"),
                      HasSubstr(">class fp32 by halves: 330</text>"),
                      HasSubstr(">float32 units: 67</text>"),
                      HasSubstr(">conv. 2</text>")));
  }
}

TEST(Charts, SharesAndTheRest) {
  const RunRecord record = Traced(TestRecord("m3", "gpu", 100, "naive"));
  EXPECT_THAT(
      ShareChart("s", "t", LargestShares(record.profile->gpu_activities, 70))
          .wide,
      AllOf(HasSubstr(">80.0 %</text>"), HasSubstr(">2 others</text>"),
            HasSubstr("<title>2 others: 20.00 %</title>")));
}

TEST(Charts, LayersHaveThreeDotsAsFarAsMeasured) {
  const std::string svg =
      LayersChart("c", "t", "cuDNN 9",
                  {{"a-L1", 0.5, 2, 0.25}, {"b", 1, {}, {}}})
          .wide;
  EXPECT_THAT(svg, AllOf(HasSubstr("<title>a-L1, ours: 0.5000 ms</title>"),
                         HasSubstr("<title>a-L1, cuDNN 9: 2.0000 ms</title>"),
                         HasSubstr("<title>a-L1, floor: 0.2500 ms</title>"),
                         HasSubstr(">0.5, 4.00×</text>"),
                         Not(HasSubstr("<title>b, cuDNN"))));
  EXPECT_THAT(LayersChart("c", "t", "", {{"b", 1, {}, {}}}).wide,
              Not(HasSubstr(">floor</text>")));
}

TEST(Charts, TimePartsAddUpToTheProgram) {
  RunRecord record = TestRecord("m3", "gpu", 1000, "naive");
  record.load_ns = 100 * kMs;
  record.prepare_ns = 200 * kMs;
  record.inference_ns = {20 * kMs, 20 * kMs, 20 * kMs};
  const drawing::StackPlot plot = TimeParts(record);
  double sum = 0;
  for (const auto& part : plot.parts) sum += part.value;
  EXPECT_NEAR(sum, 1500, 1e-6);
  ASSERT_EQ(plot.parts.size(), 6);
  EXPECT_EQ(plot.parts[2].label, "convolution 1");
  EXPECT_NEAR(plot.parts[2].value, 3, 1e-6);  // of three repetitions
}

// Values that no record has draw something, and end.
TEST(Charts, DegenerateScalesHaveNoTicks) {
  using drawing::Scale;
  EXPECT_TRUE(drawing::Ticks(Scale{true, 0, 1, 0, 100}, 5).empty());
  EXPECT_TRUE(drawing::Ticks(Scale{false, 2, 2, 0, 100}, 5).empty());
  EXPECT_TRUE(drawing::Ticks(Scale{false, 0, HUGE_VAL, 0, 100}, 5).empty());
  EXPECT_EQ(drawing::Ticks(Scale{true, 1, 100, 0, 100}, 7).size(), 7);
  EXPECT_EQ(drawing::Ticks(Scale{true, 600, 1600, 0, 100}, 7).size(), 5);
  EXPECT_EQ(drawing::Ticks(Scale{true, 616, 1560, 0, 100}, 3).size(), 3);
  EXPECT_EQ(drawing::Number(12345.6), "12,346");
  EXPECT_EQ(drawing::Number(0.0123), "0.0123");
}

}  // namespace
}  // namespace convlab
