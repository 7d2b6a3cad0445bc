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

TEST(Charts, LadderHasBarsLibraryAndFloor) {
  const Chart chart = LadderChart("l", TestLadder(10000));
  EXPECT_EQ(chart.data,
            "# variant, sum of the op times in ms\n\"naive\" 40.0000\n\"fast\" "
            "10.0000\n\"slow\" 20.0000\n");
  EXPECT_THAT(chart.script, AllOf(HasSubstr("set output 'l.svg'"),
                                  HasSubstr("'cuDNN 9: 4 ms'"),
                                  HasSubstr("'floor of fp32: 0.844 ms'"),
                                  HasSubstr("'floor of fp16: 0.754 ms'")));
  RunRecord alone = TestLadder(10000);
  alone.peers.clear();
  alone.gpu.name = "NVIDIA X1";
  EXPECT_THAT(LadderChart("l", alone).script,
              AllOf(Not(HasSubstr("cuDNN")), Not(HasSubstr("floor"))));
}

TEST(Charts, TextCannotEndItsQuotes) {
  RunRecord record = TestLadder(100);
  record.gpu.name = "it's `date` \"\n";
  record.ladder[0].variant = "a\"b\\";
  record.variants["a\"b\\"] = record.variants["naive"];
  const Chart chart = LadderChart("l", record);
  EXPECT_THAT(chart.data, HasSubstr("\"a'b/\" 0.4000\n"));
  EXPECT_THAT(chart.script,
              HasSubstr("set label 'fa19, 100 images, it''s `date` \"\\n' at"));
}

TEST(Charts, RooflineHasAPointForEachVariantAndConvolution) {
  const Chart chart =
      RooflineChart("r", TestLadder(10000), *DataSheetRates("NVIDIA H200"));
  // Slowest first: 26.136 GFLOP in 10 ms, and 114.. bytes' share of them.
  EXPECT_THAT(chart.data,
              HasSubstr("11.429 2.6136 1 1 0\n11.429 5.2272 3 1 1\n11.429 "
                        "10.4544 2 1 2\n\n\n91.048 4.0368 1 2 0\n"));
  EXPECT_THAT(chart.script, AllOf(HasSubstr("(x*4.8<989.5?x*4.8:989.5)"),
                                  HasSubstr("(x*4.8<329.8?x*4.8:329.8)"),
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

}  // namespace
}  // namespace convlab
