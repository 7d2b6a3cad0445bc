// Checks that the measured files hold the counters that the documents cite, and
// that traces and records agree.
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/importers/import.h"
#include "reports/importers/launch_facts.h"
#include "reports/importers/ncu.h"

namespace convlab {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator("reports/measured/h200/ncu-fa19")) {
    files.push_back(entry.path().string());
  }
  return files;
}

TEST(Counters, EachLaunchHasEveryCounter) {
  const std::vector<std::string> files = Files();
  EXPECT_THAT(files, SizeIs(24));
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const auto profile = ImportProfile(file);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(profile->tool, "ncu");
    EXPECT_THAT(profile->gpu_activities.entries, Not(IsEmpty()));
    ASSERT_THAT(profile->launches, Not(IsEmpty()));
    for (const LaunchCounters& launch : profile->launches) {
      SCOPED_TRACE(launch.kernel);
      const LaunchFacts facts = FactsOf(launch);
      EXPECT_GT(facts.duration_ns.value_or(0), 0);
      EXPECT_GT(facts.dram_bytes.value_or(0), 0);
      EXPECT_GE(facts.shared_bytes_per_block.value_or(-1), 0);
      EXPECT_GE(facts.bank_conflicts.value_or(-1), 0);
      EXPECT_GT(facts.registers_per_thread.value_or(0), 0);
      EXPECT_THAT(facts.stalls, SizeIs(18));
      for (const std::optional<double>& percent :
           {facts.dram_percent, facts.sm_percent, facts.tensor_percent,
            facts.occupancy_percent, facts.l1_hit_percent}) {
        ASSERT_TRUE(percent.has_value());
        EXPECT_GE(*percent, 0);
        EXPECT_LE(*percent, 100);
      }
      // ncu shows more than 100 for launches of a few microseconds.
      EXPECT_GT(facts.l2_hit_percent.value_or(0), 0);
    }
  }
}

// The trace of --profile holds what the record's profile sums up.
TEST(Traces, GiveTheProfilesOfTheirRecords) {
  const std::string folder = "reports/measured/h200/";
  for (const char* name : {"m1-fa19", "m3-fa19", "final-fa19"}) {
    SCOPED_TRACE(name);
    const auto trace = ImportProfile(folder + name + ".trace.json");
    const auto record = ImportProfile(folder + name + "-traced.json");
    ASSERT_TRUE(trace.ok()) << trace.status();
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(trace->tool, record->tool);
    for (const auto& [a, b] :
         {std::pair(trace->gpu_activities, record->gpu_activities),
          std::pair(trace->api_calls, record->api_calls)}) {
      ASSERT_EQ(a.entries.size(), b.entries.size());
      for (size_t i = 0; i < a.entries.size(); ++i) {
        SCOPED_TRACE(b.entries[i].name);
        EXPECT_EQ(a.entries[i].name, b.entries[i].name);
        EXPECT_EQ(a.entries[i].calls, b.entries[i].calls);
        EXPECT_EQ(a.entries[i].total_ns, b.entries[i].total_ns);
        EXPECT_EQ(a.entries[i].bytes, b.entries[i].bytes);
      }
    }
  }
}

}  // namespace
}  // namespace convlab
