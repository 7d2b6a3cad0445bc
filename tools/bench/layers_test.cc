#include "tools/bench/layers.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Sizes(const absl::StatusOr<NamedLayer>& layer) {
  return layer.ok() ? ToString(layer->problem)
                    : std::string(layer.status().message());
}

TEST(ParseLayer, TakesNamesAndSizes) {
  EXPECT_EQ(Sizes(ParseLayer("fa19-L2", 100)), "B=100 C=12 H=33 W=33 M=24 K=5");
  EXPECT_EQ(Sizes(ParseLayer("fa20-L1", 1)), "B=1 C=1 H=86 W=86 M=4 K=7");
  EXPECT_EQ(Sizes(ParseLayer("fa17", 2)), "B=2 C=1 H=28 W=28 M=50 K=5");
  EXPECT_EQ(Sizes(ParseLayer("fa17-L1", 2)), "B=2 C=1 H=28 W=28 M=50 K=5");
  EXPECT_EQ(Sizes(ParseLayer("fa17-low", 2)), "B=2 C=1 H=28 W=28 M=50 K=5");
  EXPECT_EQ(Sizes(ParseLayer("sp19-baseline-L2", 3)),
            "B=3 C=12 H=21 W=21 M=24 K=7");
  EXPECT_EQ(Sizes(ParseLayer("1,2,9,8,4,3", 7)), "B=1 C=2 H=9 W=8 M=4 K=3");
}

TEST(ParseLayer, ErrorsNameTheMistake) {
  const auto message = [](const char* text) {
    const auto layer = ParseLayer(text, 1);
    return std::string(layer.status().message());
  };
  EXPECT_THAT(message("fa19"), HasSubstr("unknown layer 'fa19'"));
  EXPECT_THAT(message(""), HasSubstr("unknown layer ''"));
  EXPECT_THAT(message("fa19-L3"), HasSubstr("fa19-L2"));
  EXPECT_THAT(message("fa19-L2-L1"), HasSubstr("unknown layer"));
  EXPECT_THAT(message("1,2,3"), HasSubstr("six whole numbers"));
  EXPECT_THAT(message("1,2,3,x,5,1"), HasSubstr("six whole numbers"));
  EXPECT_THAT(message("1,1,3,3,1,5"), HasSubstr("kernel"));
  EXPECT_THAT(message("-1,1,3,3,1,3"), HasSubstr("B is -1"));
  EXPECT_FALSE(ParseLayer("fa19-L1", 0).ok());
}

TEST(ParseLayers, AllAreTheCoursesNine) {
  const auto layers = ParseLayers("all", {10000});
  ASSERT_TRUE(layers.ok()) << layers.status();
  std::vector<std::string> names;
  for (const NamedLayer& layer : *layers) names.push_back(layer.name);
  EXPECT_THAT(names,
              ElementsAre("fa17", "fa18-L1", "fa18-L2", "sp19-L1", "sp19-L2",
                          "fa19-L1", "fa19-L2", "fa20-L1", "fa20-L2"));
  EXPECT_EQ(ToString((*layers)[4].problem), "B=10000 C=6 H=22 W=22 M=16 K=5");
  EXPECT_FALSE(ParseLayers("all", {-1}).ok());
}

TEST(ParseLayers, ANetworkIsItsLayers) {
  const auto layers = ParseLayers("fa18,sp19-baseline,fa17", {3});
  ASSERT_TRUE(layers.ok()) << layers.status();
  std::vector<std::string> names;
  for (const NamedLayer& layer : *layers) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("fa18-L1", "fa18-L2", "sp19-baseline-L1",
                                 "sp19-baseline-L2", "fa17"));
}

TEST(ParseLayers, ListsMixNamesAndSizes) {
  const auto layers = ParseLayers("fa19-L1,sp19-L2;10,3,20,20,8,5;fa17", {4});
  ASSERT_TRUE(layers.ok()) << layers.status();
  ASSERT_EQ(layers->size(), 4u);
  EXPECT_EQ((*layers)[2].name, "10,3,20,20,8,5");
  EXPECT_EQ((*layers)[2].problem.batch, 10);
  EXPECT_EQ((*layers)[3].problem.batch, 4);
  EXPECT_THAT(std::string(ParseLayers("fa19-L1,,x", {4}).status().message()),
              HasSubstr("unknown layer ''"));
}

TEST(ParseLayers, NamesStandOnceForEachBatch) {
  const auto layers = ParseLayers("fa19-L1;10,3,20,20,8,5;fa17", {1, 100});
  ASSERT_TRUE(layers.ok()) << layers.status();
  std::vector<std::string> found;
  for (const NamedLayer& layer : *layers) {
    found.push_back(absl::StrCat(layer.name, " ", layer.problem.batch));
  }
  EXPECT_THAT(found, ElementsAre("fa19-L1 1", "fa19-L1 100",
                                 "10,3,20,20,8,5 10", "fa17 1", "fa17 100"));
}

TEST(ParseBatches, TakesNumbersByCommas) {
  EXPECT_THAT(*ParseBatches("1,100,1000"), ElementsAre(1, 100, 1000));
  EXPECT_THAT(*ParseBatches("7"), ElementsAre(7));
  for (const char* wrong : {"", "0", "-1", "1,", "1,x", "1;2", "1.5"}) {
    EXPECT_EQ(ParseBatches(wrong).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong;
  }
}

TEST(WithNeighbours, ChangesOneSizeAtATime) {
  const auto layers = WithNeighbours(*ParseLayers("fa19-L2", {100}));
  std::vector<std::string> names;
  for (const NamedLayer& layer : layers) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("fa19-L2", "100,12,32,32,24,5",
                                 "100,12,34,34,24,5", "100,12,33,33,23,5",
                                 "100,12,33,33,25,5", "100,13,33,33,24,5",
                                 "100,12,33,33,24,3", "100,12,33,33,24,7"));
  EXPECT_EQ(layers[0].neighbour_of, "");
  for (size_t i = 1; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i].neighbour_of, "fa19-L2");
    EXPECT_EQ(Sizes(layers[i]), Sizes(ParseLayer(layers[i].name, 1)));
  }
}

TEST(WithNeighbours, LeavesOutInvalidProblems) {
  // No filter, a kernel of 0 and a kernel of 4 in an image of 3 are invalid.
  const auto layers = WithNeighbours(*ParseLayers("1,1,3,3,1,2", {1}));
  std::vector<std::string> names;
  for (const NamedLayer& layer : layers) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("1,1,3,3,1,2", "1,1,2,2,1,2", "1,1,4,4,1,2",
                                 "1,1,3,3,2,2", "1,2,3,3,1,2"));
}

}  // namespace
}  // namespace convlab
