#include "common/record/library_record.h"

#include "common/json/json_fields.h"
#include "common/record/machine_fields.h"

namespace convlab {

template <typename Visitor>
void Fields(Visitor& visit, LibraryCall& call) {
  visit("name", call.name);
  visit("kernel", call.kernel);
  visit("launches", call.launches);
  visit("ns", call.ns);
  visit("launches_ns", call.launches_ns);
  visit("overhead_ns", call.overhead_ns);
}

template <typename Visitor>
void Fields(Visitor& visit, LibraryRow& row) {
  visit("name", row.name);
  visit("operation", row.operation);
  visit("kernel", row.kernel);
  visit("estimated_us", row.estimated_us);
  visit("us", row.us);
  visit("prepared_us", row.prepared_us);
}

template <typename Visitor>
void Fields(Visitor& visit, LibraryRecord& record) {
  BenchmarkFields(visit, record);
  visit("calls", record.calls);
  visit("rows", record.rows);
}

std::string ToJson(const LibraryRecord& record) {
  return ToJsonText(kLibrarySchema, record);
}

}  // namespace convlab
