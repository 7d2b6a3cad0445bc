// The profile of a run: its time by activities of the GPU and by API calls of
// the host. All sources share this model: our own tracing, and the files of
// nvprof, nsys and ncu.
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
  // The share that the tool printed, 0 to 1: the only one where a list is
  // incomplete.
  std::optional<double> printed_share;
};

// A list of entries as the source gives it, which may be incomplete.
struct ProfileSection {
  std::vector<ProfileEntry> entries;
  // The reason why the section is empty or incomplete; empty if it is complete.
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
  std::string tool;               // "CUPTI", "nvprof", "nsys", "ncu"
  std::string version;            // of the tool; empty if not in the source
  ProfileSection gpu_activities;  // kernels, copies and memsets
  ProfileSection api_calls;       // runtime and driver, without version suffix
  std::vector<LaunchCounters> launches;
};

}  // namespace convlab

#endif  // COMMON_RECORD_PROFILE_H_
