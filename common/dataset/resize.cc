#include "common/dataset/resize.h"

#include <algorithm>
#include <vector>

namespace convlab {

std::vector<EnlargeTap> EnlargeTaps(int size, int enlarged) {
  std::vector<EnlargeTap> taps;
  const int64_t d = int64_t{2} * enlarged;
  for (int64_t i = 0; i < enlarged; ++i) {
    // n + d is positive, so that the integer quotient is floor's; it counts the
    // zero before the first row too.
    const int64_t shifted = (2 * i + 1) * size - enlarged + d;
    const int64_t t = shifted % d;
    taps.push_back(
        {shifted / d, static_cast<double>(d - t), static_cast<double>(t)});
  }
  return taps;
}

void EnlargeImages(const uint8_t* images, int64_t count, int size, int enlarged,
                   uint8_t* out) {
  const std::vector<EnlargeTap> taps = EnlargeTaps(size, enlarged);
  // All sums are integers of at most 255 d^2, which doubles hold exactly and
  // processors multiply several at a time. With half added, no sum is nearer
  // than 1 / (2 d^2) to the next quotient, far more than the product's
  // rounding error, so cutting the product to an integer is the exact floor.
  const double d = 2.0 * enlarged;
  const double reciprocal = 1.0 / (d * d);
  std::vector<double> padded(size + 2, 0.0);
  // The rows, enlarged horizontally, with a row of zeros above and below.
  std::vector<double> rows(int64_t{size + 2} * enlarged, 0.0);
  for (int64_t image = 0; image < count; ++image) {
    for (int y = 0; y < size; ++y) {
      std::copy_n(images, size, padded.begin() + 1);
      images += size;
      double* row = &rows[int64_t{y + 1} * enlarged];
      for (int x = 0; x < enlarged; ++x) {
        const EnlargeTap& tap = taps[x];
        row[x] = tap.weight0 * padded[tap.first] +
                 tap.weight1 * padded[tap.first + 1];
      }
    }
    for (const EnlargeTap& tap : taps) {
      const double* above = &rows[tap.first * enlarged];
      const double* below = above + enlarged;
      for (int x = 0; x < enlarged; ++x) {
        const double sum = tap.weight0 * above[x] + tap.weight1 * below[x];
        out[x] =
            static_cast<uint8_t>(static_cast<int>((sum + 0.5) * reciprocal));
      }
      out += enlarged;
    }
  }
}

}  // namespace convlab
