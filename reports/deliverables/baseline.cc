// Milestone 1: the baseline under the profiler.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/deliverables/charts.h"
#include "reports/deliverables/deliverable.h"
#include "reports/deliverables/profile_tables.h"
#include "reports/importers/listing.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

const RunRecord* TracedBaseline(const Source& source) {
  return Find(*source.records, {"m1", "gpu", std::nullopt, /*traced=*/true});
}

void AddMissingProfile(const Source& source, Deliverable& deliverable) {
  AddMissing(deliverable, "there is no traced run of the baseline on the GPU",
             TracingCommand(source, "m1"));
}

// Explains what an API function's time is spent on.
struct ApiMeaning {
  absl::string_view prefix;
  absl::string_view meaning;
};
constexpr ApiMeaning kMeanings[] = {
    {"cuLibraryLoad", "loads the code of kernels onto the GPU"},
    {"cuModuleLoad", "loads the code of kernels onto the GPU"},
    {"cudaFuncGetAttributes",
     "queries a kernel; the first query loads its code"},
    {"cudaFuncSetAttribute",
     "sets up a kernel; the first call for it loads its code"},
    {"cudaOccupancy",
     "queries how many blocks of a kernel fit; the first "
     "query loads its code"},
    {"cudaDeviceSynchronize",
     "waits until the GPU is done: time of kernels, seen from the host"},
    {"cudaStreamSynchronize",
     "waits until the GPU is done: time of kernels, seen from the host"},
    {"cudaEventSynchronize",
     "waits until the GPU is done: time of kernels, seen from the host"},
    {"cudaMemcpy", "copies, and waits for the kernels before it"},
    {"cudaLaunchKernel",
     "queues a kernel and returns; the first launch of a "
     "kernel loads its code"},
    {"cuLaunchKernel", "queues a kernel and returns"},
    {"cudaMallocHost", "gives pinned memory of the host"},
    {"cudaHostAlloc", "gives pinned memory of the host"},
    {"cudaMalloc", "gives device memory"},
    {"cudaFree", "frees memory"},
    {"cudaStreamCreate", "creates a stream"},
    {"cudaEventCreate", "creates an event"},
    {"cudaMemGetInfo", "queries the free device memory"},
    {"cudaGetDeviceProperties", "asks for facts about the device"},
    {"cudaDeviceGetAttribute", "asks for facts about the device"},
};

std::string Meaning(absl::string_view name) {
  for (const ApiMeaning& meaning : kMeanings) {
    if (absl::StartsWith(name, meaning.prefix)) {
      return std::string(meaning.meaning);
    }
  }
  return "";
}

// Whether a long call of the function may have another reason than being the
// first to need a context.
bool LoadsOrWaits(absl::string_view name) {
  return absl::c_any_of(
      std::initializer_list<absl::string_view>{
          "cuLibraryLoad", "cuModuleLoad", "cudaFunc", "cudaOccupancy",
          "cudaDeviceSynchronize", "cudaStreamSynchronize",
          "cudaEventSynchronize", "cudaMemcpy", "cudaLaunch", "cuLaunch"},
      [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

// The function with the longest call that may have created the context; nullptr
// if no call is long.
const ProfileEntry* ContextCall(const Profile& profile) {
  constexpr int64_t kLong = 10'000'000;  // ns
  const ProfileEntry* longest = nullptr;
  for (const ProfileEntry& entry : profile.api_calls.entries) {
    if (LoadsOrWaits(entry.name) || entry.max_ns.value_or(0) < kLong) continue;
    if (longest == nullptr || *entry.max_ns > *longest->max_ns) {
      longest = &entry;
    }
  }
  return longest;
}

// Describes when the longest call of `name` happened, by the trace.
std::string WhenCalled(const std::vector<TimelineEvent>* events,
                       absl::string_view name) {
  if (events == nullptr) return "";
  const TimelineEvent* call = nullptr;
  double first_work_ms = -1;
  for (const TimelineEvent& event : *events) {
    if (event.row != TimelineEvent::Row::kApi) {
      if (first_work_ms < 0) first_work_ms = event.start_ms;
    } else if (event.name == name &&
               (call == nullptr || event.end_ms - event.start_ms >
                                       call->end_ms - call->start_ms)) {
      call = &event;
    }
  }
  if (call == nullptr) return "";
  std::string when =
      absl::StrFormat(" The timeline shows it from %.1f to %.1f ms",
                      call->start_ms, call->end_ms);
  if (first_work_ms >= call->end_ms) {
    absl::StrAppend(&when,
                    ", before anything ran on the GPU (the first copy "
                    "or kernel began at ",
                    absl::StrFormat("%.1f ms)", first_work_ms));
  }
  return when + ".";
}

double Total(const ProfileSection& section) {
  double total = 0;
  for (const ProfileEntry& entry : section.entries) {
    total += static_cast<double>(entry.total_ns.value_or(0));
  }
  return total;
}

int64_t Calls(const ProfileSection& section) {
  int64_t calls = 0;
  for (const ProfileEntry& entry : section.entries) {
    calls += entry.calls.value_or(0);
  }
  return calls;
}

Deliverable KernelList(const Source& source) {
  Deliverable deliverable = {
      "Kernels that together take more than 90 % of the GPU's time", "kernels"};
  const RunRecord* record = TracedBaseline(source);
  if (record == nullptr) {
    AddMissingProfile(source, deliverable);
    return deliverable;
  }
  AddShareList(source, record->profile->gpu_activities, *record,
               "kernels, copies and memsets", deliverable);
  return deliverable;
}

Deliverable ApiList(const Source& source) {
  Deliverable deliverable = {
      "CUDA API calls that together take more than 90 % of the API's time",
      "api-calls"};
  const RunRecord* record = TracedBaseline(source);
  if (record == nullptr) {
    AddMissingProfile(source, deliverable);
    return deliverable;
  }
  AddShareList(source, record->profile->api_calls, *record, "API functions",
               deliverable);
  return deliverable;
}

Deliverable KernelsAgainstApiCalls(const Source& source) {
  Deliverable deliverable = {"How kernels differ from API calls", "difference"};
  const RunRecord* record = TracedBaseline(source);
  if (record == nullptr) {
    AddMissingProfile(source, deliverable);
    return deliverable;
  }
  const Profile& profile = *record->profile;
  std::vector<Block>& blocks = deliverable.blocks;
  blocks.push_back(Generated(absl::StrCat(
      "A kernel is a function that runs on the GPU, and its time is the GPU's. "
      "An API call is a function of the CUDA library that the host's program "
      "calls to prepare, start or await such work, and its time is the host's. "
      "Most calls return before the work that they start is done, so the two "
      "lists neither add up nor have the same order. In this run the GPU was "
      "at work for ",
      FormatNanoseconds(Total(profile.gpu_activities)), " in ",
      Count(Calls(profile.gpu_activities)), " kernels, copies and memsets; ",
      Plural(Calls(profile.api_calls), "API call"), " took ",
      FormatNanoseconds(Total(profile.api_calls)), " of the host's time.")));
  const ShareList list = LargestShares(profile.api_calls, 90);
  const ProfileEntry* context = ContextCall(profile);
  if (context != nullptr && !list.shares.empty()) {
    const double rest = static_cast<double>(context->total_ns.value_or(0)) -
                        static_cast<double>(*context->max_ns);
    Text text = Text("The cost of the first call: the longest call of ") +
                Code(context->name) + " took " +
                FormatNanoseconds(static_cast<double>(*context->max_ns));
    if (context->calls.value_or(1) > 1) {
      text += absl::StrCat(", the ", Plural(*context->calls - 1, "other call"),
                           " together ", FormatNanoseconds(rest));
    }
    text +=
        ". CUDA has no separate call that creates its context, the GPU's "
        "state for this process (address space, code, queues): the first call "
        "that needs one creates it, and the time is charged to that call, "
        "whatever its purpose.";
    text += WhenCalled(FindTimeline(source, *record).events, context->name);
    const std::string leader = list.shares[0].entry.name;
    if (leader == context->name) {
      text +=
          " This is why a function that does so little leads the list of API "
          "calls.";
    } else {
      text +=
          " This is why a function that does so little is high in the "
          "list of API calls. ";
      text += Text("The list's first, ") + Code(leader) +
              absl::StrFormat(" with %.1f %%", 100 * list.shares[0].share);
      const std::string meaning = Meaning(leader);
      text += meaning.empty() ? "." : absl::StrCat(", ", meaning, ".");
    }
    blocks.push_back(Generated(std::move(text)));
  } else {
    blocks.push_back(Generated(
        "The first call that needs CUDA's context pays for creating it. In "
        "this run only calls that load code or wait took 10 ms, so that this "
        "cost cannot be separated from the rest."));
  }
  Table table = {{{"API call", false},
                  {"share, %"},
                  {"calls"},
                  {"average"},
                  {"longest"},
                  {"what it does", false}},
                 {}};
  for (const Share& share : list.shares) {
    const ProfileEntry& entry = share.entry;
    std::string meaning = Meaning(entry.name);
    if (context != nullptr && entry.name == context->name) {
      absl::StrAppend(&meaning, meaning.empty() ? "" : "; ",
                      "its longest call created the context");
    }
    table.rows.push_back(
        {Code(entry.name), absl::StrFormat("%.1f", 100 * share.share),
         entry.calls ? Count(*entry.calls) : "–",
         entry.average_ns ? FormatNanoseconds(*entry.average_ns) : "–",
         entry.max_ns ? FormatNanoseconds(static_cast<double>(*entry.max_ns))
                      : "–",
         meaning.empty() ? "–" : meaning});
  }
  blocks.push_back(Generated(
      "The times of API calls are of three kinds: preparing (the context, the "
      "kernels' code, memory), launching, which is short, and waiting, which "
      "is the kernels' time again, seen from the host."));
  blocks.push_back(std::move(table));
  AddTimeline("m1-timeline", source, *record, deliverable);
  return deliverable;
}

Deliverable BaselineRun(const Source& source, absl::string_view device) {
  const bool gpu = device == "gpu";
  Deliverable deliverable = {
      absl::StrCat("Output and run time of the baseline on the ",
                   gpu ? "GPU" : "CPU"),
      gpu ? "gpu-run" : "cpu-run"};
  const RunRecord* record = Find(*source.records, {"m1", device});
  if (record == nullptr) {
    AddMissing(
        deliverable,
        absl::StrCat("there is no run of the baseline on the ",
                     gpu ? "GPU" : "CPU", " without tracing"),
        RecordingCommand(source, "m1", absl::StrCat("--device ", device),
                         absl::StrCat("m1-", source.network, "-", device)));
    return deliverable;
  }
  AddRun(*record, deliverable);
  if (gpu) deliverable.blocks.emplace_back(TimePicture("m1-time", *record));
  return deliverable;
}

}  // namespace

Parts Milestone1(const Source& source) {
  Parts parts;
  parts.asked =
      "The network by the library's own operators, on the CPU, on the GPU and "
      "under the profiler: which kernels and which API calls take the time, "
      "how the two differ, and what the runs print and take.";
  for (const char* device : {"cpu", "gpu"}) {
    const RunRecord* run = Find(*source.records, {"m1", device});
    if (run == nullptr) continue;
    parts.reached.push_back(
        Text(absl::StrCat("On the ", device[0] == 'c' ? "CPU" : "GPU", " ",
                          Plural(run->size, "image"), " take ")) +
        Strong(ProgramSeconds(*run) + " s") + "; " + CountText(*run) +
        " are right.");
  }
  const RunRecord* traced = TracedBaseline(source);
  if (traced != nullptr) {
    parts.picture = SharePicture("m1-gpu-time", *traced);
    parts.reached.push_back(
        absl::StrCat("Of the traced run the GPU was at work for ",
                     FormatNanoseconds(Total(traced->profile->gpu_activities)),
                     ", and API calls took ",
                     FormatNanoseconds(Total(traced->profile->api_calls)),
                     " of the host's time."));
  }
  parts.sections = {KernelList(source), ApiList(source),
                    KernelsAgainstApiCalls(source), BaselineRun(source, "cpu"),
                    BaselineRun(source, "gpu")};
  parts.appendix = {NamesInFull(traced), LongestEvents(source, traced)};
  return parts;
}

}  // namespace convlab
