#include "kernels/judge/credible.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/hardware/floor.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

// Less than this share of the GPU's work outside the op is not told.
constexpr double kTold = 0.02;

// How long the GPU worked in a traced op, at least: kernels may overlap, and
// wait for one another.
int64_t BusyNs(const CallResult& traced) {
  if (traced.work.size() != 3) return 0;
  return std::min(traced.work[kOp].kernel_ns, traced.work[kOp].span_ns);
}

}  // namespace

OpTimeWorth CheckWork(const CallResult& traced) {
  if (traced.work.size() != 3) return {};
  const PhaseWork& prolog = traced.work[kProlog];
  const PhaseWork& op = traced.work[kOp];
  const PhaseWork& epilog = traced.work[kEpilog];
  // CUPTI's clock against the process's: work that began and ended in the op
  // took no longer. The clocks of host and device run at slightly different
  // rates, and their offset is known to microseconds.
  int64_t op_ns = 0;
  for (const int64_t ns : traced.op_ns) op_ns += ns;
  if (op.span_ns > op_ns + op_ns / 10 + 200'000) {
    return {OpTimeWorth::kIncredible,
            absl::StrFormat("the clocks disagree: the GPU worked for %.3f ms "
                            "in an op of %.3f ms",
                            op.span_ns * 1e-6, op_ns * 1e-6)};
  }
  const int64_t outside_ns = prolog.kernel_ns + epilog.kernel_ns;
  const char* const where =
      prolog.kernel_ns >= epilog.kernel_ns ? "prolog" : "epilog";
  if (op.kernels == 0 && op.copies == 0) {
    // If no kernel runs at all, the op may compute on the CPU, and then takes
    // its time.
    if (outside_ns == 0 && op_ns > traced.whole_ns / 10) return {};
    return {OpTimeWorth::kNoResult,
            absl::StrCat("the op gives the GPU nothing to do",
                         outside_ns > 0
                             ? absl::StrCat(": all kernels run in the ", where)
                             : "")};
  }
  const double share =
      static_cast<double>(outside_ns) /
      static_cast<double>(std::max<int64_t>(1, outside_ns + op.kernel_ns));
  if (share < kTold) return {};
  const std::string note = absl::StrFormat(
      "%.0f %% of the kernels' time is outside the op, in the %s", 100 * share,
      where);
  return {share > 0.5 ? OpTimeWorth::kNoResult : OpTimeWorth::kCounts, note};
}

OpTimeWorth CheckUnobserved(const CallResult& traced, int64_t op_ns) {
  const int64_t busy_ns = BusyNs(traced);
  if (op_ns >= busy_ns / 2) return {};
  return {OpTimeWorth::kIncredible,
          absl::StrFormat("its op takes %.3f ms, but while the GPU was "
                          "observed its kernels alone took %.3f ms",
                          op_ns * 1e-6, busy_ns * 1e-6)};
}

bool MissedByEvents(const CallResult& traced, int64_t event_ns) {
  return event_ns < BusyNs(traced) / 2;
}

OpTimeWorth CheckFloor(const Problem& problem, AccuracyClass accuracy,
                       const HardLimits& limits, int64_t op_ns,
                       int64_t whole_ns, bool has_prolog) {
  const auto check = [&](int64_t ns) {
    return CheckLimits(problem, TensorProducts(accuracy), problem.min_bytes(),
                       static_cast<double>(ns), limits);
  };
  const absl::Status op = check(op_ns);
  if (op.ok()) return {};
  if (has_prolog && check(whole_ns).ok()) {
    return {OpTimeWorth::kNoResult,
            absl::StrFormat("the op's %.4f ms are less than the hardware "
                            "needs: the work is done in prolog or epilog",
                            op_ns * 1e-6)};
  }
  return {OpTimeWorth::kIncredible,
          absl::StrCat("its op time is impossible: ", op.message())};
}

}  // namespace convlab
