// The parameters of single layers. This header is small because nvcc parses it
// once per architecture.
#ifndef COMMON_NETWORK_LAYER_H_
#define COMMON_NETWORK_LAYER_H_

#include <cstdint>

#include "common/math/rounding.h"

namespace convlab {

enum class Activation { kNone, kTanh, kRelu };

// Max pooling without padding. The last window of a row may extend beyond the
// image only with `ceil`; size 0 means no pooling.
struct MaxPool {
  int size = 0;
  int stride = 0;
  bool ceil = false;

  // The number of output rows (or columns) for `in` input rows.
  int64_t Output(int64_t in) const {
    if (size == 0) return in;
    const int64_t steps = in - size;
    return (ceil ? CeilDivide(steps, stride) : steps / stride) + 1;
  }
};

}  // namespace convlab

#endif  // COMMON_NETWORK_LAYER_H_
