// For a target under libFuzzer, whose main function it has: where the inputs
// come from.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "tools/fuzz/enlarge.h"
#include "tools/fuzz/seeds.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace convlab {
namespace {

// Inputs are small, so that there are many, but for one of so many.
constexpr size_t kUsual = 4096;
constexpr unsigned kEnlargedEvery = 1000;

}  // namespace
}  // namespace convlab

// Writes the target's seeds to the folder that CONVLAB_FUZZ_SEEDS names, where
// libFuzzer finds them as part of its corpus.
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

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max_size, unsigned seed) {
  using namespace convlab;
  Random random(seed);
  // One that has been enlarged: a part of it.
  if (size > 2 * kUsual) {
    std::memmove(data, data + random.Below(size - kUsual), kUsual);
    size = kUsual;
  }
  size =
      LLVMFuzzerMutate(data, size, std::min(max_size, std::max(size, kUsual)));
  if (random.Below(kEnlargedEvery) > 0) return size;
  std::string input(reinterpret_cast<const char*>(data), size);
  Enlarge(random, input);
  size = std::min(max_size, input.size());
  std::memcpy(data, input.data(), size);
  return size;
}
