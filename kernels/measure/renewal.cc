#include "kernels/measure/renewal.h"

#include <algorithm>

#include "common/hash/mix.h"

namespace convlab {

Renewal DrawRenewal(const Problem& problem, const Recipe& recipe, bool ordinary,
                    const std::vector<float>& first_k, uint64_t seed) {
  const auto batch = static_cast<uint64_t>(problem.batch);
  Renewal renewal;
  renewal.shift = static_cast<int64_t>(Mix(seed, 0) % batch);
  if (ordinary) {
    Problem one = problem;
    one.batch = 1;
    Recipe fresh = recipe;
    fresh.seed = Mix(seed, 1);
    renewal.new_place = static_cast<int64_t>(Mix(seed, 2) % batch);
    renewal.new_image = MakeData(one, fresh).x;
  }
  const auto filters = static_cast<uint64_t>(problem.filters);
  const auto taps = static_cast<int64_t>(first_k.size() / filters);
  const auto first = static_cast<int64_t>(Mix(seed, 3) % filters);
  renewal.k.resize(first_k.size());
  std::rotate_copy(first_k.begin(), first_k.begin() + first * taps,
                   first_k.end(), renewal.k.begin());
  for (int64_t m = 0; m < problem.filters; ++m) {
    if (Mix(seed, 4 + m) % 2 == 0) continue;
    for (int64_t i = m * taps; i < (m + 1) * taps; ++i) {
      renewal.k[i] = -renewal.k[i];
    }
  }
  return renewal;
}

}  // namespace convlab
