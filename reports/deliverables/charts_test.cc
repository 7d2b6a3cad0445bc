#include "reports/deliverables/charts.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Limits, FloorIsTheSlowerOfMemoryAndArithmetic) {
  const auto h200 = FindLimits("NVIDIA H200");
  ASSERT_TRUE(h200.has_value());
  ConvolutionRecord convolution;
  convolution.min_bytes = 4800000000;  // 1 ms
  convolution.flops = 1;
  EXPECT_DOUBLE_EQ(FloorNs(convolution, *h200), 1e6);
  convolution.flops = 1978000000000;  // 2 ms
  EXPECT_DOUBLE_EQ(FloorNs(convolution, *h200), 2e6);
  EXPECT_DOUBLE_EQ(FloorNs({convolution, convolution}, *h200), 4e6);
}

TEST(Limits, GpusAreKnownByWholeWords) {
  EXPECT_EQ(FindLimits("NVIDIA L40S")->bytes_per_second, 0.864e12);
  EXPECT_EQ(FindLimits("NVIDIA L4")->bytes_per_second, 0.3e12);
  EXPECT_EQ(FindLimits("NVIDIA A100-SXM4-40GB")->bytes_per_second, 1.555e12);
  EXPECT_EQ(FindLimits("NVIDIA A100-SXM4-80GB")->bytes_per_second, 2.039e12);
  EXPECT_FALSE(FindLimits("NVIDIA L400").has_value());
  EXPECT_FALSE(FindLimits("").has_value());
}

TEST(Charts, LadderHasBarsLibraryAndFloor) {
  const Chart chart =
      LadderChart("l", TestLadder(10000), FindLimits("NVIDIA H200"));
  EXPECT_EQ(chart.data,
            "# variant, sum of the op times in ms\n\"naive\" 40.0000\n\"fast\" "
            "10.0000\n\"slow\" 20.0000\n");
  EXPECT_THAT(chart.script, AllOf(HasSubstr("set output 'l.svg'"),
                                  HasSubstr("'cuDNN 9: 4 ms'"),
                                  HasSubstr("'floor: 0.754 ms'")));
  RunRecord alone = TestLadder(10000);
  alone.peers.clear();
  EXPECT_THAT(LadderChart("l", alone, std::nullopt).script,
              AllOf(Not(HasSubstr("cuDNN")), Not(HasSubstr("floor"))));
}

TEST(Charts, TextCannotEndItsQuotes) {
  RunRecord record = TestLadder(100);
  record.gpu.name = "it's `date` \"\n";
  record.ladder[0].variant = "a\"b\\";
  const Chart chart = LadderChart("l", record, std::nullopt);
  EXPECT_THAT(chart.data, HasSubstr("\"a'b/\" 0.4000\n"));
  EXPECT_THAT(chart.script,
              HasSubstr("set label 'fa19, 100 images, it''s `date` \"\\n' at"));
}

TEST(Charts, RooflineHasAPointForEachVariantAndConvolution) {
  const Chart chart =
      RooflineChart("r", TestLadder(10000), *FindLimits("NVIDIA H200"));
  // Slowest first: 26.136 GFLOP in 10 ms, and 114.. bytes' share of them.
  EXPECT_THAT(chart.data,
              HasSubstr("11.429 2.6136 1 1 0\n11.429 5.2272 3 1 1\n11.429 "
                        "10.4544 2 1 2\n\n\n91.048 4.0368 1 2 0\n"));
  EXPECT_THAT(chart.script, AllOf(HasSubstr("(x*4.8<989?x*4.8:989)"),
                                  HasSubstr("'FLOP per byte that must move'"),
                                  HasSubstr("'TFLOP/s'")));
}

TEST(Charts, OpTimesAndShares) {
  EXPECT_EQ(OpTimeChart("o", "t",
                        {{"convolution 1", {{100, 5e5}, {1000, 4e6}}},
                         {"convolution 2", {{100, 6e5}}}})
                .data,
            "# images, op time in ms; a block per line\n# convolution 1\n100 "
            "0.500000\n1000 4.000000\n\n\n# convolution 2\n100 0.600000\n");
  const RunRecord record = Traced(TestRecord("m3", "gpu", 100, "naive"));
  EXPECT_EQ(
      ShareChart("s", "t", LargestShares(record.profile->gpu_activities, 70))
          .data,
      "# name, percent of the time\n\"convlab::cuda::NaiveKer…\" "
      "80.00\n\"2 others\" 20.00\n");
}

TEST(Charts, LayersHaveThreeBarsAsFarAsMeasured) {
  const Chart chart = LayersChart("c", "t", "cuDNN 9",
                                  {{"a-L1", 0.5, 2, 0.25}, {"b", 1, {}, {}}});
  EXPECT_EQ(chart.data,
            "# layer, ms: ours, the library's, the floor\n\"a-L1\" 0.5000 "
            "2.0000 0.2500\n\"b\" 1.0000 ? ?\n");
  EXPECT_THAT(chart.script,
              AllOf(HasSubstr("set xrange [0.125:6]"), HasSubstr("'ours'"),
                    HasSubstr("'cuDNN 9'"), HasSubstr("'floor'")));
  EXPECT_THAT(LayersChart("c", "t", "", {{"b", 1, {}, {}}}).script,
              Not(HasSubstr("floor")));
}

TEST(Timeline, EventsCountFromTheFirst) {
  const auto events =
      ReadTimeline(CompleteRecords().traces.at("runs/m.trace.json"));
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 3);
  EXPECT_EQ((*events)[0].start_ms, 0);
  EXPECT_EQ((*events)[0].end_ms, 128);
  EXPECT_EQ((*events)[2].row, TimelineEvent::Row::kKernel);
  EXPECT_EQ(TimelineChart("t", "t", *events).data,
            "# start and end in ms; a block per row\n0.0000 128.0000\n\n\n"
            "149.0000 209.0000\n\n\n129.0000 144.0000\n");
}

TEST(Timeline, DamagedTracesAreRefused) {
  for (const char* trace :
       {"", "[]", "{\"traceEvents\":1}", "{\"traceEvents\":[1]}",
        "{\"traceEvents\":[]}", "{\"traceEvents\":[{\"ph\":\"X\"}]}",
        "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":\"a\",\"dur\":1}]}"}) {
    EXPECT_EQ(ReadTimeline(trace).status().code(),
              absl::StatusCode::kInvalidArgument)
        << trace;
  }
}

}  // namespace
}  // namespace convlab
