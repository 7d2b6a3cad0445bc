// The library for other programs: what a call costs the host, and how long the
// problems take that convlab/measure/compare.py times beside cuDNN.
#ifndef TOOLS_BENCH_LIBRARY_BENCH_H_
#define TOOLS_BENCH_LIBRARY_BENCH_H_

#include "absl/status/status.h"
#include "common/record/library_record.h"
#include "convlab/include/convlab/convlab.hpp"

namespace convlab {

struct LibraryBenchOptions {
  bool gpu = false;
  int threads = 0;     // of the CPU; 0: one for each core
  int samples = 20;    // of each time, at least 3
  double seconds = 5;  // and no more after that
};

// Adds calls and rows to the record and prints them. Data are zeros on the GPU,
// whose time does not depend on them, and ones on the CPU.
absl::Status BenchLibrary(const LibraryBenchOptions& options,
                          LibraryRecord& record);

// The status of an error of the library.
absl::Status ToStatus(const Error& error);

}  // namespace convlab

#endif  // TOOLS_BENCH_LIBRARY_BENCH_H_
