#include "reports/deliverables/facts.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "reports/quantities.h"

namespace convlab {

Table FactsOf(const Records& records, const std::string& team,
              const std::vector<std::string>& members) {
  Table table = {{{"", false}, {"", false}}, {}};
  const auto add = [&](const char* name, Text value) {
    if (!value.empty()) table.rows.push_back({name, std::move(value)});
  };
  if (!team.empty()) add("Team", team);
  if (!members.empty()) {
    add("Members", absl::StrJoin(members, ", "));
  }
  const RunRecord* on_gpu = nullptr;
  const RunRecord* on_cpu = nullptr;
  std::set<std::string> revisions;
  // By name, with the time at which the run of each began: the newest counts.
  std::map<std::string, std::pair<std::string, std::string>> kernels;
  const auto add_kernels = [&](const RunRecord& record) {
    for (const auto& [name, variant] : record.variants) {
      if (!IsContributed(variant)) continue;
      const VerificationRecord& found = *variant.verification;
      const std::string accuracy =
          IsRight(found) ? absl::StrCat(", class ", found.accuracy_class) : "";
      std::pair text = {
          record.started,
          absl::StrCat(name, ", ", found.kernel->kernel_interface, ": ",
                       found.outcome, " on ", found.problems_right, " of ",
                       found.problems_tried, " problems", accuracy, ", source ",
                       found.kernel->digest.substr(0, 12))};
      if (kernels[name] < text) kernels[name] = std::move(text);
    }
  };
  for (const NamedRecord& run : records.failed) add_kernels(run.record);
  std::string first, last;
  for (const NamedRecord& run : records.runs) {
    const RunRecord& record = run.record;
    const RunRecord*& newest = record.device == "gpu" ? on_gpu : on_cpu;
    if (newest == nullptr || newest->started < record.started) {
      newest = &record;
    }
    add_kernels(record);
    if (!record.git_revision.empty()) revisions.insert(record.git_revision);
    if (record.started.empty()) continue;
    const std::string day = record.started.substr(0, 10);
    if (first.empty() || day < first) first = day;
    if (day > last) last = day;
  }
  for (const auto& [name, text] : kernels) add("Kernel", text.second);
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

}  // namespace convlab
