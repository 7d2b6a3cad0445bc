// Lists what takes most of a profiled run's time:
// bazel run //reports:profile -- FILE...
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "reports/importers/import.h"
#include "reports/importers/listing.h"

DEFINE_double(threshold, 90,
              "percent of the time that a list must exceed; it stops at the "
              "first entry that brings it over");
DEFINE_string(format, "text", "text, md, csv or json");

namespace convlab {
namespace {

std::string HelpText() {
  return absl::StrCat(
      "Usage: bazel run //reports:profile -- FILE... [--flags]\n\n",
      WrapText("Lists, for each file, the GPU activities and the API calls "
               "that together take most of the time, and the counters of "
               "launches. Files are recognized by their content:",
               0, 0),
      "\n\n"
      "  a run record, of a run with --record and --profile, or its trace\n"
      "  nvprof's summary, as text or with --csv\n"
      "  nsys stats REPORT, as text or with --format csv\n"
      "  nsys export --type sqlite REPORT\n"
      "  ncu --csv --page details, or --page raw\n\n",
      DescribeFlags(__FILE__),
      "\nExit status: 0 done, 1 failed, 2 bad usage or a bad file.\n");
}

absl::Status Run(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags flags, ParseFlags(args, __FILE__));
  if (flags.help) {
    std::fputs(HelpText().c_str(), stdout);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const ListingFormat format,
                   ParseListingFormat(FLAGS_format));
  if (!(FLAGS_threshold >= 0 && FLAGS_threshold <= 100)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--threshold is ", FLAGS_threshold, ", expected 0 to 100"));
  }
  if (flags.positional.empty()) {
    return absl::InvalidArgumentError(
        "no file is given; --help says which are read");
  }
  std::vector<NamedProfile> profiles;
  for (const std::string& file : flags.positional) {
    ASSIGN_OR_RETURN(Profile profile, ImportProfile(UserPath(file)));
    profiles.push_back({file, std::move(profile)});
  }
  std::fputs(FormatProfiles(profiles, FLAGS_threshold, format).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  return convlab::RunMain("profile", [&] {
    return convlab::Run({argv + 1, argv + argc});
  });
}
