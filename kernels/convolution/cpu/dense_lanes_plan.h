// How dense_lanes cuts its work: the outputs of an image into vectors, and the
// batch into pieces for the threads. Free of vector instructions.
#ifndef KERNELS_CONVOLUTION_CPU_DENSE_LANES_PLAN_H_
#define KERNELS_CONVOLUTION_CPU_DENSE_LANES_PLAN_H_

#include <cstdint>
#include <vector>

#include "kernels/convolution/problem.h"

namespace convlab::cpu::dense_lanes {

// A vector of outputs that follow each other in their plane, from `position`
// on. The inputs of the first `count` of them stand in a vector at `first`;
// those of the others, which begin the next row, stand in their own lanes of a
// vector at `second`. Both are offsets in the image for the filter's first tap;
// MakeTaps says how far the other taps' inputs are from there.
struct Span {
  int64_t position, first, second, count;
};

// Spans of `lanes` outputs that cover the output plane; its rows must not be
// shorter than that. With `aligned` > 0 the first span begins at position 0 and
// the others follow each other from position `aligned` on. The last span ends
// with the plane and may share outputs with the one before.
std::vector<Span> MakeSpans(const Problem& problem, int64_t lanes,
                            int64_t aligned);

// For each product (c, p, q) of an output, in this order, the offset of its
// input from that of the first product.
std::vector<int64_t> MakeTaps(const Problem& problem);

// Into how many parts an image's `spans` are cut so that, with a small batch,
// no worker stays idle. A part has at least two spans, because the last two may
// share outputs and must be one worker's.
int64_t PartsPerImage(const Problem& problem, int64_t spans, int64_t workers);

// Whether the outputs should go past the caches: they are more than the caches
// hold until somebody reads them, and all planes are aligned if one is.
bool ShouldStream(const Problem& problem, int64_t lanes);

}  // namespace convlab::cpu::dense_lanes

#endif  // KERNELS_CONVOLUTION_CPU_DENSE_LANES_PLAN_H_
