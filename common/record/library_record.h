// The record of a benchmark of the library for other programs (bench
// --library): what a call costs the host, and how long problems that people
// have take.
#ifndef COMMON_RECORD_LIBRARY_RECORD_H_
#define COMMON_RECORD_LIBRARY_RECORD_H_

#include <string>
#include <vector>

#include "common/record/host.h"
#include "common/record/run_record.h"

namespace convlab {

inline constexpr char kLibrarySchema[] = "convlab.library/1";

// The host's time of a call that queues work and returns, or computes nothing
// of note.
struct LibraryCall {
  std::string name;
  std::string kernel;  // empty: none
  double ns = 0;       // median
};

// The device's time of an operation.
struct LibraryRow {
  std::string name;
  std::string operation;
  std::string kernel;
  double estimated_us = 0;  // 0: no estimate
  double us = 0;            // median
};

struct LibraryRecord {
  std::vector<std::string> command;
  std::string git_revision;
  std::string build_mode;
  std::string started;  // RFC 3339, UTC
  std::string method;   // how times were taken
  std::string device;   // "cpu" or "gpu"
  int threads = 0;      // of the CPU
  std::string cpu_target;
  HostFacts host;
  GpuFacts gpu;
  std::vector<LibraryCall> calls;
  std::vector<LibraryRow> rows;
};

std::string ToJson(const LibraryRecord& record);

}  // namespace convlab

#endif  // COMMON_RECORD_LIBRARY_RECORD_H_
