#include "kernels/judge/process/packed_trace.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace convlab {
namespace {

constexpr int64_t kMostBytes = int64_t{256} << 20;
// A year. Times are those of one run.
constexpr int64_t kMostNs = int64_t{366} * 24 * 3600 * 1'000'000'000;

// In place of a GpuActivity::Kind.
constexpr int32_t kCall = -1;

// A GpuActivity, or an ApiCall whose thread is its stream.
struct Record {
  int32_t kind;
  int64_t start_ns, end_ns, device, stream, correlation;
  std::array<int64_t, 3> grid, block;
  int64_t registers, static_bytes, dynamic_bytes, bytes;
  char name[256];
};

// Comes first.
struct Facts {
  int64_t process;
  char tool[256], version[256], missing[256];
};

template <size_t kSize>
void SetText(const std::string& text, char (&out)[kSize]) {
  std::memcpy(out, text.data(), std::min(text.size(), kSize - 1));
}

// Text of a kernel's process becomes names in tables and lines of a terminal.
template <size_t kSize>
std::string GetText(const char (&text)[kSize]) {
  std::string out(text, strnlen(text, kSize));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return out;
}

Record Pack(const GpuActivity& activity) {
  Record record = {};
  record.kind = static_cast<int32_t>(activity.kind);
  record.start_ns = activity.start_ns;
  record.end_ns = activity.end_ns;
  record.device = activity.device;
  record.stream = activity.stream;
  record.correlation = activity.correlation;
  record.grid = activity.grid;
  record.block = activity.block;
  record.registers = activity.registers_per_thread;
  record.static_bytes = activity.static_shared_bytes;
  record.dynamic_bytes = activity.dynamic_shared_bytes;
  record.bytes = activity.bytes;
  SetText(activity.name, record.name);
  return record;
}

Record Pack(const ApiCall& call) {
  Record record = {};
  record.kind = kCall;
  record.start_ns = call.start_ns;
  record.end_ns = call.end_ns;
  record.stream = call.thread;
  record.correlation = call.correlation;
  SetText(call.name, record.name);
  return record;
}

bool IsPossible(const Record& record) {
  constexpr auto kLast = static_cast<int32_t>(GpuActivity::Kind::kMemset);
  bool possible = record.kind >= kCall && record.kind <= kLast &&
                  record.start_ns >= 0 && record.end_ns >= record.start_ns &&
                  record.end_ns <= kMostNs && record.name[0] != 0;
  for (const int64_t count :
       {record.registers, record.static_bytes, record.dynamic_bytes,
        record.bytes, record.grid[0], record.grid[1], record.grid[2],
        record.block[0], record.block[1], record.block[2]}) {
    possible &= count >= 0 && count < int64_t{1} << 50;
  }
  return possible;
}

void Unpack(const Record& record, Activities& activities) {
  if (record.kind == kCall) {
    activities.api.push_back({GetText(record.name), record.start_ns,
                              record.end_ns, record.stream,
                              record.correlation});
    return;
  }
  GpuActivity activity;
  activity.kind = static_cast<GpuActivity::Kind>(record.kind);
  activity.name = GetText(record.name);
  activity.start_ns = record.start_ns;
  activity.end_ns = record.end_ns;
  activity.device = record.device;
  activity.stream = record.stream;
  activity.correlation = record.correlation;
  activity.grid = record.grid;
  activity.block = record.block;
  activity.registers_per_thread = record.registers;
  activity.static_shared_bytes = record.static_bytes;
  activity.dynamic_shared_bytes = record.dynamic_bytes;
  activity.bytes = record.bytes;
  activities.gpu.push_back(std::move(activity));
}

absl::Status WriteAll(const void* data, size_t bytes, int file) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = write(file, from, bytes);
    if (count <= 0) return absl::InternalError("cannot write the trace");
    from += count;
    bytes -= count;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteActivities(const Activities& activities, int file) {
  Facts facts = {};
  facts.process = activities.process;
  SetText(activities.tool, facts.tool);
  SetText(activities.version, facts.version);
  SetText(activities.missing, facts.missing);
  std::vector<Record> records;
  records.reserve(activities.gpu.size() + activities.api.size());
  for (const GpuActivity& activity : activities.gpu) {
    records.push_back(Pack(activity));
  }
  for (const ApiCall& call : activities.api) records.push_back(Pack(call));
  if (absl::Status status = WriteAll(&facts, sizeof(facts), file);
      !status.ok()) {
    return status;
  }
  return WriteAll(records.data(), records.size() * sizeof(Record), file);
}

absl::StatusOr<Activities> ReadActivities(int file) {
  const auto lost = [](const char* what) {
    return absl::DataLossError(absl::StrCat("the trace of the process ", what));
  };
  struct stat info;
  if (fstat(file, &info) != 0 || info.st_size < int64_t{sizeof(Facts)} ||
      (info.st_size - sizeof(Facts)) % sizeof(Record) != 0) {
    return lost("is not whole");
  }
  if (info.st_size > kMostBytes) return lost("is too large");
  Facts facts;
  std::vector<Record> records((info.st_size - sizeof(Facts)) / sizeof(Record));
  const auto bytes = static_cast<ssize_t>(records.size() * sizeof(Record));
  if (pread(file, &facts, sizeof(facts), 0) != sizeof(facts) ||
      pread(file, records.data(), bytes, sizeof(facts)) != bytes) {
    return lost("cannot be read");
  }
  Activities activities;
  activities.process = facts.process;
  activities.tool = GetText(facts.tool);
  activities.version = GetText(facts.version);
  activities.missing = GetText(facts.missing);
  for (const Record& record : records) {
    if (!IsPossible(record)) return lost("holds what no trace has");
    Unpack(record, activities);
  }
  return activities;
}

}  // namespace convlab
