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

#include <cstddef>
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

// Returns `text` on one line, for terminals and documents. What a file or a
// path may hold to forge or hide what a reader sees is written out: control
// characters as "\n" or "\x1b", controls of Unicode (the C1 set, the ends of
// lines and paragraphs, the direction of writing) as "\u202e", and bytes that
// are not UTF-8 as "\x9b".
std::string OneLine(absl::string_view text);

// The same for a text of several lines, whose ends and tabs stay. Every writer
// ends with it, so that nothing of a file reaches a reader raw.
std::string Printable(absl::string_view text);

// Escapes what XML and HTML read as markup.
std::string EscapeMarkup(absl::string_view text);

// The bytes of a text in which U+FFFD, of three, stands for each byte that is
// not UTF-8, as in records.
size_t BytesAsUtf8(absl::string_view text);

// The longest error line, in bytes.
inline constexpr size_t kLongestErrorLine = 300;

// Formats an error of `program` as OneLine does and without an end of line. Of
// a longer line the middles of long words, which are paths, are left out, and
// then that of the line: its beginning names the place, its end the reason.
std::string ErrorLine(absl::string_view program, absl::string_view message);

// Ends every program's main: brings what was printed to standard output, prints
// the error, if there is one, and returns the exit status. Standard output that
// could not be written (a full disk) is an error too.
int FinishProgram(absl::string_view program, absl::Status status);

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
