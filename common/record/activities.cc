#include "common/record/activities.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace convlab {
namespace {

// Removes "_v" and digits from the end of `name`; returns whether it had them.
bool ConsumeVersion(absl::string_view& name) {
  size_t end = name.size();
  while (end > 0 && absl::ascii_isdigit(name[end - 1])) --end;
  if (end == name.size()) return false;
  absl::string_view rest = name.substr(0, end);
  if (!absl::ConsumeSuffix(&rest, "_v")) return false;
  name = rest;
  return true;
}

// Sums entries of the same name.
class Summary {
 public:
  void Add(const std::string& name, int64_t start_ns, int64_t end_ns,
           const int64_t* bytes) {
    const int64_t ns = end_ns - start_ns;
    const auto [found, first] = entries_.try_emplace(name);
    ProfileEntry& entry = found->second;
    entry.calls = entry.calls.value_or(0) + 1;
    entry.total_ns = entry.total_ns.value_or(0) + ns;
    entry.min_ns = first ? ns : std::min(*entry.min_ns, ns);
    entry.max_ns = first ? ns : std::max(*entry.max_ns, ns);
    if (bytes != nullptr) entry.bytes = entry.bytes.value_or(0) + *bytes;
  }

  std::vector<ProfileEntry> Take() {
    std::vector<ProfileEntry> entries;
    for (auto& [name, entry] : entries_) {
      entry.name = name;
      entry.average_ns = static_cast<double>(*entry.total_ns) / *entry.calls;
      entries.push_back(std::move(entry));
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const ProfileEntry& a, const ProfileEntry& b) {
                       return *a.total_ns > *b.total_ns;
                     });
    return entries;
  }

 private:
  std::map<std::string, ProfileEntry> entries_;
};

// Returns the calls that are not made by another call of their thread.
std::vector<const ApiCall*> OutermostCalls(const std::vector<ApiCall>& calls) {
  std::vector<const ApiCall*> sorted;
  sorted.reserve(calls.size());
  for (const ApiCall& call : calls) sorted.push_back(&call);
  std::stable_sort(
      sorted.begin(), sorted.end(), [](const ApiCall* a, const ApiCall* b) {
        return std::make_tuple(a->thread, a->start_ns, -a->end_ns) <
               std::make_tuple(b->thread, b->start_ns, -b->end_ns);
      });
  std::vector<const ApiCall*> outermost;
  for (const ApiCall* call : sorted) {
    if (!outermost.empty() && outermost.back()->thread == call->thread &&
        call->start_ns < outermost.back()->end_ns) {
      continue;
    }
    outermost.push_back(call);
  }
  return outermost;
}

}  // namespace

std::string ApiName(absl::string_view name) {
  name = absl::StripAsciiWhitespace(name);
  const absl::string_view whole = name;
  while (ConsumeVersion(name) || absl::ConsumeSuffix(&name, "_ptsz") ||
         absl::ConsumeSuffix(&name, "_ptds")) {
  }
  if (name == "__cudaLaunchKernel") name.remove_prefix(2);
  return std::string(name.empty() ? whole : name);
}

Profile MakeProfile(const Activities& activities) {
  Profile profile;
  profile.tool = activities.tool;
  profile.version = activities.version;
  Summary gpu, api;
  for (const GpuActivity& activity : activities.gpu) {
    gpu.Add(activity.name, activity.start_ns, activity.end_ns,
            activity.kind == GpuActivity::Kind::kKernel ? nullptr
                                                        : &activity.bytes);
  }
  for (const ApiCall* call : OutermostCalls(activities.api)) {
    api.Add(call->name, call->start_ns, call->end_ns, nullptr);
  }
  profile.gpu_activities = {gpu.Take(), activities.missing};
  profile.api_calls = {api.Take(), activities.missing};
  return profile;
}

}  // namespace convlab
