#include "reports/importers/nsys_stats.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/record/activities.h"
#include "common/record/run_record.h"
#include "common/status/status.h"
#include "reports/importers/numbers.h"
#include "reports/importers/shares.h"
#include "reports/importers/summary.h"

namespace convlab {
namespace {

enum class Report { kUnknown, kOther, kKernels, kCopies, kApi, kTogether };

// The names of reports above a table, in versions of 2022 and in later ones.
Report ReportNamed(absl::string_view word) {
  static const auto* const reports = new std::map<std::string, Report>{
      {"gpukernsum", Report::kKernels},
      {"cuda_gpu_kern_sum", Report::kKernels},
      {"gpukerngbsum", Report::kKernels},
      {"cuda_gpu_kern_gb_sum", Report::kKernels},
      {"gpumemtimesum", Report::kCopies},
      {"cuda_gpu_mem_time_sum", Report::kCopies},
      {"cudaapisum", Report::kApi},
      {"cuda_api_sum", Report::kApi},
      {"gpusum", Report::kTogether},
      {"cuda_gpu_sum", Report::kTogether},
      {"apigpusum", Report::kTogether},
      {"cuda_api_gpu_sum", Report::kTogether},
  };
  const auto found = reports->find(std::string(word));
  if (found != reports->end()) return found->second;
  for (const absl::string_view prefix :
       {"osrt", "nvtx", "openmp", "openacc", "opengl", "khr", "vulkan", "dx",
        "wddm", "um", "nvvideo", "syscall", "mpi", "ucx", "network"}) {
    if (absl::StartsWith(word, prefix) && absl::EndsWith(word, "sum")) {
      return Report::kOther;
    }
  }
  return Report::kUnknown;
}

// The report whose name is the last in the text above a table or, in versions
// that print only a title, whose title is.
Report ReportAbove(absl::string_view preamble) {
  Report named = Report::kUnknown;
  size_t at = 0;
  while (at < preamble.size()) {
    const size_t begin = at;
    while (at < preamble.size() &&
           (absl::ascii_isalnum(preamble[at]) || preamble[at] == '_')) {
      ++at;
    }
    const Report report = ReportNamed(preamble.substr(begin, at - begin));
    if (report != Report::kUnknown) named = report;
    if (at == begin) ++at;
  }
  if (named != Report::kUnknown) return named;
  constexpr std::pair<absl::string_view, Report> kTitles[] = {
      {"CUDA API Statistics", Report::kApi},
      {"CUDA API Summary", Report::kApi},
      {"CUDA Kernel Statistics", Report::kKernels},
      {"Kernel Summary", Report::kKernels},
      {"Memory Operation Statistics (by time)", Report::kCopies},
      {"MemOps Summary (by Time)", Report::kCopies},
      {"Operating System Runtime API Statistics", Report::kOther},
      {"OS Runtime Summary", Report::kOther},
      {"NVTX", Report::kOther},
  };
  size_t last = 0;
  for (const auto& [title, report] : kTitles) {
    const size_t found = preamble.rfind(title);
    if (found != absl::string_view::npos && found + 1 > last) {
      last = found + 1;
      named = report;
    }
  }
  return named;
}

// The report of a table, by the text above it or else by its columns.
Report ReportOf(const SummaryTable& table) {
  const Report above = ReportAbove(table.preamble);
  if (above != Report::kUnknown) return above;
  if (table.Find(Column::kCategory) != nullptr) return Report::kTogether;
  const ColumnHeading* const calls = table.Find(Column::kCalls);
  const std::string name = table.Find(Column::kName)->title;
  if (calls == nullptr) return Report::kOther;
  if (calls->title == "Instances" && name == "Name") return Report::kKernels;
  if (name == "Operation") return Report::kCopies;
  // The OS runtime's table has the same columns.
  return calls->title == "Num Calls" &&
                 IsApiName(table.rows[0].at(Column::kName).text)
             ? Report::kApi
             : Report::kOther;
}

// The report to which a row of a table of several belongs.
absl::StatusOr<Report> ReportOfRow(absl::string_view content,
                                   const SummaryTable& table,
                                   const SummaryRow& row) {
  const auto category = row.find(Column::kCategory);
  if (category == row.end()) {
    return ErrorAt(content, table.offset,
                   "this header lacks the column 'Category'");
  }
  const absl::string_view name = category->second.text;
  if (absl::StartsWith(name, "CUDA_API")) return Report::kApi;
  if (absl::StartsWith(name, "CUDA_KERNEL")) return Report::kKernels;
  if (absl::StartsWith(name, "MEMORY_OPER")) return Report::kCopies;
  return ErrorAt(content, category->second.offset,
                 absl::StrCat("unknown category ", InQuotes(name)));
}

// nsys prints the paths of its reports' scripts:
// ".../nsight-systems/2023.4.4/...".
std::string VersionIn(absl::string_view content) {
  constexpr absl::string_view kFolder = "nsight-systems";
  for (size_t at = content.find(kFolder); at != absl::string_view::npos;
       at = content.find(kFolder, at + 1)) {
    const size_t begin = at + kFolder.size() + 1;
    size_t end = begin;
    while (end < content.size() &&
           (absl::ascii_isdigit(content[end]) || content[end] == '.')) {
      ++end;
    }
    if (end > begin && content[end - 1] != '.') {
      return std::string(content.substr(begin, end - begin));
    }
  }
  return "";
}

// Merges several lists, each of which has its own shares: their times give the
// shares of the whole. If a list is incomplete, its missing time counts too.
std::vector<ProfileEntry> Join(std::vector<ProfileEntry> kernels,
                               std::vector<ProfileEntry> copies) {
  if (kernels.empty()) return copies;
  if (copies.empty()) return kernels;
  const double whole = WholeTime(kernels) + WholeTime(copies);
  std::vector<ProfileEntry> all = std::move(kernels);
  all.insert(all.end(), copies.begin(), copies.end());
  for (ProfileEntry& entry : all) {
    entry.printed_share.reset();
    if (whole > 0 && entry.total_ns) {
      entry.printed_share = static_cast<double>(*entry.total_ns) / whole;
    }
  }
  // For a complete list the times give the same.
  double sum = 0;
  for (const ProfileEntry& entry : all) {
    sum += static_cast<double>(entry.total_ns.value_or(0));
  }
  if (sum >= whole) {
    for (ProfileEntry& entry : all) entry.printed_share.reset();
  }
  return all;
}

}  // namespace

absl::StatusOr<Profile> ParseNsysStats(absl::string_view content) {
  ASSIGN_OR_RETURN(const std::vector<SummaryTable> tables,
                   ReadSummaryTables(content));
  NumberReader numbers(content);
  for (const SummaryTable& table : tables) {
    for (const SummaryRow& row : table.rows) {
      RETURN_IF_ERROR(ObserveRow(row, numbers));
    }
  }
  struct List {
    std::vector<ProfileEntry> entries;
    const SummaryTable* table = nullptr;
  };
  std::map<Report, List> lists;
  for (const SummaryTable& table : tables) {
    const Report report = ReportOf(table);
    if (report == Report::kOther) continue;
    // Versions before 2021 give no units where they are ns.
    const std::string& unit = table.Find(Column::kTotal)->unit;
    for (const SummaryRow& row : table.rows) {
      Report kind = report;
      if (report == Report::kTogether) {
        ASSIGN_OR_RETURN(kind, ReportOfRow(content, table, row));
      }
      List& list = lists[kind];
      if (list.table == nullptr) list.table = &table;
      if (list.table != &table) {
        return ErrorAt(content, table.offset,
                       "a second list of the same begins here: give each "
                       "profile a file of its own");
      }
      ASSIGN_OR_RETURN(
          ProfileEntry entry,
          ReadRow(content, table, row, unit.empty() ? "ns" : unit, numbers));
      entry.name =
          kind == Report::kApi ? ApiName(entry.name) : ActivityName(entry.name);
      // With several reports these are not shares of one list.
      if (report == Report::kTogether) entry.printed_share.reset();
      list.entries.push_back(std::move(entry));
    }
  }
  if (lists.empty()) {
    return absl::InvalidArgumentError(
        "nsys's summaries in this file are not of kernels, copies and API "
        "calls: run nsys stats with --report "
        "cuda_gpu_kern_sum,cuda_gpu_mem_time_sum,cuda_api_sum");
  }
  for (auto& [kind, list] : lists) {
    RETURN_IF_ERROR(CheckShares(content, *list.table, list.entries));
    // A kernel has a row for each of its grids. Text truncates long names, so
    // that different kernels may look the same.
    const bool cut = std::any_of(list.entries.begin(), list.entries.end(),
                                 [](const ProfileEntry& entry) {
                                   return absl::EndsWith(entry.name, "…");
                                 });
    if (!cut) RETURN_IF_ERROR(MergeEntries(list.entries));
  }
  Profile profile;
  profile.tool = "nsys";
  profile.version = VersionIn(content);
  const bool has_kernels = lists.count(Report::kKernels) > 0;
  const bool has_copies = lists.count(Report::kCopies) > 0;
  profile.gpu_activities.entries =
      Join(std::move(lists[Report::kKernels].entries),
           std::move(lists[Report::kCopies].entries));
  profile.gpu_activities.missing = has_kernels && has_copies ? ""
                                   : has_kernels
                                       ? "copies and memsets: not in the file"
                                   : has_copies ? "kernels: not in the file"
                                                : "not in the file";
  profile.api_calls.entries = std::move(lists[Report::kApi].entries);
  if (profile.api_calls.entries.empty()) {
    profile.api_calls.missing = "not in the file";
  }
  TellIfCut(content, tables, profile);
  RETURN_IF_ERROR(CheckProfile(profile));
  return profile;
}

}  // namespace convlab
