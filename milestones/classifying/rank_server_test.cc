#include "milestones/classifying/rank_server.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/dataset/test_files.h"
#include "common/files/files.h"
#include "common/ranks/quiet_ranks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

constexpr int kImages = 8, kBlock = 4, kClasses = 10;

// Rank 0, to which a test says what rank 1 sends.
class TalkingRanks : public QuietRanks {
 public:
  TalkingRanks() : QuietRanks(0, {{"a", 1}, {"b", 2}}) {}
  void Start(Receive receive, Lost) override { receive_ = std::move(receive); }
  void Say(int kind, std::string bytes) const {
    receive_({1, kind, std::move(bytes)});
  }

 private:
  Receive receive_;
};

class RankServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = ::testing::TempDir() + "/rank_server_images";
    ASSERT_TRUE(WriteFileAtomically(path, IdxFile({0x803, kImages, 1, 1},
                                                  std::string(kImages, 'x')))
                    .ok());
    auto images = ImageFiles::Open({path});
    ASSERT_TRUE(images.ok()) << images.status();
    images_ = *std::move(images);
  }

  // Rank 1 takes a piece and answers; `change` is what it does to its answers.
  absl::Status Answer(const std::function<void(Piece&)>& change) {
    DealOptions options;
    options.count = kImages;
    options.block = kBlock;
    Deal deal(*images_, options);
    TalkingRanks ranks;
    RankServerOptions server_options;
    server_options.classes = kClasses;
    const RankServer server(ranks, deal, server_options);
    ranks.Say(kWorkerMessage, PackText(0, "a worker"));
    Piece piece;
    EXPECT_TRUE(deal.TakeNumber(0, piece));
    piece.answers.resize(kBlock);
    change(piece);
    ranks.Say(kAnswersMessage, PackAnswers(0, piece));
    Piece answered;
    return deal.Next(answered).status();
  }

  std::unique_ptr<ImageFiles> images_;
};

TEST_F(RankServerTest, AnswersAreTaken) {
  const absl::Status status = Answer([](Piece&) {});
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(RankServerTest, AnswersThatDoNotFitThePieceEndTheRun) {
  const absl::Status few =
      Answer([](Piece& piece) { piece.answers.pop_back(); });
  EXPECT_THAT(std::string(few.message()),
              HasSubstr("rank 1 on b: piece 0 has 3 answers, expected 4"));
  const absl::Status other =
      Answer([](Piece& piece) { piece.answers[1].label = kClasses; });
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("an answer of class 10, expected 0 to 9"));
  const absl::Status unknown = Answer([](Piece& piece) { piece.number = 2; });
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("piece 2 has 4 answers, expected 0"));
}

}  // namespace
}  // namespace convlab
