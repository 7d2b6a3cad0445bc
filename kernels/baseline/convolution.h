// cuDNN's convolution, the peer of the ladder: as a variant that runs networks,
// and measured with every plan that cuDNN offers.
#ifndef KERNELS_BASELINE_CONVOLUTION_H_
#define KERNELS_BASELINE_CONVOLUTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/accuracy/accuracy.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/problem.h"
#include "kernels/measure/stopping.h"

namespace convlab {

// The GPU baseline's convolution, in NCHW and float32 without TF32. It uses the
// fastest algorithm of cuDNN's own search
// (cudnnFindConvolutionForwardAlgorithmEx) on up to 1,024 images, which runs
// when the convolution is created. It is not a rung of the ladder. Returns
// Unavailable if cuDNN is missing.
extern const Variant kCudnnVariant;

// One algorithm or engine in one layout.
struct CudnnPlan {
  std::string algorithm;  // "IMPLICIT_PRECOMP_GEMM", "engine 34 (k2=1)"
  std::string layout;     // "NCHW" or "NHWC", of x and y
  int64_t workspace_bytes = 0;
  int64_t tensor_bytes = 0;  // x, k and y, each once
  // Relative error against float64 on some images.
  double relative_error = 0;
  // Kernel times from a cold L2 (kernels/measure/gpu_timer.h): as many samples
  // as the rule requires for plans that may be the best, a few for the others.
  std::vector<int64_t> samples_ns;
  double median_ns = 0;
  std::optional<double> sm_clock_mhz;  // during the samples
  std::string rejected;  // why the plan does not count; empty if it does
};

struct CudnnMeasurement {
  std::string version;           // "9.14.0"
  std::vector<CudnnPlan> plans;  // best first, rejected ones last
  // The fastest plan, or null if cuDNN has none for the problem.
  const CudnnPlan* best() const {
    return plans.empty() || !plans[0].rejected.empty() ? nullptr : &plans[0];
  }
};

// Times all plans of cuDNN for the convolution, in NCHW and in NHWC: each
// algorithm of the older interface and each engine configuration that the graph
// interface's heuristics (modes A and B, and the fallbacks) propose; workspace
// up to 4 GiB, random tensors, and each plan is verified first. A plan whose
// error exceeds the class is rejected. kFp32: float32 with fused multiply-adds
// only (CUDNN_FMA_MATH, and no engine whose notes name tensor cores or inputs
// of reduced precision); kTf32: float32 tensors, TF32 allowed; kFp16: tensors
// in half precision. Tensors already have the plan's layout and type, so that
// no conversion is timed. InvalidArgument for another class, Unavailable
// without a GPU or cuDNN, ResourceExhausted if memory is too small.
absl::StatusOr<CudnnMeasurement> MeasureCudnn(const Problem& problem,
                                              AccuracyClass accuracy,
                                              Workers& workers,
                                              const StoppingRule& rule = {});

}  // namespace convlab

#endif  // KERNELS_BASELINE_CONVOLUTION_H_
