#include "reports/importers/import.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files/files.h"
#include "common/record/profile_text.h"
#include "common/record/run_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/importers/expectations.h"
#include "reports/importers/listing.h"
#include "reports/importers/shares.h"
#include "reports/importers/test_files.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

std::string Error(absl::string_view content) {
  return ErrorOf(ParseProfile(content));
}

TEST(Import, TellsToolsByContent) {
  for (const auto& [name, tool] :
       {std::pair("nvprof/fa17_baseline_gpu.txt", "nvprof"),
        std::pair("nvprof/fa19_naive_api.txt", "nvprof"),
        std::pair("nvprof/csv_2020.csv", "nvprof"),
        std::pair("nvprof/csv_2017.csv", "nvprof"),
        std::pair("nsys/kern_sum.csv", "nsys"),
        std::pair("nsys/stats_text_2020.txt", "nsys"),
        std::pair("nsys/stats_box_us_2026.txt", "nsys"),
        std::pair("ncu/details_2021.csv", "ncu"),
        std::pair("ncu/raw_2024.csv", "ncu")}) {
    EXPECT_EQ(ParsedFile(ParseProfile, name).tool, tool) << name;
    const auto marked =
        ParseProfile(absl::StrCat("\xEF\xBB\xBF", TestFile(name)));
    EXPECT_TRUE(marked.ok()) << marked.status();
  }
  EXPECT_EQ(ParseProfile(NsysDatabase())->tool, "nsys");
}

// The lists' entries and what is told about them.
std::string Listed(const Profile& profile) {
  return FormatProfiles({{"file", profile}}, 100, ListingFormat::kCsv);
}

bool TellsThatMoreMayBeMissing(const Profile& profile) {
  for (const ProfileSection* section :
       {&profile.gpu_activities, &profile.api_calls}) {
    if (absl::StrContains(section->missing, "more may be missing")) return true;
  }
  return false;
}

TEST(Import, ACutWithinALineIsRefusedOrTold) {
  int cuts = 0;
  for (const char* name :
       {"nvprof/fa17_baseline_gpu.txt", "nvprof/fa19_naive_gpu_wrapped.txt",
        "nvprof/text_2017_both.txt", "nvprof/text_2020_both.txt",
        "nvprof/csv_2020.csv", "nsys/kern_sum.csv", "nsys/stats_csv_2022.csv",
        "nsys/stats_text_2025.txt", "nsys/stats_box_us_2026.txt",
        "ncu/details_2021.csv", "ncu/details_2025.csv", "ncu/raw_2024.csv"}) {
    const std::string whole = TestFile(name);
    const std::string listed = Listed(ParsedFile(ParseProfile, name));
    for (size_t size = 1; size < whole.size(); size += 3) {
      if (whole[size - 1] == '\n') continue;
      const auto profile = ParseProfile(whole.substr(0, size));
      if (!profile.ok() || Listed(*profile) == listed) continue;
      ++cuts;
      EXPECT_TRUE(TellsThatMoreMayBeMissing(*profile))
          << name << " cut to " << size << " bytes";
    }
  }
  EXPECT_GT(cuts, 500);
}

TEST(Import, ACutAfterALineIsToldWhereTheFileTells) {
  // Shares that do not add up.
  const std::string text = TestFile("nvprof/text_2017_both.txt");
  const auto cut =
      ParseProfile(text.substr(0, text.rfind('\n', text.size() - 2)) + "\n");
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_TRUE(LargestShares(cut->api_calls, 90).from_printed);
  // A name that ends within a bracket.
  const std::string wrapped = TestFile("nvprof/fa19_naive_gpu_wrapped.txt");
  const size_t comma = wrapped.rfind(",\n");
  const auto open = ParseProfile(wrapped.substr(0, comma + 2));
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_THAT(open->gpu_activities.missing,
              HasSubstr("the file's last name has no end"));
  // A launch without the metrics of the one before.
  const std::string details = TestFile("ncu/details_european_locale.csv");
  const auto launch =
      ParseProfile(details.substr(0, details.rfind("\"2\",\"")));
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_THAT(launch->gpu_activities.missing,
              HasSubstr("the last launch lacks"));
  // Launches of which ncu told.
  const auto fewer = ParseProfile(
      "==PROF== Profiling \"a\" - 0: 0%....100% - 9 passes\n"
      "==PROF== Profiling \"b\" - 1: 0%....100% - 9 passes\n" +
      TestFile("ncu/details_2021.csv"));
  ASSERT_TRUE(fewer.ok()) << fewer.status();
  EXPECT_THAT(fewer->gpu_activities.missing,
              HasSubstr("ncu profiled 3 launches, the file holds 1"));
}

TEST(Import, AFileWithoutAnEndIsRefused) {
  EXPECT_THAT(ErrorOf(ImportProfile("/dev/zero")),
              HasSubstr("/dev/zero: it has more than"));
}

TEST(Import, OurOwnRecordsComeBackWhole) {
  for (const char* name : {"nvprof/fa19_naive_api.txt", "ncu/raw_2024.csv",
                           "nsys/stats_text_2023_2.txt"}) {
    RunRecord record;
    record.profile = ParsedFile(ParseProfile, name);
    const auto again = ParseProfile(ToJson(record));
    ASSERT_TRUE(again.ok()) << again.status();
    RunRecord copy;
    copy.profile = *again;
    EXPECT_EQ(ToJson(copy), ToJson(record));
  }
}

TEST(Import, OurOwnSummariesComeBack) {
  Profile profile;
  profile.gpu_activities.entries = {
      {"f(int, int)", 3, 15000, 5000.0, 4000, 6000, {}, {}},
      {"void g<2>(float*)", {}, 9000, {}, {}, {}, {}, {}},
      {"[CUDA memset]", 3, 1000, 333.0, {}, {}, {}, {}}};
  profile.gpu_activities.missing = "2 records were dropped";
  profile.api_calls.entries = {{"cudaMalloc", {}, 800, {}, {}, {}, {}, {}}};
  profile.api_calls.missing = "2 records were dropped";
  const auto again = ParseProfile(ProfileText(profile));
  ASSERT_TRUE(again.ok()) << again.status();
  for (const auto& [before, after] :
       {std::pair(profile.gpu_activities, again->gpu_activities),
        std::pair(profile.api_calls, again->api_calls)}) {
    ASSERT_EQ(after.entries.size(), before.entries.size());
    for (size_t i = 0; i < before.entries.size(); ++i) {
      EXPECT_EQ(after.entries[i].name, before.entries[i].name);
      EXPECT_EQ(after.entries[i].calls, before.entries[i].calls);
      EXPECT_EQ(after.entries[i].total_ns, before.entries[i].total_ns);
      EXPECT_EQ(after.entries[i].average_ns, before.entries[i].average_ns);
      EXPECT_EQ(after.entries[i].max_ns, before.entries[i].max_ns);
    }
  }
}

TEST(Import, RecordsOfImpossibleNumbers) {
  RunRecord record;
  ProfileEntry entry;
  entry.name = "cudaMalloc";
  entry.total_ns = -5;
  record.profile.emplace().api_calls.entries = {entry};
  EXPECT_THAT(Error(ToJson(record)),
              HasSubstr("profile.api_calls.entries[0].total_ns is -5, expected "
                        "0 to"));
  record.profile->api_calls.entries[0].total_ns = int64_t{1} << 62;
  EXPECT_THAT(Error(ToJson(record)),
              HasSubstr("total_ns is 4611686018427387904, expected 0 to"));
}

// In quadratic time they would take minutes.
TEST(Import, LinesThatMayBeHeadersTakeAsLongAsTheyAre) {
  for (const absl::string_view line :
       {"\"Time(%)\",\"Name\",\"Kernel Name\",\"ID\n",
        "Time(%),\"Kernel Name\n", "\"ID\",\"Kernel Name\" ID\n"}) {
    std::string text;
    while (text.size() < 4 << 20) absl::StrAppend(&text, line);
    EXPECT_FALSE(ParseProfile(text).ok()) << line;
  }
}

TEST(Import, WhatHoldsNoProfile) {
  EXPECT_THAT(Error(""), HasSubstr("the file is empty"));
  EXPECT_THAT(Error("hello\n"), HasSubstr("no profile found: expected"));
  EXPECT_THAT(Error(ToJson(RunRecord())), HasSubstr("holds no profile"));
  EXPECT_THAT(Error("{\"events\": []}"), HasSubstr("no field \"schema\""));
  EXPECT_THAT(Error("{\"traceEvents\": []}"), HasSubstr("holds no event"));
  EXPECT_THAT(Error(R"({"traceEvents":[{"ph":"X","name":"k","ts":1}]})"),
              HasSubstr("no times \"ts\" and \"dur\""));
  EXPECT_THAT(Error(absl::string_view("\x7F"
                                      "ELF\0\0",
                                      6)),
              HasSubstr("a binary file"));
  EXPECT_THAT(Error(absl::string_view("\xFF\xFET\0i\0", 6)),
              HasSubstr("UTF-16"));
  EXPECT_THAT(Error("==PROF== Connected\n  conv(float *), Context 1\n"),
              HasSubstr("run ncu with --csv"));
  const std::string raw = TestFile("ncu/raw_2024.csv");
  EXPECT_THAT(Error(absl::StrReplaceAll(raw, {{"Kernel Name", "Kerne Name"}})),
              HasSubstr("without the header of a CSV page"));
  EXPECT_THAT(Error(TestFile("ncu/raw_2024.csv") +
                    TestFile("nvprof/fa19_naive_api.txt")),
              HasSubstr("profiles of two tools"));
}

TEST(Import, FilesAndTheirNames) {
  EXPECT_EQ(ImportProfile("/none/such").status().code(),
            absl::StatusCode::kNotFound);
  const std::string path = ::testing::TempDir() + "/profile";
  ASSERT_TRUE(WriteFileAtomically(path, "hello").ok());
  EXPECT_THAT(ErrorOf(ImportProfile(path)), HasSubstr("profile: no profile"));
  ASSERT_TRUE(WriteFileAtomically(path, NsysDatabase()).ok());
  EXPECT_EQ(ImportProfile(path)->tool, "nsys");
  ASSERT_TRUE(WriteFileAtomically(path, SqliteDatabase("")).ok());
  ASSERT_TRUE(
      WriteFileAtomically(path, SqliteDatabase("CREATE TABLE a (b);")).ok());
  EXPECT_THAT(ErrorOf(ImportProfile(path)), HasSubstr("profile: a SQLite"));
  ASSERT_TRUE(
      WriteFileAtomically(path, TestFile("nvprof/fa19_naive_api.txt")).ok());
  EXPECT_EQ(ImportProfile(path)->tool, "nvprof");
}

}  // namespace
}  // namespace convlab
