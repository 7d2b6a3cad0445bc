// Checks that traces follow the rules of the format: bazel run
// //common/record:check_trace -- FILE...
#include <cstdio>
#include <string>

#include "absl/strings/str_format.h"
#include "common/files/files.h"
#include "common/record/trace_rules.h"
#include "common/status/main.h"
#include "common/status/status.h"

namespace convlab {
namespace {

absl::Status Check(const char* file) {
  ASSIGN_OR_RETURN(const std::string json, ReadFile(UserPath(file)));
  const auto counts = CheckTrace(json);
  if (!counts.ok()) return Annotate(counts.status(), file);
  absl::PrintF("%s: %d slices on %d tracks and %d arrows keep the rules\n",
               OneLine(file), counts->slices, counts->tracks, counts->arrows);
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  return convlab::RunMain("check_trace", [&] {
    absl::Status status;
    if (argc < 2) {
      status = absl::InvalidArgumentError("expected the traces' files");
    }
    for (int i = 1; i < argc; ++i) status.Update(convlab::Check(argv[i]));
    return status;
  });
}
