// Compares the op times of two run records, or of two folders of them:
// bazel run //reports:compare -- A B
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/flags/flags.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "reports/comparison/comparison.h"
#include "reports/document/writers.h"
#include "reports/program.h"
#include "reports/quantities.h"
#include "reports/records/records.h"

DEFINE_bool(force, false, "compare different devices or problems too");
DEFINE_string(network, "", "use the records of this network alone");

namespace convlab {
namespace {

absl::Status Run(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags flags, ParseFlags(args, __FILE__));
  if (flags.help) {
    absl::PrintF(
        "Usage: bazel run //reports:compare -- A B [--flags]\n\n%s\n\n%s"
        "\nExit status: 0 done, 1 failed, 2 bad usage or bad records.\n",
        WrapText(absl::StrCat("Compares the op times of two run records, or of "
                              "all runs that two folders have in common, as a "
                              "table in Markdown. ",
                              kSpreadRule),
                 0, 0),
        DescribeFlags(__FILE__));
    return absl::OkStatus();
  }
  if (flags.positional.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.positional.size(),
                     " records or folders are given, expected two"));
  }
  ASSIGN_OR_RETURN(const Records a,
                   ReadRecords(flags.positional[0], FLAGS_network));
  ASSIGN_OR_RETURN(const Records b,
                   ReadRecords(flags.positional[1], FLAGS_network));
  ASSIGN_OR_RETURN(const std::vector<Block> blocks,
                   CompareRecords(a, b, FLAGS_force));
  std::fputs(WriteBlocks(blocks, TerminalWidth()).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  return convlab::RunMain("compare", [&] {
    return convlab::Run({argv + 1, argv + argc});
  });
}
