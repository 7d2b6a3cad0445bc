// Checks that traces follow the rules of the format: bazel run
// //common/record:check_trace -- FILE...
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/record/trace_rules.h"
#include "common/status/main.h"
#include "common/status/status.h"

namespace convlab {
namespace {

constexpr char kHelp[] =
    "Usage: bazel run //common/record:check_trace -- FILE...\n\n"
    "Checks that traces, as --profile writes them, keep the rules of the "
    "Chrome "
    "trace\nformat: slices of a track nest, and arrows begin and end in "
    "slices. "
    "Prints how\nmany of each a file has.\n\n"
    "Exit status: 0 all keep them, 1 failed, 2 bad usage or a bad trace.\n";

absl::Status Check(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string json, ReadFile(UserPath(file)));
  const auto counts = CheckTrace(json);
  if (!counts.ok()) return Annotate(counts.status(), file);
  absl::PrintF("%s: %d slices on %d tracks and %d arrows keep the rules\n",
               OneLine(file), counts->slices, counts->tracks, counts->arrows);
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags flags, ParseFlags(args, __FILE__));
  if (flags.help) {
    absl::PrintF("%s", kHelp);
    return absl::OkStatus();
  }
  if (flags.positional.empty()) {
    return absl::InvalidArgumentError("expected the traces' files");
  }
  absl::Status status;
  for (const std::string& file : flags.positional) status.Update(Check(file));
  return status;
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  return convlab::RunMain("check_trace", [&] {
    return convlab::Run({argv + 1, argv + argc});
  });
}
