#include "milestones/classifying/rank_messages.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using testing::HasSubstr;

// `unpack` takes the message as it is, and refuses it cut off anywhere or
// followed by a byte more.
template <typename Unpack>
void ExpectWholeOnly(const std::string& message, Unpack unpack) {
  EXPECT_TRUE(unpack(message).ok());
  for (size_t bytes = 0; bytes < message.size(); ++bytes) {
    EXPECT_THAT(std::string(unpack(message.substr(0, bytes)).message()),
                HasSubstr("ends before"))
        << bytes;
  }
  EXPECT_THAT(std::string(unpack(message + "x").message()),
              HasSubstr("1 bytes longer"));
}

TEST(RankMessages, TextsAreWhole) {
  const std::string message = PackText(3, "GPU 3");
  ASSERT_TRUE(UnpackText(message).ok());
  EXPECT_EQ(UnpackText(message)->worker, 3);
  EXPECT_EQ(UnpackText(message)->text, "GPU 3");
  ExpectWholeOnly(message, [](const std::string& bytes) {
    return UnpackText(bytes).status();
  });
}

TEST(RankMessages, PiecesAreWhole) {
  Piece piece;
  piece.number = 7;
  piece.first = 1000;
  piece.count = 2;
  piece.own = {1, 2, 3, 4};
  const std::string message = PackPiece({1, 5}, piece, 4);
  Piece there;
  ASSERT_TRUE(UnpackPiece(message, there).ok());
  EXPECT_EQ(UnpackPiece(message, there)->worker, 1);
  EXPECT_EQ(UnpackPiece(message, there)->slot, 5);
  EXPECT_EQ(there.first, 1000);
  EXPECT_EQ(there.own, piece.own);
  ExpectWholeOnly(message, [](const std::string& bytes) {
    Piece got;
    return UnpackPiece(bytes, got).status();
  });
}

TEST(RankMessages, PixelsComeFromAndGoToSharedMemory) {
  uint8_t from[] = {1, 2, 3, 4}, to[4] = {};
  Piece piece;
  piece.count = 2;
  piece.shared = from;
  Piece there;
  there.shared = to;
  ASSERT_TRUE(UnpackPiece(PackPiece({1, -1}, piece, 4), there).ok());
  EXPECT_EQ(to[3], 4);
  EXPECT_TRUE(there.own.empty());
  // None in the message: what is in the slot stays.
  from[3] = 5;
  ASSERT_TRUE(UnpackPiece(PackPiece({1, 0}, piece, 0), there).ok());
  EXPECT_EQ(to[3], 4);
}

TEST(RankMessages, TakesAreWhole) {
  const std::string message = PackTake({3, 4});
  ASSERT_TRUE(UnpackTake(message).ok());
  EXPECT_EQ(UnpackTake(message)->worker, 3);
  EXPECT_EQ(UnpackTake(message)->slot, 4);
  ExpectWholeOnly(message, [](const std::string& bytes) {
    return UnpackTake(bytes).status();
  });
}

TEST(RankMessages, AnswersAreWhole) {
  Piece piece;
  piece.count = 2;
  piece.answers = {{1, 2, 0.5f, false}, {9, 0, 0.25f, true}};
  piece.logits = {1.5f, 2.5f};
  const std::string message = PackAnswers(0, piece);
  Piece there;
  ASSERT_TRUE(UnpackAnswers(message, there).ok());
  ASSERT_EQ(there.answers.size(), 2);
  EXPECT_EQ(there.answers[1].label, 9);
  EXPECT_TRUE(there.answers[1].close);
  EXPECT_EQ(there.logits, piece.logits);
  ExpectWholeOnly(message, [](const std::string& bytes) {
    Piece got;
    return UnpackAnswers(bytes, got).status();
  });
}

TEST(RankMessages, AnswersAreOfThePiecesImagesAndClasses) {
  const auto check = [](const Piece& piece, bool logits) {
    return std::string(CheckAnswers(piece, 2, 3, logits).message());
  };
  Piece piece;
  piece.number = 7;
  piece.answers = {{1, 2, 0.5f, false}, {2, 0, 0.25f, true}};
  EXPECT_EQ(check(piece, false), "");
  EXPECT_EQ(check(piece, true), "piece 7 has 0 logits, expected 6");
  piece.logits.resize(6);
  EXPECT_EQ(check(piece, true), "");
  EXPECT_EQ(check(piece, false), "piece 7 has 6 logits, expected 0");
  piece.answers[1].label = 3;
  EXPECT_EQ(check(piece, true),
            "piece 7 has an answer of class 3, expected 0 to 2");
  piece.answers.pop_back();
  EXPECT_EQ(check(piece, true), "piece 7 has 1 answers, expected 2");
}

TEST(RankMessages, JobsAreWhole) {
  const RankJob job = {true, 256, 64, 32, 4, "a digest", "a handle", 6};
  const std::string message = PackJob(job);
  ASSERT_TRUE(UnpackJob(message).ok());
  EXPECT_EQ(UnpackJob(message)->gpu_piece, 64);
  EXPECT_EQ(UnpackJob(message)->readers, 4);
  EXPECT_EQ(UnpackJob(message)->images, "a digest");
  EXPECT_EQ(UnpackJob(message)->shared, "a handle");
  EXPECT_EQ(UnpackJob(message)->slots, 6);
  ExpectWholeOnly(message, [](const std::string& bytes) {
    return UnpackJob(bytes).status();
  });
}

TEST(RankMessages, WeightsAreWhole) {
  NetworkWeights weights;
  weights.layers.resize(2);
  weights.layers[0].weight = {1, 2, 3};
  weights.layers[1].bias = {4};
  const std::string message = PackWeights(weights);
  ASSERT_TRUE(UnpackWeights(message).ok());
  ASSERT_EQ(UnpackWeights(message)->layers.size(), 2);
  EXPECT_EQ(UnpackWeights(message)->layers[0].weight, weights.layers[0].weight);
  ExpectWholeOnly(message, [](const std::string& bytes) {
    return UnpackWeights(bytes).status();
  });
}

// Counts that no message can hold take neither time nor memory.
TEST(RankMessages, CountsBeyondTheMessageAreRefused) {
  std::string message = PackWeights({});
  message.assign(message.size(), '\x7f');
  EXPECT_FALSE(UnpackWeights(message).ok());
  EXPECT_FALSE(UnpackWeights(message + message).ok());
}

}  // namespace
}  // namespace convlab
