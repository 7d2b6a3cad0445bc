// The function that a fuzz target defines besides LLVMFuzzerTestOneInput.
#ifndef TOOLS_FUZZ_SEEDS_H_
#define TOOLS_FUZZ_SEEDS_H_

#include <string>
#include <vector>

namespace convlab {

// Small inputs, most of them valid, that the driver mutates; at least one.
// Defined by the fuzz target.
std::vector<std::string> FuzzSeeds();

}  // namespace convlab

#endif  // TOOLS_FUZZ_SEEDS_H_
