#include "common/record/trace_rules.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

// A call that contains another, a kernel, and an arrow between them.
constexpr char kEvents[] =
    R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"m3"}},
{"ph":"X","name":"launch","pid":1,"tid":1,"ts":1.001,"dur":2.5},
{"ph":"X","name":"inner","pid":1,"tid":1,"ts":1.5,"dur":2.001},
{"ph":"X","name":"next","pid":1,"tid":1,"ts":3.501,"dur":1},
{"ph":"X","name":"kernel","pid":2,"tid":2,"ts":4,"dur":0},
{"ph":"s","name":"starts","cat":"c","id":7,"pid":1,"tid":1,"ts":1.001},
{"ph":"f","name":"starts","cat":"c","id":7,"pid":2,"tid":2,"ts":4,"bp":"e"})";

std::string Trace(const std::string& events) {
  return absl::StrCat(R"({"traceEvents":[)", events, "]}");
}

// The error for the trace with `from` replaced by `to`.
std::string Error(const std::string& from, const std::string& to) {
  EXPECT_THAT(kEvents, HasSubstr(from));
  return std::string(
      CheckTrace(Trace(absl::StrReplaceAll(kEvents, {{from, to}})))
          .status()
          .message());
}

TEST(CheckTrace, CountsWhatIsThere) {
  const auto counts = CheckTrace(Trace(kEvents));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->slices, 4);
  EXPECT_EQ(counts->tracks, 2);
  EXPECT_EQ(counts->arrows, 1);
}

TEST(CheckTrace, RefusesWhatIsNoTrace) {
  for (const char* text : {"[]", "{}", R"({"traceEvents":{}})"}) {
    EXPECT_EQ(CheckTrace(text).status().message(),
              "expected a JSON object with a list 'traceEvents'");
  }
  EXPECT_EQ(CheckTrace(R"({"traceEvents":[})").status().message(),
            "not a Chrome trace: not valid JSON at byte 17");
  EXPECT_EQ(CheckTrace("").status().code(), absl::StatusCode::kInvalidArgument);
  // What is nested deeply would be copied by a function that calls itself.
  EXPECT_THAT(std::string(CheckTrace(absl::StrCat(R"({"displayTimeUnit":)",
                                                  std::string(75000, '[')))
                              .status()
                              .message()),
              HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(CheckTrace(R"({"displayTimeUnit":"us","traceEvents":[]})")
                  .status()
                  .message(),
              HasSubstr("neither ms nor ns"));
}

TEST(CheckTrace, FindsBrokenRules) {
  EXPECT_EQ(Error(R"("ph":"M")", R"("ph":1)"), "event 1: has no text 'ph'");
  EXPECT_EQ(Error(R"("ph":"M")", R"("ph":"B","ts":1,"tid":1)"),
            "event 1: is of the kind 'B', expected X, M, s or f");
  EXPECT_EQ(Error(R"("name":"kernel",)", ""), "event 5: has no text 'name'");
  EXPECT_EQ(Error(R"("name":"kernel","pid":2,"tid":2)", R"("name":"","pid":2)"),
            "event 5: has no integer 'tid'");
  EXPECT_EQ(Error(R"("dur":0)", R"("dur":-1)"),
            "event 5: 'dur' is out of range");
  EXPECT_EQ(Error(R"(,"dur":0)", ""), "event 5: has no number 'dur'");
  // One nanosecond too long.
  EXPECT_EQ(Error(R"("dur":2.001)", R"("dur":2.002)"),
            "event 3: does not nest with event 2");
  EXPECT_EQ(Error(R"("ts":3.501)", R"("ts":3.5)"),
            "event 4: does not nest with event 3");
}

TEST(CheckTrace, FindsBrokenArrows) {
  EXPECT_EQ(Error(R"("ph":"f")", R"("ph":"s")"),
            "event 7: an arrow has a second such end");
  EXPECT_EQ(Error(R"("id":7,"pid":1)", R"("id":8,"pid":1)"),
            "event 7: begins nowhere");
  EXPECT_EQ(Error(R"("id":7,"pid":2)", R"("id":8,"pid":2)"),
            "event 6: ends nowhere");
  EXPECT_EQ(Error(R"(,"bp":"e")", ""), "event 7: has no \"bp\":\"e\"");
  EXPECT_EQ(Error(R"("tid":2,"ts":4,"bp")", R"("tid":2,"ts":4.1,"bp")"),
            "event 7: no slice of its track is there");
  EXPECT_EQ(Error(R"("tid":2,"ts":4,"bp")", R"("tid":3,"ts":4,"bp")"),
            "event 7: no slice of its track is there");
  EXPECT_EQ(Error(R"("tid":2,"ts":4,)", R"("tid":2,"ts":0.5,)"),
            "event 7: ends before it begins");
}

// As many as would take minutes if each looked at each slice.
TEST(CheckTrace, ManyArrowsAreChecked) {
  constexpr int kArrows = 40000;
  std::string events;
  for (int i = 0; i < kArrows; ++i) {
    for (const int pid : {1, 2}) {
      absl::StrAppend(&events, R"({"ph":"X","name":"x","pid":)", pid,
                      R"(,"tid":1,"ts":)", i, R"(,"dur":0.5},)");
    }
    absl::StrAppend(&events, R"({"ph":"s","name":"s","cat":"c","id":)", i,
                    R"(,"pid":1,"tid":1,"ts":)", i,
                    R"(},{"ph":"f","name":"s","cat":"c","bp":"e","id":)", i,
                    R"(,"pid":2,"tid":1,"ts":)", i,
                    i + 1 < kArrows ? "}," : "}");
  }
  const auto counts = CheckTrace(Trace(events));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->arrows, kArrows);
}

// Of m3 with fa19 and 10,000 images on an H200.
TEST(CheckTrace, ARealTraceKeepsTheRules) {
  const auto json = ReadFile("common/record/testdata/m3.trace.json");
  ASSERT_TRUE(json.ok()) << json.status();
  const auto counts = CheckTrace(*json);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->tracks, 2);
  // Eleven launches and eight copies, each of which a call started.
  EXPECT_EQ(counts->arrows, 19);
}

}  // namespace
}  // namespace convlab
