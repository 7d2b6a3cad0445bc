#include "kernels/measure/inputs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::Each;
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

}  // namespace
}  // namespace convlab
