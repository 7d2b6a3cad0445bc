// cuDNN's convolution, which the ladder is compared with: as a variant that
// runs networks, and measured with every algorithm that cuDNN has.
#ifndef KERNELS_BASELINE_CONVOLUTION_H_
#define KERNELS_BASELINE_CONVOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/accuracy.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// The GPU baseline's convolution, in NCHW and float32 without TF32: the fastest
// algorithm of cuDNN's own search (cudnnFindConvolutionForwardAlgorithmEx) on
// up to 1,024 images, made when it is created. No rung of the ladder.
// Unavailable where cuDNN is missing.
extern const Variant kCudnnVariant;

// One algorithm in one layout.
struct CudnnPlan {
  std::string algorithm;  // "IMPLICIT_PRECOMP_GEMM"
  std::string layout;     // "NCHW" or "NHWC", of x and y
  int64_t workspace_bytes = 0;
  // Against float64, on the first and the last image.
  double relative_error = 0;
  // Kernel time of each run from a cold L2. One sample only if it took more
  // than three times the best plan's time.
  std::vector<int64_t> samples_ns;
  int64_t median_ns = 0;
  std::string rejected;  // why it is out of the comparison; empty: it is in
};

struct CudnnMeasurement {
  std::string version;           // "9.14.0"
  std::vector<CudnnPlan> plans;  // those in the comparison first, fastest first
  // The fastest, or null if cuDNN has none for the problem.
  const CudnnPlan* best() const {
    return plans.empty() || !plans[0].rejected.empty() ? nullptr : &plans[0];
  }
};

// Times each algorithm of cuDNN's convolution in NCHW and in NHWC, workspace up
// to 4 GiB, on random tensors, and checks it first; one whose error exceeds the
// class is rejected. kFp32: float32 with fused multiply-adds only
// (CUDNN_FMA_MATH); kTf32: float32 tensors, TF32 allowed; kFp16: tensors in
// half precision. Tensors lie in the plan's layout and type already: what a
// conversion would cost is not in the time. cuDNN's graph interface has more
// kernels: through it PyTorch found a faster one for fa17 in float32 (1.14 ms
// against 1.45 on an H200), and for second layers in TF32 and half precision.
// InvalidArgument for another class,
// Unavailable without a GPU or cuDNN, ResourceExhausted if memory is too small.
absl::StatusOr<CudnnMeasurement> MeasureCudnn(const Problem& problem,
                                              AccuracyClass accuracy,
                                              Workers& workers,
                                              int samples = 10);

}  // namespace convlab

#endif  // KERNELS_BASELINE_CONVOLUTION_H_
