// The record of a run of classify: what ran where, how the devices are linked,
// and the share of each.
#ifndef COMMON_RECORD_CLASSIFY_RECORD_H_
#define COMMON_RECORD_CLASSIFY_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/host.h"

namespace convlab {

inline constexpr char kClassifySchema[] = "convlab.classify/1";

// A device that took pieces. Its times overlap with each other and with those
// of other devices.
struct ClassifyShare {
  int rank = 0;
  std::string host;
  std::string device;      // "GPU 1, NVIDIA H200"
  std::string pci_bus_id;  // of a GPU
  int threads = 0;         // of the host
  int64_t pieces = 0, images = 0;
  int64_t compile_ns = 0, read_ns = 0, compute_ns = 0;
  std::string lost;  // why it was lost; empty: it was not
  // Pieces that another rank took out of the memory that rank 0 shares with it;
  // the others' images came by messages, unless the ranks read them themselves.
  int64_t shared_pieces = 0;
};

// From one GPU of a rank's host to another, as CUDA tells.
struct ClassifyLink {
  int rank = 0;
  int from = 0, to = 0;
  bool access = false;   // one reads and writes the other's memory
  bool atomics = false;  // atomically too: NVLink, as a rule
  int speed_rank = 0;    // the lower the faster
};

struct ClassifyRecord {
  std::vector<std::string> command;
  std::string git_revision;
  std::string build_mode;
  std::string started;  // RFC 3339, UTC
  HostFacts host;       // of rank 0
  std::string network;
  int64_t images = 0;    // of the run
  int64_t resumed = 0;   // of these, answered by earlier ones
  int64_t block = 0;     // images of a piece
  int64_t correct = -1;  // -1: there are no labels
  int ranks = 1;
  std::string reading = "rank 0";  // or "each": the ranks that read images
  int readers = 0;  // threads for each device; 0: an old record, 2 on a GPU
  // From the first piece's reading to the last one's answers; of these, what
  // writing took.
  int64_t run_ns = 0, write_ns = 0;
  int64_t max_resident_bytes = 0;  // of rank 0
  std::vector<ClassifyShare> shares;
  std::vector<ClassifyLink> links;
};

std::string ToJson(const ClassifyRecord& record);
// InvalidArgument, naming the field, if it is not the text of such a record, or
// a value is one that no run has.
absl::StatusOr<ClassifyRecord> ParseClassifyRecord(absl::string_view json);

// Of a part that another rank sends.
std::string ToJson(const ClassifyShare& share);
absl::StatusOr<ClassifyShare> ParseClassifyShare(absl::string_view json);

}  // namespace convlab

#endif  // COMMON_RECORD_CLASSIFY_RECORD_H_
