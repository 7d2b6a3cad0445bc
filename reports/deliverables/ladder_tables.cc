// Milestone 4: the ladder of optimizations, each on its own.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/record/statistics.h"
#include "reports/deliverables/deliverable.h"
#include "reports/deliverables/limits.h"
#include "reports/importers/listing.h"
#include "reports/importers/ncu.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

std::string LadderCommand(const Source& source, int64_t size) {
  return RecordingCommand(source, "m4", absl::StrCat(size),
                          absl::StrCat("m4-", source.network, "-", size));
}

const LadderRun* RunOf(const RunRecord& ladder, absl::string_view variant) {
  for (const LadderRun& run : ladder.ladder) {
    if (run.variant == variant) return &run;
  }
  return nullptr;
}

bool Timed(const LadderRun* run) {
  return run != nullptr && run->failure.empty();
}

// The timed run before `run` on the ladder; nullptr for the first.
const LadderRun* Before(const RunRecord& ladder, const LadderRun& run) {
  const LadderRun* before = nullptr;
  for (const LadderRun& other : ladder.ladder) {
    if (&other == &run) return before;
    if (other.failure.empty()) before = &other;
  }
  return nullptr;
}

std::string OpTimes(const LadderRun& run) {
  std::vector<std::string> times;
  for (const ConvolutionRecord& convolution : run.convolutions) {
    times.push_back(Milliseconds(Median(convolution.op_time_ns)));
  }
  return absl::StrJoin(times, " + ");
}

double Flops(const std::vector<ConvolutionRecord>& convolutions) {
  double flops = 0;
  for (const ConvolutionRecord& convolution : convolutions) {
    flops += static_cast<double>(convolution.flops);
  }
  return flops;
}

std::string Percent(const std::optional<double>& percent) {
  return percent ? absl::StrFormat("%.1f", *percent) : "–";
}

std::string Bytes(const std::optional<double>& bytes) {
  return bytes ? FormatBytes(*bytes) : "–";
}

struct MeasuredLaunch {
  std::string kernel;
  LaunchFacts facts;
};

// The launches of a variant, the longest first.
std::vector<MeasuredLaunch> LaunchesOf(const Source& source,
                                       const std::string& variant) {
  std::vector<MeasuredLaunch> launches;
  const auto found = source.records->counters.find(variant);
  if (found == source.records->counters.end()) return launches;
  for (const LaunchCounters& launch : found->second.launches) {
    launches.push_back({launch.kernel, FactsOf(launch)});
  }
  std::stable_sort(launches.begin(), launches.end(),
                   [](const MeasuredLaunch& a, const MeasuredLaunch& b) {
                     return a.facts.duration_ns.value_or(0) >
                            b.facts.duration_ns.value_or(0);
                   });
  return launches;
}

// A unit that is busy for more than this is what bounds a kernel.
constexpr double kBusyPercent = 60;
constexpr char kBoundRule[] =
    "A kernel is bound by the unit that is busiest, if that is at 60 % of its "
    "peak or more: device memory, or a unit of the multiprocessors "
    "(arithmetic, "
    "instruction issue, shared memory and caches). Below that it is bound by "
    "waiting.";

// What the columns of the counters' tables are.
constexpr char kColumnsRule[] =
    "Of the counters: DRAM and SM say at how much of its peak the device "
    "memory and the busiest unit of the multiprocessors worked, tensor the "
    "tensor cores, of which ncu counts a little for kernels without them too; "
    "occupancy is the share of the warps that a multiprocessor "
    "can hold; the longest wait is what held up a warp longest on average, in "
    "cycles per instruction.";
constexpr std::pair<absl::string_view, absl::string_view> kWaits[] = {
    {"barrier", "the other warps of the block are to arrive"},
    {"lg throttle", "the queue of loads and stores is full"},
    {"long scoreboard", "data is to come from device memory or L2"},
    {"math pipe throttle", "the arithmetic unit is taken"},
    {"mio throttle", "the queue of shared memory's instructions is full"},
    {"not selected",
     "the warp was ready and another one was taken: no lack of work"},
    {"short scoreboard", "data is to come from shared memory"},
    {"wait", "the instruction before takes its fixed number of cycles"},
};

// The rules by which the ladder's sections speak, and the waits in them.
void AddRules(const Source& source, const RunRecord& ladder,
              Deliverable& deliverable) {
  std::set<std::string> waits;
  for (const LadderRun& run : ladder.ladder) {
    for (const MeasuredLaunch& launch : LaunchesOf(source, run.variant)) {
      if (launch.facts.stalls.empty()) continue;
      waits.insert(launch.facts.stalls[0].first);
    }
  }
  Text text = absl::StrCat(kSpreadRule, " ", kBoundRule);
  List list;
  for (const auto& [wait, meaning] : kWaits) {
    if (waits.count(std::string(wait)) == 0) continue;
    list.items.push_back(Strong(std::string(wait)) + ": " +
                         std::string(meaning));
  }
  if (!list.items.empty()) text += absl::StrCat(" ", kColumnsRule);
  deliverable.blocks.push_back(Paragraph{std::move(text)});
  if (!list.items.empty()) deliverable.blocks.push_back(std::move(list));
}

// "the multiprocessors (79.4 % of their peak)".
std::string Bound(const LaunchFacts& facts) {
  if (!facts.dram_percent || !facts.sm_percent) return "";
  const double memory = *facts.dram_percent, sm = *facts.sm_percent;
  if (std::max(memory, sm) >= kBusyPercent) {
    return memory > sm
               ? absl::StrFormat("device memory (%.0f %% of its peak)", memory)
               : absl::StrFormat("the multiprocessors (%.0f %% of their peak)",
                                 sm);
  }
  std::string wait = absl::StrFormat(
      "waiting: device memory is at %.0f %% and the multiprocessors at %.0f %% "
      "of their peaks",
      memory, sm);
  return wait;
}

void AddCounters(const Source& source, const std::string& variant,
                 const LadderRun* before, Deliverable& deliverable) {
  const std::vector<MeasuredLaunch> launches = LaunchesOf(source, variant);
  if (launches.empty()) {
    AddMissing(deliverable,
               absl::StrCat("there are no hardware counters of ", variant),
               absl::StrCat("tools/measure_ncu.sh BUNDLE ",
                            ShellWord(absl::StrCat(source.records->folder,
                                                   "/ncu-", source.network)),
                            " ", source.network, " ", variant));
    return;
  }
  double total = 0;
  for (const MeasuredLaunch& launch : launches) {
    total += launch.facts.duration_ns.value_or(0);
  }
  Table table = {{{"kernel", false},
                  {"time"},
                  {"DRAM traffic"},
                  {"DRAM, %"},
                  {"SM, %"},
                  {"tensor, %"},
                  {"occupancy, %"},
                  {"registers"},
                  {"shared"},
                  {"longest wait", false}},
                 {}};
  size_t left_out = 0;
  for (const MeasuredLaunch& launch : launches) {
    const LaunchFacts& facts = launch.facts;
    constexpr double kWorthARow = 0.02;
    if (facts.duration_ns.value_or(0) < kWorthARow * total) {
      ++left_out;
      continue;
    }
    table.rows.push_back(
        {Code(KernelName(launch.kernel, 44)),
         facts.duration_ns ? FormatNanoseconds(*facts.duration_ns) : "–",
         Bytes(facts.dram_bytes), Percent(facts.dram_percent),
         Percent(facts.sm_percent), Percent(facts.tensor_percent),
         Percent(facts.occupancy_percent),
         facts.registers_per_thread
             ? absl::StrFormat("%.0f", *facts.registers_per_thread)
             : "–",
         Bytes(facts.shared_bytes_per_block),
         facts.stalls.empty()
             ? "–"
             : absl::StrFormat("%s, %.1f cycles", facts.stalls[0].first,
                               facts.stalls[0].second)});
  }
  deliverable.blocks.push_back(Paragraph{absl::StrCat(
      "What the hardware counters show of each kernel that it launches (one "
      "launch of each grid",
      left_out == 0
          ? ""
          : absl::StrCat("; ", left_out, " shorter than 2 % left out"),
      "):")});
  deliverable.blocks.push_back(std::move(table));
  const LaunchFacts& facts = launches[0].facts;
  Text text;
  if (const std::string bound = Bound(facts); !bound.empty()) {
    text += Text("The longest kernel, ") +
            Code(KernelName(launches[0].kernel, 44)) + ", is bound by " +
            bound + ".";
  }
  const std::vector<MeasuredLaunch> others =
      before == nullptr ? std::vector<MeasuredLaunch>()
                        : LaunchesOf(source, before->variant);
  if (!others.empty()) {
    const LaunchFacts& other = others[0].facts;
    std::vector<std::string> changes;
    const auto compare = [&](const char* what, const auto& now,
                             const auto& then, auto format) {
      if (now && then) {
        changes.push_back(absl::StrCat(what, " ", format(now),
                                       " (before: ", format(then), ")"));
      }
    };
    const auto percent = [](const std::optional<double>& value) {
      return Percent(value) + " %";
    };
    compare("multiprocessors", facts.sm_percent, other.sm_percent, percent);
    compare("device memory", facts.dram_percent, other.dram_percent, percent);
    compare("occupancy", facts.occupancy_percent, other.occupancy_percent,
            percent);
    compare("DRAM traffic of that launch", facts.dram_bytes, other.dram_bytes,
            Bytes);
    if (!changes.empty()) {
      text += absl::StrCat(text.empty() ? "" : " ",
                           "Beside the longest kernel of the rung before: ",
                           absl::StrJoin(changes, ", "), ".");
    }
  }
  if (!text.empty()) deliverable.blocks.push_back(Paragraph{std::move(text)});
}

// Op times at every size beside the rung before.
void AddSizes(const Source& source, const std::string& variant,
              const LadderRun* before, Deliverable& deliverable) {
  Table table = {{{"images"}, {"op times, ms"}, {"sum, ms"}}, {}};
  if (before != nullptr) {
    table.columns.push_back({Code(before->variant) + ", ms"});
    table.columns.push_back({"sum, ms"});
    table.columns.push_back({"times as fast"});
    table.columns.push_back({"the difference is", false});
  }
  for (const int64_t size : kSizes) {
    const RunRecord* ladder = FindLadder(source, size);
    const LadderRun* run =
        ladder == nullptr ? nullptr : RunOf(*ladder, variant);
    if (run == nullptr) continue;  // said once, above the sections
    std::vector<Text>& row = table.rows.emplace_back();
    row.push_back(Count(size));
    if (!Timed(run)) {
      row.push_back(run->failure);
      row.resize(table.columns.size(), "–");
      continue;
    }
    row.push_back(OpTimes(*run));
    row.push_back(Milliseconds(OpTimeSum(run->convolutions)));
    if (before == nullptr) continue;
    const LadderRun* other = RunOf(*ladder, before->variant);
    if (!Timed(other)) {
      row.resize(table.columns.size(), "–");
      continue;
    }
    row.push_back(OpTimes(*other));
    row.push_back(Milliseconds(OpTimeSum(other->convolutions)));
    row.push_back(
        Ratio(OpTimeSum(other->convolutions), OpTimeSum(run->convolutions)));
    row.push_back(Name(Compare(SpreadOfSum(run->convolutions),
                               SpreadOfSum(other->convolutions))));
  }
  deliverable.blocks.push_back(std::move(table));
}

// How long the busiest unit of the multiprocessors worked in a whole operation.
struct Work {
  double busy_ns = 0, whole_ns = 0;
};

// Nothing where the counters do not hold the whole operation: they have one
// launch of each grid, and a variant may launch one many times.
std::optional<Work> WorkOf(const std::vector<MeasuredLaunch>& launches,
                           const LadderRun& run) {
  Work work;
  for (const MeasuredLaunch& launch : launches) {
    if (!launch.facts.duration_ns || !launch.facts.sm_percent) return {};
    work.whole_ns += *launch.facts.duration_ns;
    work.busy_ns += *launch.facts.duration_ns * *launch.facts.sm_percent / 100;
  }
  constexpr double kApart = 0.15;
  const double op_time = OpTimeSum(run.convolutions);
  if (std::abs(work.whole_ns - op_time) > kApart * op_time) return {};
  return work;
}

// Why a variant is no faster than the one before, as far as counters tell.
std::string WhyNot(const Source& source, const LadderRun& run,
                   const LadderRun& before) {
  const std::vector<MeasuredLaunch> launches = LaunchesOf(source, run.variant);
  const std::vector<MeasuredLaunch> others = LaunchesOf(source, before.variant);
  if (launches.empty() || others.empty()) return "";
  const std::optional<Work> now = WorkOf(launches, run);
  const std::optional<Work> then = WorkOf(others, before);
  if (!now || !then) {
    return " Why not, the counters do not tell: they hold one launch of each "
           "grid, which is not the whole operation here or in the rung before.";
  }
  const std::string busy = absl::StrFormat(
      "the busiest unit of the multiprocessors is at work for %s, in the rung "
      "before for %s",
      FormatNanoseconds(now->busy_ns), FormatNanoseconds(then->busy_ns));
  const double waiting = now->whole_ns - now->busy_ns;
  const double waited = then->whole_ns - then->busy_ns;
  if (now->busy_ns - then->busy_ns > waiting - waited) {
    return absl::StrCat(" Why not: it is more work than before; ", busy, ".");
  }
  std::string why =
      absl::StrCat(" Why not: it waits longer; ", busy,
                   ", and the rest of the time, ", FormatNanoseconds(waiting),
                   " and before ", FormatNanoseconds(waited), ", is waiting");
  if (!launches[0].facts.stalls.empty()) {
    absl::StrAppend(&why, ", in its longest kernel most of all \"",
                    launches[0].facts.stalls[0].first, "\"");
  }
  return why + ".";
}

std::string Verdict(const Source& source, const RunRecord& ladder,
                    const LadderRun& run, const LadderRun* before) {
  const double now = OpTimeSum(run.convolutions);
  const LadderRun& first = ladder.ladder.front();
  if (before == nullptr) {
    return "It is the first rung, which the others are compared with.";
  }
  const double then = OpTimeSum(before->convolutions);
  const Difference difference =
      Compare(SpreadOfSum(run.convolutions), SpreadOfSum(before->convolutions));
  std::string verdict = difference == Difference::kWithinSpread
                            ? "It made no difference beyond the spread"
                        : now < then ? "It helped"
                                     : "It did not help";
  absl::StrAppend(
      &verdict, " at ", Plural(ladder.size, "image"), ": the op times' sum is ",
      Milliseconds(now), " ms, the rung before has ", Milliseconds(then),
      " ms, so it is ",
      now < then ? absl::StrFormat("%.2f times as fast", then / now)
                 : absl::StrFormat("%.2f times as slow", now / then),
      " (", Name(difference), ")");
  if (Timed(&first) && &first != before) {
    const double start = OpTimeSum(first.convolutions);
    absl::StrAppend(&verdict,
                    now < start
                        ? absl::StrFormat("; it is %.2f times as fast as the "
                                          "first rung",
                                          start / now)
                        : absl::StrFormat("; it is %.2f times as slow as the "
                                          "first rung",
                                          now / start));
  }
  verdict += ".";
  if (now >= then) verdict += WhyNot(source, run, *before);
  return verdict;
}

}  // namespace

Deliverable Ladder(const Source& source) {
  Deliverable deliverable = {"The ladder", {}};
  std::vector<Block>& blocks = deliverable.blocks;
  const RunRecord* ladder = FindLadder(source);
  if (ladder == nullptr) {
    AddMissing(deliverable, "there is no run of the ladder on the GPU",
               LadderCommand(source, kSizes[2]));
    return deliverable;
  }
  const std::optional<GpuLimits> limits = FindLimits(ladder->gpu.name);
  double peer = 0;
  for (const PeerRecord& layer : ladder->peers) {
    peer += Median(layer.kernel_time_ns);
  }
  Text intro =
      Text("Each variant was verified against float64, then timed: ") +
      Code(CommandText(*ladder)) +
      ". Times are medians of op times: everything that the operation does, "
      "between two synchronisations of the device.";
  if (limits) {
    intro += absl::StrFormat(
        " The floor is the time below which no kernel can end: every tensor "
        "read or written once at the peak of the device memory, %.2f TB/s, or "
        "all FLOPs at the peak of the tensor cores, %.0f TFLOP/s (FP16), "
        "whichever is longer, for each convolution. The share of the floor is "
        "the floor divided by the time: 100 %% is the limit.",
        limits->bytes_per_second * 1e-12, limits->tensor_flops * 1e-12);
  } else {
    intro += absl::StrCat(
        " The floor is not known: this project has no data sheet of ",
        ladder->gpu.name, ".");
  }
  blocks.push_back(Paragraph{std::move(intro)});
  Table table = {{{"rung"},
                  {"variant", false},
                  {"op times, ms"},
                  {"sum, ms"},
                  {"than the rung before"},
                  {"than the first"},
                  {"than the library"},
                  {"share of the floor"},
                  {"class", false},
                  {"error"},
                  {"correct"}},
                 {}};
  const double first = Timed(&ladder->ladder.front())
                           ? OpTimeSum(ladder->ladder.front().convolutions)
                           : 0;
  for (const LadderRun& run : ladder->ladder) {
    const VariantRecord& variant = ladder->variants.at(run.variant);
    std::vector<Text>& row = table.rows.emplace_back();
    row = {Count(variant.rung), Code(run.variant)};
    if (!run.failure.empty()) {
      row.push_back(run.failure);
      row.resize(table.columns.size(), "–");
      continue;
    }
    const LadderRun* before = Before(*ladder, run);
    const double sum = OpTimeSum(run.convolutions);
    row.insert(
        row.end(),
        {OpTimes(run), Milliseconds(sum),
         Ratio(before == nullptr ? 0 : OpTimeSum(before->convolutions), sum),
         before == nullptr ? "–" : Ratio(first, sum), Ratio(peer, sum),
         limits ? absl::StrFormat(
                      "%.1f %%", 100 * FloorNs(run.convolutions, *limits) / sum)
                : "–",
         variant.accuracy_class, absl::StrFormat("%.0e", run.relative_error),
         Count(run.correct)});
  }
  if (!ladder->peers.empty()) {
    std::vector<std::string> times;
    for (const PeerRecord& layer : ladder->peers) {
      times.push_back(Milliseconds(Median(layer.kernel_time_ns)));
    }
    table.rows.push_back(
        {"–",
         absl::StrCat(ladder->peers[0].library, ", the best of ",
                      ladder->peers[0].plans, " plans, kernel time"),
         absl::StrJoin(times, " + "), Milliseconds(peer), "–",
         Ratio(first, peer), "–", "–", ladder->peers[0].accuracy_class,
         absl::StrFormat("%.0e", ladder->peers[0].relative_error), "–"});
  }
  // The last variant that was timed gives the convolutions.
  const auto timed =
      std::find_if(ladder->ladder.rbegin(), ladder->ladder.rend(),
                   [](const LadderRun& run) { return run.failure.empty(); });
  if (limits && timed != ladder->ladder.rend()) {
    std::vector<std::string> times;
    for (const ConvolutionRecord& convolution : timed->convolutions) {
      times.push_back(Milliseconds(FloorNs(convolution, *limits)));
    }
    const double floor = FloorNs(timed->convolutions, *limits);
    table.rows.push_back({"–", "floor", absl::StrJoin(times, " + "),
                          Milliseconds(floor), "–", Ratio(first, floor),
                          Ratio(peer, floor), "100 %", "–", "–", "–"});
  }
  blocks.push_back(std::move(table));
  if (ladder->peers.empty()) {
    deliverable.complete = false;
    blocks.push_back(Paragraph{
        Text("The library was not measured in this run: it needs cuDNN where "
             "the program finds it. ") +
        Code(LadderCommand(source, ladder->size)) + " measures it."});
  }
  blocks.push_back(Figure{LadderChart("ladder", *ladder, limits),
                          "Bars: the sum of the op times of each variant",
                          "The ladder: sum of the op times of each variant."});
  if (limits) {
    blocks.push_back(Figure{
        RooflineChart("roofline", *ladder, *limits),
        "Roofline: FLOP per second of each variant against FLOP per byte, "
        "under the GPU's limits",
        absl::StrFormat(
            "Roofline. A point is a variant on one convolution, labelled with "
            "its rung; the lines are the limits of the data sheet: device "
            "memory, %.2f TB/s, on the left; arithmetic on the right, %.0f "
            "TFLOP/s of the tensor cores in FP16 and %.0f TFLOP/s in FP32. The "
            "numbers:",
            limits->bytes_per_second * 1e-12, limits->tensor_flops * 1e-12,
            limits->fp32_flops * 1e-12)});
    size_t convolutions = 0;
    for (const LadderRun& run : ladder->ladder) {
      convolutions = std::max(convolutions, run.convolutions.size());
    }
    Table roofline = {{{"rung"}, {"variant", false}}, {}};
    for (size_t i = 0; i < convolutions; ++i) {
      const std::string layer = absl::StrCat("conv. ", i + 1, ", ");
      roofline.columns.push_back({layer + "FLOP/byte"});
      roofline.columns.push_back({layer + "TFLOP/s"});
      roofline.columns.push_back({layer + "share of the floor"});
    }
    for (const LadderRun& run : ladder->ladder) {
      if (!run.failure.empty()) continue;
      std::vector<Text>& row = roofline.rows.emplace_back();
      row = {Count(ladder->variants.at(run.variant).rung), Code(run.variant)};
      for (const ConvolutionRecord& convolution : run.convolutions) {
        const double time = Median(convolution.op_time_ns);
        const double flops = static_cast<double>(convolution.flops);
        row.insert(
            row.end(),
            {absl::StrFormat("%.1f", flops / convolution.min_bytes),
             absl::StrFormat("%.2f", flops / time * 1e-3),
             absl::StrFormat("%.1f %%",
                             100 * FloorNs(convolution, *limits) / time)});
      }
      row.resize(roofline.columns.size(), "–");
    }
    blocks.push_back(std::move(roofline));
  }
  for (const OverlapRecord& overlap : ladder->overlaps) {
    if (overlap.serial_ns.empty() || overlap.overlapped_ns.empty()) continue;
    const double serial = Median(overlap.serial_ns);
    const double overlapped = Median(overlap.overlapped_ns);
    blocks.push_back(Paragraph{absl::StrFormat(
        "Streams in a whole program: convolution %d of %s from and to host "
        "memory in %d slices took %.3f ms one after the other and %.3f ms in "
        "streams, %s as fast.",
        overlap.layer, Plural(overlap.images, "image"), overlap.slices,
        serial * 1e-6, overlapped * 1e-6, Ratio(serial, overlapped))});
  }
  for (const int64_t size : kSizes) {
    if (FindLadder(source, size) != nullptr) continue;
    AddMissing(deliverable,
               absl::StrCat("there is no run of the ladder with ",
                            Plural(size, "image")),
               LadderCommand(source, size));
  }
  AddRules(source, *ladder, deliverable);
  return deliverable;
}

std::vector<Deliverable> Optimizations(const Source& source) {
  std::vector<Deliverable> deliverables;
  const RunRecord* ladder = FindLadder(source);
  if (ladder == nullptr) return deliverables;
  for (const LadderRun& run : ladder->ladder) {
    if (!source.optimizations.empty() &&
        !absl::c_linear_search(source.optimizations, run.variant)) {
      continue;
    }
    const VariantRecord& variant = ladder->variants.at(run.variant);
    Deliverable& deliverable = deliverables.emplace_back();
    deliverable.title = absl::StrCat("Rung ", variant.rung, ": ", run.variant);
    std::vector<Block>& blocks = deliverable.blocks;
    blocks.push_back(Paragraph{Strong("What it is.") + " " + variant.summary});
    blocks.push_back(
        Paragraph{Strong("Why it should help.") + " " + variant.reason});
    if (!run.failure.empty()) {
      blocks.push_back(
          Paragraph{Strong("It was not timed.") + " " + run.failure});
      continue;
    }
    const LadderRun* before = Before(*ladder, run);
    const double sum = OpTimeSum(run.convolutions);
    Text place = absl::StrFormat(
        "Rung %d of %d, class %s (largest relative error %.0e), %.2f TFLOP/s",
        variant.rung, ladder->variants.at(ladder->ladder.back().variant).rung,
        variant.accuracy_class, run.relative_error,
        Flops(run.convolutions) / sum * 1e-3);
    if (const auto limits = FindLimits(ladder->gpu.name)) {
      place += absl::StrFormat(", share of the floor %.1f %%",
                               100 * FloorNs(run.convolutions, *limits) / sum);
    }
    blocks.push_back(Paragraph{Strong("Its place.") + " " + place + "."});
    AddSizes(source, run.variant, before, deliverable);
    AddCounters(source, run.variant, before, deliverable);
    blocks.push_back(Paragraph{Strong("Whether it helped.") + " " +
                               Verdict(source, *ladder, run, before)});
  }
  return deliverables;
}

}  // namespace convlab
