#include "tools/adversary/search.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "common/hash/mix.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/families.h"

namespace convlab {
namespace {

// So many are kept and changed on.
constexpr size_t kKept = 24;
// Longer recipes are not kept: what they do is hard to understand.
constexpr size_t kMostOperations = 8;

bool Worse(const RatedRecipe& a, const RatedRecipe& b) {
  if (a.score() != b.score()) return a.score() > b.score();
  return a.recipe.operations.size() < b.recipe.operations.size();
}

}  // namespace

Search::Search(const Problem& problem, Computation compute, uint64_t seed,
               Workers& workers)
    : problem_(problem),
      compute_(std::move(compute)),
      seed_(seed),
      workers_(workers) {}

Recipe Search::Propose(uint64_t number) const {
  const auto families = DataFamilies();
  const uint64_t random = Mix(seed_, number);
  if (number < families.size()) return RecipeOf(families[number], random >> 32);
  // Something new now and then, so that the search does not stay where it is.
  if (worst_.empty() || Mix(random, 1) % 8 == 0)
    return RandomRecipe(random >> 32);
  // The worst more often than the others.
  const size_t end = 1 + Mix(random, 2) % worst_.size();
  Recipe recipe = worst_[Mix(random, 3) % end].recipe;
  const uint64_t changes = 1 + Mix(random, 4) % 3;
  for (uint64_t i = 0; i < changes; ++i)
    recipe = Mutate(recipe, Mix(random, 5 + i));
  if (recipe.operations.size() > kMostOperations) {
    recipe.operations.resize(kMostOperations);
  }
  return recipe;
}

absl::StatusOr<std::vector<RatedRecipe>> Search::TryAll(
    const std::vector<Recipe>& recipes) {
  std::vector<ConvolutionData> data(recipes.size());
  std::vector<std::unique_ptr<ContractReference>> references(recipes.size());
  workers_.For(recipes.size(), 1, [&](int, int64_t begin, int64_t end) {
    Workers alone(1);
    for (int64_t i = begin; i < end; ++i) {
      data[i] = MakeData(problem_, recipes[i]);
      references[i] = std::make_unique<ContractReference>(
          problem_, data[i].x.data(), data[i].k.data(), alone);
    }
  });
  std::vector<RatedRecipe> attacks;
  for (size_t i = 0; i < recipes.size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<float> y, compute_(data[i]));
    const WorstOutput worst = references[i]->Worst(y.data(), workers_);
    attacks.push_back({recipes[i], worst.factor, worst.allowed});
  }
  return attacks;
}

absl::StatusOr<RatedRecipe> Search::Try(const Recipe& recipe) {
  ASSIGN_OR_RETURN(const std::vector<RatedRecipe> attacks, TryAll({recipe}));
  return attacks[0];
}

void Search::Keep(const RatedRecipe& attack) {
  const std::string text = ToString(attack.recipe);
  for (const RatedRecipe& kept : worst_) {
    if (ToString(kept.recipe) == text) return;
  }
  worst_.insert(std::upper_bound(worst_.begin(), worst_.end(), attack, Worse),
                attack);
  if (worst_.size() > kKept) worst_.pop_back();
}

absl::Status Search::Step() {
  std::vector<Recipe> recipes;
  recipes.reserve(workers_.count());
  for (int i = 0; i < workers_.count(); ++i) {
    recipes.push_back(Propose(tried_ + i));
  }
  ASSIGN_OR_RETURN(const std::vector<RatedRecipe> attacks, TryAll(recipes));
  for (const RatedRecipe& attack : attacks) Keep(attack);
  tried_ += recipes.size();
  return absl::OkStatus();
}

absl::StatusOr<RatedRecipe> Search::Simplify(RatedRecipe attack) {
  for (size_t i = attack.recipe.operations.size(); i-- > 0;) {
    Recipe shorter = attack.recipe;
    shorter.operations.erase(shorter.operations.begin() + i);
    ASSIGN_OR_RETURN(const RatedRecipe tried, Try(shorter));
    if (tried.score() >= 0.9 * attack.score()) attack = tried;
  }
  return attack;
}

}  // namespace convlab
