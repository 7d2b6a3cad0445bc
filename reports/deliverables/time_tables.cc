#include "reports/deliverables/time_tables.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/record/statistics.h"
#include "reports/deliverables/charts.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

// The runs of the fastest of our variants at the most images.
std::vector<const RunRecord*> FastestOfOurs(
    const std::vector<const RunRecord*>& runs) {
  const RunRecord* fastest = nullptr;
  for (const RunRecord* run : runs) {
    if (IsContributed(*run)) continue;
    if (fastest == nullptr || run->size > fastest->size ||
        (run->size == fastest->size &&
         OpTimeSum(run->convolutions) < OpTimeSum(fastest->convolutions))) {
      fastest = run;
    }
  }
  std::vector<const RunRecord*> found;
  for (const RunRecord* run : runs) {
    if (!IsContributed(*run) && VariantNames(run->convolutions) ==
                                    VariantNames(fastest->convolutions)) {
      found.push_back(run);
    }
  }
  return found;
}

// The runs of each participant's kernel, and those of our fastest variant.
std::vector<std::vector<const RunRecord*>> KindsOf(
    const std::vector<const RunRecord*>& runs) {
  std::map<std::string, std::vector<const RunRecord*>> kernels;
  for (const RunRecord* run : runs) {
    if (!IsContributed(*run)) continue;
    kernels[VariantNames(run->convolutions)].push_back(run);
  }
  std::vector<std::vector<const RunRecord*>> kinds;
  kinds.reserve(kernels.size() + 1);
  for (auto& [name, some] : kernels) kinds.push_back(std::move(some));
  std::vector<const RunRecord*> ours = FastestOfOurs(runs);
  if (!ours.empty()) kinds.push_back(std::move(ours));
  return kinds;
}

// What the judge says of the participant's kernel that is not right.
std::string Verdict(const RunRecord& run) {
  const VerificationRecord& found = *RefusedKernel(run)->second.verification;
  return absl::StrCat("The judge calls it ", found.outcome,
                      found.reason.empty() ? "" : ": ",
                      found.reason.empty() ? "" : found.reason[0], ".");
}

}  // namespace

size_t MostConvolutions(const std::vector<const RunRecord*>& records) {
  size_t most = 0;
  for (const RunRecord* record : records) {
    most = std::max(most, record->convolutions.size());
  }
  return most;
}

void AddOpTimeCells(const RunRecord& record, size_t convolutions,
                    std::vector<Text>& row) {
  for (size_t i = 0; i < convolutions; ++i) {
    row.push_back(i < record.convolutions.size()
                      ? Milliseconds(Median(record.convolutions[i].op_time_ns))
                      : "–");
  }
  row.push_back(Milliseconds(OpTimeSum(record.convolutions)));
}

void AddOpTimeColumns(size_t convolutions, Table& table) {
  for (size_t i = 0; i < convolutions; ++i) {
    table.columns.push_back({absl::StrCat("op time ", i + 1, ", ms")});
  }
  table.columns.push_back({"sum, ms"});
}

std::vector<const RunRecord*> NewestRuns(const Source& source,
                                         absl::string_view milestone,
                                         absl::string_view device) {
  std::map<std::tuple<bool, int, std::string, int64_t>, const RunRecord*>
      newest;
  for (const RunRecord* run : FindAll(*source.records, {milestone, device})) {
    const int rung = run->variants.at(run->convolutions[0].variant).rung;
    newest[{!IsContributed(*run), rung, VariantNames(run->convolutions),
            run->size}] = run;
  }
  std::vector<const RunRecord*> runs;
  runs.reserve(newest.size());
  for (const auto& [key, run] : newest) runs.push_back(run);
  return runs;
}

std::vector<const RunRecord*> ReachedRuns(
    const std::vector<const RunRecord*>& runs) {
  std::vector<const RunRecord*> reached;
  for (const std::vector<const RunRecord*>& kind : KindsOf(runs)) {
    if (!reached.empty() && !IsContributed(*kind[0])) break;
    reached.push_back(
        *absl::c_max_element(kind, [](const RunRecord* a, const RunRecord* b) {
          return a->size < b->size;
        }));
  }
  return reached;
}

void AddSizeChart(const std::string& name,
                  const std::vector<const RunRecord*>& runs,
                  const std::string& caption, Deliverable& deliverable) {
  std::vector<std::vector<const RunRecord*>> kinds = KindsOf(runs);
  kinds.erase(std::remove_if(kinds.begin(), kinds.end(),
                             [](const auto& kind) {
                               return kind.size() < 2 ||
                                      RefusedKernel(*kind[0]) != nullptr;
                             }),
              kinds.end());
  std::vector<Curve> curves;
  std::vector<std::string> shown;
  for (const std::vector<const RunRecord*>& kind : kinds) {
    shown.push_back(VariantNames(kind[0]->convolutions));
    for (size_t i = 0; i < MostConvolutions(kind); ++i) {
      Curve& curve = curves.emplace_back();
      curve.title = kinds.size() > 1
                        ? absl::StrCat(shown.back(), ", conv. ", i + 1)
                        : absl::StrCat("convolution ", i + 1);
      for (const RunRecord* run : kind) {
        if (i >= run->convolutions.size()) continue;
        curve.points.emplace_back(
            run->size, Median(run->convolutions[i].op_time_ns) * 1e-6);
      }
    }
  }
  if (curves.empty()) return;
  deliverable.blocks.push_back(Figure{
      CurvesChart(name,
                  absl::StrCat(runs[0]->milestone, ", ", runs[0]->network, ", ",
                               absl::StrJoin(shown, ", ")),
                  "op time", "ms", curves),
      "Lines: the op time of each convolution against the number of images",
      caption});
}

Text ReachedText(const RunRecord& run) {
  const Text text = VariantsText(run) +
                    absl::StrCat(": the op times of ",
                                 Plural(run.size, "image"), " add up to ") +
                    Strong(Milliseconds(OpTimeSum(run.convolutions)) + " ms") +
                    ", the whole program takes " + ProgramSeconds(run) +
                    " s; " + CountText(run) + " are right.";
  return RefusedKernel(run) == nullptr ? text : text + " " + Verdict(run);
}

std::vector<const RunRecord*> FailedRuns(const Source& source,
                                         absl::string_view milestone) {
  std::map<std::string, const RunRecord*> newest;
  for (const NamedRecord& run : source.records->failed) {
    if (run.record.milestone != milestone) continue;
    const RunRecord*& one = newest[RefusedKernel(run.record)->first];
    if (one == nullptr || one->started <= run.record.started) one = &run.record;
  }
  std::vector<const RunRecord*> runs;
  runs.reserve(newest.size());
  for (const auto& [name, run] : newest) runs.push_back(run);
  return runs;
}

Text FailureText(const RunRecord& run) {
  const auto& [name, variant] = *RefusedKernel(run);
  return VariantText(name, variant) + " has no op times of " +
         Plural(run.size, "image") + ". " + Verdict(run);
}

}  // namespace convlab
