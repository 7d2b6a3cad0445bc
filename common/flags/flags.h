// Command lines, over gflags. gflags' own parser ends the program with status 1
// on a wrong flag and prints several lines; this one returns a status.
//
//   DEFINE_int32(repeat, 1, "measurements of each operation");
//   int main(int argc, char** argv) {
//     const auto parsed = ParseFlags({argv + 1, argv + argc}, __FILE__);
#ifndef COMMON_FLAGS_FLAGS_H_
#define COMMON_FLAGS_FLAGS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

struct ParsedFlags {
  std::vector<std::string> positional;
  std::set<std::string> given;  // the flags that were given
  // The values of the repeatable flags that were given, in order.
  std::map<std::string, std::vector<std::string>> repeated;
  bool help = false;  // --help or -h was given
};

// Sets the flags that `source_file` defines (its __FILE__) from the arguments:
// --name=value, --name value, --switch, --noswitch, one dash or two; "--" ends
// the flags, and an argument like -5 is a number. InvalidArgument names the
// flag that is unknown, lacks its value, has an empty one or one of the wrong
// type, or is given twice with different ones although it is not among the
// `repeatable`.
absl::StatusOr<ParsedFlags> ParseFlags(
    const std::vector<std::string>& args, absl::string_view source_file,
    const std::set<std::string>& repeatable = {});

// Breaks `text`, which begins after `column` characters of a line, at blanks
// into lines of at most 80 characters, unless a word is longer; further lines
// are indented by `indent`.
std::string WrapText(absl::string_view text, size_t column, size_t indent);

// One paragraph for --help per flag of `source_file`, except those in
// `without`.
std::string DescribeFlags(absl::string_view source_file,
                          const std::set<std::string>& without = {});

}  // namespace convlab

#endif  // COMMON_FLAGS_FLAGS_H_
