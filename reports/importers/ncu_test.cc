#include "reports/importers/ncu.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/importers/expectations.h"
#include "reports/importers/launch_facts.h"
#include "reports/importers/test_files.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

std::string Error(const std::string& content) {
  return ErrorOf(ParseNcu(content));
}

TEST(Ncu, EuropeanLocale) {
  const Profile profile =
      ParsedFile(ParseNcu, "ncu/details_european_locale.csv");
  EXPECT_EQ(profile.tool, "ncu");
  ASSERT_THAT(profile.launches, SizeIs(3));
  const LaunchCounters& launch = profile.launches[0];
  EXPECT_EQ(launch.kernel, "ampere_sgemm_128x64_nn");
  EXPECT_EQ(launch.grid, "(128, 1, 1)");
  EXPECT_EQ(launch.block, "(512, 1, 1)");
  ASSERT_THAT(launch.counters, SizeIs(3));
  EXPECT_EQ(launch.counters[0].name, "gpu__time_duration.sum");
  EXPECT_EQ(launch.counters[0].unit, "ns");
  EXPECT_EQ(launch.counters[0].value, 117344);
  EXPECT_EQ(launch.counters[1].value, 27595520);
  EXPECT_EQ(launch.counters[2].value, 65.77);
  EXPECT_THAT(Over90(profile.gpu_activities),
              ElementsAre("ampere_sgemm_128x64_nn 94.10"));
  EXPECT_EQ(profile.gpu_activities.entries[0].calls, 2);
  EXPECT_THAT(profile.gpu_activities.missing, HasSubstr("only the launches"));
  EXPECT_EQ(profile.api_calls.missing, "not in the file");
}

TEST(Ncu, DetailsOf2021) {
  const Profile profile = ParsedFile(ParseNcu, "ncu/details_2021.csv");
  ASSERT_THAT(profile.launches, SizeIs(1));
  // Without the text and the nan.
  EXPECT_THAT(profile.launches[0].counters, SizeIs(11));
  EXPECT_EQ(profile.launches[0].grid, "");
  const LaunchFacts facts = FactsOf(profile.launches[0]);
  EXPECT_DOUBLE_EQ(*facts.duration_ns, 1117340);
  EXPECT_EQ(facts.dram_bytes, std::nullopt);
  EXPECT_EQ(facts.dram_percent, 12.5);
  EXPECT_EQ(facts.sm_percent, 81.2);
  EXPECT_EQ(facts.tensor_percent, std::nullopt);
  EXPECT_EQ(facts.l1_hit_percent, 88.12);
  EXPECT_EQ(facts.l2_hit_percent, std::nullopt);
  EXPECT_EQ(facts.occupancy_percent, 61.7);
  EXPECT_EQ(facts.registers_per_thread, 40);
  EXPECT_DOUBLE_EQ(*facts.shared_bytes_per_block, 2112);
  EXPECT_EQ(facts.bank_conflicts, std::nullopt);
  EXPECT_THAT(facts.stalls, IsEmpty());
}

TEST(Ncu, DetailsOf2025WithRulesAndShortRows) {
  const Profile profile = ParsedFile(ParseNcu, "ncu/details_2025.csv");
  ASSERT_THAT(profile.launches, SizeIs(2));
  EXPECT_THAT(profile.launches[0].counters, SizeIs(2));
  EXPECT_EQ(profile.launches[0].grid, "(1000, 12, 25)");
  EXPECT_EQ(FactsOf(profile.launches[0]).duration_ns, 1250000);
  EXPECT_EQ(FactsOf(profile.launches[1]).sm_percent, std::nullopt);
  EXPECT_THAT(Over90(profile.gpu_activities),
              ElementsAre("conv(float *) 83.33", "pool(float *) 100.00"));
}

TEST(Ncu, RawPage) {
  const Profile profile = ParsedFile(ParseNcu, "ncu/raw_2024.csv");
  ASSERT_THAT(profile.launches, SizeIs(2));
  const LaunchFacts facts = FactsOf(profile.launches[0]);
  EXPECT_DOUBLE_EQ(*facts.duration_ns, 1117340);
  EXPECT_DOUBLE_EQ(*facts.dram_bytes, 40e6);
  EXPECT_EQ(facts.dram_percent, 12.5);
  EXPECT_EQ(facts.sm_percent, 81.2);
  EXPECT_EQ(facts.tensor_percent, 0);
  EXPECT_EQ(facts.l1_hit_percent, 88.12);
  EXPECT_EQ(facts.l2_hit_percent, 91.25);
  EXPECT_EQ(facts.occupancy_percent, 61.7);
  EXPECT_EQ(facts.registers_per_thread, 40);
  EXPECT_DOUBLE_EQ(*facts.shared_bytes_per_block, 33890);
  EXPECT_EQ(facts.bank_conflicts, 1024);
  EXPECT_THAT(facts.stalls,
              ElementsAre(Pair("long scoreboard", 3.5), Pair("barrier", 0.25)));
  const LaunchFacts second = FactsOf(profile.launches[1]);
  EXPECT_EQ(second.l1_hit_percent, std::nullopt);
  EXPECT_EQ(second.bank_conflicts, std::nullopt);
  EXPECT_EQ(second.stalls[0].first, "barrier");
}

TEST(Ncu, ClocksInEveryVersionsUnit) {
  for (const auto& [name, unit, value] :
       {std::tuple("sm__cycles_elapsed.avg.per_second", "hz", "1755000000"),
        {"sm__cycles_elapsed.avg.per_second", "Hz", "1755000000"},
        {"sm__cycles_elapsed.avg.per_second", "cycle/second", "1755000000"},
        {"gpc__cycles_elapsed.avg.per_second", "cycle/nsecond", "1.7550"},
        {"smsp__cycles_elapsed.avg.per_second", "Mhz", "1755"}}) {
    SCOPED_TRACE(unit);
    const auto profile = ParseNcu(absl::StrCat(
        "\"ID\",\"Kernel Name\",\"sm__cycles_elapsed.max\",\"", name,
        "\",\"smsp__inst_executed.sum\"\n\"\",\"\",\"cycle\",\"", unit,
        "\",\"inst\"\n\"0\",\"f\",\"2559000\",\"", value,
        "\",\"1234567\"\n\"1\",\"f\",\"n/a\",\"n/a\",\"n/a\"\n"));
    ASSERT_TRUE(profile.ok()) << profile.status();
    ASSERT_THAT(profile->launches, SizeIs(2));
    EXPECT_THAT(profile->launches[0].counters, SizeIs(3));
    EXPECT_DOUBLE_EQ(*FactsOf(profile->launches[0]).sm_clock_hz, 1.755e9);
    EXPECT_EQ(FactsOf(profile->launches[1]).sm_clock_hz, std::nullopt);
  }
}

TEST(Ncu, RunsBehindOneAnotherAreLaunchesOfTheirOwn) {
  const std::string one = TestFile("ncu/details_european_locale.csv");
  const auto profile =
      ParseNcu(one + absl::StrReplaceAll(one, {{"143016", "143017"}}));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(profile->launches, SizeIs(6));
}

TEST(Ncu, LaunchesHaveNumbersOfTheirOwn) {
  const std::string details = TestFile("ncu/details_european_locale.csv");
  const std::string raw = TestFile("ncu/raw_2024.csv");
  EXPECT_THAT(Error(details + details),
              HasSubstr("line 15, column 1: a second launch of the ID '0'"));
  EXPECT_THAT(Error(raw + raw), HasSubstr("a second launch of the ID '0'"));
  EXPECT_THAT(
      Error(std::string(details).replace(details.find("\n\"0\"") + 2, 1, "O")),
      HasSubstr("line 3, column 1: expected the ID, a whole number, found "
                "'O'"));
  EXPECT_THAT(
      Error(
          std::string(details).replace(details.find("\"143016\"") + 1, 1, "l")),
      HasSubstr("expected the Process ID, a whole number, found 'l43016'"));
}

TEST(Ncu, NumbersOutOfRange) {
  const std::string details = TestFile("ncu/details_2021.csv");
  const auto with = [&](const char* from, const char* to) {
    return Error(absl::StrReplaceAll(details, {{from, to}}));
  };
  EXPECT_THAT(with("\"1,117.34\"", "\"-1,117.34\""),
              HasSubstr("line 9, column 144: '-1,117.34' of 'Duration' is less "
                        "than 0"));
  EXPECT_THAT(with("\"81.20\"", "\"9000\""),
              HasSubstr("'9000' % of 'Compute (SM) Throughput' is too much"));
  EXPECT_TRUE(
      ParseNcu(absl::StrReplaceAll(details, {{"\"88.12\"", "\"9000\""}})).ok());
}

TEST(Ncu, SaysWhichLaunchHasNoDuration) {
  const auto profile = ParseNcu(absl::StrReplaceAll(
      TestFile("ncu/details_2025.csv"), {{"250.00", "n/a"}}));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(profile->gpu_activities.entries, IsEmpty());
  EXPECT_THAT(profile->gpu_activities.missing,
              HasSubstr("launch 2 has no duration; the last launch lacks 1 "));
}

TEST(Ncu, NumbersThatMayBeTwoAreRefused) {
  const std::string content = absl::StrReplaceAll(
      TestFile("ncu/details_european_locale.csv"), {{"27.595.520", "27"},
                                                    {"30.818.944", "30"},
                                                    {"2.348.544", "2"},
                                                    {"65,77", "65"},
                                                    {"65,63", "65"},
                                                    {"6,70", "6"}});
  EXPECT_THAT(Error(content),
              HasSubstr("line 3, column 172: '117.344' may be 117.344 or "
                        "117344"));
}

TEST(Ncu, NoCutGivesAWrongTable) {
  for (const char* name :
       {"ncu/details_2021.csv", "ncu/details_2025.csv", "ncu/raw_2024.csv"}) {
    ExpectNoCutGivesAWrongTable(ParseNcu, name);
  }
}

TEST(Ncu, DamagedFiles) {
  const std::string details = TestFile("ncu/details_2021.csv");
  const std::string raw = TestFile("ncu/raw_2024.csv");
  const auto with = [](const std::string& text, const char* from,
                       const char* to) {
    return Error(absl::StrReplaceAll(text, {{from, to}}));
  };
  EXPECT_THAT(with(details, "\"81.20\"", "\"8l.20\""),
              HasSubstr("line 10, column 153: expected the number of 'Compute "
                        "(SM) Throughput', found '8l.20'"));
  EXPECT_THAT(with(details, "\"81.20\"", "\"81,20\""),
              HasSubstr("has a decimal comma, but '1.21' before it a decimal "
                        "point"));
  EXPECT_THAT(with(details, ",\"%\",\"81.20\"", ""),
              HasSubstr("line 10, column 1: this row has 10 columns"));
  EXPECT_THAT(with(details, "Metric Value", "Average"),
              HasSubstr("lacks the column 'Metric Value'"));
  EXPECT_THAT(with(raw, "\"54.20\",", ""),
              HasSubstr("line 6, column 1: this row has 27 columns, its header "
                        "has 28"));
  EXPECT_THAT(Error(raw.substr(0, raw.find("\"\",\"\"")) +
                    raw.substr(raw.find("\"0\",\"99\""))),
              HasSubstr("line 4, column 1: expected a row of units"));
  EXPECT_THAT(Error(raw.substr(0, raw.find("\"0\",\"99\""))),
              HasSubstr("holds no launch"));
}

TEST(Ncu, WithoutDurationsThereAreNoActivities) {
  const auto profile = ParseNcu(
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric "
      "Value\"\n"
      "\"0\",\"f\",\"dram__bytes.sum\",\"byte\",\"98304\"\n");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(profile->gpu_activities.entries, IsEmpty());
  EXPECT_EQ(profile->gpu_activities.missing, "not in the file");
  EXPECT_EQ(FactsOf(profile->launches.at(0)).dram_bytes, 98304);
}

}  // namespace
}  // namespace convlab
