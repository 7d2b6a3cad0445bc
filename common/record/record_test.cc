#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files/files.h"
#include "common/record/bench_record.h"
#include "common/record/build_info.h"
#include "common/record/host.h"
#include "common/record/run_record.h"
#include "common/record/statistics.h"
#include "common/record/usage.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StrEq;

RunRecord Example() {
  RunRecord record;
  record.milestone = "m2";
  record.command = {"m2", "fa19", "--record", "a \"b\"\n"};
  record.network = "fa19";
  record.model = "ece408";
  record.split = "t10k";
  record.size = 1000;
  record.slice = 500;
  record.device = "cpu";
  record.threads = 2;
  record.cpu_target = "avx2";
  record.git_revision = "0123456789ab";
  record.build_mode = "opt";
  record.started = "2026-11-21T01:02:03Z";
  record.host = {"A CPU", 2, int64_t{24} << 30, "Debian", "Linux 6"};
  record.gpu = {"A GPU", 90,      132,     int64_t{140} << 30,   13010,
                13000,   1980000, 2619000, {{"cuDNN", "9.19.0"}}};
  record.weights = "fa19.safetensors";
  record.weights_metadata = {{"correct_100", "91"}, {"recipe", "AdamW"}};
  record.convolutions.resize(2);
  record.convolutions[1] = {
      1000,    12,        33,        33,     24,        5, 1, int64_t{1} << 40,
      "naive", {5, 6, 7}, {3, 4, 5}, "ReLU", {8, 9, 10}};
  record.variants["naive"] = {"cpu", 1, "fp32", "loops", "none", "lesson", ""};
  VerificationRecord& verification =
      record.variants["naive"].verification.emplace();
  verification = {"restricted",
                  {"wrong for K = 3"},
                  2e-7,
                  "fp32",
                  30,
                  29,
                  1,
                  "seccomp",
                  false,
                  "note",
                  KernelRecord{"mine", "mini-dnn", "abcd"}};
  record.ladder.resize(1);
  record.ladder[0] = {"naive", "too slow", 1.25e-7, record.convolutions,
                      904,     {31},       250,     int64_t{5} << 30,
                      {904}};
  record.peers = {{2, "cuDNN 9", "WINOGRAD NHWC", "fp32", 3e-7, 12, {41, 42}}};
  record.overlaps = {{1, 2000, 8, {51}, {31, 32}}};
  record.correct = 905;
  record.repetitions_correct = {905, 905, 905};
  record.expected_correct = 905;
  record.load_ns = 11;
  record.inference_ns = {21, 22, 23};
  record.usage = {1, 2, 3, 4096};
  record.device_memory_peak_bytes = int64_t{3} << 30;
  record.output = {"New Inference", "Op Time: 0.000006"};
  Profile& profile = record.profile.emplace();
  profile.tool = "CUPTI";
  profile.version = "13.0";
  profile.gpu_activities.entries = {
      {"[CUDA memcpy HtoD]", 20, 16772000, 838600.0, 1120, 16152000, 4096, {}}};
  profile.api_calls.missing = "not in the file";
  profile.launches = {{"kernel(int)",
                       "(1, 2, 3)",
                       "(4, 5, 6)",
                       {{"dram__bytes.sum", "byte", 27595520}}}};
  return record;
}

TEST(RunRecord, RoundTripKeepsEveryField) {
  const std::string json = ToJson(Example());
  const auto parsed = ParseRunRecord(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToJson(*parsed), json);
  EXPECT_NE(ToJson(RunRecord()), json);
  EXPECT_EQ(parsed->command[3], "a \"b\"\n");
  EXPECT_EQ(parsed->convolutions[1].op_time_ns,
            (std::vector<int64_t>{5, 6, 7}));
  EXPECT_EQ(parsed->convolutions[1].kernel_time_ns,
            (std::vector<int64_t>{3, 4, 5}));
  EXPECT_TRUE(parsed->fuses());
  EXPECT_FALSE(RunRecord().fuses());
  EXPECT_EQ(parsed->gpu.name, "A GPU");
  EXPECT_EQ(parsed->gpu.runtime_version, 13000);
  EXPECT_EQ(parsed->cpu_target, "avx2");
  EXPECT_EQ(parsed->device_memory_peak_bytes, int64_t{3} << 30);
  EXPECT_EQ(parsed->convolutions[1].min_bytes, int64_t{1} << 40);
  EXPECT_EQ(parsed->variants.at("naive").summary, "loops");
  EXPECT_EQ(parsed->variants.at("naive").track, "lesson");
  EXPECT_EQ(parsed->ladder.at(0).relative_error, 1.25e-7);
  EXPECT_EQ(parsed->ladder.at(0).convolutions.size(), 2u);
  EXPECT_EQ(parsed->peers.at(0).kernel_time_ns.at(1), 42);
  EXPECT_EQ(parsed->overlaps.at(0).overlapped_ns.at(1), 32);
  const ProfileEntry& copies = parsed->profile->gpu_activities.entries.at(0);
  EXPECT_EQ(copies.total_ns, 16772000);
  EXPECT_EQ(copies.printed_share, std::nullopt);
  EXPECT_EQ(parsed->profile->launches.at(0).counters.at(0).value, 27595520);
  EXPECT_EQ(parsed->convolutions[1].whole_time_ns.at(2), 10);
  EXPECT_EQ(parsed->repetitions_correct.size(), 3u);
  EXPECT_EQ(parsed->ladder.at(0).repetitions_correct.at(0), 904);
  const VariantRecord& variant = parsed->variants.at("naive");
  EXPECT_TRUE(IsContributed(variant));
  EXPECT_TRUE(IsRight(*variant.verification));
  EXPECT_FALSE(variant.verification->op_time_counts);
  EXPECT_EQ(variant.verification->kernel->digest, "abcd");
  EXPECT_THAT(json, HasSubstr("\"schema\": \"convlab.run/1\""));
}

TEST(RunRecord, ExpectedCountComesFromTheRunOrTheWeights) {
  RunRecord record = Example();
  record.weights_metadata["correct_1000"] = "903";
  EXPECT_EQ(ExpectedCorrect(record), 905);
  record.expected_correct.reset();
  EXPECT_EQ(ExpectedCorrect(record), 903);
  record.size = 999;
  EXPECT_EQ(ExpectedCorrect(record), std::nullopt);
}

TEST(RunRecord, ValuesThatNoRunHasAreRefused) {
  const auto error = [](const std::string& from, const std::string& to) {
    const std::string json = ToJson(Example());
    const std::string edited = absl::StrReplaceAll(json, {{from, to}});
    EXPECT_TRUE(edited != json) << from;
    return std::string(ParseRunRecord(edited).status().message());
  };
  EXPECT_EQ(error("\"correct\": 905", "\"correct\": 1001"),
            "record.correct is 1001, expected 0 to 1000");
  EXPECT_EQ(error("\"correct\": 904", "\"correct\": -9223372036854766615"),
            "record.ladder[0].correct is -9223372036854766615, expected 0 to "
            "1000");
  EXPECT_EQ(error("    7\n", "    0\n"),
            "record.convolutions[1].op_time_ns[2] is 0, expected 1 to "
            "86400000000000");
  EXPECT_THAT(error("    4,\n", "    -1000000000000,\n"),
              HasSubstr("kernel_time_ns[1] is -1000000000000, expected 0 to"));
  EXPECT_THAT(error("  21,\n", "  86400000000001,\n"),
              HasSubstr("inference_ns[0] is 86400000000001"));
  EXPECT_THAT(error("1.25e-07", "-1.25e-07"),
              HasSubstr("record.ladder[0].relative_error is -1.25e-07"));
  EXPECT_THAT(error("1.25e-07", "1e999"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("1.25e-07", "null"),
              HasSubstr("relative_error is null, expected a number"));
  EXPECT_THAT(error("\"problems_right\": 29", "\"problems_right\": 31"),
              HasSubstr("problems_right is 31, expected 0 to 30"));
  EXPECT_THAT(error("\"op_time_counts\": false", "\"op_time_counts\": 1"),
              HasSubstr("op_time_counts is number, expected true or false"));
}

TEST(RunRecord, EnormousContentIsRefused) {
  const auto error = [](const std::string& field) {
    return std::string(
        ParseRunRecord(
            absl::StrCat(R"({"schema": "convlab.run/1", )", field, "}"))
            .status()
            .message());
  };
  EXPECT_THAT(error(absl::StrCat("\"size\": ", std::string(100000, '['))),
              HasSubstr("nested more than 64 deep at byte"));
  // Brackets in a text nest nothing.
  EXPECT_EQ(
      error(absl::StrCat(R"("network": "\\\"[)", std::string(100, '['), "\"")),
      "");
  EXPECT_THAT(error(absl::StrCat("\"network\": \"",
                                 std::string((1 << 20) + 1, 'x'), "\"")),
              HasSubstr("record.network has 1048577 bytes"));
  std::string ones = "1";
  for (int i = 0; i < 1000000; ++i) ones += ",1";
  EXPECT_THAT(error(absl::StrCat("\"inference_ns\": [", ones, "]")),
              HasSubstr("record.inference_ns has 1000001 elements"));
}

TEST(RunRecord, ANumberThatIsNoneIsLeftOut) {
  RunRecord record = Example();
  record.ladder[0].relative_error = std::nan("");
  const auto parsed = ParseRunRecord(ToJson(record));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->ladder[0].relative_error, 0);
}

TEST(RunRecord, WhatIsAbsentIsLeftOut) {
  EXPECT_THAT(ToJson(RunRecord()), Not(HasSubstr("profile")));
  EXPECT_FALSE(ParseRunRecord(ToJson(RunRecord()))->profile.has_value());
  const std::string json = ToJson(Example());
  EXPECT_THAT(json, HasSubstr("\"bytes\": 4096"));
  EXPECT_THAT(json, Not(HasSubstr("printed_share")));
}

TEST(RunRecord, WritesWholeFilesAndReadsThem) {
  const std::string path = ::testing::TempDir() + "/record.json";
  ASSERT_TRUE(WriteRunRecord(path, Example()).ok());
  ASSERT_TRUE(ReadRunRecord(path).ok());
  EXPECT_EQ(ToJson(*ReadRunRecord(path)), *ReadFile(path));
  ASSERT_TRUE(WriteFileAtomically(path, "{").ok());
  EXPECT_THAT(std::string(ReadRunRecord(path).status().message()),
              HasSubstr("record.json: not a run record: not valid JSON"));
}

TEST(RunRecord, RefusesWhatIsNoRecord) {
  const auto error = [](const std::string& json) {
    return std::string(ParseRunRecord(json).status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("[1]"), HasSubstr("no field \"schema\""));
  EXPECT_THAT(error("{}"), HasSubstr("no field \"schema\""));
  EXPECT_THAT(error(R"({"schema": "convlab.run/2"})"),
              HasSubstr("unknown schema \"convlab.run/2\""));
  EXPECT_THAT(error(R"({"schema": "convlab.run/1", "size": "big"})"),
              HasSubstr("record.size is string, expected an integer"));
  EXPECT_THAT(error(absl::StrReplaceAll(
                  ToJson(Example()), {{"\"cpu\": \"A CPU\"", "\"cpu\": 3"}})),
              HasSubstr("record.host.cpu is number, expected a string"));
  const std::string json = ToJson(Example());
  EXPECT_THAT(error(json.substr(0, json.size() / 2)),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(error(R"({"schema": 1,, "size": 2})"),
              HasSubstr("not valid JSON at byte 14"));
}

TEST(RunRecord, IntegersThatDoNotFitAreRefused) {
  const auto parse = [](const std::string& field) {
    return ParseRunRecord(
        absl::StrCat(R"({"schema": "convlab.run/1", )", field, "}"));
  };
  const auto error = [&](const std::string& field) {
    return std::string(parse(field).status().message());
  };
  EXPECT_EQ(parse(R"("device_memory_peak_bytes": 9223372036854775807)")
                ->device_memory_peak_bytes,
            int64_t{9223372036854775807});
  EXPECT_EQ(parse(R"("threads": -2147483648)")->threads, -2147483648);
  EXPECT_THAT(error(R"("size": 9223372036854775808)"),
              HasSubstr("record.size is 9223372036854775808, expected -92233"));
  EXPECT_THAT(error(R"("size": 99999999999999999999)"),
              HasSubstr("record.size is number, expected an integer"));
  EXPECT_THAT(error(R"("threads": 2147483648)"),
              HasSubstr("record.threads is 2147483648, expected -2147483648"));
  EXPECT_THAT(error(R"("threads": -2147483649)"), HasSubstr("threads is -21"));
}

TEST(RunRecord, BytesThatAreNoTextDoNotBreakTheRecord) {
  RunRecord record;
  record.command = {"m2\xff"};
  EXPECT_TRUE(ParseRunRecord(ToJson(record)).ok());
}

TEST(Usage, IsFormattedAsGnuTimeDoes) {
  EXPECT_EQ(FormatUsage(
                {5180000000, 4200000000, 5660000000, int64_t{2975700} * 1024}),
            "5.18user 4.20system 0:05.66elapsed 165%CPU (0avgtext+0avgdata "
            "2975700maxresident)k");
  EXPECT_THAT(FormatUsage({0, 0, 754321000000, 0}),
              HasSubstr(" 12:34.32elapsed 0%CPU"));
  EXPECT_THAT(FormatUsage({0, 0, 3723000000000, 0}),
              HasSubstr(" 1:02:03elapsed"));
  EXPECT_THAT(FormatUsage({0, 0, 0, 0}), HasSubstr("?%CPU"));
}

TEST(Usage, CountsThisProcess) {
  const ResourceUsage before = CurrentUsage();
  EXPECT_GT(before.max_resident_bytes, 1 << 20);
  double sum = 0;
  while (CurrentUsage().user_ns < before.user_ns + 20000000) sum += 1;
  EXPECT_GT(sum, 0);
  EXPECT_GE(CurrentUsage().elapsed_ns, before.elapsed_ns + 10000000);
}

TEST(Statistics, MedianIsTheMiddle) {
  EXPECT_EQ(Median({5}), 5);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({9, 1, 5, 6}), 5.5);
}

TEST(Statistics, QuantilesAreInterpolated) {
  EXPECT_EQ(Quantile({7}, 0.5), 7);
  EXPECT_EQ(Quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_EQ(Quantile({5, 1, 2, 3, 4}, 0.25), 2);
  EXPECT_EQ(Quantile({5, 1, 2, 3, 4}, 1), 5);
  EXPECT_EQ(InterquartileRange({5, 1, 2, 3, 4}), 2);
}

TEST(BenchRecord, GoesThroughJson) {
  BenchRecord record;
  record.command = {"bench", "--layers", "fa19-L1"};
  record.device = "gpu";
  record.gpu.name = "NVIDIA H200";
  record.ceilings.fill_gbs = 4321.5;
  BenchRow row;
  row.layer = "fa19-L1";
  row.batch = 10000;
  row.provider = "convlab";
  row.variant = "direct_tiled";
  row.accuracy_class = "fp32";
  row.error = 3e-7;
  row.median_ms = 0.8;
  row.samples = 20;
  row.floor_ms = 0.5;
  record.rows = {row};
  record.omissions = {{"fa19-L1", 10000, "cudnn", "", "fp32", "no cuDNN"}};
  const std::string json = ToJson(record);
  EXPECT_THAT(json, HasSubstr("\"schema\": \"convlab.bench/1\""));
  EXPECT_THAT(json, HasSubstr("\"class\": \"fp32\""));
  // Absent values are not written.
  EXPECT_THAT(json, Not(HasSubstr("sm_clock_mhz")));
  EXPECT_THAT(json, Not(HasSubstr("triad_gbs")));
  const auto parsed = ParseBenchRecord(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToJson(*parsed), json);
  EXPECT_EQ(parsed->rows[0].floor_ms, 0.5);
  EXPECT_EQ(parsed->rows[0].sm_clock_mhz, std::nullopt);
  EXPECT_EQ(ParseBenchRecord("{}").status().message(),
            "not a benchmark record: it has no field \"schema\"");
  EXPECT_FALSE(ParseBenchRecord(ToJson(RunRecord())).ok());
  EXPECT_THAT(std::string(ReadBenchRecord("/nowhere").status().message()),
              HasSubstr("/nowhere"));
}

TEST(BenchRecord, RatioIsToTheFastestLibraryOfTheClass) {
  BenchRow ours;
  ours.layer = "fa19-L1";
  ours.batch = 10;
  ours.provider = "convlab";
  ours.accuracy_class = "fp32";
  ours.median_ms = 2;
  BenchRecord record;
  record.rows = {ours};
  EXPECT_EQ(PeerRatio(record, ours), std::nullopt);
  BenchRow peer = ours;
  peer.provider = "onednn";
  peer.median_ms = 8;
  record.rows.push_back(peer);
  peer.median_ms = 5;
  record.rows.push_back(peer);
  peer.median_ms = 1;
  peer.accuracy_class = "fp16";
  record.rows.push_back(peer);
  peer.accuracy_class = "fp32";
  peer.batch = 1;
  record.rows.push_back(peer);
  EXPECT_EQ(PeerRatio(record, ours), 2.5);
}

TEST(Statistics, OpTimesAreSummedOverConvolutions) {
  std::vector<ConvolutionRecord> convolutions(2);
  convolutions[0].op_time_ns = {3, 1, 2};
  convolutions[1].op_time_ns = {10, 11};
  EXPECT_EQ(OpTimeSum(convolutions), 12.5);
}

TEST(Host, TellsWhatTheSystemTells) {
  const HostFacts facts = ReadHostFacts();
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_bytes, int64_t{1} << 28);
  EXPECT_THAT(facts.kernel, HasSubstr("Linux"));
  EXPECT_FALSE(facts.operating_system.empty());
}

TEST(Host, AmountsOfMemoryAreReadable) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(1500), "1.5 kB");
  EXPECT_EQ(FormatBytes(12e6), "12.0 MB");
  EXPECT_EQ(FormatBytes(25276510208.0), "25.277 GB");
  EXPECT_EQ(FormatBytes(3.52e12), "3.520 TB");
  EXPECT_EQ(FormatBytes(2e18), "2000000.000 TB");
}

TEST(BuildInfo, NamesRevisionAndMode) {
  EXPECT_THAT(kGitRevision, AnyOf(MatchesRegex("[0-9a-f]{12}(-modified)?"),
                                  StrEq("unknown")));
  EXPECT_THAT(kBuildMode,
              AnyOf(StrEq("opt"), StrEq("dbg"), StrEq("fastbuild")));
}

}  // namespace
}  // namespace convlab
