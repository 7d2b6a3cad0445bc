// What the two drivers of fuzz targets have in common.
#ifndef TOOLS_FUZZ_ENLARGE_H_
#define TOOLS_FUZZ_ENLARGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace convlab {

// The most bytes of an input, and the fewest of one that is enlarged.
constexpr size_t kLargestInput = 1 << 18;
constexpr size_t kEnlarged = 1 << 14;

// SplitMix64 (Steele, Lea and Flood, 2014), which is good from any starting
// state.
class Random {
 public:
  explicit Random(uint64_t state) : state_(state) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // A number from 0 to `end` - 1; `end` is at least 1.
  size_t Below(size_t end) { return Next() % end; }

 private:
  uint64_t state_;
};

// Repeats a range where it stands, so often that the input is larger than any
// seed: counts and depths become large there, and what takes quadratic time
// shows.
inline void Enlarge(Random& random, std::string& input) {
  if (input.empty()) return;
  const size_t at = random.Below(input.size());
  const std::string range = input.substr(at, random.Below(256) + 1);
  const size_t least = kEnlarged << random.Below(5);
  std::string repeated;
  while (input.size() + repeated.size() <= least) repeated += range;
  input.insert(at, repeated);
  if (input.size() > kLargestInput) input.resize(kLargestInput);
}

}  // namespace convlab

#endif  // TOOLS_FUZZ_ENLARGE_H_
