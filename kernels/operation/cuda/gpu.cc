#include "kernels/operation/cuda/gpu.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/cuda/device.h"
#include "kernels/operation/cuda/cudnn_estimate.h"
#include "kernels/operation/cuda/launches.h"

namespace convlab::cuda {
namespace {

// Blocks of threads reach beyond the end by less than the difference to 2^31.
constexpr int64_t kMostElements = (int64_t{1} << 31) - (1 << 20);

absl::Status CheckSizes(const Operation& o) {
  const struct {
    const char* name;
    int64_t elements;
  } sizes[] = {{"a padded image", o.padded_elements() / o.batch},
               {"the sums of an image", o.sums_elements() / o.batch},
               {"the filters", o.kernel_elements()}};
  for (const auto& [name, elements] : sizes) {
    if (elements >= kMostElements) {
      return absl::UnimplementedError(
          absl::StrCat("operation ", ToString(o), ": ", name, " has ", elements,
                       " elements, expected less than ", kMostElements));
    }
  }
  return absl::OkStatus();
}

// Of a kernel that reads and writes so many floats, behind another one.
double EstimateCopyNs(int64_t floats, const DeviceLimits& limits) {
  constexpr double kLaunchNs = 1500, kSustained = 0.7;
  if (limits.memory_gbs <= 0) return kLaunchNs;
  return kLaunchNs +
         4 * static_cast<double>(floats) / (kSustained * limits.memory_gbs);
}

double EstimatePaddingNs(const Operation& o, const DeviceLimits& limits) {
  // Neighbours of a row are as far apart as there are channels if these come
  // last: each is read in a sector of 8 floats of its own.
  const int64_t sectors =
      o.channels_last ? std::min<int64_t>(o.channels, 8) : 1;
  return EstimateCopyNs(sectors * o.input_elements() + o.padded_elements(),
                        limits);
}

double EstimateFinishNs(const Operation& o, const DeviceLimits& limits) {
  return EstimateCopyNs(o.sums_elements() + o.output_elements(), limits);
}

}  // namespace

absl::StatusOr<GeneralConvolution> PrepareGenerally(const Operation& o) {
  RETURN_IF_ERROR(CheckSizes(o));
  DeviceLimits limits;
  RETURN_IF_ERROR(ToStatus(AskLimits(&limits)));
  GeneralConvolution convolution;
  if (!MakeGeneralPlan(o, limits, &convolution.plan)) {
    return absl::UnimplementedError(
        absl::StrCat("operation ", ToString(o),
                     ": needs more blocks of threads than there "
                     "can be"));
  }
  convolution.estimated_ns = EstimateGeneralNs(convolution.plan, limits);
  convolution.copies_input = false;
  GeneralPlan of_copy;
  if (o.halves && MakeGeneralPlan(o, limits, &of_copy, /*copied=*/true)) {
    const double ns = EstimateGeneralNs(of_copy, limits) +
                      EstimatePaddingNs(WithoutPadding(o), limits);
    if (ns < convolution.estimated_ns) {
      convolution = {of_copy, /*copies_input=*/true, ns};
    }
  }
  // A kernel of its own pools.
  if (o.pool.size > 0) convolution.estimated_ns += EstimateFinishNs(o, limits);
  RETURN_IF_ERROR(ToStatus(PrepareGeneral(&convolution.plan)));
  return convolution;
}

absl::StatusOr<double> EstimateAroundNs(const Operation& o,
                                        const WorkAround& work) {
  DeviceLimits limits;
  RETURN_IF_ERROR(ToStatus(AskLimits(&limits)));
  double ns = 0;
  if (work.copies_input) ns += EstimatePaddingNs(o, limits);
  if (work.converts_filters) {
    ns += EstimateCopyNs(2 * o.kernel_elements(), limits);
  }
  if (work.finishes) ns += EstimateFinishNs(o, limits);
  return ns;
}

absl::StatusOr<double> EstimateCudnnNs(const Operation& o) {
  DeviceLimits limits;
  RETURN_IF_ERROR(ToStatus(AskLimits(&limits)));
  if (limits.memory_gbs <= 0 || limits.clock_ghz <= 0) return 0;
  return EstimateCudnnNs(o, limits);
}

absl::Status PadInput(const Operation& o, const void* x, float* padded,
                      bool overlaps, Stream stream) {
  const Padding padding = {
      o.batch * o.channels,
      static_cast<int>(o.channels),
      static_cast<int>(o.height),
      static_cast<int>(o.width),
      static_cast<int>(o.top),
      static_cast<int>(o.left),
      static_cast<int>(o.padded_height()),
      static_cast<int>(o.padded_width()),
      StepsOf(o.channels_last, o.channels, o.height, o.width),
      o.halves};
  return ToStatus(LaunchPad(padding, x, padded, overlaps, stream));
}

absl::Status FiltersToFloats(const Operation& o, const void* k, float* floats,
                             bool overlaps, Stream stream) {
  // One row.
  const int count = static_cast<int>(o.kernel_elements());
  const Padding row = {/*planes=*/1,
                       /*channels=*/1,
                       /*height=*/1,
                       /*width=*/count,
                       /*top=*/0,
                       /*left=*/0,
                       /*padded_height=*/1,
                       /*padded_width=*/count,
                       StepsOf(/*channels_last=*/false, 1, 1, count),
                       /*halves=*/true};
  return ToStatus(LaunchPad(row, k, floats, overlaps, stream));
}

absl::Status ConvolveGenerally(const GeneralConvolution& convolution,
                               const void* x, const void* k, const void* bias,
                               void* sums, Stream stream) {
  return ToStatus(LaunchGeneral(convolution.plan, x, k, bias, sums, stream));
}

absl::Status FinishSums(const Operation& o, const float* sums, const void* bias,
                        void* y, bool overlaps, Stream stream) {
  const Finish finish = {
      o.batch * o.filters,
      static_cast<int>(o.filters),
      static_cast<int>(o.sums_height()),
      static_cast<int>(o.sums_width()),
      static_cast<int>(o.output_height()),
      static_cast<int>(o.output_width()),
      o.pool,
      o.activation,
      StepsOf(o.channels_last, o.filters, o.output_height(), o.output_width()),
      o.halves};
  return ToStatus(LaunchFinish(finish, sums, bias, y, overlaps, stream));
}

absl::Status CheckDeviceMemory(int device, const char* name,
                               const void* memory) {
  cudaPointerAttributes attributes;
  if (const Error error = Check(cudaPointerGetAttributes(&attributes, memory),
                                "cudaPointerGetAttributes");
      error.failed()) {
    return ToStatus(error);
  }
  if (attributes.type == cudaMemoryTypeManaged) return absl::OkStatus();
  if (attributes.type != cudaMemoryTypeDevice) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is in the host's memory, expected memory of GPU ", device));
  }
  if (attributes.device != device) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is in the memory of GPU ", attributes.device,
                     ", expected that of GPU ", device));
  }
  return absl::OkStatus();
}

absl::Status CheckStream(int device, bool recordable, Stream stream) {
  // The default streams, which have handles of small numbers, are the current
  // device's.
  const bool is_default = reinterpret_cast<uintptr_t>(stream) <= 2;
  if (is_default && recordable) return absl::OkStatus();
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (const Error error = Check(cudaStreamIsCapturing(stream, &capture),
                                "cudaStreamIsCapturing");
      error.failed()) {
    return ToStatus(error);
  }
  if (capture != cudaStreamCaptureStatusNone) {
    if (recordable) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the stream is being captured into a graph, in which the kernel would "
        "share constant memory with others");
  }
#if CUDART_VERSION >= 12080
  if (is_default) return absl::OkStatus();
  int its_device = 0;
  if (const Error error = Check(cudaStreamGetDevice(stream, &its_device),
                                "cudaStreamGetDevice");
      error.failed()) {
    return ToStatus(error);
  }
  if (its_device != device) {
    return absl::InvalidArgumentError(
        absl::StrCat("the stream is one of GPU ", its_device,
                     ", expected one of GPU ", device));
  }
#else
  static_cast<void>(device);
#endif
  return absl::OkStatus();
}

uint64_t ContextNumber() {
#if CUDART_VERSION >= 12050
  // CUresult cuCtxGetId(CUcontext, unsigned long long*), null for the current.
  using GetId = int (*)(void*, unsigned long long*);
  static const GetId get_id = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    if (cudaGetDriverEntryPointByVersion("cuCtxGetId", &function, 12000,
                                         cudaEnableDefault,
                                         &result) != cudaSuccess ||
        result != cudaDriverEntryPointSuccess) {
      cudaGetLastError();
      function = nullptr;
    }
    return reinterpret_cast<GetId>(function);
  }();
  unsigned long long number = 0;
  if (get_id == nullptr) return 0;
  if (get_id(nullptr, &number) == 0) return number;
  // A thread that has not used the device yet has no current context.
  int device = 0;
  if (cudaGetDevice(&device) == cudaSuccess &&
      cudaSetDevice(device) == cudaSuccess && get_id(nullptr, &number) == 0) {
    return number;
  }
  cudaGetLastError();
#endif
  return 0;
}

}  // namespace convlab::cuda
