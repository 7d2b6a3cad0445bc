#include "reports/accuracy_tables.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

BenchRecord Example() {
  BenchRecord record;
  record.gpu.name = "A GPU";
  record.git_revision = "1234";
  record.peer = "cuDNN 9";
  record.accuracy = {
      {"convlab",
       "naive",
       "fp32",
       {{"uniform", "fa19-L2", 2.54, 16}, {"bytes", "fa18", 20.0, 40}}},
      {"convlab",
       "split",
       "fp32",
       {{"uniform", "fa19-L2", 1.5, 16}, {"bytes", "fa18", 15.0, 16}}},
      {"convlab",
       "fft",
       "fp32-normwise",
       {{"uniform", "fa19-L2", 12345, 16}, {"bytes", "fa18", {}, 16}}},
      {"cudnn",
       "FFT",
       "fp32-normwise",
       {{"uniform", "fa19-L2", 17.0, 16}, {"bytes", "fa18", 3.0, 16}}}};
  return record;
}

TEST(AccuracyTable, HasARowForEachImplementation) {
  const std::string table = AccuracyTable(Example());
  EXPECT_THAT(table, HasSubstr("Measured on A GPU, revision 1234, beside cuDNN "
                               "9.\n\n| implementation | class | uniform | "
                               "bytes |\n|---|---|---|---|\n"));
  EXPECT_THAT(table, HasSubstr("| `naive` | fp32 | 2.5 | 20.0 |\n"));
  EXPECT_THAT(table,
              HasSubstr("| `fft` | fp32-normwise | **1e+04** | **∞** |\n"));
  EXPECT_THAT(table,
              HasSubstr("| cuDNN FFT | fp32-normwise | **17.0** | 3.0 |\n"));
}

TEST(AccuracyDigest, HasTheWorstOfEachKind) {
  const std::string table = AccuracyDigest(Example());
  // 15 of 16 is worse than 20 of 40.
  EXPECT_THAT(table, HasSubstr("| uniform | 2.5 | **1e+04** | – | **17.0** |\n"
                               "| bytes | 15.0 | **∞** | – | 3.0 |\n"));
}

TEST(CheckAccuracy, NamesTheRowThatLacksSomething) {
  EXPECT_TRUE(CheckAccuracy(Example()).ok());
  EXPECT_THAT(std::string(CheckAccuracy(BenchRecord()).message()),
              HasSubstr("lacks rows of accuracy"));
  BenchRecord other = Example();
  other.accuracy[1].families[1].family = "dark";
  EXPECT_THAT(std::string(CheckAccuracy(other).message()),
              HasSubstr("record.accuracy[1], of split: expected"));
  BenchRecord nothing = Example();
  nothing.accuracy[2].families[0].allowed = 0;
  EXPECT_FALSE(CheckAccuracy(nothing).ok());
}

}  // namespace
}  // namespace convlab
