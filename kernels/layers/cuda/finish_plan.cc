#include "kernels/layers/cuda/finish_plan.h"

#include <algorithm>

#include "common/math/rounding.h"

namespace convlab::cuda {

bool CanFollow(int64_t outputs, const ConnectedLayers& layers) {
  if (layers.count == 0) return true;
  int64_t inputs = outputs;
  for (int i = 0; i < layers.count; ++i) {
    if (inputs > ConnectedLayers::kMostOutputs ||
        inputs * layers.layers[i].outputs > ConnectedLayers::kMostWeights) {
      return false;
    }
    inputs = layers.layers[i].outputs;
  }
  return inputs <= ConnectedLayers::kMostOutputs;
}

bool MakeFinishLaunch(const MatrixLaunch& product,
                      const ConnectedLayers& layers, int multiprocessors,
                      FinishLaunch* launch) {
  constexpr int64_t kSharedFloats = (48 << 10) / sizeof(float);
  constexpr int64_t kMostWidth = 256;
  const MatrixShape& shape = product.shape;
  launch->rows = product.rows;
  launch->columns = shape.columns();
  launch->outputs = shape.outputs;
  launch->units = static_cast<int>(product.units);
  launch->units_per_group = product.units_per_group();
  launch->groups = static_cast<int>(shape.groups());
  int64_t width = shape.outputs, widest = 0;
  if (layers.count == 0) {
    width = std::min(width, kMostWidth);
  } else {
    widest = width;
    for (int i = 0; i < layers.count; ++i) {
      widest = std::max<int64_t>(widest, layers.layers[i].outputs);
    }
  }
  // An image's floats; narrower blocks where these are too many.
  const auto sums = [&] { return shape.groups() * RoundUp(width, 4); };
  while (layers.count == 0 && width > 4 && sums() > kSharedFloats) {
    width = RoundUp(width / 2, 4);
  }
  const int64_t floats = sums() + 2 * widest;
  constexpr int64_t kMostBlocks = 65535;  // of a grid in y
  if (floats > kSharedFloats || width * kMostBlocks < shape.outputs) {
    return false;
  }
  // As many blocks as run at the same time: they mostly wait for memory.
  constexpr int64_t kBlocks = 4;  // on a multiprocessor
  const int64_t spread = CeilDivide(product.rows, kBlocks * multiprocessors);
  const int64_t images = std::clamp<int64_t>(
      spread, 1, std::min<int64_t>(kFinishImages, kSharedFloats / floats));
  launch->images = static_cast<int>(images);
  launch->width = static_cast<int>(width);
  launch->sum_floats = static_cast<int>(images * sums());
  launch->value_floats = static_cast<int>(images * widest);
  // One image has many sums, and nobody else to wait for.
  launch->threads = images == 1 ? 1024 : 256;
  return true;
}

}  // namespace convlab::cuda
