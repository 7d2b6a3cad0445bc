#include "kernels/measure/inputs.h"

#include <random>

namespace convlab {

std::vector<float> RandomFloats(int64_t count, int seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

}  // namespace convlab
