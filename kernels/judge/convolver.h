// Runs a network with a contributed kernel: the kernel's process computes the
// convolutions, the judge's process everything else.
#ifndef KERNELS_JUDGE_CONVOLVER_H_
#define KERNELS_JUDGE_CONVOLVER_H_

#include <cstdint>
#include <vector>

#include "common/parallel/parallel.h"
#include "kernels/convolution/convolution.h"
#include "kernels/inference/inference.h"
#include "kernels/judge/process/process.h"

namespace convlab {

// The rules by which the operation is timed: `warm_ops` and `timed_ops` of
// KernelCall. The time of several timed ops is their median.
struct TimingRules {
  int warm_ops = 0;
  int timed_ops = 1;
};

// SP26's competition: 5 to warm up, 10 timed.
inline constexpr TimingRules kCompetition = {5, 10};

class KernelConvolver : public Convolver {
 public:
  // `backend` is that of the network's other layers. Process and workers must
  // outlive the object.
  KernelConvolver(KernelProcess& process, Backend backend, TimingRules rules,
                  Workers& workers)
      : process_(process),
        backend_(backend),
        rules_(rules),
        workers_(workers) {}

  // The output is poisoned before the run, and the inputs are compared after
  // it. Aborted if the kernel failed.
  absl::Status Convolve(size_t index, const Problem& problem, const float* x,
                        const float* k, float* y, OpTime& time) override;

  // The times of the whole operation, prolog and epilog included, for each
  // convolution so far, summed over the slices of the batch.
  const std::vector<int64_t>& whole_ns() const { return whole_ns_; }
  // The most device memory that the kernel had allocated at one time.
  int64_t device_bytes() const { return device_bytes_; }

 private:
  KernelProcess& process_;
  const Backend backend_;
  const TimingRules rules_;
  Workers& workers_;
  std::vector<int64_t> whole_ns_;
  int64_t device_bytes_ = 0;
};

}  // namespace convlab

#endif  // KERNELS_JUDGE_CONVOLVER_H_
