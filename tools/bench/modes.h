// What a run of the benchmark is for, and which flags that reads.
#ifndef TOOLS_BENCH_MODES_H_
#define TOOLS_BENCH_MODES_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace convlab {

enum class BenchMode : unsigned {
  kTimes = 1,  // of layers; all others are asked for by a flag
  kAccuracy = 2,
  kOnce = 4,
  kNetwork = 8,
  kLibrary = 16,
  kList = 32,
};

// The mode that these switches ask for: names of flags that are not off, among
// which others may be. InvalidArgument if they ask for several.
absl::StatusOr<BenchMode> ChooseBenchMode(const std::set<std::string>& on);

// InvalidArgument, with the modes that it is for, for the first of the flags
// that the mode would not read. Flags that ask for a mode are not looked at.
absl::Status CheckFlagsOf(BenchMode mode, const std::set<std::string>& given);

}  // namespace convlab

#endif  // TOOLS_BENCH_MODES_H_
