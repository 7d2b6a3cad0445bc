// The fully connected layer: on tensor cores where the GPU has them and there
// is room for partial sums, otherwise without them.
#include <algorithm>
#include <optional>

#include "common/math/rounding.h"
#include "common/status/status.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"
#include "kernels/layers/cuda/launches.h"
#include "kernels/layers/cuda/layers.h"

namespace convlab::cuda {
namespace {

// The weights as they are stand before those for tensor cores, which begin at
// a multiple of 16 bytes.
int64_t PlainFloats(int64_t inputs, int64_t outputs) {
  return RoundUp(inputs * outputs, 4);
}

// Absent if the current device's tensor cores do not take the layer.
absl::StatusOr<std::optional<MatrixShape>> FindMatrix(int64_t inputs,
                                                      int64_t outputs) {
  bool runs = false;
  RETURN_IF_ERROR(ToStatus(AskMatrix(&runs)));
  MatrixShape shape;
  if (!runs || !MakeMatrixShape(inputs, outputs, &shape)) return std::nullopt;
  return shape;
}

struct Launches {
  MatrixLaunch product;
  FinishLaunch finish;
};

std::optional<Launches> Plan(const MatrixShape& shape, int64_t rows,
                             const ConnectedLayers& layers,
                             const DeviceLimits& limits, int64_t scratch_floats,
                             bool warpgroups = false) {
  Launches launches;
  if (rows < 1 ||
      !MakeMatrixLaunch(shape, rows, limits.multiprocessors,
                        limits.shared_per_block, scratch_floats, warpgroups,
                        &launches.product) ||
      !MakeFinishLaunch(launches.product, layers, limits.multiprocessors,
                        &launches.finish)) {
    return std::nullopt;
  }
  return launches;
}

}  // namespace

absl::StatusOr<int64_t> PackedFloats(int64_t inputs, int64_t outputs) {
  ASSIGN_OR_RETURN(const auto shape, FindMatrix(inputs, outputs));
  return PlainFloats(inputs, outputs) + (shape ? shape->packed_floats() : 0);
}

absl::Status PackWeights(int64_t inputs, int64_t outputs, const float* weight,
                         float* packed) {
  RETURN_IF_ERROR(ToStatus(
      Check(cudaMemcpyAsync(packed, weight, inputs * outputs * sizeof(float),
                            cudaMemcpyDeviceToDevice, /*stream=*/nullptr),
            "cudaMemcpyAsync")));
  ASSIGN_OR_RETURN(const auto shape, FindMatrix(inputs, outputs));
  if (shape) {
    RETURN_IF_ERROR(ToStatus(LaunchPackMatrix(
        *shape, weight, packed + PlainFloats(inputs, outputs))));
  }
  return Synchronize();
}

absl::StatusOr<int64_t> FullyConnectedScratch(int64_t batch, int64_t inputs,
                                              int64_t outputs) {
  ASSIGN_OR_RETURN(const auto shape, FindMatrix(inputs, outputs));
  if (shape) {
    DeviceLimits limits;
    RETURN_IF_ERROR(ToStatus(AskLimits(&limits)));
    if (const auto launches = Plan(*shape, batch, {}, limits, INT64_MAX)) {
      return launches->product.partial_floats();
    }
  }
  constexpr int64_t kPieces = 8;
  return kPieces * batch * outputs;
}

bool TakesLayers(int64_t inputs, int64_t outputs,
                 const ConnectedLayers& layers) {
  DeviceLimits limits;
  // Where the device cannot be asked, none.
  const auto shape =
      FindMatrix(inputs, outputs).value_or(std::optional<MatrixShape>());
  return shape && CanFollow(outputs, layers) && !AskLimits(&limits).failed() &&
         Plan(*shape, 1, layers, limits, INT64_MAX).has_value();
}

absl::Status FullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                            const float* in, const float* packed,
                            const ConnectedLayers& layers, float* out,
                            float* scratch, int64_t scratch_floats,
                            CUstream_st* stream, int64_t pitch) {
  if (pitch == 0) pitch = inputs;
  DeviceLimits limits;
  RETURN_IF_ERROR(ToStatus(AskLimits(&limits)));
  ASSIGN_OR_RETURN(const auto shape, FindMatrix(inputs, outputs));
  const int64_t most =
      shape ? MostMatrixRows(*shape, limits.shared_per_block, scratch_floats)
            : 0;
  if (shape &&
      Plan(*shape, std::min(batch, most), layers, limits, scratch_floats)) {
    const float* const matrix = packed + PlainFloats(inputs, outputs);
    const int64_t results =
        layers.count == 0 ? outputs : layers.layers[layers.count - 1].outputs;
    for (int64_t row = 0; row < batch; row += most) {
      auto launches =
          Plan(*shape, std::min(most, batch - row), layers, limits,
               scratch_floats, RunsMatrixOfWarpgroups(inputs, pitch, in));
      launches->product.pitch = pitch;
      RETURN_IF_ERROR(ToStatus(
          LaunchMatrix(launches->product, launches->finish, in + row * pitch,
                       matrix, layers, out + row * results, scratch, stream)));
    }
    return absl::OkStatus();
  }
  if (layers.count > 0 || pitch != inputs) {
    return absl::InvalidArgumentError(
        "no room for the sums of a fully connected layer that others follow, "
        "or whose images lie apart");
  }
  RETURN_IF_ERROR(ToStatus(
      LaunchFullyConnected(batch, inputs, outputs, in, packed, layers.bias, out,
                           scratch, scratch_floats, stream)));
  return Activate(layers.activation, batch * outputs, out, stream);
}

}  // namespace convlab::cuda
