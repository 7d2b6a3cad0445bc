#include "common/record/host.h"

#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files/files.h"
#include "common/parallel/parallel.h"

namespace convlab {
namespace {

// The value of the first line "key<separator>value" of a file.
std::string ReadValue(const std::string& path, absl::string_view key,
                      char separator) {
  const auto content = ReadFile(path);
  if (!content.ok()) return "";
  for (absl::string_view line : absl::StrSplit(*content, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(separator, 1));
    if (absl::StripAsciiWhitespace(parts.first) == key) {
      absl::string_view value = absl::StripAsciiWhitespace(parts.second);
      absl::ConsumePrefix(&value, "\"");
      absl::ConsumeSuffix(&value, "\"");
      return std::string(value);
    }
  }
  return "";
}

// The processor's name as it tells it itself, so that no file need be opened;
// elsewhere than on x86 as the system tells it.
std::string CpuName() {
#if defined(__x86_64__)
  unsigned registers[3][4] = {};
  bool known = true;
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* const r = registers[i];
    known &= __get_cpuid(0x80000002 + i, &r[0], &r[1], &r[2], &r[3]) != 0;
  }
  char name[sizeof(registers) + 1] = {};
  std::memcpy(name, registers, sizeof(registers));
  if (known && name[0] != '\0') {
    return std::string(absl::StripAsciiWhitespace(name));
  }
#endif
  return ReadValue("/proc/cpuinfo", "model name", ':');
}

}  // namespace

HostFacts ReadHostFacts() {
  HostFacts facts;
  facts.cpu = CpuName();
  facts.cores = Workers::Available();
  facts.memory_bytes =
      int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  facts.operating_system = ReadValue("/etc/os-release", "PRETTY_NAME", '=');
  utsname system;
  if (uname(&system) == 0) {
    facts.kernel = absl::StrCat(system.sysname, " ", system.release);
  }
  return facts;
}

std::string FormatBytes(double bytes) {
  if (bytes < 1e3) return absl::StrFormat("%.0f B", bytes);
  if (bytes < 1e6) return absl::StrFormat("%.1f kB", bytes * 1e-3);
  if (bytes < 1e9) return absl::StrFormat("%.1f MB", bytes * 1e-6);
  if (bytes < 1e12) return absl::StrFormat("%.3f GB", bytes * 1e-9);
  return absl::StrFormat("%.3f TB", bytes * 1e-12);
}

}  // namespace convlab
