// Run records, the benchmarks' records and traces. What is accepted is computed
// with and comes back whole.
#include <cstdlib>

#include "common/record/bench_record.h"
#include "common/record/classify_record.h"
#include "common/record/ladder_rows.h"
#include "common/record/network_record.h"
#include "common/record/seal.h"
#include "common/record/statistics.h"
#include "common/record/test_record.h"
#include "common/record/trace_rules.h"
#include "tools/fuzz/seeds.h"

namespace convlab {
namespace {

void Require(bool property) {
  if (!property) std::abort();
}

void RequireBadInput(const absl::Status& status) {
  Require(absl::IsInvalidArgument(status));
  Require(status.message().find('\n') == absl::string_view::npos);
}

// Whether it is accepted, and then comes back whole.
template <typename Record>
bool GoesRound(const absl::StatusOr<Record>& record,
               absl::StatusOr<Record> (*parse)(absl::string_view)) {
  if (!record.ok()) {
    RequireBadInput(record.status());
    return false;
  }
  const std::string json = ToJson(*record);
  const auto again = parse(json);
  Require(again.ok() && ToJson(*again) == json);
  return true;
}

void CheckRun(absl::string_view text) {
  const auto record = ParseRunRecord(text);
  if (!GoesRound(record, ParseRunRecord)) return;
  Require(CheckSeal(text, "").ok());
  Require(ExpectedCorrect(*record).value_or(0) >= 0);
  for (const ConvolutionRecord& one : record->convolutions) {
    if (!one.op_time_ns.empty()) Require(Median(one.op_time_ns) > 0);
    FloorNs(*record, one);
  }
}

void CheckBench(absl::string_view text) {
  const auto record = ParseBenchRecord(text);
  if (!GoesRound(record, ParseBenchRecord)) return;
  for (const BenchRow& row : record->rows) {
    Require(PeerRatio(*record, row).value_or(1) > 0);
    Require(FloorShare(row).value_or(1) > 0);
  }
  Neighbours(*record);
}

void CheckNetworks(absl::string_view text) {
  const auto record = ParseNetworkRecord(text);
  if (!GoesRound(record, ParseNetworkRecord)) return;
  for (const NetworkRow& row : record->rows) {
    Require(FindRow(*record, row.network, row.images, row.provider, row.path,
                    row.gpus) == &row);
    Require(row.p50_us > 0 && row.images_per_s > 0);
  }
}

void CheckClassify(absl::string_view text) {
  const auto record = ParseClassifyRecord(text);
  if (!GoesRound(record, ParseClassifyRecord)) return;
  for (const ClassifyShare& share : record->shares) {
    Require(share.rank < record->ranks && share.images >= 0);
  }
}

std::string ClassifyText() {
  ClassifyRecord record;
  record.network = "fa19";
  record.images = record.correct = 10000;
  record.reading = "each";
  record.run_ns = 5000000;
  record.shares.push_back({0, "node", "GPU 0, A GPU", "0000:00:06.0", 24, 1,
                           10000, 100, 200, 300, ""});
  record.links.push_back({0, 0, 1, true, true, 0});
  return ToJson(record);
}

std::string BenchText() {
  BenchRecord record;
  record.device = "gpu";
  record.ceilings.copy_gbs = 4000;
  for (const char* provider : {"convlab", "cudnn"}) {
    BenchRow& row = record.rows.emplace_back();
    row.layer = "fa19-L1";
    row.provider = provider;
    row.batch = 100;
    row.accuracy_class = "fp32";
    row.median_ms = 0.5;
    row.floor_ms = 0.25;
  }
  record.rows.push_back(record.rows[0]);
  record.rows[2].layer = "fa19-L1 H+1";
  record.rows[2].neighbour_of = "fa19-L1";
  record.accuracy.push_back(
      {"cudnn", "plan", "fp32", {{"faint", "L1", 2, 16}}});
  return ToJson(record);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {ToJson(Example()), BenchText(), ToJson(NetworksExample()),
          ClassifyText(),
          R"json({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","name":"process_name","pid":1,"args":{"name":"m3"}},
{"ph":"X","name":"launch","pid":1,"tid":1,"ts":1.001,"dur":2.5},
{"ph":"X","name":"kernel","pid":2,"tid":2,"ts":4,"dur":0},
{"ph":"s","name":"starts","cat":"c","id":7,"pid":1,"tid":1,"ts":1.001},
{"ph":"f","name":"starts","cat":"c","id":7,"pid":2,"tid":2,"ts":4,"bp":"e"}
]})json"};
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  CheckRun(text);
  CheckBench(text);
  CheckNetworks(text);
  CheckClassify(text);
  const auto trace = CheckTrace(text);
  if (!trace.ok()) RequireBadInput(trace.status());
  return 0;
}
