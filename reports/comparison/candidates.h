// What may be ranked: the runs of a participant, and why one is refused.
#ifndef REPORTS_COMPARISON_CANDIDATES_H_
#define REPORTS_COMPARISON_CANDIDATES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/record/run_record.h"
#include "reports/records/records.h"

namespace convlab {

// The runs that are ranked, and what is expected of them.
struct RankingOptions {
  std::string network = "fa19";
  int64_t size = 10000;
  std::string device = "gpu";  // or "cpu"
  // The correct answers that are expected: of the network's own weights, by the
  // number of images. For other numbers those of each record's weight file.
  std::map<int64_t, int64_t> correct;
  bool any_device = false;  // rank runs on different GPUs or CPUs together
  bool keyed = false;       // records must be sealed with the key
  // Take the samples of all runs of one kernel together, instead of its best
  // run. For runs that were made in turns with others'.
  bool pool = false;
};

struct Participant {
  std::string name;
  Records records;
  std::vector<std::string> reports = {};  // paths of documents in the folder
  std::string failure = {};  // why the folder could not be read; or empty
};

// Times by which a run is ranked.
enum class Measure {
  kOpTime,
  // From the first byte of the prolog to the output in host memory, for kernels
  // whose work is not done in the operation.
  kWholeTime,
};

// One run, or one variant of a run of the ladder.
struct Candidate {
  const NamedRecord* run = nullptr;
  const LadderRun* rung = nullptr;  // null for a run of its own
  std::vector<ConvolutionRecord> convolutions;
  Measure measure = Measure::kOpTime;
  std::string accuracy_class;        // the loosest of its convolutions
  bool contributed = false;          // a participant's kernel, not a rung
  bool restricted = false;           // right on the network's own layers only
  std::string digest;                // of a contributed kernel's source
  std::vector<std::string> refusal;  // why it does not count; or empty

  const RunRecord& record() const { return run->record; }
  // "m3: new-forward", with ", restricted" if it is.
  std::string Name() const;
  // The samples of its measure.
  std::vector<int64_t> ConvolutionRecord::*samples() const {
    return measure == Measure::kOpTime ? &ConvolutionRecord::op_time_ns
                                       : &ConvolutionRecord::whole_time_ns;
  }
};

// The untraced runs of the network, size and device that are asked for, with
// the reasons why each is refused. The baseline's are left out: no participant
// wrote them. So are our variants, if there is a contributed kernel among the
// runs: somebody's entry is then not our fastest rung.
std::vector<Candidate> CandidatesOf(const Records& records,
                                    const RankingOptions& options);

// The reasons why a run is refused, each a clause without a full stop: what its
// seal, its verification, its numbers of correct answers and its times say.
// Empty if it counts.
std::vector<std::string> ReasonsAgainst(const Candidate& candidate,
                                        const RankingOptions& options);

}  // namespace convlab

#endif  // REPORTS_COMPARISON_CANDIDATES_H_
