#include "common/record/usage.h"

#include <sys/resource.h>
#include <sys/time.h>

#include <chrono>

#include "absl/strings/str_format.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

// Set before main, a few milliseconds after the process was created.
const Clock::time_point start_time = Clock::now();

int64_t Nanoseconds(const timeval& time) {
  return int64_t{time.tv_sec} * 1000000000 + int64_t{time.tv_usec} * 1000;
}

}  // namespace

ResourceUsage CurrentUsage() {
  rusage self;
  getrusage(RUSAGE_SELF, &self);
  ResourceUsage usage;
  usage.user_ns = Nanoseconds(self.ru_utime);
  usage.system_ns = Nanoseconds(self.ru_stime);
  usage.elapsed_ns =
      std::chrono::nanoseconds(Clock::now() - start_time).count();
  usage.max_resident_bytes = int64_t{self.ru_maxrss} * 1024;
  return usage;
}

std::string FormatUsage(const ResourceUsage& usage) {
  const int64_t centiseconds = usage.elapsed_ns / 10000000;
  const int64_t seconds = centiseconds / 100;
  // GNU time drops the hundredths once it shows hours.
  const std::string elapsed =
      seconds < 3600 ? absl::StrFormat("%d:%02d.%02d", seconds / 60,
                                       seconds % 60, centiseconds % 100)
                     : absl::StrFormat("%d:%02d:%02d", seconds / 3600,
                                       seconds / 60 % 60, seconds % 60);
  const std::string cpu =
      usage.elapsed_ns > 0
          ? absl::StrFormat("%d%%", 100 * (usage.user_ns + usage.system_ns) /
                                        usage.elapsed_ns)
          : "?%";
  return absl::StrFormat(
      "%.2fuser %.2fsystem %selapsed %sCPU (0avgtext+0avgdata "
      "%dmaxresident)k",
      usage.user_ns * 1e-9, usage.system_ns * 1e-9, elapsed, cpu,
      usage.max_resident_bytes / 1024);
}

}  // namespace convlab
