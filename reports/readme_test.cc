#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/readme_content.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

std::string Source(absl::string_view path) {
  return absl::StrCat(std::getenv("TEST_SRCDIR"), "/convlab/", path);
}

TEST(Readme, SaysWhatTheRecordsSay) {
  const std::string readme = *ReadFile(Source("README.md"));
  const auto updated = UpdateReadme(readme, Source("reports/measured"));
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(*updated, readme) << "stale: run bazel run //reports:readme";
}

TEST(Readme, ChartsShowWhatTheRecordsSay) {
  const auto charts = ReadmeCharts(Source("reports/measured"));
  ASSERT_TRUE(charts.ok()) << charts.status();
  for (const auto& [name, content] : *charts) {
    EXPECT_EQ(*ReadFile(Source("reports/charts/" + name)), content)
        << "stale: run bazel run //reports:readme";
  }
}

TEST(Readme, BenchmarksRecordsAreShownWhereTheyAre) {
  namespace fs = std::filesystem;
  const std::string measured = ::testing::TempDir() + "/measured";
  for (const char* machine : {"cpu", "h200"}) {
    fs::create_directories(absl::StrCat(measured, "/", machine));
    for (const auto& entry : fs::directory_iterator(
             Source(absl::StrCat("reports/measured/", machine)))) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file() && !absl::StartsWith(name, "bench-")) {
        fs::create_symlink(fs::absolute(entry.path()),
                           absl::StrCat(measured, "/", machine, "/", name));
      }
    }
  }
  const std::string readme = *ReadFile(Source("README.md"));
  const auto without = UpdateReadme(readme, measured);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_THAT(*without, HasSubstr("Not measured: `bench-fp32`, "));
  EXPECT_EQ(ReadmeCharts(measured)->count("layers.gp"), 0);
  fs::create_symlink(fs::absolute(Source("reports/testdata/bench-fp32.json")),
                     measured + "/h200/bench-fp32.json");
  const auto with = UpdateReadme(readme, measured);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_THAT(*with, HasSubstr("| fa19-L1 | `direct_tiled` | 0.796 |"));
  EXPECT_THAT(*with, HasSubstr("](reports/charts/layers.svg)"));
  EXPECT_EQ(ReadmeCharts(measured)->count("layers.gp"), 1);
}

TEST(Readme, ChangedNumbersAreFound) {
  const std::string readme = *ReadFile(Source("README.md"));
  const std::string changed =
      absl::StrReplaceAll(readme, {{"| `im2col_eigen` | ", "| `x` | "}});
  ASSERT_NE(changed, readme);
  EXPECT_EQ(*UpdateReadme(changed, Source("reports/measured")), readme);
}

TEST(Readme, RecordsThatLackSomethingAreNamed) {
  const std::string cpu = ::testing::TempDir() + "/cpu";
  mkdir(cpu.c_str(), 0777);
  ASSERT_TRUE(WriteFileAtomically(cpu + "/m2-fa19-1000-naive.json",
                                  R"({"schema": "convlab.run/1"})")
                  .ok());
  EXPECT_THAT(
      std::string(UpdateReadme("", ::testing::TempDir()).status().message()),
      HasSubstr("m2-fa19-1000-naive.json: the record lacks convolutions"));
}

TEST(Readme, ErrorsNameRecordAndPassage) {
  EXPECT_THAT(std::string(UpdateReadme("", "nowhere").status().message()),
              HasSubstr("nowhere/cpu/"));
  EXPECT_THAT(
      std::string(
          UpdateReadme("", Source("reports/measured")).status().message()),
      HasSubstr("<!-- begin output -->"));
}

}  // namespace
}  // namespace convlab
