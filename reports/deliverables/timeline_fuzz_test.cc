// Any file may stand among the records as a trace.
#include "reports/deliverables/timeline.h"
#include "reports/records/test_records.h"
#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() {
  return {CompleteRecords().traces.at("runs/m.trace.json")};
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  const auto events = ReadTimeline(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (events.ok()) TimelineChart("t", "t", *events);
  return 0;
}
