#include "reports/importers/listing.h"

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "reports/importers/expectations.h"
#include "reports/importers/import.h"
#include "reports/importers/kernel_names.h"
#include "reports/importers/test_files.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Format(const std::string& name, ListingFormat format) {
  return FormatProfiles({{name, ParsedFile(ParseProfile, name)}}, 90, format);
}

TEST(Listing, Text) {
  EXPECT_EQ(Format("nvprof/fa19_naive_api.txt", ListingFormat::kText),
            R"(nvprof/fa19_naive_api.txt (nvprof)

GPU activities: not in the file

API calls: 3 of 3 together take more than 90 % of the time
   share     sum  calls    total   average  name
  41.72%  41.72%     22  3.1408s  142.76ms  cudaStreamCreateWithFlags
  33.01%  74.73%     22  2.4852s  112.96ms  cudaMemGetInfo
  20.78%  95.51%     18  1.5644s  86.912ms  cudaFree
  note: the times in the file are not all: shares are nvprof's printed percentages, of which the 3 listed make up 95.51 %
)");
  const std::string wrapped =
      Format("nvprof/fa19_naive_gpu_wrapped.txt", ListingFormat::kText);
  for (const absl::string_view line : absl::StrSplit(wrapped, '\n')) {
    EXPECT_LE(line.size(), 120) << line;
  }
}

TEST(Listing, ListsThatDoNotReachTheThreshold) {
  Profile profile;
  ProfileEntry entry;
  entry.name = "f";
  entry.total_ns = 100;
  profile.gpu_activities.entries = {entry};
  const std::string text =
      FormatProfiles({{"a", profile}}, 100, ListingFormat::kText);
  EXPECT_THAT(text, HasSubstr("GPU activities: all 1\n"));
  EXPECT_THAT(text, HasSubstr("makes up 100.00 %, which does not exceed 100"));
  EXPECT_THAT(text, HasSubstr("100.00%  100.00%      –  100ns        –  f\n"));
}

TEST(Listing, Markdown) {
  const std::string text =
      Format("nvprof/text_2020_both.txt", ListingFormat::kMarkdown);
  EXPECT_THAT(text, HasSubstr("### `nvprof/text_2020_both.txt` (nvprof)\n"));
  EXPECT_THAT(text, HasSubstr("|---:|---:|---:|---:|---:|---|\n"));
  EXPECT_THAT(text, HasSubstr("| 71.43% | 71.43% | 2 | 15.000ms | 7.5000ms | "
                              "`conv_forward_kernel(float*, float const *, "));
  Profile profile;
  ProfileEntry entry;
  entry.name = "operator||(`a`)\n";
  entry.total_ns = 100;
  profile.api_calls.entries = {entry};
  EXPECT_THAT(
      FormatProfiles({{"a|b", profile}}, 90, ListingFormat::kMarkdown),
      AllOf(HasSubstr("| `operator\\|\\|('a')\\n` |"), HasSubstr("### `a\\|b`"),
            HasSubstr("**GPU activities**: none\n")));
}

TEST(Listing, CsvHoldsWholeNames) {
  const std::string text =
      Format("nvprof/fa19_naive_gpu.txt", ListingFormat::kCsv);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 7);
  EXPECT_EQ(lines[0],
            "file,tool,list,name,share_percent,cumulative_percent,calls,"
            "total_ns,average_ns,min_ns,max_ns,bytes,note");
  EXPECT_THAT(lines[3], HasSubstr("float, int=3, bool=1, int=2>, float>>"));
  EXPECT_THAT(lines[2], HasSubstr(",20,35439000,1771900,1120,33116000,,"));
  EXPECT_THAT(lines[5], HasSubstr("API calls,,,,,,,,,,not in the file"));
}

TEST(Listing, Json) {
  const auto json = nlohmann::json::parse(
      Format("nsys/stats_text_2023_2.txt", ListingFormat::kJson));
  EXPECT_EQ(json["threshold_percent"], 90);
  const auto& profile = json["profiles"][0];
  EXPECT_EQ(profile["tool"], "nsys");
  const auto& entries = profile["gpu_activities"]["entries"];
  ASSERT_EQ(entries.size(), 2);
  EXPECT_EQ(entries[0]["name"], "[CUDA memcpy DtoH]");
  EXPECT_EQ(entries[0]["total_ns"], 848963);
  EXPECT_EQ(profile["gpu_activities"]["entries_in_file"], 3);
  EXPECT_FALSE(entries[0].contains("bytes"));
  // What a terminal obeys.
  Profile odd;
  odd.gpu_activities.entries.emplace_back().name = "\x1b\u202e\u009b";
  odd.gpu_activities.entries[0].total_ns = 1;
  EXPECT_THAT(FormatProfiles({{"a", odd}}, 90, ListingFormat::kJson),
              HasSubstr("\"name\": \"\\u001b\\u202e\\u009b\""));
}

TEST(Listing, LaunchesShowTheFactsThatTheyHave) {
  const std::string text = Format("ncu/raw_2024.csv", ListingFormat::kText);
  EXPECT_THAT(text, HasSubstr("long scoreboard 3.50"));
  EXPECT_THAT(text, HasSubstr("1.1173ms"));
  EXPECT_THAT(text, HasSubstr("33.89 kB"));
  const std::string few =
      Format("ncu/details_european_locale.csv", ListingFormat::kText);
  EXPECT_THAT(few, HasSubstr("  launch  grid         block        kernel\n"));
  EXPECT_THAT(few, HasSubstr("  launch  duration  DRAM bytes      SM\n"));
  EXPECT_THAT(few, Not(HasSubstr("registers")));
  EXPECT_THAT(
      Format("ncu/details_european_locale.csv", ListingFormat::kCsv),
      HasSubstr("\n\nfile,launch,kernel,grid,block,counter,unit,value\n"
                "ncu/details_european_locale.csv,1,ampere_sgemm_128x64_nn,"
                "\"(128, 1, 1)\",\"(512, 1, 1)\",gpu__time_duration.sum,ns,"
                "117344\n"));
}

TEST(Listing, TablesOfLaunchesAreAtMost100Wide) {
  Profile profile;
  LaunchCounters launch;
  launch.kernel = std::string(300, 'k');
  launch.grid = "(2147483647, 1, 1)";
  launch.block = "(1024, 1, 1)";
  const std::pair<const char*, const char*> counters[] = {
      {"gpu__time_duration.sum", "ns"},
      {"sm__cycles_elapsed.avg.per_second", "cycle/usecond"},
      {"dram__bytes.sum", "byte"},
      {"dram__throughput.avg.pct_of_peak_sustained_elapsed", "%"},
      {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%"},
      {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%"},
      {"l1tex__t_sector_hit_rate.pct", "%"},
      {"lts__t_sector_hit_rate.pct", "%"},
      {"sm__warps_active.avg.pct_of_peak_sustained_active", "%"},
      {"launch__registers_per_thread", "register/thread"},
      {"launch__shared_mem_per_block_static", "byte/block"},
      {"launch__shared_mem_per_block_dynamic", "byte/block"},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", ""},
      {"smsp__average_warps_issue_stalled_branch_resolving_per_issue_active."
       "ratio",
       "inst"},
  };
  for (const auto& [name, unit] : counters) {
    launch.counters.push_back({name, unit, 123.456789});
  }
  profile.launches = {launch};
  const std::string text =
      FormatProfiles({{"a", profile}}, 90, ListingFormat::kText);
  EXPECT_THAT(text, HasSubstr("branch resolving 123.46"));
  EXPECT_THAT(text, HasSubstr("kkk…"));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    // The ellipsis has three bytes.
    EXPECT_LE(line.size(), 102) << line;
  }
}

TEST(Listing, NamesWithoutUnnamedNamespaces) {
  const std::pair<const char*, const char*> names[] = {
      // As ncu writes them.
      {"unnamed>::NaiveKernel(const float *, int)",
       "NaiveKernel(const float *, int)"},
      {"void unnamed>::DirectTiledKernel<5, 6, 2, 4, 256, 0>(const float *)",
       "void DirectTiledKernel<5, 6, 2, 4, 256, 0>(const float *)"},
      {"void TensorCoreKernel<unnamed>::Fp16Words, 4, 2>(float *)",
       "void TensorCoreKernel<Fp16Words, 4, 2>(float *)"},
      {"void unnamed>::WholeImageKernel<unnamed>::Layer<1, 70>>(float *)",
       "void WholeImageKernel<Layer<1, 70>>(float *)"},
      {"convlab::<unnamed>::UnrollKernel(float *)",
       "convlab::UnrollKernel(float *)"},
      {"<unnamed>::f(<unnamed>::T, <unnamed>::U)", "f(T, U)"},
      // As demanglers do.
      {"void cuda::(anonymous namespace)::f<1>((anonymous namespace)::T*)",
       "void cuda::f<1>(T*)"},
      {"a::{anonymous}::f(int)", "a::f(int)"},
      {"is_unnamed>::f", "is_unnamed>::f"},
      {"unnamed>::", ""},
  };
  for (const auto& [name, expected] : names) {
    EXPECT_EQ(ShortKernelName(name, 80), expected);
  }
  Profile profile;
  profile.launches = {{"void unnamed>::f(int)", "", "", {}}};
  EXPECT_THAT(FormatProfiles({{"a", profile}}, 90, ListingFormat::kMarkdown),
              HasSubstr("| `void f(int)` |"));
  profile.launches[0].counters = {{"c", "", 1}};
  EXPECT_THAT(FormatProfiles({{"a", profile}}, 90, ListingFormat::kCsv),
              HasSubstr("void unnamed>::f(int)"));
  EXPECT_EQ(ShortKernelName("void a::(anonymous namespace)::f<1, 2>(int)", 14),
            "a::f<1, 2>(…)");
}

TEST(Listing, ShortNames) {
  EXPECT_EQ(ShortKernelName("void f<int, float>(int)", 30),
            "void f<int, float>(int)");
  EXPECT_EQ(ShortKernelName("void f<int, float>(int)", 20),
            "f<int, float>(int)");
  EXPECT_EQ(ShortKernelName("void f<int, float>(int)", 17), "f<int, float>(…)");
  EXPECT_EQ(ShortKernelName("void f<int, float>(int)", 12), "f<int,…>(…)");
  EXPECT_EQ(ShortKernelName("a_name_without_brackets", 8), "a_name_…");
  EXPECT_EQ(ShortKernelName("µµµµµµµµµµ", 8), "µµµµµµµ…");
  EXPECT_EQ(
      ShortKernelName("a::b(int)::{lambda(int)#1}::operator()(x y z) ok", 20),
      "a::b(int)::{lambda(…");
}

TEST(Listing, TimesHaveFiveDigits) {
  std::vector<std::string> times;
  for (const double ns : {0.7, 948.0, 1120.0, 16772000.0, 119680000.0, 999999.9,
                          3006900000.0, 75e9}) {
    times.push_back(FormatNanoseconds(ns));
  }
  EXPECT_THAT(times, ElementsAre("0.7ns", "948ns", "1.1200us", "16.772ms",
                                 "119.68ms", "1.0000ms", "3.0069s", "75.000s"));
}

TEST(Listing, Formats) {
  EXPECT_EQ(*ParseListingFormat("md"), ListingFormat::kMarkdown);
  EXPECT_EQ(ParseListingFormat("html").status().message(),
            "--format is 'html', expected text, md, csv or json");
}

}  // namespace
}  // namespace convlab
