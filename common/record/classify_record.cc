#include "common/record/classify_record.h"

#include "common/json/json_fields.h"
#include "common/record/machine_fields.h"

namespace convlab {

template <typename Visitor>
void Fields(Visitor& visit, ClassifyShare& share) {
  visit("rank", share.rank);
  visit("host", share.host);
  visit("device", share.device);
  visit("pci_bus_id", share.pci_bus_id);
  visit("threads", share.threads);
  visit("pieces", share.pieces);
  visit("images", share.images);
  visit("compile_ns", share.compile_ns);
  visit("read_ns", share.read_ns);
  visit("compute_ns", share.compute_ns);
  visit("lost", share.lost);
}

template <typename Visitor>
void Fields(Visitor& visit, ClassifyLink& link) {
  visit("rank", link.rank);
  visit("from", link.from);
  visit("to", link.to);
  visit("access", link.access);
  visit("atomics", link.atomics);
  visit("speed_rank", link.speed_rank);
}

template <typename Visitor>
void Fields(Visitor& visit, ClassifyRecord& record) {
  visit("command", record.command);
  visit("git_revision", record.git_revision);
  visit("build_mode", record.build_mode);
  visit("started", record.started);
  visit("host", record.host);
  visit("network", record.network);
  visit("images", record.images);
  visit("resumed", record.resumed);
  visit("block", record.block);
  visit("correct", record.correct);
  visit("ranks", record.ranks);
  visit("reading", record.reading);
  visit("readers", record.readers);
  visit("run_ns", record.run_ns);
  visit("write_ns", record.write_ns);
  visit("max_resident_bytes", record.max_resident_bytes);
  visit("shares", record.shares);
  visit("links", record.links);
}

std::string ToJson(const ClassifyRecord& record) {
  return ToJsonText(kClassifySchema, record);
}

absl::StatusOr<ClassifyRecord> ParseClassifyRecord(absl::string_view json) {
  return ParseJsonText<ClassifyRecord>("classify record", kClassifySchema,
                                       json);
}

std::string ToJson(const ClassifyShare& share) {
  return ToJsonText(kClassifySchema, share);
}

absl::StatusOr<ClassifyShare> ParseClassifyShare(absl::string_view json) {
  return ParseJsonText<ClassifyShare>("share of a classify record",
                                      kClassifySchema, json);
}

}  // namespace convlab
