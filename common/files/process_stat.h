// Reads what Linux tells of a process in /proc/PID/stat.
#ifndef COMMON_FILES_PROCESS_STAT_H_
#define COMMON_FILES_PROCESS_STAT_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace convlab {

// The fields of a stat file that follow the process's name: the state ('Z' of
// one that has ended and waits for its parent), the parent and so on, separated
// by blanks. Empty if the text is no stat file's. The name may hold anything,
// brackets and blanks among them, and ends with the last bracket.
inline absl::string_view FieldsBehindName(absl::string_view stat) {
  const size_t end = stat.rfind(") ");
  return end == absl::string_view::npos ? absl::string_view()
                                        : stat.substr(end + 2);
}

}  // namespace convlab

#endif  // COMMON_FILES_PROCESS_STAT_H_
