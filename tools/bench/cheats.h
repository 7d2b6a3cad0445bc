// Variants that cheat, each by one trick, on either backend: bench must find
// every one of them out.
#ifndef TOOLS_BENCH_CHEATS_H_
#define TOOLS_BENCH_CHEATS_H_

#include <string>
#include <vector>

#include "kernels/convolution/convolution.h"

namespace convlab {

struct Cheat {
  Variant variant;
  std::string reason;  // a regular expression: why bench refuses it
};

// The tricks that the backend allows. Batches have at least ten images.
const std::vector<Cheat>& Cheats(Backend backend);

// Right but for one element of an image that is not verified.
const Variant& OneWrongElement(Backend backend);

// Computes in a thread of its own, after Run has returned; on the CPU.
const Variant& ComputesLater();

}  // namespace convlab

#endif  // TOOLS_BENCH_CHEATS_H_
