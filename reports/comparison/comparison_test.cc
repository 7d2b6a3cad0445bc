#include "reports/comparison/comparison.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/document/writers.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

Records Of(const std::string& folder, std::vector<RunRecord> runs) {
  Records records;
  records.folder = folder;
  for (RunRecord& run : runs) {
    records.runs.push_back({folder + "/run.json", std::move(run)});
  }
  return records;
}

RunRecord Timed(std::vector<int64_t> first, std::vector<int64_t> second) {
  RunRecord record = TestRecord("m3", "gpu", 1000, "naive");
  record.convolutions[0].op_time_ns = std::move(first);
  record.convolutions[1].op_time_ns = std::move(second);
  return record;
}

std::string Compared(const Records& a, const Records& b, bool force = false) {
  const auto blocks = CompareRecords(a, b, force);
  return blocks.ok() ? WriteBlocks(*blocks)
                     : "ERROR " + std::string(blocks.status().message());
}

TEST(Compare, MediansRatiosAndSpread) {
  const Records a = Of("A", {Timed({10 * kMs, 11 * kMs, 12 * kMs},
                                   {20 * kMs, 20 * kMs, 20 * kMs})});
  const Records b = Of("B", {Timed({11 * kMs, 12 * kMs, 13 * kMs},
                                   {10 * kMs, 10 * kMs, 10 * kMs})});
  const std::string text = Compared(a, b);
  // Middle halves 10.5 to 11.5 and 11.5 to 12.5 touch.
  EXPECT_THAT(text,
              HasSubstr("| 1           | 11.000 | 10.500 – 11.500 |       "
                        "3 | 12.000 | 11.500 – 12.500 |       3 | 1.091 | "
                        "within the spread |"));
  EXPECT_THAT(text,
              HasSubstr("| 2           | 20.000 | 20.000 – 20.000 |       "
                        "3 | 10.000 | 10.000 – 10.000 |       3 | 0.500 | "
                        "beyond the spread |"));
  EXPECT_THAT(text,
              HasSubstr("| sum         | 31.000 | 30.500 – 31.500 |       "
                        "3 | 22.000 | 21.500 – 22.500 |       3 | 0.710 | "
                        "beyond the spread |"));
  EXPECT_THAT(text, HasSubstr("(first to third quartile) do not overlap"));
}

TEST(Compare, OneSampleHasNoSpread) {
  EXPECT_THAT(Compared(Of("A", {Timed({10 * kMs}, {20 * kMs})}),
                       Of("B", {Timed({90 * kMs}, {90 * kMs})})),
              HasSubstr("spread not known"));
}

TEST(Compare, DifferentDevicesAndProblemsNeedForce) {
  const Records a = Of("A", {TestRecord("m3", "gpu", 1000, "naive")});
  RunRecord other = TestRecord("m3", "gpu", 1000, "naive");
  other.gpu.name = "Tesla T4";
  EXPECT_THAT(Compared(a, Of("B", {other})),
              AllOf(HasSubstr("ERROR A/run.json and B/run.json are of "
                              "different devices, NVIDIA H200 and Tesla T4"),
                    HasSubstr("--force")));
  EXPECT_THAT(Compared(a, Of("B", {other}), true), HasSubstr("| B ÷ A |"));
  const Records larger = Of("B", {TestRecord("m3", "gpu", 10000, "naive")});
  EXPECT_THAT(Compared(a, larger),
              HasSubstr("different problems, B=1000 C=1 H=70"));
  EXPECT_THAT(Compared(a, larger, true), HasSubstr("10.000"));
}

TEST(Compare, FoldersByWhatRan) {
  const Records a = Of("A", {TestRecord("m3", "gpu", 1000, "naive"),
                             TestRecord("m3", "gpu", 100, "naive")});
  const Records b =
      Of("B", {TestRecord("m3", "gpu", 100, "naive"), TestLadder(100)});
  const std::string text = Compared(a, b);
  EXPECT_THAT(text, AllOf(HasSubstr("m3 fa19 100 "),
                          HasSubstr("In A alone:\n\n- m3 gpu fa19 t10k 1000 "
                                    "naive\n"),
                          HasSubstr("- m4 gpu fa19 t10k 100 fast\n")));
  EXPECT_THAT(Compared(Of("A", {TestRecord("m3", "gpu", 1000, "naive"),
                                TestRecord("m3", "gpu", 1000, "naive")}),
                       b),
              HasSubstr("are of the same run"));
  EXPECT_THAT(Compared(Of("A", {TestRecord("m3", "gpu", 1000, "naive"),
                                TestRecord("m2", "cpu", 1000, "naive")}),
                       b),
              HasSubstr("have no run in common"));
}

TEST(Compare, TracedTimesAreRefused) {
  const Records traced =
      Of("A", {Traced(TestRecord("m3", "gpu", 1000, "naive"))});
  EXPECT_THAT(Compared(traced, traced), HasSubstr("traced runs only"));
}

}  // namespace
}  // namespace convlab
