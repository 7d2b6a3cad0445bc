#include "milestones/classifying/rank_feed.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/dataset/test_files.h"
#include "common/files/files.h"
#include "common/ranks/quiet_ranks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "milestones/classifying/worker.h"

namespace convlab {
namespace {

using ::testing::ElementsAreArray;

constexpr int kImages = 22, kBlock = 4, kClasses = 10, kReaders = 2;

std::string Pixels() {
  std::string pixels;
  for (int i = 0; i < kImages; ++i) {
    pixels += static_cast<char>(i * 7 % kClasses);
  }
  return pixels;
}

// Rank 1, to which rank 0 sends the next piece whenever it asks for one. The
// images come in the slots that it names, or not at all if it names none.
class ServedRanks : public QuietRanks {
 public:
  explicit ServedRanks(const RankSlots* slots)
      : QuietRanks(1, {{"a", 1}, {"a", 2}}), slots_(slots) {}

  void Start(Receive receive, Lost) override { receive_ = std::move(receive); }

  void Send(int, int kind, std::string bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (kind == kAnswersMessage) {
      Piece piece;
      ASSERT_TRUE(UnpackAnswers(bytes, piece).ok());
      for (int i = 0; i < piece.count; ++i) {
        labels_[piece.first + i] = static_cast<char>(piece.answers[i].label);
      }
    }
    if (kind != kTakeMessage) return;
    const auto take = UnpackTake(bytes);
    ASSERT_TRUE(take.ok());
    if (next_ >= kImages) {
      receive_({0, kNoneMessage, PackText(take->worker, "")});
      return;
    }
    Piece piece;
    piece.number = next_ / kBlock;
    piece.first = next_;
    piece.count = std::min(kBlock, kImages - next_);
    if (slots_ != nullptr) {
      uint8_t* const slot = slots_->Find(1, take->slot);
      ASSERT_NE(slot, nullptr);
      const std::string pixels = Pixels();
      std::copy_n(pixels.begin() + next_, piece.count, slot);
    }
    next_ += kBlock;
    receive_({0, kPieceMessage, PackPiece(*take, piece, 0)});
  }

  const std::string& labels() const { return labels_; }

 private:
  const RankSlots* const slots_;
  Receive receive_;
  std::mutex mutex_;
  int next_ = 0;  // the next piece's first image
  std::string labels_ = std::string(kImages, '\xff');
};

// Takes images of 1 x 1, whose pixel is the label, and notes where they were.
class NotingNetwork : public CompiledNetwork {
 public:
  absl::Status Run(const uint8_t* images, int64_t count,
                   float* logits) override {
    places.push_back(images);
    std::fill_n(logits, count * kClasses, 0.0f);
    for (int64_t i = 0; i < count; ++i) logits[i * kClasses + images[i]] = 1;
    return absl::OkStatus();
  }
  const Plan& plan() const override { return plan_; }
  std::vector<int64_t> StageNs() const override { return {}; }

  std::vector<const uint8_t*> places;

 private:
  const Plan plan_;
};

class RankFeedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = ::testing::TempDir() + "/rank_feed_images";
    ASSERT_TRUE(
        WriteFileAtomically(path, IdxFile({0x803, kImages, 1, 1}, Pixels()))
            .ok());
    auto images = ImageFiles::Open({path});
    ASSERT_TRUE(images.ok()) << images.status();
    images_ = *std::move(images);
  }

  // Works on all pieces; where the network found them.
  std::vector<const uint8_t*> Work(ServedRanks& ranks, ImageFiles* images,
                                   const RankSlots& slots,
                                   const std::vector<uint8_t*>& memory) {
    RankFeed feed(ranks, images, slots);
    NotingNetwork network;
    ClassifyShare share;
    const absl::Status status = WorkOnPieces(
        feed, 0, network, {kClasses, false, kReaders, memory}, share);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_THAT(ranks.labels(), ElementsAreArray(Pixels()));
    shared_ = feed.SharedPieces(0);
    return network.places;
  }

  std::unique_ptr<ImageFiles> images_;
  int64_t shared_ = 0;  // pieces that came in slots
};

bool Lies(const uint8_t* place, const std::vector<uint8_t*>& memory) {
  return std::find(memory.begin(), memory.end(), place) != memory.end();
}

// With --read each. On a GPU the memory is page-locked, and images that lie
// elsewhere are copied once more.
TEST_F(RankFeedTest, ARankThatReadsDoesSoToItsWorkersMemory) {
  std::vector<uint8_t> room(PiecesOf(kReaders) * kBlock);
  std::vector<uint8_t*> memory;
  for (int i = 0; i < PiecesOf(kReaders); ++i) {
    memory.push_back(room.data() + i * kBlock);
  }
  ServedRanks ranks(nullptr);
  for (const uint8_t* place : Work(ranks, images_.get(), {}, memory)) {
    EXPECT_TRUE(Lies(place, memory));
  }
  EXPECT_EQ(shared_, 0);
}

// Where the system refuses so much memory.
TEST_F(RankFeedTest, PiecesWithoutMemoryOfTheWorkersHaveTheirOwn) {
  ServedRanks ranks(nullptr);
  EXPECT_EQ(Work(ranks, images_.get(), {}, {}).size(), 6);
}

TEST_F(RankFeedTest, WhatRankZeroReadsIsComputedWhereItLies) {
  const QuietRanks zero(0, {{"a", 1}, {"a", 2}});
  const int count = static_cast<int>(PiecesOf(kReaders));
  const RankSlots slots = RankSlots::Make(zero, count, kBlock);
  ASSERT_EQ(slots.count(), count);
  std::vector<uint8_t*> memory;
  for (int i = 0; i < count; ++i) memory.push_back(slots.Find(1, i));
  ServedRanks ranks(&slots);
  for (const uint8_t* place : Work(ranks, nullptr, slots, {})) {
    EXPECT_TRUE(Lies(place, memory));
  }
  EXPECT_EQ(shared_, 6);
}

}  // namespace
}  // namespace convlab
