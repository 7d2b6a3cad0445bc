#include "reports/cluster_model.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Numbers that nobody measured: each GPU reads with 5 million images a second
// for each thread, computes 8 million, and rank 0 writes 100 million.
ClassifyRecord MadeUp(int gpus, double seconds) {
  ClassifyRecord record;
  record.network = "fa19";
  record.images = int64_t{40000000} * gpus;
  record.block = 65536;
  record.run_ns = static_cast<int64_t>(seconds * 1e9);
  record.write_ns = 10 * record.images;
  for (int i = 0; i < gpus; ++i) {
    ClassifyShare& share = record.shares.emplace_back();
    share.images = 40000000;
    share.read_ns = 8000000000;
    share.compute_ns = 5000000000;
  }
  return record;
}

TEST(ClusterModel, TheLongestPartDecides) {
  const ClusterParts parts = PartsOf(MadeUp(2, 5), 65536);
  EXPECT_DOUBLE_EQ(parts.reader, 5e6);
  EXPECT_DOUBLE_EQ(parts.compute, 8e6);
  EXPECT_DOUBLE_EQ(parts.write, 1e8);
  EXPECT_DOUBLE_EQ(parts.deal, 1e9);
  const auto rate = [&](ClusterSetup setup, int64_t gpus, int readers) {
    return ClusterRate(parts, setup, gpus, readers);
  };
  // One thread reads too slowly, two do not.
  EXPECT_DOUBLE_EQ(rate(ClusterSetup::kEachReads, 1, 1), 5e6);
  EXPECT_DOUBLE_EQ(rate(ClusterSetup::kEachReads, 1, 2), 8e6);
  EXPECT_DOUBLE_EQ(rate(ClusterSetup::kEachReads, 12, 2), 96e6);
  EXPECT_DOUBLE_EQ(rate(ClusterSetup::kEachReads, 13, 2), 1e8);
  EXPECT_DOUBLE_EQ(rate(ClusterSetup::kComputeAlone, 13, 2), 104e6);
  // Rank 0 reads for itself and for all others.
  EXPECT_DOUBLE_EQ(rate(ClusterSetup::kRankZeroReads, 2, 2), 16e6);
  EXPECT_DOUBLE_EQ(rate(ClusterSetup::kRankZeroReads, 100, 2), 20e6);
  // 12 runs of 8, and one of 4.
  EXPECT_DOUBLE_EQ(rate(ClusterSetup::kRunForEachHost, 100, 2), 800e6);
}

TEST(ClusterModel, TablesAndChartHaveWhatWasMeasured) {
  const std::vector<ClassifyRecord> runs = {MadeUp(1, 5), MadeUp(2, 6.25)};
  const std::string text = ClusterTables(runs);
  EXPECT_THAT(text, HasSubstr("| 1 | 40000000 | 5.00 | 8.0 | 1.00 | 3.9 | 8.0 "
                              "| 10 | 8.0 |\n"));
  EXPECT_THAT(text, HasSubstr("| 2 | 80000000 | 6.25 | 12.8 | 1.60 | 3.9 | 8.0 "
                              "| 10 | 16.0 |\n"));
  EXPECT_THAT(text, HasSubstr("| 10000 | 6.9 h | 2.8 h | 12 s | 62.72 |\n"));
  const Chart chart = ClusterChart(runs);
  EXPECT_EQ(chart.name, "cluster");
  EXPECT_THAT(chart.wide, HasSubstr("measured"));
}

TEST(ClusterModel, RunsAreReadInOrder) {
  const std::string folder = ::testing::TempDir();
  const auto none = ReadClusterRuns(folder + "/nowhere");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(*none, SizeIs(0));
  for (const int gpus : {1, 2}) {
    ASSERT_TRUE(
        WriteFileAtomically(absl::StrCat(folder, "/classify-", gpus, ".json"),
                            ToJson(MadeUp(gpus, 5)))
            .ok());
  }
  const auto two = ReadClusterRuns(folder);
  ASSERT_TRUE(two.ok()) << two.status();
  ASSERT_THAT(*two, SizeIs(2));
  EXPECT_THAT((*two)[1].shares, SizeIs(2));
  ASSERT_TRUE(
      WriteFileAtomically(folder + "/classify-2.json", ToJson(ClassifyRecord()))
          .ok());
  EXPECT_THAT(std::string(ReadClusterRuns(folder).status().message()),
              HasSubstr("classify-2.json: the record lacks shares or times"));
}

}  // namespace
}  // namespace convlab
