// Records are input: what no run and no benchmark has is refused.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/record/bench_record.h"
#include "common/record/classify_record.h"
#include "common/record/run_record.h"
#include "common/record/test_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_THAT(error("\"cores\": 2", "\"cores\": -2"),
              HasSubstr("record.host.cores is -2, expected 0 to"));
  EXPECT_THAT(
      error("\"device_memory_peak_bytes\": 3221225472",
            "\"device_memory_peak_bytes\": -1"),
      HasSubstr("record.device_memory_peak_bytes is -1, expected 0 to"));
  EXPECT_THAT(error("\"op_time_counts\": false", "\"op_time_counts\": 1"),
              HasSubstr("op_time_counts is number, expected true or false"));
}

// A record of a variant of ours, in three repetitions.
RunRecord OurExample() {
  RunRecord record = Example();
  record.variants["naive"].verification->kernel.reset();
  record.ladder.clear();
  record.convolutions[0].op_time_ns = {5000, 6000, 7000};
  record.convolutions[1].op_time_ns = {5000, 6000, 7000};
  record.convolutions[1].kernel_time_ns = {3000, 4000, 5000};
  return record;
}

std::string ErrorOf(const RunRecord& record) {
  return std::string(ParseRunRecord(ToJson(record)).status().message());
}

TEST(RunRecord, ConvolutionsAreTheNetworks) {
  RunRecord record = OurExample();
  EXPECT_EQ(ErrorOf(record), "");
  record.convolutions[1].height = 34;
  EXPECT_EQ(ErrorOf(record),
            "record.convolutions[1].height is 34, but that of fa19 is 33");
  record = OurExample();
  record.convolutions[0].batch = 10;
  EXPECT_THAT(ErrorOf(record), HasSubstr("batch is 10, but that of fa19 is "
                                         "1000"));
  record = OurExample();
  record.convolutions[0].flops /= 2;
  EXPECT_EQ(ErrorOf(record),
            "record.convolutions[0].flops or min_bytes is not that of fa19");
  record = OurExample();
  record.convolutions[0].min_bytes /= 2;
  EXPECT_THAT(ErrorOf(record), HasSubstr("min_bytes is not that of fa19"));
  record = OurExample();
  record.convolutions.pop_back();
  EXPECT_EQ(ErrorOf(record),
            "record.convolutions has 1 elements, and fa19 has 2 convolutions");
  record.ladder.push_back({"naive", "", 0, record.convolutions, 0, {}});
  record.convolutions.clear();
  EXPECT_THAT(ErrorOf(record),
              HasSubstr("record.ladder[0].convolutions has 1"));
  // Of a network that this version does not know, only their number is checked.
  record.network = "fa30";
  EXPECT_EQ(ErrorOf(record), "");
  record.ladder[0].convolutions.resize(65);
  EXPECT_EQ(ErrorOf(record),
            "record.ladder[0].convolutions has 65 elements, expected at most "
            "64");
}

TEST(RunRecord, SamplesAreAsManyAsRepetitions) {
  RunRecord record = OurExample();
  record.convolutions[0].op_time_ns.pop_back();
  EXPECT_EQ(ErrorOf(record),
            "record.convolutions[0].op_time_ns has 2 elements, "
            "and inference_ns has 3");
  record = OurExample();
  record.convolutions[1].kernel_time_ns.pop_back();
  EXPECT_THAT(ErrorOf(record),
              HasSubstr("kernel_time_ns has 2 elements, and op_time_ns has 3"));
  record = OurExample();
  record.convolutions[1].kernel_time_ns[2] = 9000;
  EXPECT_EQ(ErrorOf(record),
            "record.convolutions[1].kernel_time_ns[2] is 9000,"
            " but op_time_ns[2] is 7000");
  // A contributed kernel's may be so: that is the judge's verdict.
  record.variants["naive"].verification->kernel.emplace();
  EXPECT_EQ(ErrorOf(record), "");
}

TEST(RunRecord, SumsOfTimesDoNotOverflow) {
  RunRecord record = OurExample();
  record.inference_ns.assign(200000, int64_t{24} * 3600 * 1000000000);
  EXPECT_EQ(ErrorOf(record), "record.inference_ns adds up to more than a day");
}

TEST(RunRecord, ALadderHasEachVariantOnce) {
  RunRecord record = Example();
  record.ladder.push_back(record.ladder[0]);
  EXPECT_EQ(ErrorOf(record),
            "record.ladder[1].variant is 'naive', as an earlier one is");
  record.ladder.clear();
  for (int i = 0; i < 257; ++i) {
    record.ladder.emplace_back().variant = absl::StrCat(i);
  }
  EXPECT_EQ(ErrorOf(record),
            "record.ladder has 257 elements, expected at most 256");
}

TEST(RunRecord, AnExpectedCountOfTheWeightsIsOneOfTheImages) {
  RunRecord record = OurExample();
  record.expected_correct.reset();
  for (const char* count : {"-9223372036854775808", "1001", "x"}) {
    record.weights_metadata["correct_1000"] = count;
    EXPECT_EQ(ExpectedCorrect(record), std::nullopt) << count;
  }
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
                                 std::string((1 << 16) + 1, 'x'), "\"")),
              HasSubstr("record.network has 65537 bytes"));
  std::string ones = "1";
  for (int i = 0; i < 1000000; ++i) ones += ",1";
  EXPECT_THAT(error(absl::StrCat("\"inference_ns\": [", ones, "]")),
              HasSubstr("record.inference_ns has 1000001 elements"));
  EXPECT_THAT(
      error(absl::StrCat("\"size\": ", std::string(32 << 20, ' '), "1")),
      HasSubstr("bytes, expected at most 33554432"));
}

// As many as would take minutes if each were compared with all before it.
TEST(RunRecord, ManyKeysAreRead) {
  std::string keys;
  for (int i = 0; i < 200000; ++i) {
    absl::StrAppend(&keys, i > 0 ? "," : "", "\"", i, "\":\"\"");
  }
  const auto record = ParseRunRecord(absl::StrCat(
      R"({"schema": "convlab.run/1", "weights_metadata": {)", keys, "}}"));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->weights_metadata.size(), 200000u);
}

TEST(RunRecord, IntegersThatDoNotFitAreRefused) {
  const auto parse = [](const std::string& field) {
    return ParseRunRecord(
        absl::StrCat(R"({"schema": "convlab.run/1", )", field, "}"));
  };
  const auto error = [&](const std::string& field) {
    return std::string(parse(field).status().message());
  };
  EXPECT_THAT(error(R"("size": 9223372036854775807)"),
              HasSubstr("record.size is 9223372036854775807, expected 0 to"));
  EXPECT_EQ(parse(R"("threads": 2147483647)")->threads, 2147483647);
  EXPECT_THAT(error(R"("size": 9223372036854775808)"),
              HasSubstr("record.size is 9223372036854775808, expected -92233"));
  EXPECT_THAT(error(R"("size": 99999999999999999999)"),
              HasSubstr("record.size is number, expected an integer"));
  EXPECT_THAT(error(R"("threads": 2147483648)"),
              HasSubstr("record.threads is 2147483648, expected -2147483648"));
  EXPECT_THAT(error(R"("threads": -2147483649)"), HasSubstr("threads is -21"));
}

TEST(CheckProfile, NamesThatPassComeBackFromARecord) {
  Profile profile;
  std::string& name = profile.gpu_activities.entries.emplace_back().name;
  name.assign(1 << 16, 'x');
  EXPECT_TRUE(CheckProfile(profile).ok());
  name.assign(30000, '\x80');
  EXPECT_EQ(CheckProfile(profile).message(),
            "gpu_activities.entries[0].name's length is 90000, expected 0 to "
            "65536");
  // What is not UTF-8 here is when it is read again.
  name.assign(64000, 'x');
  name.insert(100, std::string(500, '\xff'));
  ASSERT_TRUE(CheckProfile(profile).ok());
  RunRecord record;
  record.profile = profile;
  const auto again = ParseRunRecord(ToJson(record));
  EXPECT_TRUE(again.ok()) << again.status();
}

TEST(BenchRecord, ValuesThatNoBenchmarkHasAreRefused) {
  BenchRecord good;
  BenchRow& one = good.rows.emplace_back();
  one.layer = "fa19-L1";
  one.batch = 100;
  one.median_ms = 0.5;
  const auto error = [&](const auto& change) {
    BenchRecord record = good;
    change(record);
    return std::string(ParseBenchRecord(ToJson(record)).status().message());
  };
  EXPECT_EQ(error([](BenchRecord&) {}), "");
  EXPECT_EQ(error([](BenchRecord& record) { record.rows[0].median_ms = -1; }),
            "record.rows[0].median_ms is -1, expected more than 0 and at most "
            "8.64e+07");
  EXPECT_THAT(error([](BenchRecord& record) { record.rows[0].batch = 0; }),
              HasSubstr("record.rows[0].batch is 0, expected 1 to"));
  EXPECT_THAT(error([](BenchRecord& record) { record.rows[0].floor_ms = 0; }),
              HasSubstr("record.rows[0].floor_ms is 0"));
  EXPECT_THAT(error([](BenchRecord& record) { record.rows[0].worst_c = -1; }),
              HasSubstr("record.rows[0].worst_c is -1, expected a number that "
                        "is not negative"));
  EXPECT_THAT(error([](BenchRecord& record) { record.ceilings.copy_gbs = -1; }),
              HasSubstr("record.ceilings.copy_gbs is -1"));
  EXPECT_THAT(error([](BenchRecord& record) {
                record.accuracy.emplace_back().families.push_back(
                    {"faint", "fa19-L1", -2.0, 16});
              }),
              HasSubstr("record.accuracy[0].families of faint: c is -2"));
}

TEST(ClassifyRecord, ValuesThatNoRunHasAreRefused) {
  ClassifyRecord record;
  record.network = "fa19";
  record.images = 1000;
  record.correct = 919;
  record.ranks = 2;
  record.reading = "each";
  record.run_ns = 5000;
  record.shares.resize(2);
  record.shares[1].rank = 1;
  record.links.resize(1);
  EXPECT_EQ(ParseClassifyRecord(ToJson(record)).status(), absl::OkStatus());
  const auto error = [&](auto edit) {
    ClassifyRecord edited = record;
    edit(edited);
    return std::string(ParseClassifyRecord(ToJson(edited)).status().message());
  };
  EXPECT_EQ(error([](auto& r) { r.correct = 1001; }),
            "record.correct is 1001, expected -1 to 1000");
  EXPECT_EQ(error([](auto& r) { r.resumed = -1; }),
            "record.resumed is -1, expected 0 to 1000");
  EXPECT_EQ(error([](auto& r) { r.reading = "none"; }),
            "record.reading is 'none', expected 'rank 0' or 'each'");
  EXPECT_THAT(error([](auto& r) { r.run_ns = -5; }),
              HasSubstr("record.run_ns is -5, expected 0 to"));
  EXPECT_EQ(error([](auto& r) { r.shares[1].rank = 2; }),
            "record.shares[1].rank is 2, expected 0 to 1");
  EXPECT_THAT(error([](auto& r) { r.shares[0].read_ns = INT64_MAX; }),
              HasSubstr("record.shares[0].read_ns is 9223372036854775807"));
  EXPECT_THAT(error([](auto& r) { r.shares[1].shared_pieces = -1; }),
              HasSubstr("record.shares[1].shared_pieces is -1, expected 0 to"));
  EXPECT_EQ(error([](auto& r) { r.links[0].rank = 2; }),
            "record.links[0].rank is 2, expected 0 to 1");

  EXPECT_EQ(ParseClassifyShare(ToJson(record.shares[1])).status(),
            absl::OkStatus());
  record.shares[1].images = -1;
  EXPECT_THAT(ParseClassifyShare(ToJson(record.shares[1])).status().message(),
              HasSubstr("share.images is -1, expected 0 to"));
}

}  // namespace
}  // namespace convlab
