#include "kernels/measure/inputs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Lt;
using ::testing::Ne;

TEST(RandomFloats, AreTheSeeds) {
  const std::vector<float> values = RandomFloats(1000, 1);
  EXPECT_EQ(values.size(), 1000u);
  EXPECT_THAT(values, Each(AllOf(Ge(-1), Lt(1))));
  EXPECT_EQ(values, RandomFloats(1000, 1));
  EXPECT_THAT(values, Ne(RandomFloats(1000, 2)));
}

TEST(CheckedImages, AreTheFirstTheLastAndSomeBetween) {
  EXPECT_THAT(CheckedImages(1), ElementsAre(0));
  EXPECT_THAT(CheckedImages(2), ElementsAre(0, 1));
  EXPECT_THAT(CheckedImages(5), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(CheckedImages(10000), ElementsAre(0, 2499, 4999, 7499, 9999));
}

}  // namespace
}  // namespace convlab
