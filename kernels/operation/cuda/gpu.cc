#include "kernels/operation/cuda/gpu.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "common/math/rounding.h"
#include "kernels/cuda/device.h"
#include "kernels/operation/cuda/launches.h"

namespace convlab::cuda {
namespace {

// Blocks of threads reach beyond the end by less than the difference to 2^31.
constexpr int64_t kMostElements = (int64_t{1} << 31) - (1 << 20);
constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;

// Of an operation whose sizes have been checked.
GeneralPlan MakePlan(const Operation& o) {
  GeneralPlan plan = {};
  plan.C = static_cast<int>(o.channels);
  plan.H = static_cast<int>(o.height);
  plan.W = static_cast<int>(o.width);
  plan.M = static_cast<int>(o.filters);
  plan.KH = static_cast<int>(o.kernel_height);
  plan.KW = static_cast<int>(o.kernel_width);
  plan.stride_y = static_cast<int>(o.stride_y);
  plan.stride_x = static_cast<int>(o.stride_x);
  plan.top = static_cast<int>(o.top);
  plan.left = static_cast<int>(o.left);
  plan.OH = static_cast<int>(o.sums_height());
  plan.OW = static_cast<int>(o.sums_width());
  plan.taps = static_cast<int>(o.taps());
  const int filters = GeneralTileFilters(o.filters);
  plan.filter_tiles = static_cast<int>(CeilDivide<int64_t>(o.filters, filters));
  plan.sums = o.batch * plan.OH * plan.OW;
  plan.blocks = CeilDivide<int64_t>(plan.sums, GeneralTilePositions(filters)) *
                plan.filter_tiles;
  plan.by_filter = Divisor(plan.KH * plan.KW);
  plan.by_filter_row = Divisor(plan.KW);
  plan.by_plane = Divisor(plan.OH * plan.OW);
  plan.by_row = Divisor(plan.OW);
  plan.activation = o.pool.size == 0 ? o.activation : Activation::kNone;
  return plan;
}

}  // namespace

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
  if (MakePlan(o).blocks > kMostBlocks) {
    return absl::UnimplementedError(
        absl::StrCat("operation ", ToString(o), ": needs more than ",
                     kMostBlocks, " blocks of threads"));
  }
  return absl::OkStatus();
}

absl::Status PadInput(const Operation& o, const float* x, float* padded,
                      Stream stream) {
  const Padding padding = {o.batch * o.channels,
                           static_cast<int>(o.height),
                           static_cast<int>(o.width),
                           static_cast<int>(o.top),
                           static_cast<int>(o.left),
                           static_cast<int>(o.padded_height()),
                           static_cast<int>(o.padded_width())};
  return ToStatus(LaunchPad(padding, x, padded, stream));
}

absl::Status ConvolveGenerally(const Operation& operation, const float* x,
                               const float* k, const float* bias, float* sums,
                               Stream stream) {
  return ToStatus(LaunchGeneral(MakePlan(operation), x, k,
                                operation.pool.size == 0 ? bias : nullptr, sums,
                                stream));
}

absl::Status FinishSums(const Operation& o, const float* sums,
                        const float* bias, float* y, Stream stream) {
  const Finish finish = {o.batch * o.filters,
                         static_cast<int>(o.filters),
                         static_cast<int>(o.sums_height()),
                         static_cast<int>(o.sums_width()),
                         static_cast<int>(o.output_height()),
                         static_cast<int>(o.output_width()),
                         o.pool,
                         o.activation};
  return ToStatus(LaunchFinish(finish, sums, bias, y, stream));
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

absl::Status CheckNotCaptured(Stream stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (const Error error = Check(cudaStreamIsCapturing(stream, &capture),
                                "cudaStreamIsCapturing");
      error.failed()) {
    return ToStatus(error);
  }
  if (capture == cudaStreamCaptureStatusNone) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the stream is being captured into a graph, in which the kernel would "
      "share constant memory with others");
}

}  // namespace convlab::cuda
