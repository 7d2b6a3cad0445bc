#include "common/record/trace.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace convlab {
namespace {

using Json = nlohmann::ordered_json;

// Viewers show a process as a group of tracks; 0 is not a valid number.
constexpr int64_t kHost = 1;
constexpr int64_t kFirstGpu = 2;

double Microseconds(int64_t ns) { return static_cast<double>(ns) / 1000; }

// A slice that has no track yet.
struct Slice {
  int64_t group;  // kHost, or kFirstGpu + device
  int64_t owner;  // thread or stream
  int64_t start_ns;
  int64_t end_ns;
  const ApiCall* call;          // either this
  const GpuActivity* activity;  // or that
};

// Slices of one track must nest. Kernels of one stream may overlap by
// programmatic dependent launch; slices that do not nest go to a second track.
class Track {
 public:
  bool Take(const Slice& slice) {
    while (!ends_.empty() && ends_.back() <= slice.start_ns) ends_.pop_back();
    if (!ends_.empty() && slice.end_ns > ends_.back()) return false;
    ends_.push_back(slice.end_ns);
    return true;
  }

 private:
  std::vector<int64_t> ends_;  // of the slices that are open, outermost first
};

class Writer {
 public:
  void Add(const Json& event) {
    absl::StrAppend(&events_, events_.empty() ? "" : ",\n",
                    event.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  // Names a group or a track and sets its order in viewers.
  void Name(const char* kind, int64_t group, int64_t track,
            const std::string& name) {
    const bool is_group = track == 0;
    Json event = {{"ph", "M"},
                  {"name", absl::StrCat(kind, "_name")},
                  {"pid", group},
                  {"args", {{"name", name}}}};
    if (!is_group) event["tid"] = track;
    Add(event);
    event["name"] = absl::StrCat(kind, "_sort_index");
    event["args"] = {{"sort_index", is_group ? group : track}};
    Add(event);
  }

  const std::string& events() const { return events_; }

 private:
  std::string events_;
};

Json Arguments(const GpuActivity& activity) {
  Json arguments = {{"correlation", activity.correlation}};
  if (activity.kind == GpuActivity::Kind::kKernel) {
    arguments["grid"] = activity.grid;
    arguments["block"] = activity.block;
    arguments["registers per thread"] = activity.registers_per_thread;
    arguments["static shared memory"] = activity.static_shared_bytes;
    arguments["dynamic shared memory"] = activity.dynamic_shared_bytes;
  } else {
    arguments["bytes"] = activity.bytes;
  }
  return arguments;
}

const char* Category(const Slice& slice) {
  if (slice.call != nullptr) return "api";
  switch (slice.activity->kind) {
    case GpuActivity::Kind::kKernel:
      return "kernel";
    case GpuActivity::Kind::kCopy:
      return "memcpy";
    case GpuActivity::Kind::kMemset:
      return "memset";
  }
  return "";
}

// All slices, grouped by owner and sorted by start; slices precede those that
// they contain.
std::vector<Slice> SortedSlices(const Activities& activities) {
  std::vector<Slice> slices;
  for (const ApiCall& call : activities.api) {
    slices.push_back(
        {kHost, call.thread, call.start_ns, call.end_ns, &call, nullptr});
  }
  for (const GpuActivity& activity : activities.gpu) {
    slices.push_back({kFirstGpu + activity.device, activity.stream,
                      activity.start_ns, activity.end_ns, nullptr, &activity});
  }
  std::stable_sort(
      slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
        return std::make_tuple(a.group, a.owner, a.start_ns, -a.end_ns) <
               std::make_tuple(b.group, b.owner, b.start_ns, -b.end_ns);
      });
  return slices;
}

std::string TrackName(const Activities& activities, const Slice& slice,
                      bool first) {
  std::string name;
  if (slice.activity != nullptr) {
    name = absl::StrCat("stream ", slice.owner);
  } else if (slice.owner == activities.process) {
    name = "main thread";
  } else {
    name = absl::StrCat("thread ", slice.owner);
  }
  return first ? name : absl::StrCat(name, ", overlapping");
}

// One end of an arrow; both ends have the same id. It belongs to the slice that
// its track shows at that time.
Json Arrow(const char* phase, int64_t id, int64_t group, int64_t track,
           int64_t ns) {
  return {{"ph", phase}, {"name", "starts"},      {"cat", "starts"},
          {"id", id},    {"pid", group},          {"tid", track},
          {"bp", "e"},   {"ts", Microseconds(ns)}};
}

}  // namespace

std::string ChromeTrace(const Activities& activities, absl::string_view program,
                        absl::string_view gpu) {
  Writer writer;
  const std::vector<Slice> slices = SortedSlices(activities);
  // The outermost call of each correlation number, and its track.
  std::map<int64_t, std::pair<const ApiCall*, int64_t>> callers;
  std::vector<Track> tracks;  // of the current owner
  int64_t first_track = 1, arrows = 0;
  const Slice* before = nullptr;
  for (const Slice& slice : slices) {
    if (before == nullptr || before->group != slice.group) {
      writer.Name("process", slice.group, 0,
                  slice.group == kHost
                      ? std::string(program)
                      : absl::StrCat("GPU ", slice.group - kFirstGpu, ", ",
                                     std::string(gpu)));
    }
    if (before == nullptr || before->group != slice.group ||
        before->owner != slice.owner) {
      first_track += static_cast<int64_t>(tracks.size());
      tracks.clear();
    }
    before = &slice;
    size_t index = 0;
    while (index < tracks.size() && !tracks[index].Take(slice)) ++index;
    const int64_t track = first_track + static_cast<int64_t>(index);
    if (index == tracks.size()) {
      tracks.emplace_back().Take(slice);
      writer.Name("thread", slice.group, track,
                  TrackName(activities, slice, index == 0));
    }
    Json event = {{"ph", "X"},
                  {"name", slice.call != nullptr ? slice.call->name
                                                 : slice.activity->name},
                  {"cat", Category(slice)},
                  {"pid", slice.group},
                  {"tid", track},
                  {"ts", Microseconds(slice.start_ns)},
                  {"dur", Microseconds(slice.end_ns - slice.start_ns)}};
    if (slice.call != nullptr) {
      event["args"] = {{"correlation", slice.call->correlation}};
      writer.Add(event);
      callers.try_emplace(slice.call->correlation, slice.call, track);
      continue;
    }
    event["args"] = Arguments(*slice.activity);
    writer.Add(event);
    const auto caller = callers.find(slice.activity->correlation);
    if (caller == callers.end()) continue;
    const auto& [call, call_track] = caller->second;
    // The two clocks need not agree, and an arrow must not lead back in time.
    if (slice.start_ns < call->start_ns) continue;
    ++arrows;
    writer.Add(Arrow("s", arrows, kHost, call_track, call->start_ns));
    writer.Add(Arrow("f", arrows, slice.group, track, slice.start_ns));
  }
  return absl::StrCat("{\"displayTimeUnit\":\"ns\",\"otherData\":",
                      Json({{"tool", activities.tool},
                            {"version", activities.version},
                            {"missing", activities.missing}})
                          .dump(-1, ' ', false, Json::error_handler_t::replace),
                      ",\"traceEvents\":[\n", writer.events(), "\n]}\n");
}

}  // namespace convlab
