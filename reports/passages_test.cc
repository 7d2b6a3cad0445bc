#include "reports/passages.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files/files.h"
#include "common/record/ladder_rows.h"
#include "common/record/run_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

std::string Source(absl::string_view path) {
  return absl::StrCat(std::getenv("TEST_SRCDIR"), "/convlab/", path);
}

TEST(Passages, SayWhatTheRecordsSay) {
  for (const std::string& name : GeneratedDocuments()) {
    const std::string document = *ReadFile(Source(name));
    const auto updated = UpdatePassages(document, Source("reports/measured"));
    ASSERT_TRUE(updated.ok()) << name << ": " << updated.status();
    EXPECT_EQ(*updated, document)
        << name << " is stale: run bazel run //reports:readme";
  }
}

// A lesson that is slower than the one before it says why it stands there.
TEST(Passages, LessonsGetFasterOrSayWhyNot) {
  const auto record =
      ReadRunRecord(Source("reports/measured/h200/m4-fa19.json"));
  ASSERT_TRUE(record.ok()) << record.status();
  int lessons = 0;
  for (const LadderRow& row : RowsOf(*record).rows) {
    lessons += row.is_lesson;
    if (row.than_before.value_or(1) >= 1) continue;
    EXPECT_GT(row.variant->detour.size(), 20u) << row.run->variant;
  }
  EXPECT_GE(lessons, 10);
}

TEST(Passages, ChartsShowWhatTheRecordsSay) {
  const auto charts = PassageCharts(Source("reports/measured"));
  ASSERT_TRUE(charts.ok()) << charts.status();
  for (const auto& [name, content] : *charts) {
    EXPECT_EQ(*ReadFile(Source("reports/charts/" + name)), content)
        << "stale: run bazel run //reports:readme";
  }
}

TEST(Passages, BenchmarksRecordsAreShownWhereTheyAre) {
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
  const std::string document =
      "<!-- begin headline -->\n<!-- end headline -->\n"
      "<!-- begin layers -->\n<!-- end layers -->\n";
  const auto without = UpdatePassages(document, measured);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_THAT(*without, HasSubstr("Not measured: `bench-fp32`, "));
  EXPECT_EQ(PassageCharts(measured)->count("layers.svg"), 0);
  fs::create_symlink(fs::absolute(Source("reports/testdata/bench-fp32.json")),
                     measured + "/h200/bench-fp32.json");
  const auto with = UpdatePassages(document, measured);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_THAT(*with, HasSubstr("| fa19-L1 | `direct_tiled` | 0.796 |"));
  EXPECT_THAT(*with, HasSubstr("](../reports/charts/layers.svg)"));
  EXPECT_EQ(PassageCharts(measured)->count("layers.svg"), 1);
}

TEST(Passages, ChangedNumbersAreFound) {
  const std::string document = *ReadFile(Source("docs/results.md"));
  const std::string changed =
      absl::StrReplaceAll(document, {{"| `im2col_eigen` | ", "| `x` | "}});
  ASSERT_NE(changed, document);
  EXPECT_EQ(*UpdatePassages(changed, Source("reports/measured")), document);
}

TEST(Passages, RecordsThatLackSomethingAreNamed) {
  const std::string cpu = ::testing::TempDir() + "/cpu";
  mkdir(cpu.c_str(), 0777);
  ASSERT_TRUE(WriteFileAtomically(cpu + "/m2-fa19-1000-naive.json",
                                  R"({"schema": "convlab.run/1"})")
                  .ok());
  const absl::Status status =
      UpdatePassages("<!-- begin cpu lessons -->\n", ::testing::TempDir())
          .status();
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("m2-fa19-1000-naive.json: the record lacks convolutions"));
}

TEST(Passages, ErrorsNameRecordAndPassage) {
  const auto error = [](absl::string_view document,
                        const std::string& measured) {
    return std::string(UpdatePassages(document, measured).status().message());
  };
  const std::string begin = "<!-- begin output -->\n";
  EXPECT_THAT(error(begin, "nowhere"), HasSubstr("nowhere/cpu/"));
  EXPECT_THAT(error(begin, Source("reports/measured")),
              HasSubstr("there is no line <!-- end output -->"));
  EXPECT_THAT(error("<!-- begin x -->\n", Source("reports/measured")),
              HasSubstr("there is no passage 'x': expected one of output, "));
}

}  // namespace
}  // namespace convlab
