#include "kernels/measure/inputs.h"

#include <algorithm>
#include <random>

namespace convlab {

std::vector<float> RandomFloats(int64_t count, int seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

std::vector<int64_t> CheckedImages(int64_t batch) {
  constexpr int64_t kMost = 5;
  const int64_t count = std::min(kMost, batch);
  std::vector<int64_t> images;
  for (int64_t i = 0; i < count; ++i) {
    images.push_back(count == 1 ? 0 : i * (batch - 1) / (count - 1));
  }
  return images;
}

}  // namespace convlab
