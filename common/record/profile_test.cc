// Tests the sums, the timeline and the text of made-up activities.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/record/activities.h"
#include "common/record/profile_text.h"
#include "common/record/trace.h"
#include "common/record/trace_rules.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Json = nlohmann::json;

GpuActivity Kernel(const std::string& name, int64_t start, int64_t end,
                   int64_t stream = 7, int64_t correlation = 0) {
  GpuActivity kernel;
  kernel.name = name;
  kernel.start_ns = start;
  kernel.end_ns = end;
  kernel.stream = stream;
  kernel.correlation = correlation;
  kernel.grid = {100, 2, 1};
  kernel.block = {256, 1, 1};
  kernel.registers_per_thread = 40;
  kernel.static_shared_bytes = 1024;
  kernel.dynamic_shared_bytes = 512;
  return kernel;
}

GpuActivity Copy(const std::string& name, int64_t start, int64_t end,
                 int64_t bytes, int64_t correlation = 0) {
  GpuActivity copy;
  copy.kind = GpuActivity::Kind::kCopy;
  copy.name = name;
  copy.start_ns = start;
  copy.end_ns = end;
  copy.stream = 7;
  copy.bytes = bytes;
  copy.correlation = correlation;
  return copy;
}

// A copy, two launches of one kernel and one of another; the second thread
// calls while the first one does.
Activities Example() {
  Activities activities;
  activities.tool = "CUPTI";
  activities.version = "13.0.1";
  activities.process = 4711;
  activities.gpu = {
      Kernel("conv(float*)", 400000, 1400500, 7, 4),
      Kernel("pool", 350000, 350948, 7, 3),
      Kernel("conv(float*)", 1500000, 1900000, 7, 5),
      Copy("[CUDA memcpy HtoD]", 300000, 316772, 4096, 2),
  };
  activities.api = {
      {"cudaMemcpy", 200000, 330000, 4711, 2},
      // Made by cudaMalloc.
      {"cuMemAlloc", 110000, 150000, 4711, 10},
      {"cudaMalloc", 100000, 200000, 4711, 1},
      {"cudaLaunchKernel", 330000, 335000, 4711, 3},
      {"cudaLaunchKernel", 335000, 339000, 4711, 4},
      {"cudaLaunchKernel", 340000, 343000, 4711, 5},
      {"cuMemAlloc", 120000, 140000, 4712, 6},
  };
  return activities;
}

TEST(ApiName, HasNoVersion) {
  EXPECT_EQ(ApiName("cudaMalloc_v3020"), "cudaMalloc");
  EXPECT_EQ(ApiName("cudaMemcpy2DToArray_ptds_v7000"), "cudaMemcpy2DToArray");
  EXPECT_EQ(ApiName("cuMemcpy2DUnaligned_v2_ptds"), "cuMemcpy2DUnaligned");
  EXPECT_EQ(ApiName("cuStreamWriteValue64_ptsz"), "cuStreamWriteValue64");
  EXPECT_EQ(ApiName("cudaMemcpy3D"), "cudaMemcpy3D");
  EXPECT_EQ(ApiName("cuD3D11CtxCreate_v2"), "cuD3D11CtxCreate");
  EXPECT_EQ(ApiName("__cudaLaunchKernel_ptsz_v13000"), "cudaLaunchKernel");
  EXPECT_EQ(ApiName("__cudaRegisterVar"), "__cudaRegisterVar");
  EXPECT_EQ(ApiName(""), "");
  EXPECT_EQ(ApiName("12"), "12");
  EXPECT_EQ(ApiName(" cudaFree "), "cudaFree");
  EXPECT_EQ(ApiName("_v2"), "_v2");
}

TEST(MakeProfile, SumsByName) {
  const Profile profile = MakeProfile(Example());
  EXPECT_EQ(profile.tool, "CUPTI");
  EXPECT_EQ(profile.version, "13.0.1");
  ASSERT_THAT(profile.gpu_activities.entries, SizeIs(3));
  const ProfileEntry& conv = profile.gpu_activities.entries[0];
  EXPECT_EQ(conv.name, "conv(float*)");
  EXPECT_EQ(conv.calls, 2);
  EXPECT_EQ(conv.total_ns, 1400500);
  EXPECT_EQ(conv.average_ns, 700250);
  EXPECT_EQ(conv.min_ns, 400000);
  EXPECT_EQ(conv.max_ns, 1000500);
  EXPECT_FALSE(conv.bytes.has_value());
  const ProfileEntry& copy = profile.gpu_activities.entries[1];
  EXPECT_EQ(copy.name, "[CUDA memcpy HtoD]");
  EXPECT_EQ(copy.bytes, 4096);
  EXPECT_EQ(profile.gpu_activities.entries[2].name, "pool");
  EXPECT_EQ(profile.gpu_activities.missing, "");
}

TEST(MakeProfile, CountsACallWithinACallOnce) {
  const Profile profile = MakeProfile(Example());
  std::map<std::string, std::pair<int64_t, int64_t>> calls;
  for (const ProfileEntry& entry : profile.api_calls.entries) {
    calls[entry.name] = {*entry.calls, *entry.total_ns};
  }
  // The remaining cuMemAlloc is the other thread's.
  EXPECT_THAT(calls,
              ElementsAre(std::pair("cuMemAlloc", std::pair(1, 20000)),
                          std::pair("cudaLaunchKernel", std::pair(3, 12000)),
                          std::pair("cudaMalloc", std::pair(1, 100000)),
                          std::pair("cudaMemcpy", std::pair(1, 130000))));
}

TEST(MakeProfile, ACallThatFollowsAtOnceIsNotWithin) {
  Activities activities;
  activities.api = {
      {"a", 10, 20, 1, 1}, {"b", 20, 30, 1, 2}, {"c", 30, 30, 1, 3}};
  EXPECT_THAT(MakeProfile(activities).api_calls.entries, SizeIs(3));
}

TEST(MakeProfile, SaysWhatTheTracerLost) {
  Activities activities;
  activities.missing = "3 records were dropped";
  const Profile profile = MakeProfile(activities);
  EXPECT_THAT(profile.gpu_activities.entries, IsEmpty());
  EXPECT_EQ(profile.gpu_activities.missing, "3 records were dropped");
  EXPECT_EQ(profile.api_calls.missing, "3 records were dropped");
}

TEST(ProfileTime, HasNvprofsDigits) {
  EXPECT_EQ(ProfileTime(0), "0ns");
  EXPECT_EQ(ProfileTime(948.4), "948ns");
  EXPECT_EQ(ProfileTime(999.6), "0.9996us");
  EXPECT_EQ(ProfileTime(1120), "1.1200us");
  EXPECT_EQ(ProfileTime(61470), "61.470us");
  EXPECT_EQ(ProfileTime(454810), "454.81us");
  EXPECT_EQ(ProfileTime(999996), "1.0000ms");
  EXPECT_EQ(ProfileTime(16772000), "16.772ms");
  EXPECT_EQ(ProfileTime(999999999), "1.00000s");
  EXPECT_EQ(ProfileTime(3140800000), "3.14080s");
  EXPECT_EQ(ProfileTime(754321000000), "754.32100s");
}

TEST(ProfileText, IsNvprofsSummary) {
  EXPECT_EQ(
      ProfileText(MakeProfile(Example())),
      R"(            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   98.75%  1.4005ms         2  700.25us  400.00us  1.0005ms  conv(float*)
                    1.18%  16.772us         1  16.772us  16.772us  16.772us  [CUDA memcpy HtoD]
                    0.07%     948ns         1     948ns     948ns     948ns  pool
      API calls:   49.62%  130.00us         1  130.00us  130.00us  130.00us  cudaMemcpy
                   38.17%  100.00us         1  100.00us  100.00us  100.00us  cudaMalloc
                    7.63%  20.000us         1  20.000us  20.000us  20.000us  cuMemAlloc
                    4.58%  12.000us         3  4.0000us  3.0000us  5.0000us  cudaLaunchKernel
)");
}

TEST(ProfileText, SaysWhatIsNotThere) {
  Profile profile;
  profile.gpu_activities.entries = {{"kernel", 3, {}, 5000.0, {}, {}, {}, 0.4}};
  profile.gpu_activities.missing = "the file ends early";
  profile.api_calls.missing = "not in the file";
  EXPECT_EQ(
      ProfileText(profile),
      R"(            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   40.00%         -         3  5.0000us         -         -  kernel
== Warning: GPU activities: not all: the file ends early
== Warning: API calls: none: not in the file
)");
}

TEST(ProfileText, ThePrintedShareCountsWhereTheListIsNotWhole) {
  Profile profile;
  profile.api_calls.entries = {{"cudaFree", 1, 50, 50.0, 50, 50, {}, 0.25}};
  EXPECT_THAT(ProfileText(profile), HasSubstr("API calls:  100.00%"));
  profile.api_calls.missing = "the file lists one call";
  EXPECT_THAT(ProfileText(profile), HasSubstr("API calls:   25.00%"));
}

// Returns the trace's events after checking the rules of the format.
std::vector<Json> Events(const Activities& activities) {
  const std::string text = ChromeTrace(activities, "m3", "NVIDIA H200");
  const Json trace = Json::parse(text, nullptr, false);
  EXPECT_TRUE(trace.is_object()) << text;
  EXPECT_EQ(trace["displayTimeUnit"], "ns");
  const auto counts = CheckTrace(text);
  EXPECT_TRUE(counts.ok()) << counts.status();
  std::set<std::pair<int, int>> tracks, named_tracks;
  for (const Json& event : trace["traceEvents"]) {
    const std::pair track(event.value("pid", 0), event.value("tid", 0));
    EXPECT_GT(track.first, 0) << event;
    if (event["ph"] == "X") {
      EXPECT_GT(track.second, 0) << event;
      tracks.insert(track);
    } else if (event["name"] == "thread_name") {
      EXPECT_TRUE(named_tracks.insert(track).second) << event;
    }
  }
  EXPECT_EQ(named_tracks, tracks);
  return trace["traceEvents"].get<std::vector<Json>>();
}

// "process_name" or "thread_name" of every group or track.
std::vector<std::string> Names(const std::vector<Json>& events,
                               const char* kind) {
  std::vector<std::string> names;
  for (const Json& event : events) {
    if (event["name"] == kind) names.push_back(event["args"]["name"]);
  }
  return names;
}

const Json* Find(const std::vector<Json>& events, const std::string& name) {
  for (const Json& event : events) {
    if (event["ph"] == "X" && event["name"] == name) return &event;
  }
  return nullptr;
}

TEST(ChromeTrace, HasATrackForEachStreamAndThread) {
  Activities activities = Example();
  activities.gpu.push_back(Kernel("other", 500000, 600000, 13));
  const std::vector<Json> events = Events(activities);
  EXPECT_THAT(Names(events, "process_name"),
              ElementsAre("m3", "GPU 0, NVIDIA H200"));
  EXPECT_THAT(
      Names(events, "thread_name"),
      ElementsAre("main thread", "thread 4712", "stream 7", "stream 13"));
}

TEST(ChromeTrace, SlicesHaveTimesInMicrosecondsAndArguments) {
  const std::vector<Json> events = Events(Example());
  const Json* pool = Find(events, "pool");
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ((*pool)["ts"], 350.0);
  EXPECT_EQ((*pool)["dur"], 0.948);
  EXPECT_EQ((*pool)["cat"], "kernel");
  EXPECT_EQ((*pool)["args"]["grid"], Json({100, 2, 1}));
  EXPECT_EQ((*pool)["args"]["block"], Json({256, 1, 1}));
  EXPECT_EQ((*pool)["args"]["registers per thread"], 40);
  EXPECT_EQ((*pool)["args"]["static shared memory"], 1024);
  EXPECT_EQ((*pool)["args"]["dynamic shared memory"], 512);
  const Json* copy = Find(events, "[CUDA memcpy HtoD]");
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ((*copy)["cat"], "memcpy");
  EXPECT_EQ((*copy)["args"]["bytes"], 4096);
  // Within cudaMalloc, as it was called.
  EXPECT_NE(Find(events, "cuMemAlloc"), nullptr);
}

TEST(ChromeTrace, ArrowsLeadFromTheCallToWhatItStarted) {
  const std::vector<Json> events = Events(Example());
  std::vector<std::pair<double, double>> arrows;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i]["ph"] != "s") continue;
    EXPECT_EQ(events[i]["pid"], 1);
    EXPECT_EQ(events[i + 1]["pid"], 2);
    arrows.emplace_back(events[i]["ts"], events[i + 1]["ts"]);
  }
  EXPECT_THAT(arrows, UnorderedElementsAre(
                          std::pair(200.0, 300.0), std::pair(330.0, 350.0),
                          std::pair(335.0, 400.0), std::pair(340.0, 1500.0)));
}

TEST(ChromeTrace, NoArrowLeadsBackInTime) {
  Activities activities = Example();
  for (ApiCall& call : activities.api) {
    call.start_ns += 10000000;
    call.end_ns += 10000000;
  }
  for (const Json& event : Events(activities)) EXPECT_NE(event["ph"], "s");
}

TEST(ChromeTrace, WhatOverlapsGetsATrackOfItsOwn) {
  Activities activities;
  activities.gpu = {Kernel("a", 0, 100), Kernel("b", 90, 200),
                    Kernel("c", 150, 180), Kernel("d", 195, 300),
                    Kernel("e", 100, 120)};
  const std::vector<Json> events = Events(activities);
  EXPECT_THAT(Names(events, "thread_name"),
              ElementsAre("stream 7", "stream 7, overlapping"));
  EXPECT_NE((*Find(events, "a"))["tid"], (*Find(events, "b"))["tid"]);
  EXPECT_EQ((*Find(events, "a"))["tid"], (*Find(events, "e"))["tid"]);
}

TEST(ChromeTrace, OfNothingIsStillATrace) {
  EXPECT_THAT(Events(Activities()), IsEmpty());
}

TEST(ChromeTrace, NamesMayHoldAnything) {
  Activities activities;
  activities.gpu = {Kernel("a<\"b\\\n\xff>", 0, 100)};
  EXPECT_NE(Find(Events(activities), "a<\"b\\\n\xef\xbf\xbd>"), nullptr);
}

}  // namespace
}  // namespace convlab
