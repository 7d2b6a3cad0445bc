// Submissions from end to end: any run record that is accepted may stand among
// the others.
#include <cstdlib>

#include "reports/deliverables/submission.h"
#include "reports/document/writers.h"
#include "reports/records/test_records.h"
#include "reports/tables.h"
#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds;
  for (const NamedRecord& run : CompleteRecords().runs) {
    if (run.record.size == 10000) seeds.push_back(ToJson(run.record));
  }
  seeds.push_back(
      ToJson(Contributed(TestRecord("m3", "gpu", 10000, "naive"), "mine")));
  return seeds;
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  auto record = ParseRunRecord(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!record.ok() || record->size < 1) return 0;
  // As ReadRecords does.
  const absl::Status complete = record->profile.has_value()
                                    ? CheckDescribed(*record)
                                    : CheckComplete(*record);
  if (!complete.ok()) return 0;
  Records records = CompleteRecords();
  records.runs.push_back({"runs/fuzzed.json", *std::move(record)});
  for (const char* milestone : {"m1", "m2", "m3", "m4", "final"}) {
    SubmissionOptions options;
    options.milestone = milestone;
    const auto submission = MakeSubmission(records, options);
    if (!submission.ok()) continue;
    WriteHtml(submission->document);
    const std::string markdown = WriteMarkdown(submission->document);
    for (const char c : markdown) {
      if (c != '\n' && c >= 0 && c < ' ') std::abort();
    }
  }
  return 0;
}
