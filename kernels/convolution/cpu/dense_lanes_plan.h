// How dense_lanes cuts its work: the outputs of an image into vectors, and the
// batch into pieces for the threads. Free of vector instructions.
#ifndef KERNELS_CONVOLUTION_CPU_DENSE_LANES_PLAN_H_
#define KERNELS_CONVOLUTION_CPU_DENSE_LANES_PLAN_H_

#include <cstdint>
#include <vector>

#include "kernels/convolution/epilogue.h"
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

// What all images have in common.
struct Plan {
  const Span* spans;
  const int64_t* taps;  // where each product's input stands, from a position's
  int64_t tap_count;
  int64_t plane;  // outputs of one image and filter
  bool stream;    // outputs go past the caches where spans are aligned
};

// A range of spans of one image's outputs for a group of filters.
struct Block {
  const float* image;
  const float* weights;  // [tap, filter]
  int filters;
  int64_t begin, end;  // spans
  float* out;          // the first filter's plane
  // Inputs that will be read next, to be fetched meanwhile; may be empty.
  const float* next;
  int64_t next_count;
};

// The filters of a group, at most `most`: groups are equal but for the last.
// With an epilogue a worker computes a group's whole planes, so that there are
// groups for all `workers` even with a small batch.
int64_t FiltersOfGroup(const Problem& problem, const Epilogue& epilogue,
                       int64_t most, int64_t workers);

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
