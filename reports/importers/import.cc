#include "reports/importers/import.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files/files.h"
#include "common/record/run_record.h"
#include "common/status/status.h"
#include "reports/importers/chrome_trace.h"
#include "reports/importers/ncu.h"
#include "reports/importers/nsys_sqlite.h"
#include "reports/importers/nsys_stats.h"
#include "reports/importers/nvprof.h"
#include "reports/importers/sqlite_reader.h"
#include "reports/importers/summary.h"

namespace convlab {
namespace {

// Checks that a record's values are plausible, as the other importers do.
absl::Status Check(absl::string_view name, const ProfileSection& section) {
  for (size_t i = 0; i < section.entries.size(); ++i) {
    const ProfileEntry& entry = section.entries[i];
    const double share = entry.printed_share.value_or(0);
    const auto is_bounded = [](const auto& value) {
      constexpr int64_t kLargest = int64_t{1} << 53;
      return value.value_or(0) >= 0 && value.value_or(0) <= kLargest;
    };
    if (entry.name.empty() || entry.calls.value_or(1) == 0 ||
        !is_bounded(entry.calls) || !is_bounded(entry.total_ns) ||
        !is_bounded(entry.average_ns) || !is_bounded(entry.min_ns) ||
        !is_bounded(entry.max_ns) || !is_bounded(entry.bytes) || share < 0 ||
        share > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "record.profile.", name, ".entries[", i,
          "] lacks a name, or holds a number that is no time, count or share"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Profile> ParseRecordedProfile(absl::string_view content) {
  ASSIGN_OR_RETURN(RunRecord record, ParseRunRecord(content));
  if (!record.profile) {
    return absl::InvalidArgumentError(
        "the run record holds no profile: the run was not traced (--profile)");
  }
  RETURN_IF_ERROR(Check("gpu_activities", record.profile->gpu_activities));
  RETURN_IF_ERROR(Check("api_calls", record.profile->api_calls));
  return *std::move(record.profile);
}

// The error for a file without a readable profile.
absl::Status Unknown(absl::string_view content) {
  if (content.empty()) return absl::InvalidArgumentError("the file is empty");
  if (absl::StartsWith(content, "\xFF\xFE") ||
      absl::StartsWith(content, "\xFE\xFF")) {
    return absl::InvalidArgumentError(
        "the file is UTF-16 (a redirection of PowerShell's?), expected UTF-8");
  }
  if (absl::StrContains(content, absl::string_view("\0", 1))) {
    return absl::InvalidArgumentError(
        "a binary file, not an export: for nsys run nsys export --type sqlite, "
        "for "
        "ncu run ncu --import FILE --csv --page raw");
  }
  if (absl::StrContains(content, "==PROF==")) {
    return absl::InvalidArgumentError(
        "ncu's output without the header of a CSV page: run ncu with --csv "
        "--page details or --page raw");
  }
  return absl::InvalidArgumentError(
      "no profile found: expected the summary of nvprof, nsys stats (text or "
      "CSV), an nsys SQLite export, ncu --csv, a run record, or the trace of "
      "--profile");
}

}  // namespace

absl::StatusOr<Profile> ParseProfile(absl::string_view content) {
  if (IsSqlite(content)) return ParseNsysSqlite(content);
  absl::ConsumePrefix(&content, "\xEF\xBB\xBF");  // a byte order mark
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(content), "{")) {
    return IsChromeTrace(content) ? ParseChromeTrace(content)
                                  : ParseRecordedProfile(content);
  }
  const std::vector<ColumnHeading> header = FirstSummaryHeader(content);
  if (HasNcuHeader(content)) {
    if (!header.empty()) {
      return absl::InvalidArgumentError(
          "the file holds profiles of two tools: give each a file of its own");
    }
    return ParseNcu(content);
  }
  if (header.empty()) return Unknown(content);
  return IsNsysHeader(header) ? ParseNsysStats(content) : ParseNvprof(content);
}

absl::StatusOr<Profile> ImportProfile(const std::string& path) {
  ASSIGN_OR_RETURN(FileReader reader, FileReader::Open(path));
  char beginning[16];
  ASSIGN_OR_RETURN(const size_t size,
                   reader.Read(beginning, sizeof(beginning)));
  std::string content(beginning, size);
  // Databases may be larger than memory.
  if (IsSqlite(content) && reader.size() > 0) {
    auto profile = ReadNsysSqlite(path);
    if (!profile.ok()) return Annotate(profile.status(), path);
    return profile;
  }
  ASSIGN_OR_RETURN(const std::string rest, reader.ReadAll(kLargestFile));
  content += rest;
  auto profile = ParseProfile(content);
  if (!profile.ok()) return Annotate(profile.status(), path);
  return profile;
}

}  // namespace convlab
