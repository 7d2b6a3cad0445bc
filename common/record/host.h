// The machine of a run.
#ifndef COMMON_RECORD_HOST_H_
#define COMMON_RECORD_HOST_H_

#include <cstdint>
#include <string>

namespace convlab {

// A text is empty and a number is 0 if the system does not provide it.
struct HostFacts {
  std::string cpu;               // "AMD EPYC 9654"
  int cores = 0;                 // available to the process
  int64_t memory_bytes = 0;      // of the machine
  std::string operating_system;  // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;            // "Linux 6.1.0"
};

HostFacts ReadHostFacts();

// Formats an amount of memory: "512 B", "1.5 kB", "12.0 MB", "25.277 GB",
// "3.520 TB", powers of 1000.
std::string FormatBytes(double bytes);

}  // namespace convlab

#endif  // COMMON_RECORD_HOST_H_
