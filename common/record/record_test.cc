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
#include "common/record/network_record.h"
#include "common/record/recorded_command.h"
#include "common/record/run_record.h"
#include "common/record/statistics.h"
#include "common/record/test_record.h"
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

TEST(RunRecord, SaysWhatItsConvolutionsUsedOfTheCpu) {
  RunRecord record;
  record.threads = 4;
  record.cpu_target = "avx512";
  record.convolutions.resize(2);
  record.convolutions[0].variant = record.convolutions[1].variant = "naive";
  VariantRecord& variant = record.variants["naive"];
  EXPECT_EQ(CpuUse(record), "up to 4 threads and avx512");
  for (ConvolutionRecord& one : record.convolutions) one.threads = 1;
  EXPECT_EQ(CpuUse(record), "1 thread");
  record.convolutions[1].threads = 3;
  EXPECT_EQ(CpuUse(record), "1 to 3 threads");
  record.convolutions[0].threads = 3;
  variant.cpu_target = "avx2";
  EXPECT_EQ(CpuUse(record), "3 threads, avx2");
  // A contributed kernel starts threads as it likes.
  variant = {};
  variant.verification.emplace().kernel.emplace();
  for (ConvolutionRecord& one : record.convolutions) one.threads.reset();
  EXPECT_EQ(CpuUse(record), "up to 4 threads");
}

TEST(RunRecord, ExpectedCountComesFromTheRunOrTheWeights) {
  RunRecord record = Example();
  record.weights_metadata["correct_1000"] = "903";
  EXPECT_EQ(ExpectedCorrect(record), 905);
  record.expected_correct.reset();
  EXPECT_EQ(ExpectedCorrect(record), 903);
  record.split = "train";
  EXPECT_EQ(ExpectedCorrect(record), std::nullopt);
  record.split = "t10k";
  record.size = 999;
  EXPECT_EQ(ExpectedCorrect(record), std::nullopt);
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

TEST(RunRecord, BytesThatAreNoTextDoNotBreakTheRecord) {
  RunRecord record;
  record.command = {"m2\xff"};
  EXPECT_TRUE(ParseRunRecord(ToJson(record)).ok());
}

TEST(RunRecord, TheCommandSaysNothingOfTheProgramsFolder) {
  const std::vector<std::string> arguments = {"fa19", "--data=/data"};
  for (const char* program : {"/home/me/bin/m2", "./m2", "m2", "a/b/m2"}) {
    EXPECT_EQ(RecordedCommand({program, arguments[0], arguments[1]}),
              (std::vector<std::string>{"m2", arguments[0], arguments[1]}));
  }
  EXPECT_TRUE(RecordedCommand({}).empty());
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

TEST(NetworkRecord, GoesThroughJson) {
  const NetworkRecord record = NetworksExample();
  const std::string json = ToJson(record);
  const auto parsed = ParseNetworkRecord(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToJson(*parsed), json);
  ASSERT_EQ(parsed->rows.size(), 2u);
  EXPECT_EQ(parsed->rows[1].plans, record.rows[1].plans);
  EXPECT_EQ(parsed->rows[0].stages_us, record.rows[0].stages_us);
  EXPECT_EQ(parsed->omissions[0].reason, "no plan");
  EXPECT_EQ(FindRow(*parsed, "fa19", 100, "cudnn", kDevicePath),
            &parsed->rows[1]);
  EXPECT_EQ(FindRow(*parsed, "fa19", 100, "cudnn", kHostPath), nullptr);
  EXPECT_FALSE(ParseNetworkRecord(ToJson(BenchRecord())).ok());
  EXPECT_THAT(std::string(ReadNetworkRecord("/nowhere").status().message()),
              HasSubstr("/nowhere"));
}

TEST(NetworkRecord, ValuesThatNoRunHasAreRefused) {
  const auto error = [](void (*change)(NetworkRow & row)) {
    NetworkRecord record = NetworksExample();
    change(record.rows[1]);
    const auto parsed = ParseNetworkRecord(ToJson(record));
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(parsed.status().message());
  };
  EXPECT_EQ(error([](NetworkRow& row) { row.images = 0; }),
            "record.rows[1].images is 0, expected 1 to 1099511627776");
  EXPECT_THAT(error([](NetworkRow& row) { row.p50_us = -1; }),
              HasSubstr("record.rows[1].p50_us is -1"));
  EXPECT_THAT(error([](NetworkRow& row) { row.p90_us = 90; }),
              HasSubstr("record.rows[1].p99_us is 70, less than a smaller "
                        "percentile, 90"));
  EXPECT_THAT(error([](NetworkRow& row) { row.least_us = 51; }),
              HasSubstr("record.rows[1].p50_us is 50, less"));
  EXPECT_THAT(error([](NetworkRow& row) { row.images_per_s = 1; }),
              HasSubstr("images_per_s is 1, but that of the median is 2e+06"));
  EXPECT_THAT(error([](NetworkRow& row) { row.samples = 0; }),
              HasSubstr("samples is 0"));
  EXPECT_THAT(
      error([](NetworkRow& row) { row.path = "air"; }),
      HasSubstr("path is 'air', expected host, device, floats or devices"));
  EXPECT_THAT(error([](NetworkRow& row) {
                row.stages_us = {1, -1};
              }),
              HasSubstr("record.rows[1].stages_us[1] is -1"));
  EXPECT_THAT(error([](NetworkRow& row) { row.provider = "convlab"; }),
              HasSubstr("as that of an earlier row"));
  // As many images by more GPUs are another row.
  NetworkRecord several = NetworksExample();
  several.rows.push_back(several.rows[0]);
  several.rows.back().gpus = 2;
  EXPECT_TRUE(ParseNetworkRecord(ToJson(several)).ok());
  EXPECT_EQ(FindRow(several, several.rows[0].network, several.rows[0].images,
                    several.rows[0].provider, several.rows[0].path, 2),
            &several.rows.back());
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
