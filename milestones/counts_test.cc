#include "milestones/counts.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

TEST(CheckRepetitions, NamesTheFirstThatDiffers) {
  EXPECT_TRUE(CheckRepetitions({}).ok());
  EXPECT_TRUE(CheckRepetitions({90}).ok());
  EXPECT_TRUE(CheckRepetitions({90, 90, 90}).ok());
  EXPECT_EQ(CheckRepetitions({90, 90, 12, 90, 13}).message(),
            "repetition 3 has 12 correct answers, repetition 1 has 90: "
            "expected the same number, since both compute the same");
}

RunRecord RunWith(const char* expected) {
  RunRecord record;
  record.size = 100;
  record.split = "t10k";
  record.weights_metadata["correct_100"] = expected;
  return record;
}

TEST(JudgeCounts, AnUnexpectedCountFailsStrictRunsOnly) {
  RunRecord record = RunWith("90");
  EXPECT_TRUE(JudgeCounts({90, 90}, 0, /*strict=*/true, record).ok());
  EXPECT_EQ(record.count_error, "");
  EXPECT_TRUE(JudgeCounts({10}, 0, /*strict=*/false, record).ok());
  EXPECT_EQ(record.count_error,
            "10 correct answers, where the weight file says 90");
  const absl::Status strict = JudgeCounts({10}, 0, /*strict=*/true, record);
  EXPECT_EQ(strict.message(), record.count_error);
  // Classes of lower precision may change a few answers.
  record = RunWith("90");
  EXPECT_TRUE(JudgeCounts({86}, 5, /*strict=*/true, record).ok());
  EXPECT_EQ(record.count_error, "");
  EXPECT_FALSE(JudgeCounts({84}, 5, /*strict=*/true, record).ok());
  record = RunWith("90");
  record.expected_correct = 91;
  EXPECT_THAT(
      std::string(JudgeCounts({90}, 0, /*strict=*/true, record).message()),
      HasSubstr("where a verified convolution has 91"));
}

TEST(JudgeCounts, WithoutAnExpectationOnlyRepetitionsCount) {
  RunRecord record = RunWith("unknown");
  EXPECT_TRUE(JudgeCounts({10}, 0, /*strict=*/true, record).ok());
  record = RunWith("90");
  record.split = "train";  // the weight file speaks of the test images
  EXPECT_TRUE(JudgeCounts({10}, 0, /*strict=*/true, record).ok());
  EXPECT_EQ(record.count_error, "");
}

TEST(JudgeCounts, RepetitionsThatDifferFailEveryRun) {
  RunRecord record = RunWith("90");
  const absl::Status status =
      JudgeCounts({12, 90, 90}, 5, /*strict=*/false, record);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("repetition 2 has 90 correct answers"));
  EXPECT_EQ(record.count_error, status.message());
}

TEST(DescribeFarSample, TellsTheFarthestOfThreeOrMore) {
  const auto with = [](std::vector<int64_t> first,
                       std::vector<int64_t> second) {
    std::vector<ConvolutionRecord> convolutions(2);
    convolutions[0].op_time_ns = std::move(first);
    convolutions[1].op_time_ns = std::move(second);
    return DescribeFarSample(convolutions);
  };
  EXPECT_EQ(with({1'000'000, 9'000'000}, {5, 50}), "");
  EXPECT_EQ(with({1'000'000, 1'900'000, 1'000'000}, {}), "");
  EXPECT_EQ(
      with({1'000'000, 1'000'000, 2'500'000}, {4'000'000, 100'000, 4'000'000}),
      "op time 2 lies far from the others in repetition 2: 0.100 ms, "
      "their median is 4.000 ms");
}

}  // namespace
}  // namespace convlab
