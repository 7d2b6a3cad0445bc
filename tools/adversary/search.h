// The search for the data on which a kernel is worst, by the contract of class
// fp32: it starts from the families of data, changes what hurts most, at
// random, and keeps the change if it hurts more.
#ifndef TOOLS_ADVERSARY_SEARCH_H_
#define TOOLS_ADVERSARY_SEARCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/parallel/parallel.h"
#include "kernels/convolution/checking/contract.h"
#include "kernels/convolution/checking/recipe.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// Data, and how bad they are.
struct RatedRecipe {
  Recipe recipe;
  double factor = 0;   // the worst output's c
  double allowed = 1;  // what the contract allows
  double score() const { return factor / allowed; }
};

// Computes the convolution of data.
using Computation =
    std::function<absl::StatusOr<std::vector<float>>(const ConvolutionData&)>;

class Search {
 public:
  // The search of one seed is the same again while the kernel is, and the
  // number of workers.
  Search(const Problem& problem, Computation compute, uint64_t seed,
         Workers& workers);

  // Tries as many new data as there are workers. References are computed in
  // parallel, the kernel runs for one after the other. Fails if the kernel
  // does.
  absl::Status Step();

  // Tries these data.
  absl::StatusOr<RatedRecipe> Try(const Recipe& recipe);

  // The worst data so far, the worst first; of several with one score that with
  // the fewest operations. Not empty after a step.
  const std::vector<RatedRecipe>& worst() const { return worst_; }
  int64_t tried() const { return tried_; }

  // The attack without the operations that it does not need for at least
  // nine tenths of its score.
  absl::StatusOr<RatedRecipe> Simplify(RatedRecipe attack);

 private:
  Recipe Propose(uint64_t number) const;
  absl::StatusOr<std::vector<RatedRecipe>> TryAll(
      const std::vector<Recipe>& recipes);
  void Keep(const RatedRecipe& attack);

  const Problem problem_;
  const Computation compute_;
  const uint64_t seed_;
  Workers& workers_;
  std::vector<RatedRecipe> worst_;
  int64_t tried_ = 0;
};

}  // namespace convlab

#endif  // TOOLS_ADVERSARY_SEARCH_H_
