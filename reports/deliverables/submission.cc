#include "reports/deliverables/submission.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "reports/deliverables/deliverable.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

struct Part {
  const char* milestone;
  const char* title;
  absl::StatusOr<std::vector<Deliverable>> (*deliverables)(const Source&);
};

absl::StatusOr<std::vector<Deliverable>> Milestone1(const Source& source) {
  return std::vector<Deliverable>{
      KernelList(source), ApiList(source), KernelsAgainstApiCalls(source),
      BaselineRun(source, "cpu"), BaselineRun(source, "gpu")};
}

absl::StatusOr<std::vector<Deliverable>> Milestone2(const Source& source) {
  return std::vector<Deliverable>{ProgramTime(source), CpuOpTimes(source)};
}

absl::StatusOr<std::vector<Deliverable>> Milestone3(const Source& source) {
  return std::vector<Deliverable>{ThreeSizes(source), KernelInProfile(source)};
}

absl::StatusOr<std::vector<Deliverable>> Milestone4(const Source& source) {
  std::vector<Deliverable> deliverables = {Ladder(source)};
  for (Deliverable& optimization : Optimizations(source)) {
    deliverables.push_back(std::move(optimization));
  }
  return deliverables;
}

absl::StatusOr<std::vector<Deliverable>> Final(const Source& source) {
  ASSIGN_OR_RETURN(Deliverable ranking, RankingOfAll(source));
  return std::vector<Deliverable>{FinalOpTimes(source),
                                  LibraryComparison(source), std::move(ranking),
                                  References(source)};
}

// The course's order; each milestone hands in those before it too.
constexpr Part kParts[] = {
    {"m1", "Profile of the baseline", Milestone1},
    {"m2", "CPU convolution", Milestone2},
    {"m3", "GPU convolution", Milestone3},
    {"m4", "Optimizations", Milestone4},
    {"final", "The fastest convolution", Final},
};

std::string MilestoneName(absl::string_view milestone) {
  return milestone == "final" ? std::string("Final")
                              : absl::StrCat("Milestone ", milestone.substr(1));
}

// The machines, revisions and dates of the runs.
Table Facts(const Records& records, const SubmissionOptions& options) {
  Table table = {{{"", false}, {"", false}}, {}};
  const auto add = [&](const char* name, Text value) {
    if (!value.empty()) table.rows.push_back({name, std::move(value)});
  };
  if (!options.team.empty()) add("Team", options.team);
  if (!options.members.empty()) {
    add("Members", absl::StrJoin(options.members, ", "));
  }
  const RunRecord* on_gpu = nullptr;
  const RunRecord* on_cpu = nullptr;
  std::set<std::string> revisions;
  std::map<std::string, std::string> kernels;
  std::string first, last;
  for (const NamedRecord& run : records.runs) {
    const RunRecord& record = run.record;
    const RunRecord*& newest = record.device == "gpu" ? on_gpu : on_cpu;
    if (newest == nullptr || newest->started < record.started) {
      newest = &record;
    }
    for (const auto& [name, variant] : record.variants) {
      if (!IsContributed(variant)) continue;
      const VerificationRecord& found = *variant.verification;
      kernels[name] = absl::StrCat(
          name, ", ", found.kernel->kernel_interface, ": ", found.outcome,
          " on ", found.problems_right, " of ", found.problems_tried,
          " problems, class ", found.accuracy_class, ", source ",
          found.kernel->digest.substr(0, 12));
    }
    if (!record.git_revision.empty()) revisions.insert(record.git_revision);
    if (record.started.empty()) continue;
    const std::string day = record.started.substr(0, 10);
    if (first.empty() || day < first) first = day;
    if (day > last) last = day;
  }
  for (const auto& [name, text] : kernels) add("Kernel", text);
  const RunRecord& any = records.runs.front().record;
  add("Network", absl::StrCat(any.network, ", weights ", any.weights));
  if (on_gpu != nullptr) {
    const GpuFacts& gpu = on_gpu->gpu;
    std::string text = gpu.name;
    if (gpu.compute_capability > 0) {
      absl::StrAppend(&text, ", compute capability ",
                      gpu.compute_capability / 10, ".",
                      gpu.compute_capability % 10);
    }
    if (gpu.multiprocessors > 0) {
      absl::StrAppend(&text, ", ",
                      Plural(gpu.multiprocessors, "multiprocessor"));
    }
    if (gpu.multiprocessor_clock_khz > 0) {
      absl::StrAppend(&text, ", up to ", gpu.multiprocessor_clock_khz / 1000,
                      " MHz");
    }
    if (gpu.driver_version > 0) {
      absl::StrAppend(&text, ", driver for CUDA ", gpu.driver_version / 1000,
                      ".", gpu.driver_version % 1000 / 10);
    }
    add("GPU", std::move(text));
  }
  const RunRecord& host = on_cpu != nullptr ? *on_cpu : *on_gpu;
  std::string cpu = host.host.cpu;
  if (host.host.cores > 0) {
    absl::StrAppend(&cpu, ", ", Plural(host.host.cores, "core"));
  }
  if (on_cpu != nullptr && !host.cpu_target.empty()) {
    absl::StrAppend(&cpu, ", vectors by ", host.cpu_target);
  }
  if (!host.host.operating_system.empty()) {
    absl::StrAppend(&cpu, ", ", host.host.operating_system);
  }
  add("CPU", std::move(cpu));
  if (!first.empty()) {
    add("Measured", first == last ? first : absl::StrCat(first, " to ", last));
  }
  if (!revisions.empty()) add("Revision", absl::StrJoin(revisions, ", "));
  return table;
}

}  // namespace

absl::StatusOr<Submission> MakeSubmission(const Records& records,
                                          const SubmissionOptions& options) {
  size_t parts = 0;
  while (parts < std::size(kParts) &&
         options.milestone != kParts[parts].milestone) {
    ++parts;
  }
  if (parts++ == std::size(kParts)) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown milestone '", options.milestone,
                     "', expected m1, m2, m3, m4 or final"));
  }
  RETURN_IF_ERROR(CheckSameMachine(records));
  Source source;
  source.records = &records;
  source.network = records.runs.front().record.network;
  source.optimizations = options.optimizations;
  source.participants = options.participants;
  for (const std::string& name : options.optimizations) {
    bool known = false;
    for (const NamedRecord& run : records.runs) {
      for (const LadderRun& rung : run.record.ladder) {
        known |= rung.variant == name;
      }
    }
    if (!known) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no record of the ladder has the optimization '", name, "'"));
    }
  }
  for (const auto& [name, content] : records.traces) {
    absl::StatusOr<std::vector<TimelineEvent>> events = ReadTimeline(content);
    if (!events.ok()) return Annotate(events.status(), name);
    source.timelines[name] = *std::move(events);
  }

  Submission submission;
  Document& document = submission.document;
  std::vector<Block> body;
  int total = 0;
  for (size_t i = 0; i < parts; ++i) {
    body.push_back(Heading{2, absl::StrCat(MilestoneName(kParts[i].milestone),
                                           ": ", kParts[i].title)});
    int number = 0;
    ASSIGN_OR_RETURN(std::vector<Deliverable> deliverables,
                     kParts[i].deliverables(source));
    for (Deliverable& deliverable : deliverables) {
      const std::string title =
          absl::StrCat(i + 1, ".", ++number, " ", deliverable.title);
      ++total;
      if (!deliverable.complete) submission.incomplete.push_back(title);
      body.push_back(Heading{3, title});
      Append(body, std::move(deliverable.blocks));
    }
  }
  document.title = absl::StrCat(MilestoneName(options.milestone), ": ",
                                kParts[parts - 1].title, ", ", source.network);
  document.blocks.push_back(Facts(records, options));
  if (submission.incomplete.empty()) {
    document.blocks.push_back(
        Paragraph{absl::StrCat("All ", total, " parts are complete.")});
  } else {
    document.blocks.push_back(Paragraph{
        absl::StrCat(total - submission.incomplete.size(), " of ", total,
                     " parts are complete. Each of these says what it lacks "
                     "and the command "
                     "that makes it; in the bundle, ") +
        Code("./convlab m3") + " stands for " +
        Code("bazel run //milestones:m3 --") + ":"});
    List list;
    for (const std::string& title : submission.incomplete) {
      list.items.emplace_back(title);
    }
    document.blocks.push_back(std::move(list));
  }
  Append(document.blocks, std::move(body));
  return submission;
}

std::vector<Chart> ChartsOf(const Document& document) {
  std::vector<Chart> charts;
  for (const Block& block : document.blocks) {
    if (const Figure* figure = std::get_if<Figure>(&block)) {
      charts.push_back(figure->chart);
    }
  }
  return charts;
}

}  // namespace convlab
