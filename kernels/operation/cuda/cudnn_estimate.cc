#include "kernels/operation/cuda/cudnn_estimate.h"

#include <algorithm>

#include "common/math/rounding.h"

namespace convlab::cuda {
namespace {

// Its kernels are products of matrices that compute filters in tiles.
constexpr int64_t kFiltersOfTile = 16;

// Fitted, to the relative error, to records of the 40 problems of
// convlab/measure/h200/compare.json: with stride 1 the estimates are within 29
// % of the times (root mean square), with others within 12 %. There is no
// problem of more than 32 channels among them.
struct Costs {
  double call_ns;
  double product_ps;  // of a filter and a tap, filters filled up to tiles
  double output_ps;   // of a filter, filled up, besides
  double byte_ps;     // of x and y
  // Of a tap of one tile of outputs, which bounds what has few outputs and many
  // taps: most multiprocessors have nothing to do.
  double tap_ns;
};
constexpr Costs kStride1 = {13900, 0.0587, 0, 0.399, 0};
constexpr Costs kOtherStrides = {5370, 0.0891, 1.66, 0, 55.9};
// The GPU on which they were measured.
constexpr double kMultiprocessors = 132, kClockGhz = 1.98, kMemoryGbs = 4815;

}  // namespace

double EstimateCudnnNs(const Operation& o, const DeviceLimits& limits) {
  const Costs& costs =
      o.stride_y == 1 && o.stride_x == 1 ? kStride1 : kOtherStrides;
  const double outputs =
      static_cast<double>(o.batch * o.sums_height() * o.sums_width()) *
      static_cast<double>(RoundUp(o.filters, kFiltersOfTile));
  const double bytes =
      4 * static_cast<double>(o.input_elements() + o.sums_elements());
  const double slower_chip = kMultiprocessors * kClockGhz /
                             (limits.multiprocessors * limits.clock_ghz);
  const double slower_memory = kMemoryGbs / limits.memory_gbs;
  const double taps = static_cast<double>(o.taps());
  const double products_ns =
      std::max(slower_chip * 1e-3 * costs.product_ps * outputs * taps,
               kClockGhz / limits.clock_ghz * costs.tap_ns * taps);
  return costs.call_ns + products_ns +
         1e-3 * (slower_chip * costs.output_ps * outputs +
                 slower_memory * costs.byte_ps * bytes);
}

}  // namespace convlab::cuda
