#include "kernels/judge/trials.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

// Shapes where indexing goes wrong.
constexpr Problem kOddShapes[] = {
    {1, 1, 1, 1, 1, 1},     // a single product
    {2, 3, 9, 9, 4, 1},     // K = 1
    {3, 2, 7, 7, 5, 7},     // one output position
    {2, 4, 5, 31, 3, 5},    // one output row
    {2, 4, 31, 5, 3, 5},    // one output column
    {2, 3, 13, 40, 6, 3},   // images that are not square
    {2, 3, 40, 13, 6, 4},   // an even filter
    {2, 17, 12, 12, 8, 3},  // many channels
    {2, 6, 20, 20, 1, 5},   // one filter
    {2, 3, 16, 16, 50, 5},  // many filters
    {1, 64, 10, 10, 128, 3}, {1, 2, 30, 30, 3, 11},  // a large filter
    {1, 1, 150, 151, 2, 5},                          // a large image
    {257, 1, 6, 6, 2, 3},                            // many small images
};
// More images than a grid has blocks in y or z.
constexpr Problem kManyImages = {70000, 1, 5, 4, 3, 3};

// The layers of networks are tried with this many images at most: the work is
// that of the kernel, which may be slow, and of the reference.
constexpr int64_t kFewFlops = 600'000'000;
constexpr int64_t kManyFlops = 30'000'000'000;

// A number in [low, high].
int64_t Random(int64_t low, int64_t high, uint64_t seed, uint64_t index) {
  return low + static_cast<int64_t>(Mix(seed, index) %
                                    static_cast<uint64_t>(high - low + 1));
}

// At least one image.
Problem WithBatch(Problem problem, int64_t batch, int64_t flops) {
  problem.batch = 1;
  problem.batch = std::clamp<int64_t>(flops / problem.flops(), 1, batch);
  return problem;
}

void AddOwn(const Network& network, bool quick, bool gpu, uint64_t seed,
            std::vector<JudgeTrial>& trials) {
  const std::vector<Problem> layers = LayersOf(network, 1);
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto add = [&](int64_t batch, Family family) {
      // A batch of many images is tried where it takes milliseconds.
      const int64_t flops = gpu ? kManyFlops : kFewFlops;
      trials.push_back(
          {WithBatch(layers[i], batch, flops), family, /*own=*/true});
    };
    add(1, Family::kIntegers);
    add(3, Family::kSigned);
    add(Random(4, 9, seed, 10 * i), Family::kPositive);
    if (quick) continue;
    add(100, Family::kSigned);
    add(Random(101, 300, seed, 10 * i + 1), Family::kSigned);
    add(3, Family::kFilterScales);
    add(2, Family::kSmall);
    add(2, Family::kLarge);
    add(2, Family::kNotFinite);
  }
}

}  // namespace

std::vector<Problem> LayersOf(const Network& network, int64_t batch) {
  std::vector<Problem> layers;
  for (const NetworkConvolution& layer : network.Convolutions()) {
    layers.push_back({batch, layer.input.channels, layer.input.size,
                      layer.input.size, layer.output.channels,
                      layer.kernel_size});
  }
  return layers;
}

Problem LargestLayer(const Network& network, int64_t batch) {
  const std::vector<Problem> layers = LayersOf(network, batch);
  if (layers.empty()) return {};
  return *std::max_element(
      layers.begin(), layers.end(),
      [](const Problem& a, const Problem& b) { return a.flops() < b.flops(); });
}

std::vector<JudgeTrial> MakeTrials(const Network& network, bool quick, bool gpu,
                                   uint64_t seed) {
  std::vector<JudgeTrial> trials;
  AddOwn(network, quick, gpu, seed, trials);
  if (!quick) {
    std::set<std::string> seen;
    for (const Problem& problem : LayersOf(network, 1)) {
      seen.insert(ToString(problem));
    }
    for (const Network& other : Networks()) {
      for (const Problem& problem : LayersOf(other, 1)) {
        if (!seen.insert(ToString(problem)).second) continue;
        const int64_t batch = Random(2, 4, seed, 100 + seen.size());
        trials.push_back(
            {WithBatch(problem, batch, kFewFlops), Family::kIntegers});
      }
    }
    for (const Problem& problem : kOddShapes) {
      // A few integers may be right by chance.
      const bool few = problem.output_elements() < 100;
      trials.push_back({problem, few ? Family::kSigned : Family::kIntegers});
    }
    for (int i = 0; i < 6; ++i) {
      const uint64_t n = 1000 + 10 * i;
      const int64_t size = Random(1, 7, seed, n);
      trials.push_back({{Random(1, 40, seed, n + 1), Random(1, 9, seed, n + 2),
                         size + Random(0, 40, seed, n + 3),
                         size + Random(0, 40, seed, n + 4),
                         Random(1, 30, seed, n + 5), size}});
    }
    trials.push_back({kManyImages});
  }
  for (size_t i = trials.size(); i > 1; --i) {
    std::swap(trials[i - 1], trials[Random(0, i - 1, seed, 2000 + i)]);
  }
  return trials;
}

namespace {

// A property of problems on which a kernel may depend.
struct Property {
  const char* name;
  int64_t (*value)(const Problem&);
};

constexpr Property kProperties[] = {
    {"K", [](const Problem& p) { return p.kernel_size; }},
    {"B", [](const Problem& p) { return p.batch; }},
    {"C", [](const Problem& p) { return p.channels; }},
    {"M", [](const Problem& p) { return p.filters; }},
    {"M*C*K*K", [](const Problem& p) { return p.kernel_elements(); }},
    {"B*M*H_out*W_out", [](const Problem& p) { return p.output_elements(); }},
    {"C*K*K", [](const Problem& p) { return p.kernel_elements() / p.filters; }},
    {"H", [](const Problem& p) { return p.height; }},
    {"W", [](const Problem& p) { return p.width; }},
};

// Divides the problems by equality with one value.
std::string Equality(const Property& property,
                     const std::vector<Tried>& tried) {
  std::optional<int64_t> value;
  for (const Tried& t : tried) {
    const int64_t v = property.value(t.problem);
    if (t.right && value.value_or(v) != v) return "";
    if (t.right) value = v;
  }
  for (const Tried& t : tried) {
    if (!t.right && property.value(t.problem) == value) return "";
  }
  return absl::StrCat("right for ", property.name, " = ", *value, " only");
}

// By an upper or a lower bound.
std::string Bound(const Property& property, const std::vector<Tried>& tried) {
  std::vector<int64_t> right, wrong;
  for (const Tried& t : tried) {
    (t.right ? right : wrong).push_back(property.value(t.problem));
  }
  std::sort(right.begin(), right.end());
  std::sort(wrong.begin(), wrong.end());
  if (right.back() < wrong.front()) {
    return absl::StrCat("right up to ", property.name, " = ", right.back(),
                        ", wrong from ", property.name, " = ", wrong.front(),
                        " on");
  }
  if (wrong.back() < right.front()) {
    return absl::StrCat("right from ", property.name, " = ", right.front(),
                        " on, wrong up to ", property.name, " = ",
                        wrong.back());
  }
  return "";
}

// By divisibility.
std::string Multiple(const Property& property,
                     const std::vector<Tried>& tried) {
  for (int64_t n = 64; n >= 2; n /= 2) {
    if (std::all_of(tried.begin(), tried.end(), [&](const Tried& t) {
          return (property.value(t.problem) % n == 0) == t.right;
        })) {
      return absl::StrCat("right where ", property.name, " is a multiple of ",
                          n);
    }
  }
  return "";
}

}  // namespace

std::string FindHardWired(const std::vector<Tried>& tried) {
  const auto rights = std::count_if(tried.begin(), tried.end(),
                                    [](const Tried& t) { return t.right; });
  if (rights == 0 || rights == static_cast<int64_t>(tried.size())) return "";
  if (std::all_of(tried.begin(), tried.end(), [](const Tried& t) {
        return (t.problem.height == t.problem.width) == t.right;
      })) {
    return "right for square images only";
  }
  for (const auto& divide : {Equality, Bound, Multiple}) {
    for (const Property& property : kProperties) {
      std::string text = divide(property, tried);
      if (!text.empty()) return text;
    }
  }
  return "";
}

std::vector<std::string> RightNetworks(const std::vector<Tried>& tried) {
  std::set<std::string> right, wrong;
  for (const Tried& t : tried) {
    Problem problem = t.problem;
    problem.batch = 1;
    (t.right ? right : wrong).insert(ToString(problem));
  }
  std::vector<std::string> names;
  for (const Network& network : Networks()) {
    const std::vector<Problem> layers = LayersOf(network, 1);
    if (std::all_of(layers.begin(), layers.end(), [&](const Problem& layer) {
          return right.count(ToString(layer)) > 0 &&
                 wrong.count(ToString(layer)) == 0;
        })) {
      names.push_back(network.name);
    }
  }
  return names;
}

}  // namespace convlab
