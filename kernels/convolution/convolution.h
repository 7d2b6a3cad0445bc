// The interface that every variant of the convolution implements.
//
//   Resources resources;
//   resources.workers = &workers;
//   ASSIGN_OR_RETURN(auto convolution, variant.Create(problem, resources));
//   RETURN_IF_ERROR(convolution->Run(x, k, y, /*stream=*/nullptr));
//
// Thread safety. A Variant is immutable and may be used by any number of
// threads. A Convolution owns a workspace: one thread at a time may call Run,
// and a second Run must be in the same stream as the first or begin after the
// first has completed. Different Convolutions, of one variant or of several,
// may run at the same time in different streams, on different devices and from
// different threads. No call changes the calling thread's current device.
#ifndef KERNELS_CONVOLUTION_CONVOLUTION_H_
#define KERNELS_CONVOLUTION_CONVOLUTION_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/accuracy/accuracy.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"
#include "kernels/convolution/track.h"

// A cudaStream_t is a pointer to this type. The declaration keeps users of this
// header independent of the CUDA Toolkit.
struct CUstream_st;

namespace convlab {
namespace cuda {
struct Inset;
}  // namespace cuda

// Where work on a GPU is queued; null is the device's default stream.
using Stream = CUstream_st*;

// InvalidArgument, naming the dimension, unless all dimensions are positive,
// the kernel fits into the image and the FLOPs and bytes can be counted in 63
// bits.
absl::Status CheckProblem(const Problem& problem);

// "B=100 C=12 H=33 W=33 M=24 K=5"
std::string ToString(const Problem& problem);

// InvalidArgument unless the windows of the pooling have a size, and each
// begins within the outputs of the problem, which is valid.
absl::Status CheckEpilogue(const Problem& problem, const Epilogue& epilogue);

// "bias, tanh and max pooling of 2x2 with stride 2"; "nothing" if it is empty.
std::string ToString(const Epilogue& epilogue);

enum class Backend { kCpu, kCuda };

absl::string_view Name(Backend backend);  // "cpu", "cuda"
absl::string_view Name(Track track);      // "lesson", ...

// The resources of a variant. The objects that it points to must outlive every
// convolution created with it.
struct Resources {
  Workers* workers = nullptr;  // the threads of Backend::kCpu
  int device = 0;              // of Backend::kCuda, as the CUDA runtime counts
  // Whether Run will be recorded in a CUDA graph, which replays it.
  bool recorded = false;
  // Whether a convolution on a GPU leaves its workspace to the caller
  // (Convolution::UseWorkspace) instead of allocating it.
  bool callers_workspace = false;
};

// A variant that is prepared for one problem, with its workspace allocated.
class Convolution {
 public:
  virtual ~Convolution() = default;

  // Computes y, with the epilogue applied, from x and k. For Backend::kCpu the
  // tensors are in host memory, `stream` is ignored, and y is complete when Run
  // returns. For Backend::kCuda they are in the memory of the device that the
  // convolution was created for; Run queues the work in `stream` and may return
  // before y is complete. All preparation of the weights happens here, so that
  // the time of Run is that of the whole operation.
  virtual absl::Status Run(const float* x, const float* k, float* y,
                           Stream stream) = 0;

  // The bytes of device memory that the caller provides for a Run until its
  // work is complete; 0 unless Resources::callers_workspace.
  virtual int64_t workspace_bytes() const { return 0; }
  // Where they are from the next Run on, at a multiple of 256 bytes. Runs of
  // this convolution and of others may share memory if they take turns.
  virtual void UseWorkspace(void* /*workspace*/) {}

  // Filters that stay: PrepareFilters brings them once into the form in which
  // RunPrepared reads them, filter_bytes() of them in the tensors' memory, at a
  // multiple of 256 bytes. Both are otherwise as Run is. Only for a convolution
  // that prepares filters, which the others, with 0 bytes, do not.
  virtual int64_t filter_bytes() const { return 0; }
  virtual absl::Status PrepareFilters(const float* /*k*/, void* /*filters*/,
                                      Stream /*stream*/) {
    return absl::UnimplementedError("prepares no filters");
  }
  virtual absl::Status RunPrepared(const float* /*x*/, const void* /*filters*/,
                                   float* /*y*/, Stream /*stream*/) {
    return absl::UnimplementedError("prepares no filters");
  }

  // The bias from the next Run on, which replaces that of an epilogue with one
  // and is not null. Only for a convolution with an epilogue.
  virtual void UseBias(const float* /*bias*/) {}
};

// One implementation. Its rung is its place in the table of variants.h.
struct Variant {
  const char* name;
  Backend backend;
  // kFp32 promises, for finite inputs of any scale, that each output is within
  // a few roundings of the sum of its products' magnitudes, and infinities and
  // NaN as the definition gives them (common/accuracy/contract.h). The other
  // classes bound the error of the whole output on ordinary data.
  AccuracyClass accuracy;
  Track track;
  const char* summary;  // what it does, one sentence for reports
  const char* reason;   // why it should be faster than the rung before

  // Whether the variant takes a valid problem on the device; otherwise
  // Unimplemented, with the reason.
  absl::Status (*supports)(const Problem& problem, const Resources& resources);
  // Called by Create, for problems and epilogues that are valid and supported.
  absl::StatusOr<std::unique_ptr<Convolution>> (*make)(
      const Problem& problem, const Epilogue& epilogue,
      const Resources& resources);

  // The estimated time of Run on the device, in nanoseconds; Unimplemented if
  // the variant has no plan for the problem there. Any other error is that of
  // the device, which could not be asked. It does not say whether the program
  // has code for the device, as `supports` does. Null for a variant that is not
  // a candidate for the fastest (fastest.h).
  absl::StatusOr<double> (*estimate_ns)(const Problem& problem,
                                        const Resources& resources) = nullptr;

  // Why a lesson is in the path although it is slower than the one before it;
  // null for all others.
  const char* detour = nullptr;

  // Whether sums of products of small integers are exact. They are, unless the
  // algorithm transforms the tensors' values.
  bool exact_on_integers = true;

  // Whether it has code for several CPU targets (kernels/simd/cpu_target.h);
  // Create takes the chosen one.
  bool by_cpu_target = false;

  // Whether the variant applies the epilogue, which is valid and not empty, to
  // a problem that it supports; otherwise Unimplemented, with the reason. The
  // answer is the same for every batch. Null: it applies none.
  absl::Status (*fuses)(const Problem& problem, const Epilogue& epilogue,
                        const Resources& resources) = nullptr;

  // As `make`, but x has the images without the zeros around them, which are
  // part of the problem: the convolution needs no padded copy. Its runs may
  // begin while the kernel before them in the stream ends. Null: there is no
  // such convolution.
  absl::StatusOr<std::unique_ptr<Convolution>> (*make_padded)(
      const Problem& problem, const Epilogue& epilogue,
      const cuda::Inset& inset, const Resources& resources) = nullptr;

  // Where the variant fuses pooling, the number of images from which on it is
  // faster than a kernel that was written for a convolution with its pooling
  // (kernels/compiled/cuda), by measurement, or 0 if it never is. Results of an
  // image are then the same in every batch.
  int64_t fewest_pooled_images = 0;

  // Whether Run may be recorded in a CUDA graph: it does not use memory that
  // other convolutions use too, in turns, which a replay does not take.
  bool recordable = true;

  // InvalidArgument for a problem or an epilogue that is not valid,
  // Unimplemented, with the reason, for what the variant does not take.
  absl::Status Check(const Problem& problem, const Resources& resources,
                     const Epilogue& epilogue = {}) const;

  // Checks the arguments and prepares the convolution for them.
  absl::StatusOr<std::unique_ptr<Convolution>> Create(
      const Problem& problem, const Resources& resources,
      const Epilogue& epilogue = {}) const;
};

// For a variant that takes every problem.
absl::Status SupportsAll(const Problem& problem, const Resources& resources);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CONVOLUTION_H_
