// Enlarges images by bilinear interpolation in exact integers, so that every
// device gives the same bytes. For an output row or column i, with s the size
// of the input and S that of the output,
//
//   n = (2i + 1) s - S,  d = 2S,  f = floor(n / d),  t = n - f d
//   w(0) = d - t,  w(1) = t
//   out(y, x) = floor(sum over a, b in {0, 1} of
//                     wy(a) wx(b) in(fy + a, fx + b)  /  d^2)
//
// where in(.,.) is 0 outside the image: pixel centres stand at halves, and the
// border fades towards black. That is skimage's transform.resize with
// mode='constant', cut to bytes, but for its rounding errors.
#ifndef COMMON_DATASET_RESIZE_H_
#define COMMON_DATASET_RESIZE_H_

#include <cstdint>
#include <vector>

namespace convlab {

// One output row or column: which two input rows or columns it mixes, counted
// in an input that has a zero before its first and one behind its last, and
// w(0) and w(1), which are whole numbers.
struct EnlargeTap {
  int64_t first;
  double weight0;
  double weight1;
};

// Those of all `enlarged` rows or columns.
std::vector<EnlargeTap> EnlargeTaps(int size, int enlarged);

// Resizes `count` images [count, size, size] to [count, enlarged, enlarged].
// Both sizes are at least 1, `enlarged` may be the smaller one; equal sizes
// copy. `out` does not overlap `images`.
void EnlargeImages(const uint8_t* images, int64_t count, int size, int enlarged,
                   uint8_t* out);

}  // namespace convlab

#endif  // COMMON_DATASET_RESIZE_H_
