// What a contributed kernel is tried on, and what its failures have in common.
#ifndef KERNELS_JUDGE_TRIALS_H_
#define KERNELS_JUDGE_TRIALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/network/network.h"
#include "kernels/judge/tensors.h"

namespace convlab {

struct JudgeTrial {
  Problem problem;
  Family family = Family::kIntegers;
  bool own = false;  // a layer of the network that was asked for
};

// The convolutions of a network at this batch, in order.
std::vector<Problem> LayersOf(const Network& network, int64_t batch);
// The one with the most work; an empty problem if there is none.
Problem LargestLayer(const Network& network, int64_t batch);

// All trials in random order: the network's layers with several batches and
// families of inputs; unless `quick`, the layers of all other networks and odd
// shapes, some of them random, and one batch of more than 65535 images, which
// is more than a grid's z may have. Where `gpu` is set, batches may be larger.
std::vector<JudgeTrial> MakeTrials(const Network& network, bool quick, bool gpu,
                                   uint64_t seed);

// Whether a kernel is right on a problem.
struct Tried {
  Problem problem;
  bool right;
};

// What seems to be hard-wired in a kernel that is right on some problems and
// wrong on others: "right for K = 5 only", "right for B = 10000 only", "right
// up to B = 999, wrong from B = 70000 on". A statement that divides the right
// ones from the wrong ones, or empty.
std::string FindHardWired(const std::vector<Tried>& tried);

// The names of the networks of whose layers all were tried, and were right.
std::vector<std::string> RightNetworks(const std::vector<Tried>& tried);

}  // namespace convlab

#endif  // KERNELS_JUDGE_TRIALS_H_
