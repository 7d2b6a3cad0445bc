// The record of a benchmark of the library for other programs (bench
// --library): what a call costs the host, and how long problems that people
// have take.
#ifndef COMMON_RECORD_LIBRARY_RECORD_H_
#define COMMON_RECORD_LIBRARY_RECORD_H_

#include <string>
#include <vector>

#include "common/record/benchmark_run.h"

namespace convlab {

inline constexpr char kLibrarySchema[] = "convlab.library/1";

// The host's time of a call that queues work and returns, or computes nothing
// of note.
struct LibraryCall {
  std::string name;
  std::string kernel;      // empty: none
  int launches = 0;        // of kernels on the GPU
  double ns = 0;           // median
  double launches_ns = 0;  // of these by CUDA alone, measured by turns
  double overhead_ns = 0;  // what the call takes besides its launches, median
};

// The device's time of an operation.
struct LibraryRow {
  std::string name;
  std::string operation;
  std::string kernel;
  double estimated_us = 0;  // 0: no estimate
  double us = 0;            // median
  double prepared_us = 0;   // with weights that were prepared before
};

struct LibraryRecord : BenchmarkRun {
  std::vector<LibraryCall> calls;
  std::vector<LibraryRow> rows;
};

std::string ToJson(const LibraryRecord& record);

}  // namespace convlab

#endif  // COMMON_RECORD_LIBRARY_RECORD_H_
