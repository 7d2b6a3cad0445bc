#include "milestones/standing.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::Contains;

// The lines about a kernel of `op_ms` beside a final of `final_ms`.
std::vector<std::string> Describe(double op_ms, double final_ms) {
  Standing standing;
  standing.images = standing.measured_images = 10;
  standing.fastest_ns = final_ms * 1e6;
  standing.cudnn_ns = 4e6;
  return DescribeStanding(standing, op_ms * 1e6);
}

TEST(Standing, RatiosAreNotBelowOne) {
  EXPECT_THAT(Describe(1, 2),
              Contains("4.0 times as fast as cuDNN (4 ms), 2.0 times as fast "
                       "as final (2 ms)"));
  EXPECT_THAT(Describe(2, 0.14),
              Contains("2.0 times as fast as cuDNN (4 ms), final (0.14 ms) is "
                       "14 times as fast"));
  EXPECT_THAT(Describe(284, 1),
              Contains("cuDNN (4 ms) is 71 times as fast, final (1 ms) is 280 "
                       "times as fast"));
  EXPECT_THAT(Describe(9960, 1),
              Contains("cuDNN (4 ms) is 2500 times as fast, final (1 ms) is "
                       "10000 times as fast"));
}

}  // namespace
}  // namespace convlab
