// A fuzz target with planted errors, for driver_test.sh: "O" reads one byte
// beyond a buffer on the heap, "U" overflows an int.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() { return {"A", "B"}; }

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static volatile int sink = std::numeric_limits<int>::max();
  if (size == 0) return 0;
  if (data[0] == 'O') {
    const std::vector<uint8_t> copy(data, data + size);
    sink = copy.data()[size];
  }
  if (data[0] == 'U') sink = sink + 1;
  return 0;
}
