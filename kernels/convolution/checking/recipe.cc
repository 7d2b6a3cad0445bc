#include "kernels/convolution/checking/recipe.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/hash/mix.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/operations.h"

namespace convlab {
namespace {

std::string ToString(const DataOperation& operation) {
  std::string text = operation.kind->name;
  if (operation.kind->parameters > 0) {
    absl::StrAppend(&text, "(", operation.parameters[0]);
    if (operation.kind->parameters > 1) {
      absl::StrAppend(&text, ",", operation.parameters[1]);
    }
    absl::StrAppend(&text, ")");
  }
  if (operation.seed != 0) absl::StrAppend(&text, "#", operation.seed);
  return text;
}

absl::StatusOr<DataOperation> ParseOperation(absl::string_view text) {
  DataOperation operation;
  absl::string_view rest = text;
  if (const size_t at = rest.find('#'); at != rest.npos) {
    if (!absl::SimpleAtoi(rest.substr(at + 1), &operation.seed)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the seed of '", text, "' is no number"));
    }
    rest = rest.substr(0, at);
  }
  std::vector<absl::string_view> given;
  if (absl::ConsumeSuffix(&rest, ")")) {
    const size_t at = std::min(rest.find('('), rest.size());
    given = absl::StrSplit(rest.substr(std::min(at + 1, rest.size())), ',');
    rest = rest.substr(0, at);
  }
  for (const OperationKind& kind : OperationKinds()) {
    if (rest == kind.name) operation.kind = &kind;
  }
  if (operation.kind == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no operation '", rest, "': expected one of ",
        absl::StrJoin(OperationKinds(), ", ",
                      [](std::string* out, const OperationKind& kind) {
                        absl::StrAppend(out, kind.name);
                      })));
  }
  const OperationKind& kind = *operation.kind;
  bool right = static_cast<int>(given.size()) == kind.parameters;
  for (int i = 0; right && i < kind.parameters; ++i) {
    int& value = operation.parameters[i];
    right = absl::SimpleAtoi(given[i], &value) && value >= kind.least[i] &&
            value <= kind.most[i];
  }
  if (right) return operation;
  std::vector<std::string> ranges;
  ranges.reserve(kind.parameters);
  for (int i = 0; i < kind.parameters; ++i) {
    ranges.push_back(absl::StrCat(kind.least[i], " to ", kind.most[i]));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "': ", kind.name, " takes ",
      ranges.empty() ? "no parameters" : absl::StrJoin(ranges, ", and ")));
}

int RandomParameter(const OperationKind& kind, int i, uint64_t random) {
  const int range = kind.most[i] - kind.least[i] + 1;
  return kind.least[i] + static_cast<int>(random % std::max(1, range));
}

// One that keeps the data finite.
DataOperation RandomOperation(uint64_t random) {
  DataOperation operation;
  for (uint64_t i = 0; operation.kind == nullptr; ++i) {
    const OperationKind& kind =
        OperationKinds()[Mix(random, i) % OperationKinds().size()];
    if (kind.finite) operation.kind = &kind;
  }
  for (int i = 0; i < operation.kind->parameters; ++i) {
    operation.parameters[i] =
        RandomParameter(*operation.kind, i, Mix(random, 100 + i));
  }
  operation.seed = static_cast<uint32_t>(Mix(random, 200));
  return operation;
}

// Integers that a float has, from all of its mantissas: [-1, 1].
void FillUniform(uint64_t seed, std::vector<float>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] =
        static_cast<float>(static_cast<int32_t>(Mix(seed, i) >> 32) * 0x1p-31);
  }
}

}  // namespace

std::string ToString(const Recipe& recipe) {
  std::string text = absl::StrCat("seed=", recipe.seed);
  for (const DataOperation& operation : recipe.operations) {
    absl::StrAppend(&text, " ", ToString(operation));
  }
  return text;
}

absl::StatusOr<Recipe> ParseRecipe(absl::string_view text) {
  Recipe recipe;
  for (absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&word, "seed=")) {
      if (absl::SimpleAtoi(word, &recipe.seed)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the seed '", word, "' is no number"));
    }
    ASSIGN_OR_RETURN(const DataOperation operation, ParseOperation(word));
    recipe.operations.push_back(operation);
  }
  return recipe;
}

std::string DescribeOperations() {
  std::string text;
  for (const OperationKind& kind : OperationKinds()) {
    absl::StrAppend(&text,
                    absl::StrFormat("  %-18s %s\n", kind.name, kind.summary));
  }
  return text;
}

ConvolutionData MakeData(const Problem& problem, const Recipe& recipe) {
  ConvolutionData data;
  data.x.resize(problem.input_elements());
  data.k.resize(problem.kernel_elements());
  FillUniform(Mix(recipe.seed, 1), data.x);
  FillUniform(Mix(recipe.seed, 2), data.k);
  for (const DataOperation& operation : recipe.operations) {
    OperationTarget target = {problem,
                              Mix(Mix(recipe.seed, 3), operation.seed),
                              operation.parameters[0],
                              operation.parameters[1],
                              data.x,
                              data.k};
    operation.kind->apply(target);
  }
  return data;
}

Recipe RandomRecipe(uint64_t seed) {
  Recipe recipe;
  recipe.seed = seed;
  const int count = 1 + static_cast<int>(Mix(seed, 4) % 5);
  for (int i = 0; i < count; ++i) {
    recipe.operations.push_back(RandomOperation(Mix(seed, 5 + i)));
  }
  return recipe;
}

Recipe Mutate(const Recipe& recipe, uint64_t random) {
  Recipe changed = recipe;
  std::vector<DataOperation>& operations = changed.operations;
  const uint64_t what = Mix(random, 1) % 8;
  const size_t at = operations.empty() ? 0 : Mix(random, 2) % operations.size();
  if (operations.empty() || what < 2) {
    const size_t place = Mix(random, 3) % (operations.size() + 1);
    operations.insert(operations.begin() + place,
                      RandomOperation(Mix(random, 4)));
  } else if (what < 4) {
    operations.erase(operations.begin() + at);
  } else if (what < 5) {
    changed.seed = Mix(random, 5) >> 32;
  } else if (what < 6 || operations[at].kind->parameters == 0) {
    operations[at].seed = static_cast<uint32_t>(Mix(random, 6));
  } else {
    const OperationKind& kind = *operations[at].kind;
    const int i = static_cast<int>(Mix(random, 7) % kind.parameters);
    int& value = operations[at].parameters[i];
    // Half of the changes are small.
    if (Mix(random, 8) % 2 == 0) {
      value += static_cast<int>(Mix(random, 9) % 7) - 3;
      value = std::clamp(value, kind.least[i], kind.most[i]);
    } else {
      value = RandomParameter(kind, i, Mix(random, 10));
    }
  }
  return changed;
}

}  // namespace convlab
