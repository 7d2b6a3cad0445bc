#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/layers/layers.h"

namespace convlab {

void Softmax(int64_t batch, int64_t classes, float* values) {
  for (float* row = values; row < values + batch * classes; row += classes) {
    const float largest = *std::max_element(row, row + classes);
    for (int64_t i = 0; i < classes; ++i) row[i] = std::exp(row[i] - largest);
    const float sum = std::accumulate(row, row + classes, 0.0f);
    for (int64_t i = 0; i < classes; ++i) row[i] /= sum;
  }
}

}  // namespace convlab
