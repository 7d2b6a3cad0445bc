#include "reports/importers/chrome_trace.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/json/json_fields.h"
#include "common/status/status.h"

namespace convlab {
namespace {

struct Arguments {
  int64_t bytes = 0;
};

// An event as the format has it, times in microseconds.
struct Event {
  std::string phase;  // "X" for what has a begin and a length
  std::string category, name;
  std::optional<double> start_us, length_us;
  int64_t thread = 0;
  Arguments arguments;
};

struct Source {
  std::string tool, version, missing;
};

struct Trace {
  Source source;
  std::vector<Event> events;
};

template <typename Visitor>
void Fields(Visitor& visit, Arguments& arguments) {
  visit("bytes", arguments.bytes);
}

template <typename Visitor>
void Fields(Visitor& visit, Event& event) {
  visit("ph", event.phase);
  visit("cat", event.category);
  visit("name", event.name);
  visit("ts", event.start_us);
  visit("dur", event.length_us);
  visit("tid", event.thread);
  visit("args", event.arguments);
}

template <typename Visitor>
void Fields(Visitor& visit, Source& source) {
  visit("tool", source.tool);
  visit("version", source.version);
  visit("missing", source.missing);
}

template <typename Visitor>
void Fields(Visitor& visit, Trace& trace) {
  visit("otherData", trace.source);
  visit("traceEvents", trace.events);
}

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not a Chrome trace: ", what));
}

}  // namespace

bool IsChromeTrace(absl::string_view content) {
  constexpr size_t kBeginning = 4096;
  constexpr absl::string_view kName = "\"traceEvents\"";
  const absl::string_view beginning = content.substr(0, kBeginning);
  size_t at = beginning.find(kName);
  for (; at != absl::string_view::npos; at = beginning.find(kName, at + 1)) {
    // A member's name; a run record may hold the word within a string.
    const absl::string_view behind =
        absl::StripLeadingAsciiWhitespace(beginning.substr(at + kName.size()));
    const bool is_quoted = at > 0 && beginning[at - 1] == '\\';
    if (!is_quoted && absl::StartsWith(behind, ":")) return true;
  }
  return false;
}

absl::StatusOr<Activities> ReadChromeTrace(absl::string_view content) {
  ASSIGN_OR_RETURN(const json_fields::ParsedJson json,
                   json_fields::Parse("Chrome trace", content));
  Trace trace;
  RETURN_IF_ERROR(Annotate(json_fields::Reader::Decode(json, "trace", trace),
                           "not a Chrome trace"));
  Activities activities;
  activities.tool =
      trace.source.tool.empty() ? "a trace" : std::move(trace.source.tool);
  activities.version = std::move(trace.source.version);
  activities.missing = std::move(trace.source.missing);
  for (Event& event : trace.events) {
    if (event.phase != "X") continue;
    // A year, in microseconds.
    constexpr double kLongest = 3.2e13;
    const double start = event.start_us.value_or(-1);
    const double length = event.length_us.value_or(-1);
    if (event.name.empty() || !(start >= 0 && start < kLongest) ||
        !(length >= 0 && length < kLongest) || event.arguments.bytes < 0) {
      return Bad("an event has no name, or no times \"ts\" and \"dur\"");
    }
    const int64_t start_ns = std::llround(start * 1e3);
    const int64_t end_ns = start_ns + std::llround(length * 1e3);
    if (event.category == "api") {
      activities.api.push_back(
          {std::move(event.name), start_ns, end_ns, event.thread});
      continue;
    }
    GpuActivity& activity = activities.gpu.emplace_back();
    activity.kind = event.category == "kernel"   ? GpuActivity::Kind::kKernel
                    : event.category == "memset" ? GpuActivity::Kind::kMemset
                                                 : GpuActivity::Kind::kCopy;
    activity.name = std::move(event.name);
    activity.start_ns = start_ns;
    activity.end_ns = end_ns;
    activity.bytes = event.arguments.bytes;
  }
  if (activities.gpu.empty() && activities.api.empty()) {
    return Bad("it holds no event");
  }
  return activities;
}

absl::StatusOr<Profile> ParseChromeTrace(absl::string_view content) {
  ASSIGN_OR_RETURN(const Activities activities, ReadChromeTrace(content));
  return MakeProfile(activities);
}

}  // namespace convlab
