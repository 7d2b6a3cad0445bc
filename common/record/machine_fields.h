// The JSON fields that several kinds of records share: of the machine that a
// run was made on, and of a benchmark's run.
#ifndef COMMON_RECORD_MACHINE_FIELDS_H_
#define COMMON_RECORD_MACHINE_FIELDS_H_

#include "common/record/benchmark_run.h"
#include "common/record/host.h"
#include "common/record/run_record.h"

namespace convlab {

template <typename Visitor>
void Fields(Visitor& visit, HostFacts& host) {
  visit("cpu", host.cpu);
  visit("cores", host.cores);
  visit("memory_bytes", host.memory_bytes);
  visit("operating_system", host.operating_system);
  visit("kernel", host.kernel);
}

template <typename Visitor>
void Fields(Visitor& visit, GpuFacts& gpu) {
  visit("name", gpu.name);
  visit("compute_capability", gpu.compute_capability);
  visit("multiprocessors", gpu.multiprocessors);
  visit("memory_bytes", gpu.memory_bytes);
  visit("driver_version", gpu.driver_version);
  visit("runtime_version", gpu.runtime_version);
  visit("multiprocessor_clock_khz", gpu.multiprocessor_clock_khz);
  visit("memory_clock_khz", gpu.memory_clock_khz);
  visit("libraries", gpu.libraries);
}

template <typename Visitor>
void BenchmarkFields(Visitor& visit, BenchmarkRun& record) {
  visit("command", record.command);
  visit("git_revision", record.git_revision);
  visit("build_mode", record.build_mode);
  visit("started", record.started);
  visit("method", record.method);
  visit("device", record.device);
  visit("threads", record.threads);
  visit("cpu_target", record.cpu_target);
  visit("host", record.host);
  visit("gpu", record.gpu);
}

}  // namespace convlab

#endif  // COMMON_RECORD_MACHINE_FIELDS_H_
