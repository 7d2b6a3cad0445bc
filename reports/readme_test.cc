#include <sys/stat.h>

#include <cstdlib>
#include <string>

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
