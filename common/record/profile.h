// The profile of a run: how its time divides over what ran on the GPU and over
// the API calls of the host. One model for every source: our own tracing, and
// the files of nvprof, nsys and ncu.
#ifndef COMMON_RECORD_PROFILE_H_
#define COMMON_RECORD_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace convlab {

// All calls of one kernel, one kind of copy, or one API function. A value that
// the source does not hold is absent, never 0.
struct ProfileEntry {
  std::string name;  // kernels demangled, copies as "[CUDA memcpy HtoD]"
  std::optional<int64_t> calls;
  std::optional<int64_t> total_ns;
  std::optional<double> average_ns;
  std::optional<int64_t> min_ns;
  std::optional<int64_t> max_ns;
  std::optional<int64_t> bytes;  // moved, for copies and memsets
  // The tool's own share, 0 to 1: what is left where a list is not whole.
  std::optional<double> printed_share;
};

// A list of entries as the source gives it, which need not be the whole list.
struct ProfileSection {
  std::vector<ProfileEntry> entries;
  // Why the section is empty or not whole; empty if it is whole.
  std::string missing;
};

// A hardware counter's value for one launch of a kernel.
struct Counter {
  std::string name;  // as the tool calls it: "dram__bytes.sum"
  std::string unit;  // as the tool writes it: "byte"; empty: none
  double value = 0;
};

// One launch of a kernel, of which a tool read hardware counters. Counters that
// the tool could not read ("n/a") are absent.
struct LaunchCounters {
  std::string kernel;
  std::string grid;   // "(128, 1, 1)"
  std::string block;  // likewise
  std::vector<Counter> counters;
};

struct Profile {
  std::string tool;     // "CUPTI", "nvprof", "nsys", "ncu"
  std::string version;  // of the tool; empty if the source does not tell
  ProfileSection gpu_activities;  // kernels, copies and memsets
  ProfileSection api_calls;       // runtime and driver, without version suffix
  std::vector<LaunchCounters> launches;
};

}  // namespace convlab

#endif  // COMMON_RECORD_PROFILE_H_
