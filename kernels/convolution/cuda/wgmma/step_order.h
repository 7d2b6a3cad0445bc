// The order of a step's products with two parts. Free of CUDA, so that
// step_order_test checks it on the host.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_STEP_ORDER_H_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_STEP_ORDER_H_

#include "kernels/convolution/cuda/wgmma/shape.h"

namespace convlab::cuda {

// A product of two high halves is large, the others are small. Tensor cores cut
// bits off a sum when they add, so that a large product that came early would
// be cut off by each one that follows. Hence:
//
// - Small products come first: the low halves of all input rows by the filters'
//   high ones, from the last pair of rows to the first; then their high halves
//   by the filters' low ones, from the first pair to the last. A turn is a pair
//   with its low halves or its high ones. The high halves stay in registers
//   until all small products are there, but for the last pair if there are no
//   registers: its large products come with its small ones.
// - Large products come in parts of three filter rows at most, the last rows
//   first. After each part the sum leaves the tensor cores, and a new one
//   begins.
//
// Products are started in groups. While a group runs, the sums of the one
// before are added up, and the operands of the next one are brought. A turn is
// a group. The last two pairs of rows, of which few output rows need any, share
// one, and so do the first two if there are registers. Large products have a
// group for each part of each vector of output rows, vector by vector, so that
// a group adds to other sums than the one before.
template <int kShape>
struct StepOrder {
  static constexpr int kVectors = kWgmmaShapes[kShape].vectors();
  static constexpr int kVectorRows = kWgmmaShapes[kShape].vector_rows;
  static constexpr int kPairs = kWgmmaShapes[kShape].pairs();
  static constexpr int kTurns = 2 * kPairs;
  static constexpr int kHeld = kWgmmaShapes[kShape].held_pairs();
  // Not if all would be one group: no more than two turns are loaded ahead.
  static constexpr bool kMergesFirst =
      kPairs > 3 && kWgmmaShapes[kShape].free_pairs() >= kPairs + 2;
  // The input rows, and so the filter rows or zeros, of a vector.
  static constexpr int kRows =
      kVectorRows + kWgmmaShapes[kShape].kernel_size - 1;
  static constexpr int kParts = (kRows + 2) / 3;

  // If filters have one sign a step is done in passes, each with some of the
  // input rows: every third row, so that a sum has one large product; or with
  // large filters every other pair of rows, so that it has two. More passes
  // make more sums, and adding them rounds as often.
  static constexpr int kPasses = kWgmmaShapes[kShape].kernel_size < 7 ? 3 : 2;
  static constexpr int Pass(int row) {
    return kPasses == 3 ? row % 3 : row / 2 % 2;
  }

  // Groups with low halves of inputs, with operands that are loaded, and all.
  static constexpr int kLowGroups = kPairs - 1 - (kMergesFirst ? 1 : 0);
  static constexpr int kLoaded = 2 * kLowGroups;
  static constexpr int kGroups = kLoaded + kParts * kVectors;
  static constexpr bool IsLarge(int group) { return group >= kLoaded; }

  // The turns of a group that is not large: from FirstTurn(group) to
  // FirstTurn(group + 1).
  static constexpr int FirstTurn(int group) {
    const bool low = group < kLowGroups;
    const int i = low ? group : group - kLowGroups;
    if (i == 0) return low ? 0 : kPairs;
    if (group == kLoaded) return kTurns;
    return low ? i + 1 : kPairs + i + (kMergesFirst ? 1 : 0);
  }
  static constexpr bool IsLow(int turn) { return turn < kPairs; }
  static constexpr int Pair(int turn) {
    return IsLow(turn) ? kPairs - 1 - turn : turn - kPairs;
  }
  // Whether the turn's large products come with its small ones.
  static constexpr bool IsWhole(int turn) {
    return !IsLow(turn) && Pair(turn) >= kHeld;
  }
  // The registers of a turn's operands, of kBuffers. They are taken while the
  // group before runs, but not the one before that.
  static constexpr int kBuffers = 2 + kHeld;
  static constexpr int BufferOfHeld(int pair) { return 2 + pair; }
  static constexpr int Buffer(int turn) {
    const int pair = Pair(turn);
    return pair >= kHeld || (IsLow(turn) && pair < 2) ? pair % 2
                                                      : BufferOfHeld(pair);
  }

  // The first input row of a vector of output rows, the one behind its last,
  // and the one with which its products begin.
  static constexpr int FirstRow(int vector) { return vector * kVectorRows; }
  static constexpr int EndRow(int vector) { return FirstRow(vector) + kRows; }
  static constexpr int BeginRow(int vector) {
    return (EndRow(vector) - 1) / 2 * 2;
  }

  // Of a group of large products: its vector, whether it begins new sums, and
  // its rows.
  static constexpr int Vector(int group) {
    return kVectors - 1 - (group - kLoaded) % kVectors;
  }
  static constexpr int Part(int group) {
    return kParts - 1 - (group - kLoaded) / kVectors;
  }
  static constexpr bool Begins(int group) { return Part(group) < kParts - 1; }
  static constexpr int FirstLarge(int group) {
    return FirstRow(Vector(group)) + kRows * Part(group) / kParts;
  }
  static constexpr int EndLarge(int group) {
    const int end =
        FirstRow(Vector(group)) + kRows * (Part(group) + 1) / kParts;
    return end < 2 * kHeld ? end : 2 * kHeld;
  }
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_STEP_ORDER_H_
