#include "kernels/judge/process/clock_check.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

TEST(ClockCheck, TheJudgesClockIsTheLastWord) {
  ClockCheck clock;
  EXPECT_EQ(*clock.Accept(1'000'000, 1'100'000, 0), 1'000'000);
  // A message that was late is the machine's fault, if the system says so.
  EXPECT_EQ(*clock.Accept(1'000'000, 9'000'000, 8'000'000), 1'000'000);
  // Otherwise it may have happened once.
  EXPECT_EQ(*clock.Accept(1'000'000, 9'000'000, 0), 9'000'000);
  EXPECT_EQ(*clock.Accept(1'000'000, 9'000'000, 0), 9'000'000);
  EXPECT_EQ(*clock.Accept(8'900'000, 9'000'000, 0), 8'900'000);
  EXPECT_TRUE(clock.Accept(1'000'000, 9'000'000, 0).ok());
  EXPECT_TRUE(clock.Accept(1'000'000, 9'000'000, 0).ok());
  EXPECT_THAT(
      std::string(clock.Accept(1'000'000, 9'000'000, 0).status().message()),
      HasSubstr("1.000 ms instead of 9.000 ms"));
  // Three orders take longer than one.
  EXPECT_EQ(*ClockCheck().Accept(1'000'000, 1'500'000, 0, 3), 1'000'000);
  EXPECT_FALSE(ClockCheck().Accept(9'000'001, 9'000'000, 0).ok());
  EXPECT_FALSE(ClockCheck().Accept(-1, 9'000'000, 0).ok());
}

TEST(ClockCheck, ShortOpsProveNothing) {
  ClockCheck clock;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(*clock.Accept(1, 9'000'000, 0), 9'000'000);
    EXPECT_EQ(*clock.Accept(1, 100'000, 0), 1);
  }
  EXPECT_FALSE(clock.Accept(1, 9'000'000, 0).ok());
}

}  // namespace
}  // namespace convlab
