#include "reports/importers/nvprof.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/importers/expectations.h"
#include "reports/importers/test_files.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kHeader[] = "Time(%)  Time  Calls  Avg  Min  Max  Name\n";

std::string Error(const std::string& content) {
  return ErrorOf(ParseNvprof(content));
}

TEST(Nvprof, OldFormWithoutTypes) {
  const Profile profile =
      ParsedFile(ParseNvprof, "nvprof/fa17_baseline_gpu.txt");
  EXPECT_EQ(profile.tool, "nvprof");
  const auto& entries = profile.gpu_activities.entries;
  ASSERT_THAT(entries, SizeIs(12));
  EXPECT_EQ(profile.gpu_activities.missing, "");
  EXPECT_EQ(profile.api_calls.missing, "not in the file");
  EXPECT_THAT(
      Over90(profile.gpu_activities),
      ElementsAre(
          AllOf(HasSubstr("implicit_convolve_sgemm"), EndsWith(" 35.95")),
          "sgemm_sm35_ldg_tn_128x8x256x16x32 63.82",
          AllOf(HasSubstr("activation_fw_4d_kernel"), EndsWith(" 77.95")),
          AllOf(HasSubstr("pooling_fw_4d_kernel"), EndsWith(" 88.43")),
          "[CUDA memcpy HtoD] 96.46"));
  EXPECT_EQ(entries[4].name, "[CUDA memcpy HtoD]");
  EXPECT_EQ(entries[4].total_ns, 11010000);
  EXPECT_EQ(entries[4].calls, 13);
  EXPECT_DOUBLE_EQ(*entries[4].average_ns, 846890);
  EXPECT_EQ(entries[4].min_ns, 1568);
  EXPECT_EQ(entries[4].max_ns, 8944200);
  EXPECT_DOUBLE_EQ(*entries[4].printed_share, 0.0803);
}

TEST(Nvprof, NewFormWithSqueezedBlanks) {
  const Profile profile = ParsedFile(ParseNvprof, "nvprof/fa19_naive_gpu.txt");
  EXPECT_THAT(profile.gpu_activities.entries, SizeIs(14));
  EXPECT_THAT(
      Over90(profile.gpu_activities),
      ElementsAre(
          AllOf(HasSubstr("mxnet::op::forward_kernel"), EndsWith(" 63.01")),
          "[CUDA memcpy HtoD] 81.66",
          AllOf(HasSubstr("MapPlanLargeKernel"), EndsWith(" 89.46")),
          "volta_sgemm 128x128 tn 93.58"));
  EXPECT_EQ(profile.gpu_activities.entries[11].min_ns, 992);
}

TEST(Nvprof, WrappedNamesGiveTheSame) {
  const Profile plain = ParsedFile(ParseNvprof, "nvprof/fa19_naive_gpu.txt");
  const Profile wrapped =
      ParsedFile(ParseNvprof, "nvprof/fa19_naive_gpu_wrapped.txt");
  ASSERT_EQ(wrapped.gpu_activities.entries.size(),
            plain.gpu_activities.entries.size());
  for (size_t i = 0; i < plain.gpu_activities.entries.size(); ++i) {
    const ProfileEntry& a = plain.gpu_activities.entries[i];
    const ProfileEntry& b = wrapped.gpu_activities.entries[i];
    EXPECT_EQ(absl::StrReplaceAll(a.name, {{" ", ""}}),
              absl::StrReplaceAll(b.name, {{" ", ""}}));
    EXPECT_EQ(a.total_ns, b.total_ns);
    EXPECT_EQ(a.calls, b.calls);
  }
}

TEST(Nvprof, PieceOfAListKeepsPrintedShares) {
  const Profile profile = ParsedFile(ParseNvprof, "nvprof/fa19_naive_api.txt");
  EXPECT_THAT(profile.gpu_activities.entries, IsEmpty());
  EXPECT_EQ(profile.gpu_activities.missing, "not in the file");
  EXPECT_THAT(Over90(profile.api_calls),
              ElementsAre("cudaStreamCreateWithFlags 41.72",
                          "cudaMemGetInfo 74.73", "cudaFree 95.51"));
  EXPECT_EQ(profile.api_calls.entries[0].total_ns, 3140800000);
}

TEST(Nvprof, BothLists) {
  for (const char* name :
       {"nvprof/text_2020_both.txt", "nvprof/csv_2020.csv",
        "nvprof/text_2017_both.txt", "nvprof/csv_2017.csv"}) {
    const Profile profile = ParsedFile(ParseNvprof, name);
    EXPECT_EQ(profile.gpu_activities.missing, "") << name;
    EXPECT_EQ(profile.api_calls.missing, "") << name;
  }
  const Profile text = ParsedFile(ParseNvprof, "nvprof/text_2020_both.txt");
  EXPECT_THAT(text.gpu_activities.entries, SizeIs(3));
  // 90.0 does not exceed 90.
  EXPECT_THAT(Over90(text.api_calls),
              ElementsAre("cudaMalloc 90.00", "cudaMemcpy 97.50"));
  const Profile old = ParsedFile(ParseNvprof, "nvprof/text_2017_both.txt");
  EXPECT_THAT(
      Over90(old.api_calls),
      ElementsAre("cudaStreamCreateWithFlags 60.00", "cudaFree 100.00"));
  EXPECT_EQ(old.api_calls.entries[0].total_ns, 3006900000);
}

TEST(Nvprof, CsvHasARowOfUnits) {
  const Profile profile = ParsedFile(ParseNvprof, "nvprof/csv_2020.csv");
  const ProfileEntry& kernel = profile.gpu_activities.entries.at(0);
  EXPECT_EQ(kernel.name, "conv_forward_kernel(float*, float const *, int)");
  EXPECT_EQ(kernel.total_ns, 15000000);
  EXPECT_EQ(kernel.min_ns, 5000000);
  EXPECT_EQ(kernel.max_ns, 10000000);
  EXPECT_EQ(profile.gpu_activities.entries.at(1).min_ns, 992);
  EXPECT_EQ(profile.api_calls.entries.at(0).total_ns, 1000000000);
  const Profile old = ParsedFile(ParseNvprof, "nvprof/csv_2017.csv");
  EXPECT_EQ(old.api_calls.entries.at(0).total_ns, 2500000000);
}

TEST(Nvprof, OutputBehindTheTableIsNoName) {
  const std::string row =
      " 50.00%  1.0000ms  1  1.0000ms  1.0000ms  1.0000ms  ";
  const auto last_name = [&](const std::string& rest) {
    const auto profile = ParseNvprof(absl::StrCat(kHeader, row, rest));
    EXPECT_TRUE(profile.ok()) << profile.status();
    return profile.ok() ? profile->gpu_activities.entries.back().name : "";
  };
  EXPECT_EQ(last_name("sgemm\nOp Time: 0.1\n"), "sgemm");
  EXPECT_EQ(last_name("f(int,\nint)\nOp Time: 0.1\n"), "f(int, int)");
  EXPECT_EQ(last_name("void\nf<1>(int)\nDone\n"), "void f<1>(int)");
  EXPECT_EQ(last_name("\nf(int)\nDone\n"), "f(int)");
  // A name that a report truncated.
  EXPECT_EQ(last_name("f<int, float\nOp Time: 0.1\n"), "f<int, float");
}

TEST(Nvprof, OtherLocales) {
  const auto profile = ParseNvprof(
      absl::StrCat(kHeader,
                   "75,00%  1,5000ms  1  1,5000ms  1,5000ms  1,5000ms  "
                   "f\n25,00%  500,00us 2 250,00us 1,0000us 499ns g\n"));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->gpu_activities.entries[0].total_ns, 1500000);
  EXPECT_EQ(profile->gpu_activities.entries[1].total_ns, 500000);
}

TEST(Nvprof, NoCutGivesAWrongTable) {
  for (const char* name :
       {"nvprof/fa17_baseline_gpu.txt", "nvprof/fa19_naive_gpu.txt",
        "nvprof/fa19_naive_gpu_wrapped.txt", "nvprof/fa19_naive_api.txt",
        "nvprof/text_2017_both.txt", "nvprof/text_2020_both.txt",
        "nvprof/csv_2017.csv", "nvprof/csv_2020.csv"}) {
    ExpectNoCutGivesAWrongTable(ParseNvprof, name);
  }
}

TEST(Nvprof, DamagedRowsAreRefusedWithTheirPlace) {
  const auto rows = [](const std::string& text) {
    return Error(absl::StrCat(kHeader, text));
  };
  EXPECT_EQ(rows("50.00%  1.0000ms  1  1.0000ms\n"),
            "line 2, column 30: the row ends before its column 'Min'");
  EXPECT_EQ(rows("50.00%  1.0000ms  1  1.0000ms  1.0000ms  1.0000ms\n"),
            "line 2, column 50: the row ends before its column 'Name'");
  EXPECT_EQ(
      rows("50.00%  1.0000xs  1  1.0000ms  1.0000ms  1.0000ms  f\n"),
      "line 2, column 9: '1.0000xs' is in 'xs', expected ns, us, ms or s");
  EXPECT_THAT(rows("50.00%  1.0000  1  1.0000ms  1.0000ms  1.0000ms  f\n"),
              HasSubstr("line 2, column 9: '1.0000' has no unit"));
  EXPECT_THAT(rows("50.00%  1.0000ms  1x  1.0000ms  1.0000ms  1.0000ms  f\n"),
              HasSubstr("line 2, column 19: expected a number, found '1x'"));
  EXPECT_THAT(rows("l0.00%  1.0000ms  1  1.0000ms  1.0000ms  1.0000ms  f\n"),
              HasSubstr("line 2, column 1: expected a number, found 'l0.00%'"));
  EXPECT_THAT(rows("50.00%  l.0000ms  1  1.0000ms  1.0000ms  1.0000ms  f\n"),
              HasSubstr("line 2, column 9: expected a number"));
  EXPECT_THAT(rows("150.0%  1.0000ms  1  1.0000ms  1.0000ms  1.0000ms  f\n"),
              HasSubstr("is more than 100 %"));
  EXPECT_THAT(rows("50.00%  1.0000ms  0  1.0000ms  1.0000ms  1.0000ms  f\n"),
              HasSubstr("line 2, column 19: '0' is not a number of calls"));
  EXPECT_THAT(rows("50.00%  nan  1  1.0000ms  1.0000ms  1.0000ms  f\n"),
              HasSubstr("line 2, column 9: this row has no total time"));
  EXPECT_THAT(rows("Done.\n"), HasSubstr("line 1, column 1: no row follows"));
}

TEST(Nvprof, TimesThatContradictTheFile) {
  const std::string good = TestFile("nvprof/fa19_naive_gpu.txt");
  const auto with = [&](const char* from, const char* to) {
    return Error(absl::StrReplaceAll(good, {{from, to}}));
  };
  EXPECT_THAT(with("119.68ms", "19.68ms"),
              HasSubstr("line 12, column 24: '19.68ms' is not 2 times the "
                        "average '59.841ms'"));
  EXPECT_THAT(with("119.68ms", "11968ms"), HasSubstr("is not 2 times"));
  EXPECT_THAT(with("119.68ms", "119.68us"), HasSubstr("is not 2 times"));
  EXPECT_THAT(with("59.841ms", "5.9841ms"), HasSubstr("is not 2 times"));
  EXPECT_THAT(with("63.01%", "36.01%"),
              HasSubstr("line 11, column 1: the shares and times of this table "
                        "contradict each other"));
}

// As many as would take minutes if each looked for the row behind all.
TEST(Nvprof, ManyBlankLinesAreRead) {
  const std::string text = TestFile("nvprof/text_2017_both.txt");
  const size_t row = text.rfind('\n', text.size() - 2) + 1;
  const auto profile = ParseNvprof(absl::StrCat(
      text.substr(0, row), std::string(100000, '\n'), text.substr(row)));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->api_calls.entries.size(),
            ParsedFile(ParseNvprof, "nvprof/text_2017_both.txt")
                .api_calls.entries.size());
}

TEST(Nvprof, DamagedHeaders) {
  EXPECT_EQ(
      Error("Time(%)  Time  Calls  Avg  Min  Max\n50% 1ms 1 1ms 1ms 1ms f"),
      "line 1, column 1: this header has 0 columns for 'Name', expected 1");
  EXPECT_THAT(Error("Done\n 50.00%  1.0000ms  1  1.0000ms  1ms  1ms  f\n"),
              HasSubstr("line 2, column 1: a row that belongs to no table"));
}

TEST(Nvprof, DamagedCsv) {
  const std::string good = TestFile("nvprof/csv_2020.csv");
  const auto with = [&](const char* from, const char* to) {
    return Error(absl::StrReplaceAll(good, {{from, to}}));
  };
  EXPECT_THAT(with("78.947368,", "78,947368,"),
              HasSubstr("line 6, column 1: this row has 9 columns, its header "
                        "has 8"));
  EXPECT_THAT(with(",%,ms,,us,us,ms,\n", ""),
              HasSubstr("line 5, column 28: '15.000000' has no unit"));
  EXPECT_THAT(with(",%,ms,,us,us,ms,\n", ",%,mb,,us,us,ms,\n"),
              HasSubstr("line 5, column 1: this row has no name"));
  EXPECT_THAT(with("15.000000", "15.0000.0"),
              HasSubstr("line 6, column 28: expected a number"));
}

TEST(Nvprof, ProfilesOfSeveralProcesses) {
  const std::string one = TestFile("nvprof/text_2017_both.txt");
  EXPECT_THAT(Error(one + one),
              HasSubstr("line 15, column 1: a second list of GPU activities "
                        "begins here"));
}

}  // namespace
}  // namespace convlab
