#include "reports/deliverables/timeline.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Timeline, EventsCountFromTheFirst) {
  const auto events =
      ReadTimeline(CompleteRecords().traces.at("runs/m.trace.json"));
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 3);
  EXPECT_EQ((*events)[0].start_ms, 0);
  EXPECT_EQ((*events)[0].end_ms, 128);
  EXPECT_EQ((*events)[2].row, TimelineEvent::Row::kKernel);
  const Chart chart = TimelineChart("t", "t", *events);
  EXPECT_EQ(chart.name, "t");
  for (const std::string& svg : {chart.wide, chart.narrow}) {
    EXPECT_THAT(
        svg,
        AllOf(HasSubstr("<title>0.000 to 128.000 ms: cudaFree</title>"),
              HasSubstr("<title>149.000 to 209.000 ms: NaiveKernel(float*)<"),
              HasSubstr("ms cut</text>")));
  }
}

TEST(Timeline, DamagedTracesAreRefused) {
  for (const char* trace :
       {"", "[]", "{\"traceEvents\":1}", "{\"traceEvents\":[1]}",
        "{\"traceEvents\":[]}", "{\"traceEvents\":[{\"ph\":\"X\"}]}",
        "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":\"a\",\"dur\":1}]}"}) {
    EXPECT_EQ(ReadTimeline(trace).status().code(),
              absl::StatusCode::kInvalidArgument)
        << trace;
  }
}

}  // namespace
}  // namespace convlab
