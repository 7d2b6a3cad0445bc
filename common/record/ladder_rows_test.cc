#include "common/record/ladder_rows.h"

#include <string>

#include "gtest/gtest.h"

namespace convlab {
namespace {

// Two convolutions that take ns and 3 ns, with floors of 0.1 and 0.2 ms in
// fp16; the second one's is 0.3 ms in fp32, where arithmetic is the longer.
LadderRun Run(const std::string& variant, int64_t ns) {
  LadderRun run;
  run.variant = variant;
  run.convolutions.resize(2);
  for (ConvolutionRecord& convolution : run.convolutions) {
    convolution.variant = variant;
  }
  run.convolutions[0].op_time_ns = {ns, 2 * ns, ns};
  run.convolutions[0].min_bytes = 480000000;
  run.convolutions[1].op_time_ns = {3 * ns};
  run.convolutions[1].min_bytes = 960000000;
  run.convolutions[1].flops = 98950000000;
  return run;
}

RunRecord Ladder() {
  RunRecord record;
  record.gpu.name = "NVIDIA H200";
  record.ladder = {Run("naive", 4000000), Run("odd", 1), Run("fast", 1000000),
                   Run("half", 500000)};
  record.ladder[1].failure = "rejected: too odd";
  record.ladder[1].convolutions.clear();
  record.variants["naive"] = {"cuda", 1, "fp32", "", "", "", ""};
  record.variants["odd"] = {"cuda", 2, "bf16", "", "", "", ""};
  record.variants["fast"] = {"cuda", 3, "fp32", "", "", "", ""};
  record.variants["half"] = {"cuda", 4, "fp16", "", "", "", ""};
  record.peers.resize(2);
  record.peers[0].kernel_time_ns = {3000000};
  record.peers[1].kernel_time_ns = {5000000};
  return record;
}

TEST(LadderRows, CompareWithTheRungBeforeTheFirstAndTheLibrary) {
  const RunRecord record = Ladder();
  const LadderRows rows = RowsOf(record);
  ASSERT_EQ(rows.rows.size(), 4);
  const LadderRow& first = rows.rows[0];
  EXPECT_EQ(first.times->ns, (std::vector<double>{4e6, 12e6}));
  EXPECT_EQ(first.times->sum_ns, 16e6);
  EXPECT_EQ(first.before, nullptr);
  EXPECT_EQ(first.than_before, std::nullopt);
  EXPECT_EQ(first.times->than_first, std::nullopt);
  EXPECT_EQ(first.times->than_library, 0.5);
  const LadderRow& fast = rows.rows[2];
  // The rung before is the one that was timed.
  EXPECT_EQ(fast.before, &record.ladder[0]);
  EXPECT_EQ(fast.than_before, 4);
  EXPECT_EQ(fast.times->than_first, 4);
  EXPECT_EQ(fast.times->than_library, 2);
  EXPECT_EQ(fast.flops, 98950000000);
  EXPECT_EQ(rows.library->times.sum_ns, 8e6);
  EXPECT_EQ(rows.library->times.than_first, 2);
  EXPECT_EQ(rows.library->times.than_library, std::nullopt);
}

TEST(LadderRows, AVariantThatWasNotTimedHasNoTimes) {
  RunRecord record = Ladder();
  EXPECT_FALSE(RowsOf(record).rows[1].times.has_value());
  EXPECT_EQ(RowsOf(record).rows[1].run->failure, "rejected: too odd");
  // Without the first one's time nothing is compared with it.
  record.ladder[0].failure = "FAILED: wrong";
  const LadderRows rows = RowsOf(record);
  EXPECT_EQ(rows.rows[2].before, nullptr);
  EXPECT_EQ(rows.rows[3].times->than_first, std::nullopt);
  EXPECT_EQ(rows.library->times.than_first, std::nullopt);
}

TEST(LadderRows, FloorsAreThoseOfTheClasses) {
  RunRecord record = Ladder();
  LadderRows rows = RowsOf(record);
  EXPECT_NEAR(*rows.rows[2].floor_share, 0.4 / 4, 1e-9);
  EXPECT_NEAR(*rows.rows[3].floor_share, 0.3 / 2, 1e-9);
  ASSERT_EQ(rows.floors.size(), 2);
  EXPECT_EQ(rows.floors[0].classes, "fp32");
  EXPECT_NEAR(rows.floors[0].times.sum_ns, 0.4e6, 1);
  EXPECT_NEAR(*rows.floors[0].times.than_library, 20, 1e-6);
  EXPECT_EQ(rows.floors[1].classes, "fp16");
  EXPECT_NEAR(rows.floors[1].times.sum_ns, 0.3e6, 1);
  // Equal floors are one.
  record.variants["naive"].accuracy_class = "tf32";
  record.variants["fast"].accuracy_class = "tf32";
  rows = RowsOf(record);
  ASSERT_EQ(rows.floors.size(), 1);
  EXPECT_EQ(rows.floors[0].classes, "tf32, fp16");
  record.gpu.name = "NVIDIA X1";
  rows = RowsOf(record);
  EXPECT_TRUE(rows.floors.empty());
  EXPECT_EQ(rows.rows[2].floor_share, std::nullopt);
}

TEST(LadderRows, ContributedKernelsStandBesideTheLadder) {
  RunRecord record = Ladder();
  LadderRun mine = record.ladder[0];  // 4 and 12 ms
  mine.variant = "mine";
  mine.convolutions[0].op_time_ns = {1000000};
  mine.convolutions[1].op_time_ns = {7000000};
  record.ladder.insert(record.ladder.begin() + 2, mine);
  record.variants["mine"] = {"cuda", 0, "fp32", "", "", "lesson", ""};
  record.variants["mine"].verification.emplace().kernel.emplace();
  const LadderRows rows = RowsOf(record);
  ASSERT_EQ(rows.rows.size(), 5);
  EXPECT_EQ(rows.rows[0].run->variant, "mine");
  EXPECT_TRUE(rows.rows[0].is_contributed);
  EXPECT_FALSE(rows.rows[0].is_lesson);
  EXPECT_EQ(rows.rows[0].before, nullptr);
  EXPECT_EQ(rows.rows[0].times->than_first, 2);
  // The others are as if it were not there.
  EXPECT_EQ(rows.rows[1].run->variant, "naive");
  EXPECT_EQ(rows.rows[1].times->than_first, std::nullopt);
  EXPECT_EQ(rows.rows[3].before, &record.ladder[0]);
}

}  // namespace
}  // namespace convlab
