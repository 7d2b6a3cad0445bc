#include "common/weights/tensor_file.h"

#include "gtest/gtest.h"

namespace convlab {
namespace {

TEST(ElementCount, ProductThatFits) {
  EXPECT_EQ(*ElementCount({}), 1);
  EXPECT_EQ(*ElementCount({12, 1, 7, 7}), 588);
  EXPECT_EQ(*ElementCount({5, 0}), 0);
  EXPECT_EQ(*ElementCount({INT64_MAX}), INT64_MAX);
}

TEST(ElementCount, NegativeOrOverflowing) {
  EXPECT_EQ(ElementCount({2, -1}).status().message(),
            "impossible shape [2,-1]");
  const int64_t half = int64_t{1} << 32;
  EXPECT_FALSE(ElementCount({half, half}).ok());
  EXPECT_FALSE(ElementCount({-half, -half}).ok());
  EXPECT_FALSE(ElementCount({INT64_MAX, 2}).ok());
}

TEST(Quoted, OneShortLine) {
  EXPECT_EQ(Quoted("conv1.weight"), "'conv1.weight'");
  EXPECT_EQ(Quoted("a\n\x01'"), "'a\\n\\001\\''");
  EXPECT_EQ(Quoted(std::string(61, 'a')), "'" + std::string(60, 'a') + "...'");
}

}  // namespace
}  // namespace convlab
