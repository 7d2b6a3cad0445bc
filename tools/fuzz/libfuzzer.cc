// For a target under libFuzzer, whose main function it has: writes the target's
// seeds to the folder that CONVLAB_FUZZ_SEEDS names, where libFuzzer finds them
// as part of its corpus.
#include <cstdlib>
#include <fstream>
#include <string>

#include "tools/fuzz/seeds.h"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* const folder = std::getenv("CONVLAB_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  int number = 0;
  for (const std::string& seed : convlab::FuzzSeeds()) {
    std::ofstream(std::string(folder) + "/seed-" + std::to_string(number++),
                  std::ios::binary)
        << seed;
  }
  return 0;
}
