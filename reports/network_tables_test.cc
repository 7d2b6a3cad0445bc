#include "reports/network_tables.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/passages.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

void AddRow(NetworkRecord& record, const char* network, int64_t images,
            const char* provider, const char* path, double us) {
  NetworkRow row;
  row.network = network;
  row.images = images;
  row.provider = provider;
  row.path = path;
  row.least_us = row.p50_us = us;
  row.p90_us = row.p99_us = 1.5 * us;
  row.images_per_s = static_cast<double>(images) / us * 1e6;
  row.samples = 20;
  record.rows.push_back(row);
}

// Numbers that nobody measured.
NetworkRecord MadeUp() {
  NetworkRecord record;
  record.device = "gpu";
  record.gpu.name = "NVIDIA X1";
  record.git_revision = "1234";
  record.peer = "cuDNN 9";
  AddRow(record, "sp19", 4096, "convlab", kFloatsPath, 64);
  for (const int64_t images : {10000, 1, 100}) {
    for (const char* path : {kHostPath, kDevicePath}) {
      AddRow(record, "fa19", images, "convlab", path, 10 + 0.1 * images);
    }
    AddRow(record, "fa19", images, "cudnn", kHostPath, 20 + images);
  }
  record.rows.back().sm_clock_mhz = 1980;
  return record;
}

TEST(NetworkTables, DigestHasOursAndTheLibrarys) {
  EXPECT_EQ(NetworksDigest(MadeUp()),
            "Measured on NVIDIA X1, revision 1234, beside cuDNN 9 and cuBLAS "
            "layer by layer as a graph. Medians, ours : the library's.\n\n"
            "| network | 1 image, host | 100 images, host | 10,000 images, "
            "host | 10,000 images, device |\n|---|---|---|---|---|\n"
            "| sp19 | – | – | – | – |\n"
            "| fa19 | 10.1 µs : 21.0 µs | 20.0 µs : 120 µs | 1.01 ms : 10.0 ms "
            "| 1.01 ms : – |\n");
}

TEST(NetworkTables, FiguresHaveALineForEachOfOurRows) {
  EXPECT_THAT(
      NetworksFigures(MadeUp()),
      AllOf(HasSubstr("| sp19 | 4096 | floats | 64.0 µs | 96.0 µs | 64.0 M | "
                      "– | – | – | – |\n"),
            HasSubstr("| fa19 | 1 | host | 10.1 µs | 15.1 µs | 99.0 k | 21.0 "
                      "µs | 31.5 µs | 2.08× | – |\n")));
}

TEST(NetworkTables, SeveralGpusStandBesideOne) {
  NetworkRecord record = MadeUp();
  AddRow(record, "fa19", 10000, "convlab", kDevicesPath, 800);
  AddRow(record, "fa19", 20000, "convlab", kDevicesPath, 816);
  AddRow(record, "sp19", 20000, "convlab", kDevicesPath, 408);
  for (const size_t i : {1, 2}) record.rows[record.rows.size() - i].gpus = 2;
  EXPECT_EQ(SeveralGpusTable(record),
            "Measured on NVIDIA X1, revision 1234.\n\n"
            "| network | GPUs | images | p50 | images/s | times one GPU |\n"
            "|---|---|---|---|---|---|\n"
            "| fa19 | 1 | 10000 | 800 µs | 12.5 M | 1.00 |\n"
            "| fa19 | 2 | 20000 | 816 µs | 24.5 M | 1.96 |\n"
            "| sp19 | 2 | 20000 | 408 µs | 49.0 M | – |\n");
}

TEST(NetworkTables, ChartsHaveACurveForEachProviderAndPath) {
  const std::vector<Chart> charts = NetworkCharts(MadeUp());
  ASSERT_EQ(charts.size(), 2u);
  EXPECT_EQ(charts[0].name, "networks-rate");
  EXPECT_THAT(charts[0].wide,
              AllOf(HasSubstr(">fa19, NVIDIA X1</text>"),
                    HasSubstr(">throughput, million images/s (logarithmic)<"),
                    HasSubstr("<title>ours, in device memory: 5, images "
                              "(logarithmic): 100</title>"),
                    HasSubstr("<title>cuDNN 9, from host memory: 0.998, ")));
  EXPECT_THAT(charts[1].wide,
              AllOf(HasSubstr(">fa19 from host memory, NVIDIA X1</text>"),
                    HasSubstr("<title>cuDNN 9, 99th percentile: 31.5, ")));
  NetworkRecord others;
  AddRow(others, "sp19", 4096, "convlab", kFloatsPath, 64);
  EXPECT_TRUE(NetworkCharts(others).empty());
}

TEST(NetworkTables, ARecordMayBeMissingButNotEmpty) {
  const std::string measured = ::testing::TempDir();
  const std::string folder = measured + "/h200";
  ASSERT_EQ(std::system(absl::StrCat("mkdir -p ", folder).c_str()), 0);
  const std::string document =
      "<!-- begin whole networks digest -->\n<!-- end whole networks digest "
      "-->\n<!-- begin whole networks -->\n<!-- end whole networks -->\n";
  const auto without = UpdatePassages(document, measured);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_THAT(*without, AllOf(HasSubstr("Not measured."),
                              Not(HasSubstr("networks-rate.svg"))));
  const std::string path = folder + "/network.json";
  ASSERT_TRUE(WriteFileAtomically(path, ToJson(MadeUp())).ok());
  const auto with = UpdatePassages(document, measured);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_THAT(*with, AllOf(Not(HasSubstr("Not measured.")),
                           HasSubstr("reports/charts/networks-rate.svg"),
                           HasSubstr("| fa19 | 1 | host |")));
  ASSERT_TRUE(WriteFileAtomically(path, ToJson(NetworkRecord())).ok());
  EXPECT_THAT(std::string(ReadNetworks(path).status().message()),
              HasSubstr("network.json: the record lacks rows"));
}

}  // namespace
}  // namespace convlab
