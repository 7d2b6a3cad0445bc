#include "common/record/trace_rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/json/json_fields.h"
#include "common/status/status.h"

namespace convlab {
namespace {

using Json = json_fields::ParsedJson;

// Process and track.
using TrackId = std::pair<int64_t, int64_t>;

struct Slice {
  int64_t start_ns, end_ns;
  size_t event;  // its number
  // The latest end of the slices of its track up to this one, once sorted.
  int64_t latest_end_ns = 0;
};

// One end of an arrow.
struct End {
  TrackId track;
  int64_t ns;
  size_t event;
};

struct Arrow {
  std::optional<End> begin, end;
};

absl::Status Broken(size_t event, absl::string_view rule) {
  return absl::InvalidArgumentError(absl::StrCat("event ", event, ": ", rule));
}

// Times are microseconds with up to three decimals.
absl::StatusOr<int64_t> Nanoseconds(const Json& event, size_t number,
                                    const char* key) {
  const auto value = event.find(key);
  if (value == event.end() || !value->is_number()) {
    return Broken(number, absl::StrCat("has no number '", key, "'"));
  }
  const double ns = 1000 * value->get<double>();
  // Rejects NaN too; sums of larger numbers would not be exact.
  if (!(ns >= 0 && ns < int64_t{1} << 53)) {
    return Broken(number, absl::StrCat("'", key, "' is out of range"));
  }
  return std::llround(ns);
}

class Checker {
 public:
  absl::Status Add(const Json& event, size_t number) {
    if (!event.is_object()) return Broken(number, "is no object");
    for (const char* const key : {"ph", "name"}) {
      if (!event.contains(key) || !event[key].is_string()) {
        return Broken(number, absl::StrCat("has no text '", key, "'"));
      }
    }
    const auto kind = event["ph"].get<std::string>();
    if (kind == "M") return HasInteger(event, number, "pid");
    RETURN_IF_ERROR(HasInteger(event, number, "pid"));
    RETURN_IF_ERROR(HasInteger(event, number, "tid"));
    const TrackId track(event["pid"].get<int64_t>(),
                        event["tid"].get<int64_t>());
    ASSIGN_OR_RETURN(const int64_t ns, Nanoseconds(event, number, "ts"));
    if (kind == "X") {
      ASSIGN_OR_RETURN(const int64_t duration,
                       Nanoseconds(event, number, "dur"));
      tracks_[track].push_back({ns, ns + duration, number, 0});
      return absl::OkStatus();
    }
    if (kind == "s" || kind == "f") {
      return AddEnd(event, {track, ns, number}, kind == "s");
    }
    return Broken(number, absl::StrCat("is of the kind '", kind,
                                       "', expected X, M, s or f"));
  }

  absl::StatusOr<TraceCounts> Finish() {
    TraceCounts counts;
    for (auto& [track, slices] : tracks_) {
      RETURN_IF_ERROR(Nest(slices));
      ++counts.tracks;
      counts.slices += static_cast<int64_t>(slices.size());
    }
    for (const auto& [id, arrow] : arrows_) {
      if (!arrow.begin) return Broken(arrow.end->event, "begins nowhere");
      if (!arrow.end) return Broken(arrow.begin->event, "ends nowhere");
      if (arrow.end->ns < arrow.begin->ns) {
        return Broken(arrow.end->event, "ends before it begins");
      }
      RETURN_IF_ERROR(LiesInASlice(*arrow.begin));
      RETURN_IF_ERROR(LiesInASlice(*arrow.end));
      ++counts.arrows;
    }
    return counts;
  }

 private:
  static absl::Status HasInteger(const Json& event, size_t number,
                                 const char* key) {
    if (event.contains(key) && event[key].is_number_integer()) {
      return absl::OkStatus();
    }
    return Broken(number, absl::StrCat("has no integer '", key, "'"));
  }

  absl::Status AddEnd(const Json& event, const End& end, bool begins) {
    RETURN_IF_ERROR(HasInteger(event, end.event, "id"));
    if (!event.contains("cat") || !event["cat"].is_string()) {
      return Broken(end.event, "has no text 'cat'");
    }
    // Without it the end would belong to the next slice.
    if (!begins && event.value("bp", Json()) != "e") {
      return Broken(end.event, "has no \"bp\":\"e\"");
    }
    Arrow& arrow = arrows_[{event["cat"], event["name"], event["id"]}];
    std::optional<End>& place = begins ? arrow.begin : arrow.end;
    if (place) return Broken(end.event, "an arrow has a second such end");
    place = end;
    return absl::OkStatus();
  }

  // Sorts by start; slices precede those that they contain.
  static absl::Status Nest(std::vector<Slice>& slices) {
    std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return std::make_tuple(a.start_ns, -a.end_ns, a.event) <
             std::make_tuple(b.start_ns, -b.end_ns, b.event);
    });
    std::vector<const Slice*> open;
    int64_t latest_end_ns = 0;
    for (Slice& slice : slices) {
      latest_end_ns = std::max(latest_end_ns, slice.end_ns);
      slice.latest_end_ns = latest_end_ns;
      while (!open.empty() && open.back()->end_ns <= slice.start_ns) {
        open.pop_back();
      }
      if (!open.empty() && slice.end_ns > open.back()->end_ns) {
        return Broken(slice.event, absl::StrCat("does not nest with event ",
                                                open.back()->event));
      }
      open.push_back(&slice);
    }
    return absl::OkStatus();
  }

  absl::Status LiesInASlice(const End& end) const {
    const auto track = tracks_.find(end.track);
    if (track != tracks_.end()) {
      const std::vector<Slice>& slices = track->second;
      // The first that begins later.
      const auto later = std::upper_bound(
          slices.begin(), slices.end(), end.ns,
          [](int64_t ns, const Slice& slice) { return ns < slice.start_ns; });
      if (later != slices.begin() &&
          end.ns <= std::prev(later)->latest_end_ns) {
        return absl::OkStatus();
      }
    }
    return Broken(end.event, "no slice of its track is there");
  }

  std::map<TrackId, std::vector<Slice>> tracks_;
  std::map<std::tuple<std::string, std::string, int64_t>, Arrow> arrows_;
};

}  // namespace

absl::StatusOr<TraceCounts> CheckTrace(absl::string_view json) {
  ASSIGN_OR_RETURN(const Json trace, json_fields::Parse("Chrome trace", json));
  if (!trace.is_object() || !trace.contains("traceEvents") ||
      !trace["traceEvents"].is_array()) {
    return absl::InvalidArgumentError(
        "expected a JSON object with a list 'traceEvents'");
  }
  const auto unit = trace.value("displayTimeUnit", Json("ms"));
  if (unit != "ms" && unit != "ns") {
    return absl::InvalidArgumentError("'displayTimeUnit' is neither ms nor ns");
  }
  Checker checker;
  size_t number = 0;
  for (const Json& event : trace["traceEvents"]) {
    RETURN_IF_ERROR(checker.Add(event, ++number));
  }
  return checker.Finish();
}

}  // namespace convlab
