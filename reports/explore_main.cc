// Writes a page with all records of a folder: bazel run //reports:explore --
// DIR
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "reports/explorer/explorer.h"
#include "reports/records/records.h"

DEFINE_string(out, "explore.html", "file to write");

namespace convlab {
namespace {

absl::Status Run(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags flags, ParseFlags(args, __FILE__));
  if (flags.help) {
    absl::PrintF(
        "Usage: bazel run //reports:explore -- DIR [--flags]\n\n%s\n\n%s"
        "\nExit status: 0 done, 1 failed, 2 bad usage or bad records.\n",
        WrapText("Writes one page of at most 2 MB with all records below DIR, "
                 "of runs and of benchmarks, for a browser without a network: "
                 "filters, ladder, roofline, times over the number of images, "
                 "accuracy, whole networks, and two records side by side. The "
                 "folders in DIR are the participants.",
                 0, 0),
        DescribeFlags(__FILE__));
    return absl::OkStatus();
  }
  if (flags.positional.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.positional.size(), " folders are given, expected one"));
  }
  ReadOptions options;
  options.keep_broken = true;
  options.benchmarks = true;
  ASSIGN_OR_RETURN(const Records records,
                   ReadRecords(flags.positional[0], options));
  if (records.runs.empty() && records.benches.empty() &&
      records.networks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(records.broken[0].path, ": ", records.broken[0].reason));
  }
  const Explorer explorer = MakeExplorer(records);
  RETURN_IF_ERROR(WriteFileAtomically(UserPath(FLAGS_out), explorer.html));
  for (const BrokenFile& file : records.broken) {
    absl::FPrintF(
        stderr, "%s\n",
        ErrorLine("explore",
                  absl::StrCat(file.path, " left out: ", file.reason)));
  }
  if (explorer.left_out > 0) {
    absl::FPrintF(stderr,
                  "explore: %d of the oldest records are left out, since the "
                  "page would be larger than 2 MB\n",
                  explorer.left_out);
  }
  absl::PrintF("%s\n", FLAGS_out);
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  return convlab::RunMain("explore", [&] {
    return convlab::Run({argv + 1, argv + argc});
  });
}
