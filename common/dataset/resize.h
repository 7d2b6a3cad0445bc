// Enlarges images by bilinear interpolation in exact integers, so that every
// device gives the same bytes. For an output row or column i, with s the size
// of the input and S that of the output,
//
//   n = (2i + 1) s - S,  d = 2S,  f = floor(n / d),  t = n - f d
//   w(0) = d - t,  w(1) = t
//   out(y, x) = floor(sum over a, b in {0, 1} of
//                     wy(a) wx(b) in(fy + a, fx + b)  /  d^2)
//
// where in(.,.) is 0 outside the image. Pixel centres lie at half-integers, and
// the border fades to black. This is skimage's transform.resize with
// mode='constant', truncated to bytes, without its rounding errors.
#ifndef COMMON_DATASET_RESIZE_H_
#define COMMON_DATASET_RESIZE_H_

#include <cstdint>
#include <vector>

namespace convlab {

// The two input rows or columns that one output row or column mixes, and their
// integer weights w(0) and w(1). Indices count in an input that is padded by
// one zero at each end.
struct EnlargeTap {
  int64_t first;
  double weight0;
  double weight1;
};

// The mixes of all `enlarged` rows or columns.
std::vector<EnlargeTap> EnlargeTaps(int size, int enlarged);

// Resizes `count` images [count, size, size] to [count, enlarged, enlarged].
// Both sizes are at least 1; `enlarged` may be the smaller one, and equal sizes
// copy. `out` does not overlap `images`.
void EnlargeImages(const uint8_t* images, int64_t count, int size, int enlarged,
                   uint8_t* out);

}  // namespace convlab

#endif  // COMMON_DATASET_RESIZE_H_
