// Errors: macros that propagate a status, and the exit status that it becomes.
//
//   absl::StatusOr<int> Twice(const std::string& text) {
//     ASSIGN_OR_RETURN(const int value, Parse(text));
//     RETURN_IF_ERROR(CheckRange(value));
//     return 2 * value;
//   }
//
// The code says whose fault the error is and determines the exit status:
//   InvalidArgument, NotFound, PermissionDenied   bad usage or bad input    2
//   Unavailable        the hardware asked for is not there                  3
//   anything else      the program failed                                   1
#ifndef COMMON_STATUS_STATUS_H_
#define COMMON_STATUS_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// The program's exit status, on which users' scripts rely; 0 for OK.
int ExitStatus(const absl::Status& status);

// Returns `status` with "`where`: " before its message and the same code. OK
// stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view where);

// Returns `text` on one line for a terminal: control characters, which a path
// may contain, are written as "\n" or "\x1b".
std::string OneLine(absl::string_view text);

}  // namespace convlab

#define CONVLAB_CONCAT_INNER(a, b) a##b
#define CONVLAB_CONCAT(a, b) CONVLAB_CONCAT_INNER(a, b)

// Returns from the enclosing function if `expression` is not OK.
#define RETURN_IF_ERROR(expression)                                           \
  do {                                                                        \
    if (absl::Status returned_status = (expression); !returned_status.ok()) { \
      return returned_status;                                                 \
    }                                                                         \
  } while (false)

// Assigns the value of a StatusOr to `target` (a declaration or a variable), or
// returns its status from the enclosing function.
#define ASSIGN_OR_RETURN(target, expression)                             \
  CONVLAB_ASSIGN_OR_RETURN(CONVLAB_CONCAT(status_or_, __LINE__), target, \
                           expression)
#define CONVLAB_ASSIGN_OR_RETURN(status_or, target, expression) \
  auto status_or = (expression);                                \
  if (!status_or.ok()) return std::move(status_or).status();    \
  target = *std::move(status_or)

#endif  // COMMON_STATUS_STATUS_H_
