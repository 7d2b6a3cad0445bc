#include "kernels/measure/renewal.h"

#include <algorithm>
#include <utility>

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
    ConvolutionData data = MakeData(one, fresh);
    renewal.new_place = static_cast<int64_t>(Mix(seed, 2) % batch);
    renewal.new_image = std::move(data.x);
    renewal.k = std::move(data.k);
    return renewal;
  }
  const auto filters = static_cast<uint64_t>(problem.filters);
  const auto first =
      static_cast<int64_t>(Mix(seed, 3) % filters * (first_k.size() / filters));
  renewal.k.resize(first_k.size());
  std::rotate_copy(first_k.begin(), first_k.begin() + first, first_k.end(),
                   renewal.k.begin());
  if (Mix(seed, 4) % 2 == 0) {
    for (float& weight : renewal.k) weight = -weight;
  }
  return renewal;
}

}  // namespace convlab
