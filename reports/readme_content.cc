#include "reports/readme_content.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/record/run_record.h"
#include "common/status/status.h"
#include "reports/markers.h"
#include "reports/tables.h"

namespace convlab {
namespace {

absl::StatusOr<std::vector<RunRecord>> ReadRecords(
    const std::string& folder, const std::vector<std::string>& names) {
  std::vector<RunRecord> records;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(RunRecord record,
                     ReadRunRecord(absl::StrCat(folder, "/", name, ".json")));
    records.push_back(std::move(record));
  }
  return records;
}

// Where and on what the numbers below it were measured.
std::string Caption(const RunRecord& record) {
  return absl::StrCat("Measured on ", record.host.cpu, ", ", record.threads,
                      record.threads == 1 ? " thread" : " threads",
                      ", revision ", record.git_revision, ".\n\n");
}

}  // namespace

absl::StatusOr<std::string> UpdateReadme(absl::string_view readme,
                                         const std::string& measured) {
  const std::string cpu = measured + "/cpu";
  ASSIGN_OR_RETURN(
      const std::vector<RunRecord> ladder,
      ReadRecords(cpu, {"m2-fa19-1000-naive", "m2-fa19-1000-naive_parallel",
                        "m2-fa19-1000-im2col_eigen"}));
  ASSIGN_OR_RETURN(
      const std::vector<RunRecord> networks,
      ReadRecords(
          cpu, {"final-fa17-high", "final-fa17-low", "final-fa18", "final-sp19",
                "final-sp19-baseline", "final-fa19", "final-fa20"}));
  const RunRecord& shown = networks[5];
  const std::string output =
      absl::StrCat("```\n$ bazel run //milestones:", shown.milestone, " -- ",
                   shown.model, " --device ", shown.device, "\n",
                   absl::StrJoin(shown.output, "\n"), "\n```\n");
  ASSIGN_OR_RETURN(std::string document,
                   ReplacePassage(readme, "output", output));
  ASSIGN_OR_RETURN(document, ReplacePassage(document, "cpu ladder",
                                            absl::StrCat(Caption(ladder[1]),
                                                         LadderTable(ladder))));
  return ReplacePassage(
      document, "networks",
      absl::StrCat(Caption(networks[0]), NetworksTable(networks)));
}

}  // namespace convlab
