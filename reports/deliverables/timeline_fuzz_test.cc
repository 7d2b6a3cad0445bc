// Any file may stand among the records as a trace.
#include "reports/deliverables/timeline.h"
#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() {
  return {R"json({"traceEvents":[
{"ph":"M","name":"process_name","pid":1},
{"ph":"X","name":"cudaFree","cat":"api","ts":1000,"dur":128000},
{"ph":"X","name":"[CUDA memcpy HtoD]","cat":"memcpy","ts":130000,"dur":15000},
{"ph":"X","name":"NaiveKernel(float*)","cat":"kernel","ts":150000,"dur":60000}]})json"};
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  const auto events = ReadTimeline(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (events.ok()) TimelineChart("t", "t", *events);
  return 0;
}
