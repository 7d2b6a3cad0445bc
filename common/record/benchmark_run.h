// What the records of all benchmarks begin with: the run, and its machine.
#ifndef COMMON_RECORD_BENCHMARK_RUN_H_
#define COMMON_RECORD_BENCHMARK_RUN_H_

#include <string>
#include <vector>

#include "common/record/host.h"
#include "common/record/run_record.h"

namespace convlab {

struct BenchmarkRun {
  std::vector<std::string> command;
  std::string git_revision;
  std::string build_mode;
  std::string started;     // RFC 3339, UTC
  std::string method;      // how times were taken
  std::string device;      // "cpu" or "gpu"
  int threads = 0;         // of the CPU
  std::string cpu_target;  // as in the run record
  HostFacts host;
  GpuFacts gpu;
};

}  // namespace convlab

#endif  // COMMON_RECORD_BENCHMARK_RUN_H_
