#include "kernels/operation/cuda/cudnn_estimate.h"

#include <algorithm>

#include "common/math/rounding.h"

namespace convlab::cuda {
namespace {

// Its kernels are products of matrices that compute filters in tiles.
constexpr int64_t kFiltersOfTile = 16;

// Fitted, to the relative error, to records of the 40 problems in
// convlab/measure/h200, of floats in compare.json and of halves in
// surroundings.json. In float32 the estimates are within 29 % of the times with
// stride 1 (root mean square) and within 12 % with others, in halves within 18
// and 22 %. There is no problem of more than 32 channels among them.
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
constexpr Costs kHalvesStride1 = {12700, 0.0325, 2.23, 0.243, 24.5};
constexpr Costs kHalvesOtherStrides = {6330, 0.0565, 0.552, 0.686, 0};
// The GPU on which they were measured.
constexpr double kMultiprocessors = 132, kClockGhz = 1.98, kMemoryGbs = 4815;

}  // namespace

double EstimateCudnnNs(const Operation& o, const DeviceLimits& limits) {
  const bool stride_1 = o.stride_y == 1 && o.stride_x == 1;
  const Costs& costs = o.halves
                           ? stride_1 ? kHalvesStride1 : kHalvesOtherStrides
                       : stride_1 ? kStride1
                                  : kOtherStrides;
  const double outputs =
      static_cast<double>(o.batch * o.sums_height() * o.sums_width()) *
      static_cast<double>(RoundUp(o.filters, kFiltersOfTile));
  const double bytes =
      static_cast<double>(o.element_bytes()) *
      static_cast<double>(o.input_elements() + o.sums_elements());
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
