#include "reports/importers/listing.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/status/status.h"
#include "reports/importers/kernel_names.h"
#include "reports/importers/launch_facts.h"
#include "reports/importers/listing_export.h"
#include "reports/importers/shares.h"

namespace convlab {
namespace {

struct Grid {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> left;  // columns of text
};

std::string TextTable(const Grid& grid) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < grid.heads.size(); ++i) {
    size_t width = Width(grid.heads[i]);
    for (const auto& row : grid.rows) width = std::max(width, Width(row[i]));
    widths.push_back(width);
  }
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - Width(row[i]), ' ');
      const bool left = grid.left[i];
      absl::StrAppend(&line, "  ", left ? "" : blanks, row[i],
                      left ? blanks : "");
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  };
  add(grid.heads);
  for (const auto& row : grid.rows) add(row);
  return text;
}

// Formats as code, in which only the bar and the backquote have a meaning.
std::string MarkdownCode(absl::string_view text) {
  return absl::StrCat(
      "`", absl::StrReplaceAll(OneLine(text), {{"|", "\\|"}, {"`", "'"}}), "`");
}

std::string MarkdownTable(const Grid& grid) {
  std::string rule;
  for (const bool left : grid.left) {
    absl::StrAppend(&rule, left ? "|---" : "|---:");
  }
  std::string text =
      absl::StrCat("| ", absl::StrJoin(grid.heads, " | "), " |\n", rule, "|\n");
  for (const auto& row : grid.rows) {
    absl::StrAppend(&text, "| ", absl::StrJoin(row, " | "), " |\n");
  }
  return text;
}

std::string Percent(double share) {
  return absl::StrFormat("%.2f%%", share * 100);
}

// Stands for an absent value.
constexpr char kAbsent[] = "–";

template <typename T>
std::string OrAbsent(const std::optional<T>& value,
                     const std::function<std::string(T)>& format) {
  return value ? format(*value) : kAbsent;
}

std::string Time(const std::optional<int64_t>& ns) {
  return ns ? FormatNanoseconds(static_cast<double>(*ns)) : kAbsent;
}

Grid ShareGrid(const ShareList& list,
               const std::function<std::string(absl::string_view)>& name) {
  Grid grid;
  grid.heads = {"share", "sum", "calls", "total", "average", "name"};
  grid.left = {false, false, false, false, false, true};
  for (const Share& share : list.shares) {
    const ProfileEntry& entry = share.entry;
    grid.rows.push_back({Percent(share.share), Percent(share.cumulative),
                         entry.calls ? absl::StrCat(*entry.calls) : kAbsent,
                         Time(entry.total_ns),
                         OrAbsent<double>(entry.average_ns, FormatNanoseconds),
                         name(entry.name)});
  }
  return grid;
}

std::string ListTitle(const ShareList& list, double threshold_percent) {
  if (!list.exceeds) return absl::StrCat("all ", list.shares.size());
  return absl::StrFormat("%d of %d together take more than %g %% of the time",
                         list.shares.size(), list.entries, threshold_percent);
}

// Formats a number with enough digits to distinguish launches.
std::string Plain(double value) { return absl::StrFormat("%.6g", value); }

std::string Bytes(double bytes) {
  if (bytes >= 1e9) return absl::StrFormat("%.4g GB", bytes / 1e9);
  if (bytes >= 1e6) return absl::StrFormat("%.4g MB", bytes / 1e6);
  if (bytes >= 1e3) return absl::StrFormat("%.4g kB", bytes / 1e3);
  return absl::StrFormat("%g B", bytes);
}

std::string Megahertz(double hertz) {
  return absl::StrFormat("%.0f MHz", hertz / 1e6);
}

std::string PercentOfPeak(double percent) {
  return absl::StrFormat("%.2f%%", percent);
}

// A column of the tables of launches.
struct FactColumn {
  const char* head;
  std::optional<double> LaunchFacts::*fact;
  std::string (*format)(double);
};

constexpr FactColumn kResources[] = {
    {"registers", &LaunchFacts::registers_per_thread, Plain},
    {"shared", &LaunchFacts::shared_bytes_per_block, Bytes},
    {"occupancy", &LaunchFacts::occupancy_percent, PercentOfPeak},
};

constexpr FactColumn kWork[] = {
    {"duration", &LaunchFacts::duration_ns, FormatNanoseconds},
    {"clock", &LaunchFacts::sm_clock_hz, Megahertz},
    {"DRAM bytes", &LaunchFacts::dram_bytes, Bytes},
    {"DRAM", &LaunchFacts::dram_percent, PercentOfPeak},
    {"SM", &LaunchFacts::sm_percent, PercentOfPeak},
    {"tensor", &LaunchFacts::tensor_percent, PercentOfPeak},
};

constexpr FactColumn kMemory[] = {
    {"L1 hits", &LaunchFacts::l1_hit_percent, PercentOfPeak},
    {"L2 hits", &LaunchFacts::l2_hit_percent, PercentOfPeak},
    {"conflicts", &LaunchFacts::bank_conflicts, Plain},
};

// A row per launch, which begins with its number.
class LaunchGrid {
 public:
  explicit LaunchGrid(size_t launches) {
    grid_.rows.resize(launches);
    Add("launch", false, [](size_t i) { return absl::StrCat(i + 1); });
  }

  void Add(const char* head, bool left,
           const std::function<std::string(size_t)>& cell) {
    grid_.heads.emplace_back(head);
    grid_.left.push_back(left);
    for (size_t i = 0; i < grid_.rows.size(); ++i) {
      grid_.rows[i].push_back(cell(i));
    }
  }

  // The columns in which any launch has a value.
  template <size_t kColumns>
  void AddFacts(const FactColumn (&columns)[kColumns],
                const std::vector<LaunchFacts>& facts) {
    for (const FactColumn& column : columns) {
      if (std::any_of(facts.begin(), facts.end(), [&](const LaunchFacts& fact) {
            return (fact.*column.fact).has_value();
          })) {
        Add(column.head, false, [&](size_t i) {
          return OrAbsent<double>(facts[i].*column.fact, column.format);
        });
      }
    }
  }

  bool has_facts() const { return grid_.heads.size() > 1; }
  const Grid& grid() const { return grid_; }

 private:
  Grid grid_;
};

// Two tables, because one would be too wide: the launches, and their counters.
std::vector<Grid> LaunchGrids(
    const std::vector<LaunchCounters>& launches,
    const std::function<std::string(absl::string_view)>& name) {
  std::vector<LaunchFacts> facts;
  facts.reserve(launches.size());
  for (const LaunchCounters& launch : launches) {
    facts.push_back(FactsOf(launch));
  }
  LaunchGrid launched(launches.size());
  launched.Add("grid", true,
               [&](size_t i) { return OneLine(launches[i].grid); });
  launched.Add("block", true,
               [&](size_t i) { return OneLine(launches[i].block); });
  launched.AddFacts(kResources, facts);
  launched.Add("kernel", true,
               [&](size_t i) { return name(launches[i].kernel); });
  LaunchGrid work(launches.size()), memory(launches.size());
  work.AddFacts(kWork, facts);
  memory.AddFacts(kMemory, facts);
  const bool has_stalls =
      std::any_of(facts.begin(), facts.end(),
                  [](const LaunchFacts& fact) { return !fact.stalls.empty(); });
  if (has_stalls) {
    memory.Add("longest stall", true, [&](size_t i) {
      const auto& stalls = facts[i].stalls;
      return stalls.empty()
                 ? kAbsent
                 : absl::StrFormat("%s %.2f", OneLine(stalls[0].first),
                                   stalls[0].second);
    });
  }
  std::vector<Grid> grids = {launched.grid()};
  if (work.has_facts()) grids.push_back(work.grid());
  if (memory.has_facts() || has_stalls) grids.push_back(memory.grid());
  return grids;
}

constexpr const char* kLaunchNotes[] = {
    "DRAM, SM, tensor and occupancy in percent of the peak; stalls in cycles "
    "per instruction",
    "hits above 100 % are as ncu wrote them, but are not a share of the "
    "accesses",
    "every counter that the file holds: --format csv or json"};

// Text and Markdown have the same parts in different formats.
std::string FormatForReaders(const std::vector<NamedProfile>& profiles,
                             double threshold_percent, bool markdown) {
  const auto short_name = [markdown](size_t width) {
    return [=](absl::string_view text) {
      return markdown ? MarkdownCode(WithoutUnnamed(text))
                      : ShortKernelName(OneLine(text), width);
    };
  };
  // Limits names so that no table is wider than 100 columns.
  const auto name = short_name(55);
  const auto launch_name = short_name(22);
  const char* const note_mark = markdown ? "\n*Note*: " : "  note: ";
  const auto table = [&](const Grid& grid) {
    return markdown ? MarkdownTable(grid) : TextTable(grid);
  };
  const char* const bold = markdown ? "**" : "";
  std::string text;
  for (const auto& [file, profile] : profiles) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", markdown ? "### " : "",
                    markdown ? MarkdownCode(file) : OneLine(file), " (",
                    OneLine(ToolName(profile)), ")\n");
    for (const auto& [title, section] : SectionsOf(profile)) {
      absl::StrAppend(&text, "\n", bold, title, bold, ": ");
      if (section->entries.empty()) {
        absl::StrAppend(&text, OneLine(Missing(*section)), "\n");
        continue;
      }
      const ShareList list = LargestShares(*section, threshold_percent);
      absl::StrAppend(&text, ListTitle(list, threshold_percent),
                      markdown ? "\n\n" : "\n", table(ShareGrid(list, name)));
      for (const std::string& note :
           ShareNotes(*section, list, profile.tool, threshold_percent)) {
        absl::StrAppend(&text, note_mark, OneLine(note), "\n");
      }
    }
    if (!profile.launches.empty()) {
      absl::StrAppend(&text, "\n", bold, "Launches", bold, ": ",
                      profile.launches.size(), "\n");
      for (const Grid& grid : LaunchGrids(profile.launches, launch_name)) {
        absl::StrAppend(&text, markdown ? "\n" : "", table(grid));
      }
      for (const char* const note : kLaunchNotes) {
        absl::StrAppend(&text, note_mark, note, "\n");
      }
    }
  }
  return text;
}

}  // namespace

absl::StatusOr<ListingFormat> ParseListingFormat(absl::string_view name) {
  if (name == "text") return ListingFormat::kText;
  if (name == "md") return ListingFormat::kMarkdown;
  if (name == "csv") return ListingFormat::kCsv;
  if (name == "json") return ListingFormat::kJson;
  return absl::InvalidArgumentError(
      absl::StrCat("--format is '", name, "', expected text, md, csv or json"));
}

std::string FormatProfiles(const std::vector<NamedProfile>& profiles,
                           double threshold_percent, ListingFormat format) {
  switch (format) {
    case ListingFormat::kCsv:
      return Printable(FormatCsv(profiles, threshold_percent));
    case ListingFormat::kJson:
      return FormatJson(profiles, threshold_percent);
    case ListingFormat::kText:
    case ListingFormat::kMarkdown:
      break;
  }
  return Printable(FormatForReaders(profiles, threshold_percent,
                                    format == ListingFormat::kMarkdown));
}

std::string FormatNanoseconds(double ns) {
  if (ns < 999.95) return absl::StrFormat("%.4gns", ns);
  for (const auto& [unit, size] :
       {std::pair("us", 1e3), std::pair("ms", 1e6), std::pair("s", 1e9)}) {
    const double value = ns / size;
    // A value that rounds to 1000 is 1 of the next unit.
    if (value >= 999.995 && size < 1e9) continue;
    return absl::StrFormat("%.*f%s",
                           value < 9.99995   ? 4
                           : value < 99.9995 ? 3
                                             : 2,
                           value, unit);
  }
  return "";
}

}  // namespace convlab
