#include "milestones/classifying/answers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(Answers, CountsClassesWithoutLabels) {
  Answers answers(3, {});
  answers.Add(0, {2, 1, 0.5f, false});
  answers.Add(1, {2, 0, 0.5f, false});
  answers.Add(2, {0, 1, 0.5f, false});
  EXPECT_THAT(answers.Text(), ElementsAre("3 images", "class 0: 1",
                                          "class 1: 0", "class 2: 2"));
  EXPECT_THAT(answers.CloseText(), SizeIs(0));
}

TEST(Answers, FillsTheConfusionMatrix) {
  Answers answers(10, {1, 1, 2, 9});
  answers.Add(0, {1, 0, 5, false});
  answers.Add(1, {2, 1, 4, false});
  answers.Add(2, {2, 1, 3, false});
  answers.Add(3, {9, 1, 2, true});
  const std::vector<std::string> lines = answers.Text();
  EXPECT_EQ(lines[0], "3 of 4 correct, 75.00 %");
  EXPECT_THAT(lines, Contains("true 1 0 1 1 0 0 0 0 0 0 0"));
  EXPECT_THAT(lines, Contains("true 9 0 0 0 0 0 0 0 0 0 1"));
  EXPECT_EQ(lines.back(), "image 0: 1, then 0, logits 5 apart; right");
  EXPECT_THAT(answers.CloseText(),
              ElementsAre("1 answer which rounding in float32 may decide:",
                          "image 3: 9, then 1, logits 2 apart; right"));
}

TEST(Answers, ListsTheMostUncertainFirst) {
  Answers answers(10, std::vector<uint8_t>(100, 4));
  for (int i = 0; i < 100; ++i) {
    // Margins 0 to 99 in another order.
    answers.Add(i, {3, 4, static_cast<float>(i * 37 % 100), false});
  }
  const std::vector<std::string> lines = answers.Text();
  ASSERT_THAT(lines, SizeIs(14 + 10));
  EXPECT_EQ(lines[14], "image 0: 3, then 4, logits 0 apart; wrong, it is 4");
  EXPECT_EQ(lines[15], "image 73: 3, then 4, logits 1 apart; wrong, it is 4");
  EXPECT_EQ(lines[23], "image 57: 3, then 4, logits 9 apart; wrong, it is 4");
}

// The file beside the answers may hold anything.
TEST(Answers, RestoreRefusesWhatNoImagesLeave) {
  const std::vector<uint8_t> labels = {1, 1, 2, 9};
  Answers answers(10, labels);
  answers.Add(0, {1, 0, 5, false});
  answers.Add(1, {2, 1, 4, true});
  const AnswersState good = answers.Save();
  Answers restored(10, labels);
  EXPECT_TRUE(restored.Restore(good).ok());
  EXPECT_EQ(restored.Text(), answers.Text());
  EXPECT_EQ(restored.CloseText(), answers.CloseText());
  const auto error = [&](const auto& change) {
    AnswersState state = good;
    change(state);
    return std::string(restored.Restore(state).message());
  };
  EXPECT_EQ(error([](AnswersState& state) { state.count = 5; }),
            "answers.count is 5, expected 0 to 4");
  EXPECT_EQ(error([](AnswersState& state) { state.correct = 3; }),
            "answers.correct is 3, expected 0 to 2");
  EXPECT_EQ(error([](AnswersState& state) { state.close_count = -1; }),
            "answers.close_count is -1, expected 0 to 2");
  EXPECT_EQ(error([](AnswersState& state) { state.counts.pop_back(); }),
            "the number of answers.counts is 99, expected 100 to 100");
  EXPECT_EQ(error([](AnswersState& state) { state.counts[7] = -1; }),
            "answers.counts[7] is -1, expected 0 to 2");
  EXPECT_EQ(
      error([](AnswersState& state) { state.uncertain[1].index = 1 << 30; }),
      "answers.uncertain[1].index is 1073741824, expected 0 to 1");
  EXPECT_EQ(error([](AnswersState& state) { state.close[0].label = 10; }),
            "answers.close[0].label is 10, expected 0 to 9");
  EXPECT_EQ(error([](AnswersState& state) { state.close[0].second = -1; }),
            "answers.close[0].second is -1, expected 0 to 9");
  EXPECT_EQ(error([](AnswersState& state) {
              state.uncertain.resize(11, state.uncertain[0]);
            }),
            "the number of answers.uncertain is 11, expected 0 to 10");
}

}  // namespace
}  // namespace convlab
