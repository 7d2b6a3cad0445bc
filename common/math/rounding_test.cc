#include "common/math/rounding.h"

#include <cstdint>
#include <type_traits>

#include "gtest/gtest.h"

namespace convlab {
namespace {

TEST(RoundingTest, DividesUpwards) {
  EXPECT_EQ(CeilDivide(0, 4), 0);
  EXPECT_EQ(CeilDivide(1, 4), 1);
  EXPECT_EQ(CeilDivide(4, 4), 1);
  EXPECT_EQ(CeilDivide(5, 4), 2);
  EXPECT_EQ(CeilDivide(5, 1), 5);
}

TEST(RoundingTest, RoundsToMultiples) {
  EXPECT_EQ(RoundUp(0, 16), 0);
  EXPECT_EQ(RoundUp(1, 16), 16);
  EXPECT_EQ(RoundUp(16, 16), 16);
  EXPECT_EQ(RoundUp(17, 16), 32);
}

// A size beyond 32 bits by an int: the wider of the types decides.
TEST(RoundingTest, TakesTheWiderType) {
  static_assert(std::is_same_v<decltype(CeilDivide(1, 1)), int>);
  static_assert(std::is_same_v<decltype(CeilDivide(int64_t{1}, 1)), int64_t>);
  static_assert(std::is_same_v<decltype(RoundUp(1, int64_t{1})), int64_t>);
  EXPECT_EQ(CeilDivide(int64_t{1} << 40, 3), 366503875926);
  EXPECT_EQ(RoundUp((int64_t{1} << 40) + 1, 4), (int64_t{1} << 40) + 4);
}

}  // namespace
}  // namespace convlab
