#include "reports/tables.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/markers.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

RunRecord Record(const std::string& variant, int rung,
                 std::vector<int64_t> first, std::vector<int64_t> second) {
  RunRecord record;
  record.network = "fa19";
  record.size = 1000;
  record.correct = 921;
  record.convolutions.resize(2);
  record.convolutions[0].variant = record.convolutions[1].variant = variant;
  record.convolutions[0].flops = 2000000000;
  record.convolutions[1].flops = 4000000000;
  record.convolutions[0].op_time_ns = first;
  record.convolutions[1].op_time_ns = second;
  record.variants[variant].rung = rung;
  record.usage.elapsed_ns = 3450000000;
  record.usage.max_resident_bytes = 200000000;
  return record;
}

TEST(Tables, LadderStandsInOrderAndComparesSums) {
  EXPECT_EQ(
      LadderTable({Record("fast", 2, {250000000}, {750000000}),
                   Record("slow", 1, {1000000000}, {2000000000, 4000000000})}),
      "| rung | variant | op times, s | sum, s | GFLOP/s | than the rung "
      "before "
      "| than the first |\n"
      "|---|---|---|---|---|---|---|\n"
      "| 1 | `slow` | 1.000 + 3.000 | 4.000 | 1.5 | – | – |\n"
      "| 2 | `fast` | 0.2500 + 0.7500 | 1.000 | 6.0 | 4.00× | 4.00× |\n");
}

TEST(Tables, NetworksShowCorrectAnswers) {
  EXPECT_THAT(
      NetworksTable({Record("x", 1, {1000000000}, {2000000000})}),
      HasSubstr(
          "| fa19 | 1000 | 921 (92.10 %) | 1.000 + 2.000 | 3.5 | 200 |\n"));
}

TEST(Markers, OnlyThePassageIsReplaced) {
  const std::string document =
      "a\n<!-- begin x -->\nold\n<!-- end x -->\nb <!-- begin y -->\n";
  EXPECT_EQ(*ReplacePassage(document, "x", "new\n"),
            "a\n<!-- begin x -->\nnew\n<!-- end x -->\nb <!-- begin y -->\n");
  EXPECT_THAT(std::string(ReplacePassage(document, "z", "").status().message()),
              HasSubstr("no line <!-- begin z -->"));
  EXPECT_THAT(std::string(ReplacePassage(document, "y", "").status().message()),
              HasSubstr("no line <!-- end y -->"));
  EXPECT_THAT(
      std::string(
          ReplacePassage(document + document, "x", "").status().message()),
      HasSubstr("twice"));
  EXPECT_FALSE(
      ReplacePassage("<!-- end x --><!-- begin x -->\n", "x", "").ok());
}

}  // namespace
}  // namespace convlab
