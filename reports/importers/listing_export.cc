#include "reports/importers/listing_export.h"

#include <optional>
#include <type_traits>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "reports/importers/shares.h"
#include "reports/importers/text.h"

namespace convlab {
namespace {

using Json = nlohmann::ordered_json;

std::string Number(double value) { return absl::StrFormat("%.10g", value); }

template <typename T>
std::string CsvNumber(const std::optional<T>& value) {
  if (!value) return "";
  if constexpr (std::is_integral_v<T>) return absl::StrCat(*value);
  return Number(static_cast<double>(*value));
}

std::string CsvLine(const std::vector<std::string>& fields) {
  return absl::StrCat(
      absl::StrJoin(fields, ",",
                    [](std::string* out, const std::string& field) {
                      absl::StrAppend(out, CsvField(field));
                    }),
      "\n");
}

template <typename T>
void AddIf(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

Json ListJson(const ProfileSection& section, const std::string& tool,
              double threshold_percent) {
  const ShareList list = LargestShares(section, threshold_percent);
  Json json = {{"entries_in_file", list.entries},
               {"shares_as_printed", list.from_printed},
               {"notes", ShareNotes(section, list, tool, threshold_percent)}};
  if (section.entries.empty()) json["missing"] = Missing(section);
  Json entries = Json::array();
  for (const auto& [entry, share, cumulative] : list.shares) {
    Json item = {{"name", entry.name},
                 {"share_percent", share * 100},
                 {"cumulative_percent", cumulative * 100}};
    AddIf(item, "calls", entry.calls);
    AddIf(item, "total_ns", entry.total_ns);
    AddIf(item, "average_ns", entry.average_ns);
    AddIf(item, "min_ns", entry.min_ns);
    AddIf(item, "max_ns", entry.max_ns);
    AddIf(item, "bytes", entry.bytes);
    entries.push_back(std::move(item));
  }
  json["entries"] = std::move(entries);
  return json;
}

}  // namespace

std::string FormatCsv(const std::vector<NamedProfile>& profiles,
                      double threshold_percent) {
  std::string lists = CsvLine(
      {"file", "tool", "list", "name", "share_percent", "cumulative_percent",
       "calls", "total_ns", "average_ns", "min_ns", "max_ns", "bytes", "note"});
  std::string counters = CsvLine({"file", "launch", "kernel", "grid", "block",
                                  "counter", "unit", "value"});
  bool has_launches = false;
  for (const auto& [file, profile] : profiles) {
    for (const auto& [title, section] : SectionsOf(profile)) {
      if (section->entries.empty()) {
        lists += CsvLine({file, ToolName(profile), title, "", "", "", "", "",
                          "", "", "", "", Missing(*section)});
        continue;
      }
      const ShareList list = LargestShares(*section, threshold_percent);
      const std::string note = absl::StrJoin(
          ShareNotes(*section, list, profile.tool, threshold_percent), "; ");
      for (const auto& [entry, share, cumulative] : list.shares) {
        lists +=
            CsvLine({file, ToolName(profile), title, entry.name,
                     Number(share * 100), Number(cumulative * 100),
                     CsvNumber(entry.calls), CsvNumber(entry.total_ns),
                     CsvNumber(entry.average_ns), CsvNumber(entry.min_ns),
                     CsvNumber(entry.max_ns), CsvNumber(entry.bytes), note});
      }
    }
    int number = 0;
    for (const LaunchCounters& launch : profile.launches) {
      has_launches = true;
      ++number;
      for (const Counter& counter : launch.counters) {
        counters += CsvLine({file, absl::StrCat(number), launch.kernel,
                             launch.grid, launch.block, counter.name,
                             counter.unit, Number(counter.value)});
      }
    }
  }
  return has_launches ? absl::StrCat(lists, "\n", counters) : lists;
}

std::string FormatJson(const std::vector<NamedProfile>& profiles,
                       double threshold_percent) {
  Json list = Json::array();
  for (const auto& [file, profile] : profiles) {
    Json item = {{"file", file}, {"tool", profile.tool}};
    if (!profile.version.empty()) item["version"] = profile.version;
    item["gpu_activities"] =
        ListJson(profile.gpu_activities, profile.tool, threshold_percent);
    item["api_calls"] =
        ListJson(profile.api_calls, profile.tool, threshold_percent);
    item["launches"] = Json::array();
    for (const LaunchCounters& launch : profile.launches) {
      Json counters = Json::array();
      for (const Counter& counter : launch.counters) {
        counters.push_back({{"name", counter.name},
                            {"unit", counter.unit},
                            {"value", counter.value}});
      }
      item["launches"].push_back({{"kernel", launch.kernel},
                                  {"grid", launch.grid},
                                  {"block", launch.block},
                                  {"counters", std::move(counters)}});
    }
    list.push_back(std::move(item));
  }
  const Json document = {{"threshold_percent", threshold_percent},
                         {"profiles", std::move(list)}};
  // Names may hold bytes that are not UTF-8, and what a terminal obeys.
  return document.dump(1, ' ', /*ensure_ascii=*/true,
                       Json::error_handler_t::replace) +
         "\n";
}

}  // namespace convlab
