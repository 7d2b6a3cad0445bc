// A hash of numbers whose bits are as good as random: random values that depend
// on their index only, so that any thread can make any of them.
#ifndef COMMON_HASH_MIX_H_
#define COMMON_HASH_MIX_H_

#include <cstdint>

namespace convlab {

// splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014): number b of the sequence with the seed a.
// constexpr, so that code for the GPU can call it.
constexpr uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t z = a + (b + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace convlab

#endif  // COMMON_HASH_MIX_H_
