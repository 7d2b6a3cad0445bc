#include "reports/importers/nvprof.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/record/activities.h"
#include "common/record/run_record.h"
#include "common/status/status.h"
#include "reports/importers/numbers.h"
#include "reports/importers/summary.h"

namespace convlab {
namespace {

constexpr absl::string_view kGpu = "GPU activities";
constexpr absl::string_view kApi = "API calls";

// The type of a table without a type column: by the line above it or, in a
// piece of a report, by the names.
absl::string_view TypeOf(const SummaryTable& table) {
  const size_t api = table.preamble.rfind("API calls:");
  const size_t gpu = table.preamble.rfind("Profiling result:");
  constexpr size_t kNone = absl::string_view::npos;
  if (api != kNone && (gpu == kNone || api > gpu)) return kApi;
  if (gpu != kNone) return kGpu;
  return IsApiName(table.rows[0].at(Column::kName).text) ? kApi : kGpu;
}

}  // namespace

absl::StatusOr<Profile> ParseNvprof(absl::string_view content) {
  ASSIGN_OR_RETURN(const std::vector<SummaryTable> tables,
                   ReadSummaryTables(content));
  NumberReader numbers(content);
  for (const SummaryTable& table : tables) {
    for (const SummaryRow& row : table.rows) {
      RETURN_IF_ERROR(ObserveRow(row, numbers));
    }
  }
  Profile profile;
  profile.tool = "nvprof";
  for (const SummaryTable& table : tables) {
    const bool had_gpu = !profile.gpu_activities.entries.empty();
    const bool had_api = !profile.api_calls.entries.empty();
    for (const SummaryRow& row : table.rows) {
      const auto type = row.find(Column::kType);
      const absl::string_view kind =
          type == row.end() ? TypeOf(table) : type->second.text;
      const bool is_api = absl::EqualsIgnoreCase(kind, kApi);
      // Directives of OpenACC and OpenMP are skipped.
      if (!is_api && !absl::EqualsIgnoreCase(kind, kGpu)) continue;
      if (is_api ? had_api : had_gpu) {
        return ErrorAt(
            content, table.offset,
            absl::StrCat("a second list of ", is_api ? kApi : kGpu,
                         " begins here: give each profile a file of its own"));
      }
      ASSIGN_OR_RETURN(ProfileEntry entry,
                       ReadRow(content, table, row, "", numbers));
      entry.name = is_api ? ApiName(entry.name) : ActivityName(entry.name);
      (is_api ? profile.api_calls : profile.gpu_activities)
          .entries.push_back(std::move(entry));
    }
    if (!had_gpu) {
      RETURN_IF_ERROR(
          CheckShares(content, table, profile.gpu_activities.entries));
    }
    if (!had_api) {
      RETURN_IF_ERROR(CheckShares(content, table, profile.api_calls.entries));
    }
  }
  for (ProfileSection* section :
       {&profile.gpu_activities, &profile.api_calls}) {
    if (section->entries.empty()) section->missing = "not in the file";
  }
  if (profile.gpu_activities.entries.empty() &&
      profile.api_calls.entries.empty()) {
    return absl::InvalidArgumentError(
        "nvprof's summary lists neither GPU activities nor API calls");
  }
  TellIfCut(content, tables, profile);
  RETURN_IF_ERROR(CheckProfile(profile));
  return profile;
}

}  // namespace convlab
