#include "reports/importers/nsys_stats.h"

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/importers/expectations.h"
#include "reports/importers/test_files.h"

namespace convlab {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string Error(const std::string& content) {
  return ErrorOf(ParseNsysStats(content));
}

TEST(NsysStats, Text) {
  const Profile profile =
      ParsedFile(ParseNsysStats, "nsys/stats_text_2023_2.txt");
  EXPECT_EQ(profile.tool, "nsys");
  EXPECT_THAT(Over90(profile.api_calls),
              ElementsAre("cudaMalloc 89.82", "cudaLaunchKernel 99.39"));
  EXPECT_THAT(
      Over90(profile.gpu_activities),
      ElementsAre("[CUDA memcpy DtoH] 70.93", "[CUDA memcpy HtoD] 99.57"));
  EXPECT_THAT(profile.gpu_activities.entries, SizeIs(3));
  EXPECT_EQ(profile.gpu_activities.missing, "");
  EXPECT_EQ(profile.gpu_activities.entries[0].name,
            "vectorAddKernel(const float *, const float *, float *, int)");
  EXPECT_EQ(profile.gpu_activities.entries[0].total_ns, 5087);
  EXPECT_EQ(profile.api_calls.entries[2].average_ns, 501040);
  EXPECT_EQ(profile.api_calls.entries[2].min_ns, 220607);
  EXPECT_EQ(profile.api_calls.entries[2].max_ns, 1060576);
}

TEST(NsysStats, CsvWithCommasInNames) {
  const Profile profile = ParsedFile(ParseNsysStats, "nsys/kern_sum.csv");
  EXPECT_THAT(Over90(profile.gpu_activities),
              ElementsAre(AllOf(HasSubstr("gate_up"), EndsWith(" 50.00")),
                          AllOf(HasSubstr("down"), EndsWith(" 75.00")),
                          AllOf(HasSubstr("matmul"), EndsWith(" 90.00")),
                          "other_kernel 100.00"));
  EXPECT_EQ(profile.gpu_activities.missing,
            "copies and memsets: not in the file");
  EXPECT_EQ(profile.api_calls.missing, "not in the file");
}

TEST(NsysStats, TitlesOf2020WithSeparatorsAndWithoutUnits) {
  const Profile profile =
      ParsedFile(ParseNsysStats, "nsys/stats_text_2020.txt");
  EXPECT_THAT(Over90(profile.api_calls),
              ElementsAre("cudaMalloc 80.00", "cudaMemcpy 100.00"));
  EXPECT_THAT(Over90(profile.gpu_activities),
              ElementsAre(StartsWith("conv_forward_kernel"),
                          "[CUDA memcpy HtoD] 85.71", "[CUDA memset] 100.00"));
  EXPECT_EQ(profile.gpu_activities.entries[0].average_ns, 1500000);
}

TEST(NsysStats, ReportsOf2022WithGrids) {
  const Profile profile = ParsedFile(ParseNsysStats, "nsys/stats_csv_2022.csv");
  EXPECT_EQ(profile.version, "2022.4.2");
  // The OS runtime's list has the same columns.
  EXPECT_THAT(Over90(profile.api_calls), ElementsAre("cudaMalloc 95.00"));
  EXPECT_EQ(profile.api_calls.entries[1].name, "cudaLaunchKernel");
  const auto& entries = profile.gpu_activities.entries;
  ASSERT_THAT(entries, SizeIs(3));
  EXPECT_EQ(entries[0].name,
            "void conv<(int)3, float>(float *, const float *)");
  EXPECT_EQ(entries[0].total_ns, 9000);
  EXPECT_EQ(entries[0].calls, 4);
  EXPECT_EQ(entries[0].average_ns, 2250);
  EXPECT_EQ(entries[0].min_ns, 1400);
  EXPECT_EQ(entries[0].max_ns, 3100);
}

TEST(NsysStats, ProgressAndCutNamesOf2025) {
  const Profile profile =
      ParsedFile(ParseNsysStats, "nsys/stats_text_2025.txt");
  EXPECT_THAT(Over90(profile.api_calls), ElementsAre("cudaMalloc 92.00"));
  // Two kernels whose truncated names are equal are not merged.
  ASSERT_THAT(profile.gpu_activities.entries, SizeIs(4));
  EXPECT_EQ(profile.gpu_activities.entries[1].total_ns, 1000000);
  EXPECT_EQ(profile.gpu_activities.entries[2].name, "[CUDA memcpy HtoD]");
  EXPECT_EQ(profile.gpu_activities.entries[2].total_ns, 36000000);
}

TEST(NsysStats, BoxesAndOtherUnits) {
  const Profile profile =
      ParsedFile(ParseNsysStats, "nsys/stats_box_us_2026.txt");
  EXPECT_EQ(profile.version, "2026.1.1");
  ASSERT_THAT(profile.gpu_activities.entries, SizeIs(1));
  const ProfileEntry& entry = profile.gpu_activities.entries[0];
  EXPECT_EQ(entry.name, "conv(float *)");
  EXPECT_EQ(entry.total_ns, 1000125);
  EXPECT_EQ(entry.calls, 6);
  EXPECT_EQ(entry.min_ns, 99000);
}

TEST(NsysStats, GridsInText) {
  const auto profile = ParseNsysStats(
      "Time (%)  Total Time (ms)  Instances  Avg (us)  GridXYZ  BlockXYZ  "
      "Name\n"
      "-------- ------- ---- ---- ---- ---- ----\n"
      "60.0  6.6  2  3300.0  896 1 1  256 1 1  f(int, int)\n"
      "40.0  4.4  1  4400.0  8,8,1  256,1,1  g(int)\n");
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_THAT(profile->gpu_activities.entries, SizeIs(2));
  EXPECT_EQ(profile->gpu_activities.entries[0].name, "f(int, int)");
  EXPECT_EQ(profile->gpu_activities.entries[0].total_ns, 6600000);
  EXPECT_EQ(profile->gpu_activities.entries[0].average_ns, 3300000);
  EXPECT_EQ(profile->gpu_activities.entries[1].name, "g(int)");
}

TEST(NsysStats, KernelsAndCopiesInOneReport) {
  const auto profile = ParseNsysStats(
      "Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation\n"
      "50.0,500,5,100.0,CUDA_API,cudaMalloc\n"
      "30.0,300,3,100.0,CUDA_KERNEL,\"f(int, int)\"\n"
      "20.0,200,2,100.0,MEMORY_OPER,[CUDA memcpy Device-to-Host]\n");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(Over90(profile->gpu_activities),
              ElementsAre("f(int, int) 60.00", "[CUDA memcpy DtoH] 100.00"));
  EXPECT_THAT(Over90(profile->api_calls), ElementsAre("cudaMalloc 100.00"));
  EXPECT_EQ(profile->gpu_activities.missing, "");
}

TEST(NsysStats, ListsThatAreNotWholeCountWhatTheyLack) {
  // Kernels: 500 of 1000 ns are listed. Copies: all 1000 ns.
  const auto profile = ParseNsysStats(
      "Time (%),Total Time (ns),Instances,Name\n"
      "50.0,500,5,f\n"
      "\n"
      "Time (%),Total Time (ns),Count,Operation\n"
      "100.0,1000,5,[CUDA memset]\n");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(Over90(profile->gpu_activities),
              ElementsAre("[CUDA memset] 50.00", "f 75.00"));
}

TEST(NsysStats, NoCutGivesAWrongTable) {
  for (const char* name : {"nsys/stats_text_2020.txt", "nsys/kern_sum.csv"}) {
    ExpectNoCutGivesAWrongTable(ParseNsysStats, name);
  }
}

TEST(NsysStats, DamagedFiles) {
  const std::string good = TestFile("nsys/kern_sum.csv");
  const auto with = [&](const char* from, const char* to) {
    return Error(absl::StrReplaceAll(good, {{from, to}}));
  };
  EXPECT_THAT(with("25.0,250,344,", "25.0,250,"),
              HasSubstr("line 5, column 1: this row has 8 columns, its header "
                        "has 9"));
  EXPECT_THAT(with("25.0,250,", "25.0,2S0,"),
              HasSubstr("line 5, column 6: '2S0' is in 'S0', expected ns"));
  EXPECT_THAT(with("25.0,250,", "25.0,,"),
              HasSubstr("line 5, column 6: this row has no total time"));
  EXPECT_THAT(
      with("Total Time", "Tot al Time"),
      HasSubstr("line 3, column 1: this header has 0 columns for 'Time'"));
  EXPECT_THAT(with("other_kernel", ""),
              HasSubstr("line 7, column 1: this row has no name"));
  EXPECT_THAT(with("(ns)", "(furlongs)"), HasSubstr("'furlongs'"));
  EXPECT_THAT(Error(good + "\n" + good),
              HasSubstr("line 11, column 1: a second list of the same"));
}

TEST(NsysStats, HeadersThatLostATitle) {
  const std::string good = TestFile("nsys/stats_text_2023_2.txt");
  for (const char* const title :
       {"Num Calls", "Avg (ns)", "Med (ns)", "Max (ns)", "StdDev (ns)"}) {
    EXPECT_THAT(
        Error(absl::StrReplaceAll(good, {{title, ""}})),
        HasSubstr("line 5, column 1: this header has 8 titles, but the rule "
                  "under it is for 9"))
        << title;
  }
}

TEST(NsysStats, TitlesThatStandTwice) {
  const std::string good = TestFile("nsys/kern_sum.csv");
  for (const char* const title : {"Med (ns)", "Min (ns)", "Max (ns)"}) {
    EXPECT_THAT(Error(absl::StrReplaceAll(good, {{title, "Avg (ns)"}})),
                HasSubstr("line 3, column 1: this header has 2 columns for "
                          "'Avg', expected 1"))
        << title;
  }
}

// `content` without the line that begins at `at`.
std::string WithoutLine(std::string content, size_t at) {
  return content.erase(at, content.find('\n', at) + 1 - at);
}

TEST(NsysStats, EveryLostHeaderIsMissed) {
  for (const char* const name :
       {"nsys/stats_text_2020.txt", "nsys/stats_text_2023_2.txt",
        "nsys/stats_text_2025.txt", "nsys/stats_csv_2022.csv"}) {
    const std::string good = TestFile(name);
    int headers = 0;
    for (size_t at = 0; at < good.size(); at = good.find('\n', at) + 1) {
      const std::string line = good.substr(at, good.find('\n', at) - at);
      if (line.find("Total Time") == std::string::npos) continue;
      ++headers;
      SCOPED_TRACE(line);
      EXPECT_THAT(Error(WithoutLine(good, at)),
                  AnyOf(HasSubstr("a rule below no header"),
                        HasSubstr("a row that belongs to no table")));
      if (name == std::string("nsys/stats_csv_2022.csv")) continue;
      std::string damaged = good;
      EXPECT_THAT(Error(damaged.replace(good.find("Total", at), 5, "Totl")),
                  HasSubstr("a rule below no header"));
      // The header's rule is missing too.
      EXPECT_THAT(Error(WithoutLine(WithoutLine(good, at), at)),
                  HasSubstr("a row that belongs to no table"));
    }
    EXPECT_GE(headers, 3);
  }
}

TEST(NsysStats, FilesOfOtherReports) {
  EXPECT_THAT(
      Error("Time (%),Total Time (ns),Num Calls,Name\n100.0,5,1,poll\n"),
      HasSubstr("not of kernels"));
  EXPECT_THAT(
      Error("Time (%),Total Time (ns),Instances,Range\n100.0,5,1,conv\n"),
      HasSubstr("not of kernels"));
}

}  // namespace
}  // namespace convlab
