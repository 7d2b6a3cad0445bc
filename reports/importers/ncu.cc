#include "reports/importers/ncu.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/record/run_record.h"
#include "common/status/status.h"
#include "reports/importers/launch_facts.h"
#include "reports/importers/numbers.h"
#include "reports/importers/summary.h"
#include "reports/importers/text.h"

namespace convlab {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

using Record = std::vector<Cell>;

// The positions of a page's columns.
struct Header {
  Record columns;
  size_t id, process, kernel, block, grid, metric, unit, value;

  explicit Header(Record record)
      : columns(std::move(record)),
        id(Find("ID")),
        process(Find("Process ID")),
        kernel(Find("Kernel Name")),
        block(Find("Block Size")),
        grid(Find("Grid Size")),
        metric(Find("Metric Name")),
        unit(Find("Metric Unit")),
        value(Find("Metric Value")) {}

  size_t Find(absl::string_view title) const {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].text == title) return i;
    }
    return kNone;
  }

  bool IsDetails() const { return metric != kNone; }

  // Metrics have names like "dram__bytes.sum". Other columns identify the
  // launch.
  bool IsMetric(size_t column) const {
    return absl::StrContains(columns[column].text, "__");
  }

  bool IsHeader() const {
    if (kernel == kNone) return false;
    if (IsDetails()) return true;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (IsMetric(i)) return true;
    }
    return false;
  }
};

// Returns the header that begins at `offset`, if there is one, and moves past
// it.
std::optional<Header> HeaderAt(absl::string_view content, size_t& offset) {
  const Line line = LineAt(content, offset);
  if (!absl::StrContains(line.text, "Kernel Name")) return std::nullopt;
  auto record = ReadCsvLine(line);
  if (!record) return std::nullopt;
  Header header(*std::move(record));
  if (!header.IsHeader()) return std::nullopt;
  offset = NextLine(content, offset);
  return header;
}

std::string TextAt(const Record& record, size_t column) {
  return column < record.size()
             ? std::string(absl::StripAsciiWhitespace(record[column].text))
             : std::string();
}

// A value before its number is read.
struct Value {
  size_t launch = 0;
  std::string name, unit;
  Cell number;
};

class NcuReader {
 public:
  explicit NcuReader(absl::string_view content)
      : content_(content), numbers_(content) {}

  absl::StatusOr<Profile> Read() {
    profile_.tool = "ncu";
    for (size_t at = 0; at < content_.size();) {
      const auto header = HeaderAt(content_, at);
      if (!header) {
        at = NextLine(content_, at);
        continue;
      }
      RETURN_IF_ERROR(header->IsDetails() ? ReadDetails(*header, at)
                                          : ReadRaw(*header, at));
    }
    if (profile_.launches.empty()) {
      return absl::InvalidArgumentError(
          "ncu's output holds no launch of a kernel: the file is cut short");
    }
    for (const Value& value : values_) {
      RETURN_IF_ERROR(numbers_.Observe(value.number));
    }
    for (Value& value : values_) {
      ASSIGN_OR_RETURN(const double number, numbers_.Read(value.number));
      RETURN_IF_ERROR(CheckRange(value, number));
      profile_.launches[value.launch].counters.push_back(
          {std::move(value.name), std::move(value.unit), number});
    }
    RETURN_IF_ERROR(AddActivities());
    TellIfLastLacksMetrics();
    TellIfLaunchesAreMissing();
    TellIfCut(content_, {}, profile_);
    RETURN_IF_ERROR(CheckProfile(profile_));
    return std::move(profile_);
  }

 private:
  // Times are not negative, and percentages of a peak on average never far
  // above 100. Hit rates may be, and the peak of one unit (".max"): ncu writes
  // such.
  absl::Status CheckRange(const Value& value, double number) const {
    constexpr double kMostPercent = 1000;
    const bool is_percentage =
        value.unit == "%" &&
        (absl::StrContains(value.name, ".avg.pct_of_peak") ||
         !absl::StrContains(value.name, "__")) &&
        !absl::StrContains(value.name, "Hit");
    const bool is_time = NanosecondsPer(value.unit).has_value();
    if ((is_time || is_percentage) && number < 0) {
      return ErrorAt(content_, value.number.offset,
                     absl::StrCat(InQuotes(value.number.text), " of ",
                                  InQuotes(value.name), " is less than 0"));
    }
    if (is_percentage && number > kMostPercent) {
      return ErrorAt(content_, value.number.offset,
                     absl::StrCat(InQuotes(value.number.text), " % of ",
                                  InQuotes(value.name), " is too much"));
    }
    return absl::OkStatus();
  }

  absl::Status Require(const Header& header, size_t column,
                       absl::string_view title) const {
    if (column != kNone) return absl::OkStatus();
    return ErrorAt(content_, header.columns[0].offset,
                   absl::StrCat("this header lacks the column '", title, "'"));
  }

  // The next row of a page, or nothing at its end: a blank line or a line that
  // is not ncu's CSV, such as "==PROF==" or the program's output.
  absl::StatusOr<std::optional<Record>> NextRow(size_t& at) const {
    if (at >= content_.size() || content_[at] != '"') {
      return std::optional<Record>();
    }
    size_t next = at;
    if (HeaderAt(content_, next)) return std::optional<Record>();
    ASSIGN_OR_RETURN(Record record, ReadCsvRecord(content_, at));
    return std::optional<Record>(std::move(record));
  }

  // The launch to which `record` of a page belongs, by its number and its
  // process's. The same number again on another page, or with another kernel,
  // is an error.
  absl::StatusOr<size_t> LaunchOf(const Header& header, const Record& record,
                                  std::map<std::string, size_t>& page) {
    std::string key;
    for (const size_t column : {header.id, header.process}) {
      if (column == kNone) continue;
      const std::string number = TextAt(record, column);
      if (number.empty() ||
          !std::all_of(number.begin(), number.end(), absl::ascii_isdigit)) {
        return ErrorAt(
            content_, record[column].offset,
            absl::StrCat("expected the ", header.columns[column].text,
                         ", a whole number, found ",
                         InQuotes(record[column].text)));
      }
      absl::StrAppend(&key, number, " ");
    }
    const auto found = page.find(key);
    if (found != page.end() && profile_.launches[found->second].kernel ==
                                   TextAt(record, header.kernel)) {
      return found->second;
    }
    if (!launch_keys_.insert(key).second) {
      return ErrorAt(content_, record[header.id].offset,
                     absl::StrCat("a second launch of the ID ",
                                  InQuotes(TextAt(record, header.id)),
                                  ": give each run a file of its own"));
    }
    return page[key] = AddLaunch(header, record);
  }

  size_t AddLaunch(const Header& header, const Record& record) {
    profile_.launches.push_back({TextAt(record, header.kernel),
                                 TextAt(record, header.grid),
                                 TextAt(record, header.block),
                                 {}});
    return profile_.launches.size() - 1;
  }

  // Notes a value to be read once the file's locale is known.
  absl::Status AddValue(size_t launch, const std::string& name,
                        const std::string& unit, const Cell& cell) {
    if (IsAbsent(cell.text)) return absl::OkStatus();
    const auto [number, rest] = SplitUnit(cell);
    // Values of all instances may follow in parentheses.
    const bool is_number =
        !number.text.empty() && (rest.empty() || absl::StartsWith(rest, "("));
    if (is_number) {
      values_.push_back({launch, name, unit, number});
      return absl::OkStatus();
    }
    // Without a unit it may be a text, like "CachePreferNone".
    const bool is_text =
        unit.empty() &&
        std::any_of(cell.text.begin(), cell.text.end(), absl::ascii_isalpha);
    if (is_text) return absl::OkStatus();
    return ErrorAt(content_, cell.offset,
                   absl::StrCat("expected the number of ", InQuotes(name),
                                ", found ", InQuotes(cell.text)));
  }

  absl::Status ReadDetails(const Header& header, size_t& at) {
    RETURN_IF_ERROR(Require(header, header.id, "ID"));
    RETURN_IF_ERROR(Require(header, header.value, "Metric Value"));
    // Some versions omit the columns after the last one with a value.
    const size_t least =
        1 + std::max({header.id, header.kernel, header.metric, header.value,
                      header.process == kNone ? 0 : header.process});
    std::map<std::string, size_t> launches;
    for (;;) {
      const size_t begin = at;
      ASSIGN_OR_RETURN(const auto row, NextRow(at));
      if (!row) return absl::OkStatus();
      if (row->size() < least || row->size() > header.columns.size()) {
        return ErrorAt(
            content_, begin,
            absl::StrCat("this row has ", row->size(),
                         " columns, its header has ", header.columns.size()));
      }
      ASSIGN_OR_RETURN(const size_t launch, LaunchOf(header, *row, launches));
      const std::string name = TextAt(*row, header.metric);
      if (name.empty()) continue;  // a rule's advice
      metrics_.resize(profile_.launches.size());
      metrics_[launch].insert(name);
      RETURN_IF_ERROR(AddValue(launch, name, TextAt(*row, header.unit),
                               (*row)[header.value]));
    }
  }

  absl::Status ReadRaw(const Header& header, size_t& at) {
    RETURN_IF_ERROR(Require(header, header.id, "ID"));
    std::optional<Record> units;
    for (;;) {
      const size_t begin = at;
      ASSIGN_OR_RETURN(const auto row, NextRow(at));
      if (!row) return absl::OkStatus();
      if (row->size() != header.columns.size()) {
        return ErrorAt(
            content_, begin,
            absl::StrCat("this row has ", row->size(),
                         " columns, its header has ", header.columns.size()));
      }
      if (!units) {
        if (!(*row)[header.id].text.empty()) {
          return ErrorAt(content_, begin,
                         "expected a row of units behind the header");
        }
        units = row;
        continue;
      }
      std::map<std::string, size_t> none;  // each row is a launch
      ASSIGN_OR_RETURN(const size_t launch, LaunchOf(header, *row, none));
      for (size_t i = 0; i < row->size(); ++i) {
        if (!header.IsMetric(i)) continue;
        RETURN_IF_ERROR(AddValue(launch, header.columns[i].text,
                                 TextAt(*units, i), (*row)[i]));
      }
    }
  }

  // A details page has the same metrics for each launch: of the last one some
  // are missing if the file was cut there.
  void TellIfLastLacksMetrics() {
    if (metrics_.size() < 2) return;
    const size_t lacking =
        std::count_if(metrics_.front().begin(), metrics_.front().end(),
                      [&](const std::string& name) {
                        return metrics_.back().count(name) == 0;
                      });
    if (lacking == 0) return;
    AddMissing(absl::StrCat("the last launch lacks ", lacking, " of the ",
                            metrics_.front().size(),
                            " metrics of the first, so that more may be "
                            "missing"),
               profile_);
  }

  // Where its messages are in the same file, ncu has told of each launch before
  // the page.
  void TellIfLaunchesAreMissing() {
    size_t told = 0;
    for (size_t at = 0; at < content_.size(); at = NextLine(content_, at)) {
      told += absl::StartsWith(content_.substr(at), "==PROF== Profiling \"");
    }
    if (told <= profile_.launches.size()) return;
    AddMissing(absl::StrCat("ncu profiled ", told, " launches, the file holds ",
                            profile_.launches.size()),
               profile_);
  }

  absl::Status AddActivities() {
    ProfileSection& gpu = profile_.gpu_activities;
    profile_.api_calls.missing = "not in the file";
    size_t without = 0, number = 0;  // of launches
    for (const LaunchCounters& launch : profile_.launches) {
      ++number;
      const auto duration = FactsOf(launch).duration_ns;
      if (!duration) {
        if (without == 0) without = number;
        continue;
      }
      constexpr double kLargest = int64_t{1} << 53;
      if (*duration > kLargest) {
        return absl::InvalidArgumentError(
            absl::StrCat("launch ", number, "'s duration is too large"));
      }
      ProfileEntry entry;
      entry.name = launch.kernel;
      entry.calls = 1;
      entry.total_ns = entry.min_ns = entry.max_ns = std::llround(*duration);
      entry.average_ns = *duration;
      gpu.entries.push_back(std::move(entry));
    }
    if (without > 0) {
      gpu.missing = gpu.entries.empty()
                        ? "not in the file"
                        : absl::StrCat("launch ", without, " has no duration");
      gpu.entries.clear();
      return absl::OkStatus();
    }
    gpu.missing =
        "only the launches that ncu measured, which may be one of many alike, "
        "at the clocks of that run; copies and memsets: not in the file";
    return MergeEntries(gpu.entries);
  }

  const absl::string_view content_;
  NumberReader numbers_;
  Profile profile_;
  std::set<std::string> launch_keys_;
  std::vector<std::set<std::string>> metrics_;  // of launches on details pages
  std::vector<Value> values_;
};

}  // namespace

bool HasNcuHeader(absl::string_view content) {
  for (size_t at = 0; at < content.size(); at = NextLine(content, at)) {
    size_t next = at;
    if (HeaderAt(content, next)) return true;
  }
  return false;
}

absl::StatusOr<Profile> ParseNcu(absl::string_view content) {
  return NcuReader(content).Read();
}

}  // namespace convlab
