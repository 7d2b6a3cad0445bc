#include "reports/comparison/candidates.h"

#include <algorithm>
#include <functional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/accuracy/accuracy.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

// The position of a class among those of accuracy.h, the tightest first;
// unknown ones last.
int Looseness(const std::string& accuracy_class) {
  const std::optional<AccuracyClass> accuracy =
      FindAccuracyClass(accuracy_class);
  return accuracy ? static_cast<int>(*accuracy) : 1000;
}

// Fills in what the variants' verifications say.
void TakeVerifications(Candidate& candidate) {
  for (const ConvolutionRecord& convolution : candidate.convolutions) {
    const VariantRecord& variant =
        candidate.record().variants.at(convolution.variant);
    std::string accuracy_class = variant.accuracy_class;
    if (const auto& verification = variant.verification) {
      if (verification->outcome == "restricted") candidate.restricted = true;
      if (!verification->op_time_counts) {
        candidate.measure = Measure::kWholeTime;
      }
      if (verification->kernel) candidate.digest = verification->kernel->digest;
      // Of our own variants the class is a promise, which the verification
      // keeps; of a contributed kernel it is what was found.
      if (verification->kernel && !verification->accuracy_class.empty()) {
        accuracy_class = verification->accuracy_class;
      }
    }
    if (candidate.accuracy_class.empty() ||
        Looseness(accuracy_class) > Looseness(candidate.accuracy_class)) {
      candidate.accuracy_class = accuracy_class;
    }
  }
}

}  // namespace

std::string Candidate::Name() const {
  return absl::StrCat(
      record().milestone, ": ",
      rung != nullptr ? rung->variant : VariantNames(convolutions),
      restricted ? ", restricted" : "");
}

std::vector<Candidate> CandidatesOf(const Records& records,
                                    const RankingOptions& options) {
  std::vector<Candidate> candidates;
  const auto add = [&](const NamedRecord& run, const LadderRun* rung,
                       const std::vector<ConvolutionRecord>& convolutions) {
    Candidate candidate;
    candidate.run = &run;
    candidate.rung = rung;
    candidate.convolutions = convolutions;
    TakeVerifications(candidate);
    candidate.contributed =
        rung != nullptr ? IsContributed(run.record.variants.at(rung->variant))
                        : IsContributed(run.record);
    candidate.refusal = ReasonsAgainst(candidate, options);
    candidates.push_back(std::move(candidate));
  };
  for (const NamedRecord& run : records.runs) {
    const RunRecord& record = run.record;
    if (record.profile.has_value() || record.fuses() ||
        record.network != options.network || record.size != options.size ||
        record.device != options.device || record.milestone == "m1") {
      continue;
    }
    if (record.ladder.empty()) add(run, nullptr, record.convolutions);
    for (const LadderRun& rung : record.ladder) {
      // A variant of ours that failed is no entry; a participant's kernel is.
      if (rung.failure.empty() ||
          IsContributed(record.variants.at(rung.variant))) {
        add(run, &rung, rung.convolutions);
      }
    }
  }
  const auto is_contributed = [](const Candidate& candidate) {
    return candidate.contributed;
  };
  if (absl::c_any_of(candidates, is_contributed)) {
    candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                                    std::not_fn(is_contributed)),
                     candidates.end());
  }
  return candidates;
}

}  // namespace convlab
