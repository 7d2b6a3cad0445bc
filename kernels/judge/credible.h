// Whether the times of a contributed kernel can be believed.
#ifndef KERNELS_JUDGE_CREDIBLE_H_
#define KERNELS_JUDGE_CREDIBLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/accuracy/accuracy_class.h"
#include "kernels/judge/process/process.h"
#include "kernels/measure/hard_limits.h"

namespace convlab {

// What an op time is worth.
struct OpTimeWorth {
  enum Worth {
    kCounts,
    kNoResult,    // the work is done outside the op, which is no offence: the
                  // time of the whole operation counts
    kIncredible,  // impossible, or contradicted by another clock
  };
  Worth worth = kCounts;
  std::string note;  // unless kCounts; may tell of work outside the op too
};

// By the GPU's work in a traced call. Whoever fills constant memory or converts
// inputs in the prolog still does the work in the op: an op time is no result
// only where more than half of the GPU's work is outside.
OpTimeWorth CheckWork(const CallResult& traced);

// By the time that the op took while nobody observed the GPU, the median of
// several. Whoever notices that he is observed could do the work outside the op
// only where he is not.
OpTimeWorth CheckUnobserved(const CallResult& traced, int64_t op_ns);

// Whether device events tell less than half of the time for which the GPU was
// seen to work in the op: kernels in streams that wait for no other do not lie
// between the events.
bool MissedByEvents(const CallResult& traced, int64_t event_ns);

// By what the hardware can do: an op of `op_ns`, and `whole_ns` with prolog and
// epilog. `has_prolog` says whether there is a place outside the op where the
// work may have been done.
OpTimeWorth CheckFloor(const Problem& problem, AccuracyClass accuracy,
                       const HardLimits& limits, int64_t op_ns,
                       int64_t whole_ns, bool has_prolog);

}  // namespace convlab

#endif  // KERNELS_JUDGE_CREDIBLE_H_
