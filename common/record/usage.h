// The resources that the process has used, in the format of the course's
// scripts.
#ifndef COMMON_RECORD_USAGE_H_
#define COMMON_RECORD_USAGE_H_

#include <cstdint>
#include <string>

namespace convlab {

struct ResourceUsage {
  int64_t user_ns = 0;
  int64_t system_ns = 0;
  int64_t elapsed_ns = 0;  // since the process began
  int64_t max_resident_bytes = 0;
};

ResourceUsage CurrentUsage();

// The first line that GNU time prints by default:
// "5.18user 4.20system 0:05.66elapsed 165%CPU (0avgtext+0avgdata
// 2975700maxresident)k"
std::string FormatUsage(const ResourceUsage& usage);

}  // namespace convlab

#endif  // COMMON_RECORD_USAGE_H_
