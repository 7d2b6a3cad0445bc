#include "kernels/convolution/cpu/dense_lanes_plan.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab::cpu::dense_lanes {
namespace {

using ::testing::ElementsAre;

// Every output is in a span, and every lane finds its own input.
void ExpectCovered(const Problem& problem, int64_t lanes, int64_t aligned) {
  const int64_t W_out = problem.output_width();
  std::vector<bool> covered(problem.output_height() * W_out);
  for (const Span& span : MakeSpans(problem, lanes, aligned)) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t position = span.position + lane;
      ASSERT_LT(position, static_cast<int64_t>(covered.size()));
      covered[position] = true;
      const int64_t input =
          (lane < span.count ? span.first : span.second) + lane;
      EXPECT_EQ(input, position / W_out * problem.width + position % W_out)
          << "position " << position << ", lane " << lane << " of " << lanes;
    }
  }
  EXPECT_THAT(covered, testing::Each(true));
}

TEST(MakeSpans, CoversThePlaneWithEachLanesOwnInput) {
  for (const int64_t lanes : {1, 4, 8, 16}) {
    for (const Problem& problem :
         {Problem{1, 1, 70, 70, 12, 5}, Problem{1, 12, 33, 33, 24, 5},
          Problem{1, 1, 4, 19, 1, 3}, Problem{1, 1, 3, 18, 1, 3}}) {
      ExpectCovered(problem, lanes, 0);
      if (lanes > 1) ExpectCovered(problem, lanes, lanes - 1);
    }
  }
}

TEST(MakeSpans, AllButTheFirstAreAligned) {
  // 64 x 64 outputs: 256 spans of 16, and one more because of the offset.
  const std::vector<Span> spans = MakeSpans({1, 1, 66, 66, 1, 3}, 16, 5);
  ASSERT_EQ(spans.size(), 257u);
  EXPECT_EQ(spans[0].position, 0);
  for (size_t i = 1; i + 1 < spans.size(); ++i) {
    EXPECT_EQ(spans[i].position % 16, 5);
  }
  EXPECT_EQ(spans.back().position, 64 * 64 - 16);
}

TEST(MakeTaps, FollowsTheFilter) {
  EXPECT_THAT(MakeTaps({1, 2, 3, 4, 1, 2}),
              ElementsAre(0, 1, 4, 5, 12, 13, 16, 17));
}

TEST(PartsPerImage, KeepsWorkersBusyAndPartsOfTwoSpans) {
  EXPECT_EQ(PartsPerImage({1, 1, 70, 70, 12, 5}, 273, 2), 8);
  EXPECT_EQ(PartsPerImage({4, 1, 70, 70, 12, 5}, 273, 2), 2);
  EXPECT_EQ(PartsPerImage({1000, 1, 70, 70, 12, 5}, 273, 2), 1);
  EXPECT_EQ(PartsPerImage({1, 1, 5, 18, 1, 3}, 3, 64), 1);
}

TEST(ShouldStream, TakesLargeOutputsOfWholeVectors) {
  // 64 x 64 outputs, 2,048 planes: exactly 32 MB.
  EXPECT_TRUE(ShouldStream({1024, 1, 66, 66, 2, 3}, 16));
  EXPECT_FALSE(ShouldStream({1023, 1, 66, 66, 2, 3}, 16));
  // 29 x 29 outputs are no whole vectors.
  EXPECT_FALSE(ShouldStream({10000, 12, 33, 33, 24, 5}, 16));
}

}  // namespace
}  // namespace convlab::cpu::dense_lanes
