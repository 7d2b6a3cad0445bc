// Where the wrong elements of an output lie; a part of mismatch.h.
#ifndef KERNELS_CONVOLUTION_CHECKING_MISMATCH_PLACES_H_
#define KERNELS_CONVOLUTION_CHECKING_MISMATCH_PLACES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/convolution/problem.h"

namespace convlab {

// The place of an element of the output.
struct OutputPlace {
  int64_t b, m, h, w;
};
OutputPlace PlaceOf(const Problem& problem, int64_t element);

// A pattern of the indices that are set, in words: "the last column", "column
// 3", "columns from 64 on (64 is a multiple of 32)", "every second column, from
// 1 on", "columns 12 to 15 of every 16". Empty if all or none are set, or if
// they have no pattern.
std::string DescribeIndices(const std::string& noun,
                            const std::vector<bool>& set);

// Where the elements `wrong` (in ascending order, at least one) of an output
// lie, as "in the last column, filter 3". `wrong_images` is as in
// MismatchContext. "everywhere" or "scattered" if there is no pattern.
std::string DescribePlaces(const Problem& problem,
                           const std::vector<int64_t>& wrong,
                           const std::vector<bool>& wrong_images);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_MISMATCH_PLACES_H_
