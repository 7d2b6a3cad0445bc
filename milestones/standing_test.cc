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
  const struct {
    double op_ms, final_ms;
    const char* line;
  } cases[] = {
      {1, 2,
       "4.0 times as fast as cuDNN (4 ms), 2.0 times as fast as final (2 ms)"},
      {2, 0.14,
       "2.0 times as fast as cuDNN (4 ms), final (0.14 ms) is 14 times as "
       "fast"},
      {284, 1,
       "cuDNN (4 ms) is 71 times as fast, final (1 ms) is 280 times as fast"},
      {99600, 1234,
       "cuDNN (4 ms) is 25000 times as fast, final (1234 ms) is 81 times as "
       "fast"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Describe(c.op_ms, c.final_ms), Contains(c.line));
  }
}

}  // namespace
}  // namespace convlab
