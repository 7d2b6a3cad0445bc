#include "common/record/classify_record.h"

#include "absl/strings/str_cat.h"
#include "common/json/json_fields.h"
#include "common/record/machine_fields.h"
#include "common/record/value_checker.h"
#include "common/status/status.h"

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
  visit("shared_pieces", share.shared_pieces);
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

namespace {

// A stream on many nodes may take longer than the day of other records' runs;
// threads that wait count each for itself.
constexpr int64_t kMostRunNs = 1000 * kDayNs;
constexpr int kMostRanks = 1 << 20;

void Check(ValueChecker& check, const std::string& here,
           const ClassifyShare& share, int ranks) {
  check.Range(here + "rank", share.rank, 0, ranks - 1);
  check.Range(here + "threads", share.threads, 0, INT32_MAX);
  check.Range(here + "pieces", share.pieces, 0, kMostImages);
  check.Range(here + "images", share.images, 0, kMostImages);
  check.Range(here + "shared_pieces", share.shared_pieces, 0, kMostImages);
  check.Range(here + "compile_ns", share.compile_ns, 0, kMostRunNs);
  check.Range(here + "read_ns", share.read_ns, 0, kMostRunNs);
  check.Range(here + "compute_ns", share.compute_ns, 0, kMostRunNs);
}

absl::Status CheckValues(const ClassifyRecord& record) {
  ValueChecker check;
  check.HostMachine(record.host);
  check.Range("record.images", record.images, 0, kMostImages);
  check.Range("record.resumed", record.resumed, 0, record.images);
  check.Range("record.block", record.block, 0, kMostImages);
  check.Range("record.correct", record.correct, -1, record.images);
  check.Range("record.ranks", record.ranks, 1, kMostRanks);
  if (record.reading != "rank 0" && record.reading != "each") {
    check.Fail(absl::StrCat("record.reading is '", record.reading,
                            "', expected 'rank 0' or 'each'"));
  }
  check.Range("record.readers", record.readers, 0, INT32_MAX);
  check.Range("record.run_ns", record.run_ns, 0, kMostRunNs);
  check.Range("record.write_ns", record.write_ns, 0, kMostRunNs);
  check.Range("record.max_resident_bytes", record.max_resident_bytes, 0,
              kMostBytes);
  for (size_t i = 0; i < record.shares.size(); ++i) {
    Check(check, absl::StrCat("record.shares[", i, "]."), record.shares[i],
          record.ranks);
  }
  for (size_t i = 0; i < record.links.size(); ++i) {
    const ClassifyLink& link = record.links[i];
    const std::string here = absl::StrCat("record.links[", i, "].");
    check.Range(here + "rank", link.rank, 0, record.ranks - 1);
    check.Range(here + "from", link.from, 0, INT32_MAX);
    check.Range(here + "to", link.to, 0, INT32_MAX);
  }
  return check.Take();
}

}  // namespace

std::string ToJson(const ClassifyRecord& record) {
  return ToJsonText(kClassifySchema, record);
}

absl::StatusOr<ClassifyRecord> ParseClassifyRecord(absl::string_view json) {
  ASSIGN_OR_RETURN(
      ClassifyRecord record,
      ParseJsonText<ClassifyRecord>("classify record", kClassifySchema, json));
  RETURN_IF_ERROR(CheckValues(record));
  return record;
}

std::string ToJson(const ClassifyShare& share) {
  return ToJsonText(kClassifySchema, share);
}

absl::StatusOr<ClassifyShare> ParseClassifyShare(absl::string_view json) {
  ASSIGN_OR_RETURN(ClassifyShare share,
                   ParseJsonText<ClassifyShare>("share of a classify record",
                                                kClassifySchema, json));
  ValueChecker check;
  Check(check, "share.", share, kMostRanks);
  RETURN_IF_ERROR(check.Take());
  return share;
}

}  // namespace convlab
