#include "reports/tables.h"

#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/markers.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
      "| rung | variant | op times, s | sum, s | GFLOP/s | speedup over the "
      "previous lesson | over the first |\n"
      "|---|---|---|---|---|---|---|\n"
      "| 1 | `slow` | 1.000 + 3.000 | 4.000 | 1.5 | – | – |\n"
      "| 2 | `fast` | 0.2500 + 0.7500 | 1.000 | 6.0 | 4.00× | 4.00× |\n");
}

TEST(Tables, RecordsThatLackSomethingAreFound) {
  const auto error = [](const RunRecord& record) {
    return std::string(CheckComplete(record).message());
  };
  RunRecord record = Record("fast", 2, {250000000}, {750000000});
  EXPECT_EQ(error(record), "");
  EXPECT_EQ(error(RunRecord()), "the record lacks convolutions");
  record.convolutions[1].variant = "x";
  EXPECT_EQ(error(record), "the record lacks variant 'x' of convolution 2");
  record.convolutions[0].op_time_ns.clear();
  EXPECT_EQ(error(record), "the record lacks op times of convolution 1");

  RunRecord ladder;
  ladder.ladder = {{"fast", "", 0, {}, 0, {}}};
  EXPECT_EQ(error(ladder), "the record lacks variant 'fast'");
  ladder.variants = record.variants;
  EXPECT_EQ(error(ladder), "'fast': the record lacks convolutions");
  ladder.ladder[0].failure = "rejected";
  EXPECT_EQ(error(ladder), "");
  ladder.peers.resize(1);
  EXPECT_THAT(error(ladder), HasSubstr("lacks the library's kernel times"));
  record.profile.emplace();
  EXPECT_THAT(error(record), HasSubstr("a traced run"));
  record.profile.reset();
  record.convolutions[0].fused = "tanh";
  EXPECT_THAT(error(record), HasSubstr("without --fuse"));
}

TEST(Tables, NetworksShowCorrectAnswers) {
  EXPECT_THAT(
      NetworksTable({Record("x", 1, {1000000000}, {2000000000})}),
      HasSubstr(
          "| fa19 | 1000 | 921 (92.10 %) | 1.000 + 2.000 | 3.5 | 200 |\n"));
}

RunRecord Comparison() {
  RunRecord record;
  record.network = "fa19";
  record.size = 10000;
  record.gpu.name = "A GPU";
  for (const auto& [name, rung, ns] : {std::make_tuple("naive", 1, 4000000),
                                       {"fast", 2, 500000},
                                       {"slow", 3, 8000000}}) {
    LadderRun run;
    run.variant = name;
    run.relative_error = 3e-7;
    run.correct = 9193;
    run.convolutions.resize(2);
    run.convolutions[0].op_time_ns = {ns, 3 * ns, ns};
    run.convolutions[1].op_time_ns = {ns};
    record.ladder.push_back(run);
    record.variants[name] = {"cuda", rung, "fp32", "", "", "", ""};
  }
  record.variants["naive"].track = "lesson";
  record.variants["fast"].track = "specialty";
  record.variants["slow"].track = "lesson";
  record.variants["slow"].detour = "It shows a detour.";
  record.ladder.push_back({"odd", "rejected: too odd", 0, {}, 0, {}});
  record.variants["odd"].rung = 4;
  record.variants["odd"].track = "lesson";
  record.peers = {{1, "cuDNN 9", "FFT NCHW", "fp32", 2e-7, 12, {1500000}},
                  {2, "cuDNN 9", "FFT NCHW", "fp32", 2e-7, 12, {500000}}};
  return record;
}

TEST(Tables, LessonsAreOnePathWithTheLibraryBehind) {
  const std::string table = LessonsTable(Comparison());
  EXPECT_THAT(table,
              HasSubstr("| 1 | `naive` | 4.000 + 4.000 | 8.000 | – | – | "
                        "3e-07 |  |\n"));
  // The specialty between them is no step of the path.
  EXPECT_THAT(table,
              HasSubstr("| 3 | `slow` | 8.000 + 8.000 | 16.000 | 0.50× | "
                        "0.50× | 3e-07 | It shows a detour. |\n"));
  EXPECT_THAT(table, HasSubstr("| 4 | `odd` | – | – | – | – | – | rejected: "
                               "too odd |\n"));
  EXPECT_THAT(table, HasSubstr("| – | cuDNN 9 | 1.500 + 0.500 | 2.000 | – | "
                               "4.00× | 2e-07 | the best of 12 plans |\n"));
  EXPECT_THAT(table, Not(HasSubstr("`fast`")));
}

TEST(Tables, SpecialtiesStandApart) {
  const std::string table = OthersTable(Comparison());
  EXPECT_THAT(table, HasSubstr("| `fast` | specialty | 0.500 + 0.500 | 1.000 | "
                               "8.00× | 2.00× | fp32 | 3e-07 | 9193 |\n"));
  EXPECT_THAT(table, Not(HasSubstr("`naive`")));
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
