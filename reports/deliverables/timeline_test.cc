#include "reports/deliverables/timeline.h"

#include "gtest/gtest.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

TEST(Timeline, EventsCountFromTheFirst) {
  const auto events =
      ReadTimeline(CompleteRecords().traces.at("runs/m.trace.json"));
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 3);
  EXPECT_EQ((*events)[0].start_ms, 0);
  EXPECT_EQ((*events)[0].end_ms, 128);
  EXPECT_EQ((*events)[2].row, TimelineEvent::Row::kKernel);
  EXPECT_EQ(TimelineChart("t", "t", *events).data,
            "# start and end in ms; a block per row\n0.0000 128.0000\n\n\n"
            "149.0000 209.0000\n\n\n129.0000 144.0000\n");
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
