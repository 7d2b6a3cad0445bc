// cuDNN's convolution, the peer of the ladder: as a variant that runs networks,
// and measured with every plan that cuDNN offers.
#ifndef KERNELS_BASELINE_CONVOLUTION_H_
#define KERNELS_BASELINE_CONVOLUTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/accuracy/accuracy.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/checking/recipe.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/problem.h"
#include "kernels/measure/sampled_reference.h"
#include "kernels/measure/stopping.h"

namespace convlab {

// The GPU baseline's convolution, in NCHW and float32 without TF32. It uses the
// fastest algorithm of cuDNN's own search
// (cudnnFindConvolutionForwardAlgorithmEx) on up to 1,024 images, which runs
// when the convolution is created. It is not a rung of the ladder. Returns
// Unavailable if cuDNN is missing.
extern const Variant kCudnnVariant;

// The worst output on data of the family.
struct FamilyError {
  std::string family;
  WorstOutput worst;
};

// One algorithm or engine in one layout.
struct CudnnPlan {
  std::string algorithm;  // "IMPLICIT_PRECOMP_GEMM", "engine 34 (k2=1)"
  std::string layout;     // "NCHW" or "NHWC", of x and y
  int64_t workspace_bytes = 0;
  int64_t tensor_bytes = 0;  // x, k and y, each once
  // Against float64 on some images, of the data that it is timed on.
  MeasuredError error;
  // In a search of class fp32: kFp32 or kFp32Normwise, by the contract on the
  // families of data (docs/numerics.md), as for our variants; absent if the
  // plan was not tried on them. In other searches the class.
  std::optional<AccuracyClass> accuracy;
  std::vector<FamilyError> families;  // of each recipe that it was tried on
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
  // The fastest plan that is of the class, or of a tighter one; null if cuDNN
  // has none for the problem. In class kFp32Normwise, that includes plans that
  // were not tried on the families.
  const CudnnPlan* best(AccuracyClass accuracy) const;
};

struct CudnnSearch {
  StoppingRule rule;
  // Whether plans in NHWC are measured too, and whether those of class fp32 are
  // tried on the families of data.
  bool nhwc = true;
  bool label = true;
  Recipe data;           // on which plans are timed
  bool ordinary = true;  // whether the data are the ordinary ones: plans whose
                         // error on them exceeds the class are rejected
  // Whether every plan is tried on all families, not only the fast ones until
  // one keeps the contract.
  bool label_all = false;
};

// Times all plans of cuDNN for the convolution, in NCHW and in NHWC: each
// algorithm of the older interface and each engine configuration that the graph
// interface's heuristics (modes A and B, and the fallbacks) propose; workspace
// up to 4 GiB, and each plan is verified first. kFp32: float32 with fused
// multiply-adds only (CUDNN_FMA_MATH, and no engine whose notes name tensor
// cores or inputs of reduced precision), with the class of each plan; kTf32:
// float32 tensors, TF32 allowed; kFp16: tensors in half precision. Tensors
// already have the plan's layout and type, so that no conversion is timed.
// InvalidArgument for another class, Unavailable without a GPU or cuDNN,
// ResourceExhausted if memory is too small.
absl::StatusOr<CudnnMeasurement> MeasureCudnn(const Problem& problem,
                                              AccuracyClass accuracy,
                                              Workers& workers,
                                              const CudnnSearch& search = {});

// The plan of that name (CudnnPlan::algorithm), of a search of class fp32, in
// NCHW. Its Run may be recorded in a CUDA graph after it ran once. NotFound if
// there is none.
absl::StatusOr<std::unique_ptr<Convolution>> CreateCudnnPlan(
    const Problem& problem, absl::string_view algorithm);

}  // namespace convlab

#endif  // KERNELS_BASELINE_CONVOLUTION_H_
