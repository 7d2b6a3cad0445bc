#include "kernels/convolution/checking/families.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

constexpr Problem kProblem = {3, 4, 9, 11, 5, 3};

ConvolutionData Data(const std::string& recipe) {
  const auto parsed = ParseRecipe(recipe);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return MakeData(kProblem, parsed.value_or(Recipe()));
}

float Largest(const std::vector<float>& values, size_t begin, size_t count) {
  float largest = 0;
  for (size_t i = begin; i < begin + count; ++i) {
    largest = std::max(largest, std::abs(values[i]));
  }
  return largest;
}

TEST(Recipe, IsItsText) {
  for (const char* text :
       {"seed=1", "seed=18446744073709551615 positive",
        "seed=7 filter-scales(-20,20) pixels(1,40)#3 half(-12)"}) {
    const auto recipe = ParseRecipe(text);
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    EXPECT_EQ(ToString(*recipe), text);
  }
}

TEST(Recipe, RefusesWrongText) {
  const auto error = [](const char* text) {
    return std::string(ParseRecipe(text).status().message());
  };
  EXPECT_THAT(error("shrink"), HasSubstr("no operation 'shrink': expected one "
                                         "of positive, "));
  EXPECT_THAT(error("seed=x"), HasSubstr("the seed 'x' is no number"));
  EXPECT_THAT(error("half"), HasSubstr("half takes -60 to 60"));
  EXPECT_THAT(error("half(61)"), HasSubstr("half takes -60 to 60"));
  EXPECT_THAT(error("half(1,2)"), HasSubstr("half takes -60 to 60"));
  EXPECT_THAT(error("relu(1)"), HasSubstr("relu takes no parameters"));
  EXPECT_THAT(error("half(1)#x"), HasSubstr("the seed of 'half(1)#x'"));
  EXPECT_THAT(error(")"), HasSubstr("no operation ''"));
}

TEST(Recipe, GivesTheSameDataAgain) {
  EXPECT_EQ(Data("seed=3 pixels(2,9)").x, Data("seed=3 pixels(2,9)").x);
  EXPECT_NE(Data("seed=3 pixels(2,9)").x, Data("seed=4 pixels(2,9)").x);
  EXPECT_NE(Data("seed=3 pixels(2,9)").x, Data("seed=3 pixels(2,9)#1").x);
}

TEST(Recipe, OperationsDoWhatTheySay) {
  const ConvolutionData plain = Data("");
  EXPECT_EQ(plain.x.size(), 3u * 4 * 9 * 11);
  EXPECT_EQ(plain.k.size(), 5u * 4 * 9);
  EXPECT_LE(Largest(plain.x, 0, plain.x.size()), 1);
  EXPECT_GT(Largest(plain.x, 0, plain.x.size()), 0.9f);

  // Channels and their weights: products keep their size.
  const ConvolutionData channels = Data("channel-scales(-12,12)");
  for (int c = 0; c < 4; ++c) {
    EXPECT_EQ(channels.x[c * 99] * channels.k[c * 9],
              plain.x[c * 99] * plain.k[c * 9]);
  }
  const ConvolutionData images = Data("image-scales(-60,60)");
  for (int b = 0; b < 3; ++b) {
    const float quotient = images.x[b * 396] / plain.x[b * 396];
    EXPECT_EQ(std::exp2(std::ilogb(quotient)), quotient);
    EXPECT_EQ(images.x[b * 396 + 395], quotient * plain.x[b * 396 + 395]);
  }
  const ConvolutionData filters = Data("filter-scales(5,5)");
  EXPECT_EQ(filters.k[7], 32 * plain.k[7]);
  EXPECT_EQ(filters.x, plain.x);

  const ConvolutionData dim = Data("half(-12)");
  int halves = 0;
  for (size_t i = 0; i < dim.x.size(); ++i) halves += dim.x[i] != plain.x[i];
  EXPECT_NEAR(halves, 594, 70);

  const ConvolutionData pixels = Data("pixels(1,40)");
  for (int b = 0; b < 3; ++b) {
    EXPECT_EQ(std::count_if(pixels.x.begin() + 396 * b,
                            pixels.x.begin() + 396 * (b + 1),
                            [](float v) { return std::abs(v) == 0x1p40f; }),
              1);
  }
  // One in each window of 3 x 3, in some channel.
  const ConvolutionData dominant = Data("dominant(30,30)");
  for (int b = 0; b < 3; ++b) {
    EXPECT_GE(std::count_if(dominant.x.begin() + 396 * b,
                            dominant.x.begin() + 396 * (b + 1),
                            [](float v) { return std::abs(v) >= 0x1p29f; }),
              9);
  }
  EXPECT_LE(Largest(dominant.x, 0, dominant.x.size()), 0x1p30f);
  const ConvolutionData sparse = Data("zeros(90)");
  EXPECT_NEAR(std::count(sparse.x.begin(), sparse.x.end(), 0), 1069, 50);

  const ConvolutionData cancelling = Data("cancel(-10)");
  for (int m = 0; m < 5; ++m) {
    double sum = 0;
    for (int i = 0; i < 36; ++i) sum += cancelling.k[m * 36 + i];
    EXPECT_EQ(sum, 0);
  }
  EXPECT_NEAR(cancelling.x[5] / cancelling.x[300], 1, 4e-3);
}

// The products of each output, x times k, are given to see(products).
template <typename See>
void ForOutputs(const Problem& p, const ConvolutionData& data, See see) {
  for (int64_t i = 0; i < p.output_elements(); ++i) {
    const int64_t w = i % p.output_width();
    const int64_t h = i / p.output_width() % p.output_height();
    const int64_t plane = i / p.output_width() / p.output_height();
    const int64_t b = plane / p.filters, m = plane % p.filters;
    std::vector<double> products;
    for (int64_t c = 0; c < p.channels; ++c) {
      for (int64_t tap = 0; tap < p.kernel_size * p.kernel_size; ++tap) {
        const int64_t row = h + tap / p.kernel_size;
        const int64_t column = w + tap % p.kernel_size;
        products.push_back(
            static_cast<double>(
                data.x[((b * p.channels + c) * p.height + row) * p.width +
                       column]) *
            data.k[(m * p.channels + c) * p.kernel_size * p.kernel_size + tap]);
      }
    }
    see(products);
  }
}

TEST(Families, OfDominantProductsHasOneForEachOutput) {
  const Problem problems[] = {
      {2, 12, 15, 17, 5, 7}, {3, 6, 11, 9, 4, 5}, {2, 1, 9, 12, 6, 3}};
  for (const Problem& p : problems) {
    const ConvolutionData data =
        MakeData(p, RecipeOf(**FindDataFamily("dominant"), 1));
    int64_t dominated = 0;
    ForOutputs(p, data, [&](const std::vector<double>& products) {
      double sum = 0, largest = 0;
      for (const double product : products) {
        EXPECT_GT(product * products[0], 0) << "another sign";
        sum += std::abs(product);
        largest = std::max(largest, std::abs(product));
      }
      dominated += largest > sum / 2;
    });
    // But those few that the large input reaches with a small weight.
    EXPECT_GT(dominated, p.output_elements() * 95 / 100);
    // Kernels that treat filters of one sign apart take these as any.
    const int64_t weights = p.kernel_elements() / p.filters;
    for (int64_t m = 0; m < p.filters; ++m) {
      const float* const filter = data.k.data() + m * weights;
      const int64_t positive = std::count_if(filter, filter + weights,
                                             [](float v) { return v > 0; });
      EXPECT_GT(positive, weights / 8);
      EXPECT_LT(positive, weights - weights / 8);
    }
  }
}

TEST(Recipe, DataAreFiniteUnlessAsked) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Recipe recipe = RandomRecipe(seed);
    SCOPED_TRACE(ToString(recipe));
    const ConvolutionData data = MakeData(kProblem, recipe);
    for (const auto* values : {&data.x, &data.k}) {
      for (const float value : *values) ASSERT_TRUE(std::isfinite(value));
    }
  }
  const ConvolutionData data = Data("not-finite(30) filters-not-finite(2)");
  EXPECT_GT(std::count_if(data.x.begin(), data.x.end(),
                          [](float v) { return std::isnan(v); }),
            5);
  EXPECT_GT(std::count_if(data.k.begin(), data.k.end(),
                          [](float v) { return std::isinf(v); }),
            0);
}

TEST(Recipe, ThoseWithTheSmallestPartsStayInTheirTensors) {
  // A single input and a single weight: sanitizers watch.
  for (uint64_t seed = 0; seed < 300; ++seed) {
    MakeData({1, 1, 1, 1, 1, 1}, RandomRecipe(seed));
    MakeData({2, 1, 1, 3, 2, 1}, RandomRecipe(seed));
  }
}

TEST(Recipe, MutationsAreRecipes) {
  Recipe recipe = RandomRecipe(1);
  std::set<std::string> seen;
  for (uint64_t i = 0; i < 500; ++i) {
    const Recipe changed = Mutate(recipe, i);
    const auto parsed = ParseRecipe(ToString(changed));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    seen.insert(ToString(changed));
    recipe = changed.operations.size() < 8 ? changed : RandomRecipe(i);
  }
  EXPECT_GT(seen.size(), 300u);
}

TEST(Families, AreFoundAndRight) {
  std::set<std::string> names;
  for (const DataFamily& family : DataFamilies()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_EQ(*FindDataFamily(family.name), &family);
    EXPECT_EQ(RecipeOf(family, 5).seed, 5u);
    if (family.recipe == nullptr) continue;
    EXPECT_TRUE(ParseRecipe(family.recipe).ok()) << family.recipe;
  }
  EXPECT_EQ(DataFamilies()[0].name, std::string("uniform"));
  EXPECT_THAT(std::string(FindDataFamily("dark").status().message()),
              HasSubstr("no family of data 'dark': expected one of uniform, "));
  EXPECT_NE(ToString(RecipeOf(**FindDataFamily("mixed"), 1)),
            ToString(RecipeOf(**FindDataFamily("mixed"), 2)));
}

}  // namespace
}  // namespace convlab
