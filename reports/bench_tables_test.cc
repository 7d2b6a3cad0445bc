#include "reports/bench_tables.h"

#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

BenchRow Row(const char* layer, int64_t batch, const char* provider,
             const char* variant, const char* accuracy_class, double ms) {
  BenchRow row;
  row.layer = layer;
  row.batch = batch;
  row.channels = 2;
  row.height = row.width = 20;
  row.filters = 8;
  row.kernel_size = 5;
  row.provider = provider;
  row.variant = variant;
  row.accuracy_class = accuracy_class;
  row.error = 3e-7;
  row.median_ms = ms;
  row.iqr_ms = 0.01;
  row.floor_ms = 0.25;
  return row;
}

BenchRecord Record(std::vector<BenchRow> rows) {
  BenchRecord record;
  record.gpu.name = "A GPU";
  record.git_revision = "1234";
  record.peer = "cuDNN 9";
  record.ceilings.fill_gbs = 4321.5;
  record.rows = std::move(rows);
  return record;
}

TEST(LayersTable, HasOurFastestBesideTheLibrarysBest) {
  BenchRecord record = Record({
      Row("a-L1", 10, "convlab", "slow", "fp32", 2),
      Row("a-L1", 10, "convlab", "fast", "fp32", 0.5),
      Row("a-L1", 10, "convlab", "half", "fp16", 0.1),
      Row("a-L1", 10, "cudnn", "NCHW FFT", "fp32", 1),
      Row("a-L1", 10, "cudnn", "NCHW x", "fp16", 0.3),
      Row("b", 10, "convlab", "fast", "fp32", 0.05),
      Row("b", 10, "cudnn", "NCHW FFT", "fp32", 0.4),
      Row("alone", 10, "convlab", "fast", "fp32", 1),
      Row("not ours", 10, "cudnn", "NCHW FFT", "fp32", 1),
  });
  record.rows[1].sm_clock_mhz = 1980;
  record.rows[7].floor_ms.reset();
  EXPECT_EQ(
      LayersTable(record),
      "| layer | ours | ms | IQR, ms | cuDNN, ms | speedup | floor, ms | "
      "share of the floor | error | SM clock, MHz |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n"
      "| a-L1 | `fast` | 0.500 | 0.0100 | 1.000 | 2.00× | 0.250 | 50 % | 3e-07 "
      "| 1980 |\n"
      "| b | `fast` | 0.0500 | 0.0100 | 0.400 | 8.00× | 0.250 | 500 % | 3e-07 "
      "| – |\n"
      "| alone | `fast` | 1.000 | 0.0100 | – | – | – | – | 3e-07 | – |\n"
      "\nGeometric mean over 2 layers: 4.00 times as fast as cuDNN.\n");
  // A plan that breaks the contract is told beside it.
  BenchRecord both = record;
  both.rows.push_back(Row("b", 10, "cudnn", "NCHW FFT", "fp32-normwise", 0.1));
  EXPECT_THAT(
      LayersTable(both),
      ::testing::HasSubstr("4.00 times as fast as cuDNN, and 2.00 times "
                           "as fast as its fastest plans of all, "));
  const std::vector<ChartedLayer> times = TimesOf(record);
  ASSERT_EQ(times.size(), 3u);
  EXPECT_EQ(times[0].ours, 0.5);
  EXPECT_EQ(times[0].peer, 1);
  EXPECT_EQ(times[2].peer, std::nullopt);
  EXPECT_EQ(times[2].floor, std::nullopt);
}

TEST(HalfPrecisionTable, LeavesOutLayersOfOneChannel) {
  BenchRecord record = Record({
      Row("a-L1", 10, "convlab", "half", "fp16", 0.2),
      Row("a-L2", 10, "convlab", "half", "fp16", 0.2),
      Row("a-L2", 10, "convlab", "fast", "fp32", 0.1),
      Row("a-L2", 10, "cudnn", "NHWC x", "fp16", 0.3),
  });
  record.rows[0].channels = 1;
  EXPECT_THAT(HalfPrecisionTable(record),
              AllOf(HasSubstr("| a-L2 | `half` | 0.200 | 0.0100 | 0.300 | "
                              "1.50× | 3e-07 |\n"),
                    Not(HasSubstr("a-L1"))));
}

TEST(BatchesTable, HasAColumnPerBatch) {
  const BenchRecord record = Record({
      Row("a", 1000, "convlab", "fast", "fp32", 0.5),
      Row("a", 1000, "cudnn", "x", "fp32", 1),
      Row("a", 1, "convlab", "fast", "fp32", 0.005),
      Row("a", 1, "cudnn", "x", "fp32", 0.004),
      Row("b", 1, "convlab", "fast", "fp32", 0.005),
  });
  EXPECT_EQ(BatchesTable(record),
            "| layer | 1 image | 1,000 images |\n|---|---|---|\n"
            "| a | 0.0050 : 0.0040 = 0.80× | 0.500 : 1.000 = 2.00× |\n"
            "| b | – | – |\n");
}

TEST(NeighboursText, NamesSlowNeighbours) {
  BenchRecord record = Record({
      Row("a", 10, "convlab", "fast", "fp32", 0.5),
      Row("10,3,20,20,8,5", 10, "convlab", "fast", "fp32", 1.25),
      Row("10,2,20,20,9,5", 10, "convlab", "fast", "fp32", 0.625),
  });
  record.rows[1].neighbour_of = record.rows[2].neighbour_of = "a";
  record.rows[1].channels = 3;
  record.rows[2].filters = 9;
  const std::string text = NeighboursText(record);
  EXPECT_THAT(text, HasSubstr("1 of 2 neighbours "));
  EXPECT_THAT(text, HasSubstr("; less: a C+1 (0.40)."));
  EXPECT_THAT(text, HasSubstr("of each layer: a 0.40 (C+1).\n"));
  // A neighbour is not listed as a layer.
  EXPECT_EQ(TimesOf(record).size(), 1u);
}

TEST(BenchPassage, NamesMissingRecords) {
  BenchRecords records;
  EXPECT_EQ(BenchPassage(records, "c.svg"),
            "Not measured: `bench-fp32`, `bench-fp16`, `bench-small`, "
            "`bench-neighbours`. On a GPU machine, `tools/measure_gpu.sh "
            "BUNDLE reports/measured/h200 --only 'bench-*'` does.\n");
  records.fp32 = Record({Row("a", 10, "convlab", "fast", "fp32", 0.5)});
  const std::string passage = BenchPassage(records, "c.svg");
  EXPECT_THAT(passage,
              HasSubstr("Measured on A GPU, revision 1234, beside cuDNN 9.\n"));
  EXPECT_THAT(passage, HasSubstr("4322 GB/s written"));
  EXPECT_THAT(passage, HasSubstr("](c.svg)\n"));
  EXPECT_THAT(passage, HasSubstr("| a | `fast` |"));
  EXPECT_THAT(passage,
              HasSubstr("Not measured: `bench-fp16`, `bench-small`, "));
  records.fp16 = records.small = records.neighbours = records.fp32;
  EXPECT_THAT(BenchPassage(records, "c.svg"), Not(HasSubstr("Not measured")));
}

TEST(ReadBenchRecords, ReadsTheRecordsThatExist) {
  const auto records = ReadBenchRecords("reports/testdata");
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_TRUE(records->fp32.has_value());
  EXPECT_FALSE(records->small.has_value());
  std::vector<std::string> layers;
  for (const ChartedLayer& times : TimesOf(*records->fp32)) {
    EXPECT_GT(times.peer.value_or(0), times.ours);
    EXPECT_LT(times.floor.value_or(0), times.ours);
    layers.push_back(times.layer);
  }
  EXPECT_THAT(layers, ElementsAre("fa17", "sp19-L2", "fa19-L1", "fa19-L2"));
}

TEST(ReadBenchRecords, DamagedOnesAreNamed) {
  const std::string folder = ::testing::TempDir() + "/damaged";
  mkdir(folder.c_str(), 0777);
  const std::string path = folder + "/bench-small.json";
  const auto error = [&](const std::string& content) {
    EXPECT_TRUE(WriteFileAtomically(path, content).ok());
    return std::string(ReadBenchRecords(folder).status().message());
  };
  EXPECT_EQ(error(ToJson(BenchRecord())),
            absl::StrCat(path, ": the record lacks rows"));
  BenchRecord record = Record({Row("a", 1, "convlab", "x", "fp32", 1)});
  EXPECT_EQ(error(ToJson(record)), "");
  record.rows.push_back(Row("a", 1, "convlab", "y", "fp32", 0));
  EXPECT_THAT(error(ToJson(record)),
              HasSubstr("record.rows[1].median_ms is 0, expected more than 0"));
  record.rows[1] = Row("", 1, "convlab", "y", "fp32", 1);
  EXPECT_THAT(error(ToJson(record)),
              HasSubstr("record.rows[1] names no layer"));
  EXPECT_THAT(error("{"), HasSubstr("not valid JSON"));
}

}  // namespace
}  // namespace convlab
