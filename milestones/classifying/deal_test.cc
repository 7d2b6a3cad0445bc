#include "milestones/classifying/deal.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/dataset/test_files.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "milestones/classifying/worker.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

constexpr int kImages = 103, kBlock = 4, kClasses = 10;

// Takes images of 1 x 1, whose pixel is the label, until it fails.
class FakeNetwork : public CompiledNetwork {
 public:
  // Fails in call `failing`, from 0; -1: never.
  explicit FakeNetwork(int failing = -1) : failing_(failing) {}

  absl::Status Run(const uint8_t* images, int64_t count,
                   float* logits) override {
    if (calls_++ == failing_) return absl::InternalError("it fell out");
    std::fill_n(logits, count * kClasses, 0.0f);
    for (int64_t i = 0; i < count; ++i) logits[i * kClasses + images[i]] = 1;
    std::this_thread::yield();
    return absl::OkStatus();
  }
  const Plan& plan() const override { return plan_; }
  std::vector<int64_t> StageNs() const override { return {}; }

 private:
  const int failing_;
  int calls_ = 0;
  const Plan plan_;
};

struct Dealt {
  absl::Status status;
  std::string labels;
  std::vector<ClassifyShare> shares;
  std::string told;
};

class DealTest : public ::testing::TestWithParam<bool> {
 protected:
  // With the parameter the file is gzipped, and so read forward.
  void SetUp() override {
    for (int i = 0; i < kImages; ++i) {
      expected_ += static_cast<char>(i * 7 % kClasses);
    }
    std::string file = IdxFile({0x803, kImages, 1, 1}, expected_);
    if (GetParam()) file = Gzip(file);
    path_ = ::testing::TempDir() + "/images";
    ASSERT_TRUE(WriteFileAtomically(path_, file).ok());
  }

  // Worker i fails in call failing[i].
  Dealt Run(const std::vector<int>& failing, int tolerate, int64_t first = 0) {
    Dealt dealt;
    auto images = ImageFiles::Open({path_});
    EXPECT_TRUE(images.ok()) << images.status();
    DealOptions options;
    options.first = first;
    options.count = kImages;
    options.block = kBlock;
    options.window = 5;
    options.ranks = static_cast<int>(failing.size());
    options.tolerate = tolerate;
    options.tell = [&](const std::string& text) { dealt.told += text; };
    Deal deal(**images, options);
    dealt.shares.resize(failing.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < failing.size(); ++i) {
      const int number =
          deal.AddWorker(absl::StrCat("worker ", i), static_cast<int>(i));
      threads.emplace_back([&, i, number] {
        FakeNetwork network(failing[i]);
        WorkOnPieces(deal, number, network, {kClasses, true, 2},
                     dealt.shares[i])
            .IgnoreError();
      });
    }
    Piece piece;
    int64_t next = first;
    for (;;) {
      const absl::StatusOr<bool> more = deal.Next(piece);
      dealt.status = more.status();
      if (!more.ok() || !*more) break;
      EXPECT_EQ(piece.first, next);
      next += piece.count;
      EXPECT_EQ(piece.logits.size(), piece.count * size_t{kClasses});
      for (const Answer& answer : piece.answers) {
        dealt.labels += static_cast<char>(answer.label);
      }
    }
    for (std::thread& thread : threads) thread.join();
    return dealt;
  }

  std::string path_, expected_;
};

TEST_P(DealTest, AnswersComeInOrderWhoeverComputes) {
  for (const int workers : {1, 2, 5, 40}) {
    const Dealt dealt = Run(std::vector<int>(workers, -1), 0);
    EXPECT_TRUE(dealt.status.ok()) << dealt.status;
    EXPECT_EQ(dealt.labels, expected_) << workers;
    int64_t images = 0, pieces = 0;
    for (const ClassifyShare& share : dealt.shares) {
      images += share.images;
      pieces += share.pieces;
    }
    EXPECT_EQ(images, kImages);
    EXPECT_EQ(pieces, (kImages + kBlock - 1) / kBlock);
  }
}

TEST_P(DealTest, GoesOnBehindTheFirstImages) {
  const Dealt dealt = Run({-1, -1}, 0, 8 * kBlock);
  EXPECT_EQ(dealt.labels, expected_.substr(size_t{8} * kBlock));
  EXPECT_EQ(Run({-1}, 0, kImages).labels, "");
}

TEST_P(DealTest, OthersGetWhatALostWorkerHad) {
  for (const int failing : {0, 1, 3}) {
    const Dealt dealt = Run({-1, failing, failing}, 2);
    EXPECT_TRUE(dealt.status.ok()) << dealt.status;
    EXPECT_EQ(dealt.labels, expected_);
    if (dealt.shares[1].lost.empty()) continue;  // it had no such call
    EXPECT_EQ(dealt.shares[1].lost, "it fell out");
    EXPECT_THAT(dealt.told, HasSubstr("worker 1: it fell out; the others"));
  }
}

TEST_P(DealTest, OneTooManyEndsTheRun) {
  const Dealt dealt = Run({0, -1}, 0);
  // The worker that fails may get no piece at all.
  if (dealt.status.ok()) {
    EXPECT_EQ(dealt.labels, expected_);
  } else {
    EXPECT_EQ(dealt.status.message(), "worker 0: it fell out");
    EXPECT_EQ(dealt.labels, expected_.substr(0, dealt.labels.size()));
  }
  EXPECT_EQ(Run({2}, 0).status.message(), "worker 0: it fell out");
}

TEST_P(DealTest, NobodyIsLeft) {
  const Dealt dealt = Run({1, 1}, 2);
  EXPECT_THAT(std::string(dealt.status.message()),
              ::testing::AllOf(HasSubstr("no worker is left"),
                               HasSubstr("it fell out")));
}

// Rank 0 may fail to compile before the others have told of their workers.
TEST_P(DealTest, ARankThatComesAfterAnotherWasLostIsLeft) {
  auto images = ImageFiles::Open({path_});
  ASSERT_TRUE(images.ok()) << images.status();
  DealOptions options;
  options.count = kImages;
  options.block = kBlock;
  options.ranks = 3;
  options.tolerate = 3;
  Deal deal(**images, options);
  deal.Lose(deal.AddWorker("first", 0), absl::InternalError("it fell out"));
  deal.LoseRank(1, absl::InternalError("it never came"));
  const int late = deal.AddWorker("late", 2);
  Piece piece;
  EXPECT_TRUE(deal.Take(late, piece).value_or(false));
  deal.LoseRank(2, absl::InternalError("it ended"));
  EXPECT_THAT(std::string(deal.Next(piece).status().message()),
              HasSubstr("no worker is left"));
}

TEST_P(DealTest, ALossForWhichThereIsNoMemoryEndsTheRun) {
  auto images = ImageFiles::Open({path_});
  ASSERT_TRUE(images.ok()) << images.status();
  DealOptions options;
  options.count = kImages;
  options.block = kBlock;
  options.window = 5;
  options.ranks = 2;
  options.tolerate = 1;
  options.tell = [](const std::string&) { throw std::bad_alloc(); };
  Deal deal(**images, options);
  const int lost = deal.AddWorker("lost", 0), other = deal.AddWorker("", 1);
  deal.Lose(lost, absl::InternalError("it fell out"));
  Piece piece;
  EXPECT_FALSE(deal.Take(other, piece).value_or(true));
  EXPECT_EQ(deal.Next(piece).status().message(), "there is not enough memory");
}

// Has one piece, ends when the worker is lost, and has no memory for answers.
class FeedWithoutMemory : public PieceFeed {
 public:
  absl::StatusOr<bool> Take(int, Piece& piece) override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!taken_) {
      taken_ = true;
      piece.count = 1;
      *piece.Room(1) = 0;
      return true;
    }
    changed_.wait(lock, [this] { return lost_; });
    return false;
  }
  void Give(int, Piece&) override { throw std::bad_alloc(); }
  void Lose(int, const absl::Status&) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    lost_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool taken_ = false, lost_ = false;
};

TEST(WorkOnPieces, AnswersForWhichThereIsNoMemoryLoseTheWorker) {
  FeedWithoutMemory feed;
  FakeNetwork network;
  ClassifyShare share;
  EXPECT_EQ(
      WorkOnPieces(feed, 0, network, {kClasses, true, 2}, share).message(),
      "there is not enough memory");
  EXPECT_EQ(share.lost, "there is not enough memory");
}

// Reads one piece, and then no more, as a rank whose file is gone.
class FeedThatFails : public PieceFeed {
 public:
  absl::StatusOr<bool> Take(int, Piece& piece) override {
    if (taken_.exchange(true)) return absl::NotFoundError("the file is gone");
    piece.count = 1;
    *piece.Room(1) = 0;
    return true;
  }
  void Give(int, Piece&) override {}
  void Lose(int, const absl::Status&) override {}

 private:
  std::atomic<bool> taken_{false};
};

TEST(WorkOnPieces, AReaderThatFailsIsToldInTheShare) {
  FeedThatFails feed;
  FakeNetwork network;
  ClassifyShare share;
  EXPECT_TRUE(WorkOnPieces(feed, 0, network, {kClasses, true, 2}, share).ok());
  EXPECT_EQ(share.lost, "the file is gone");
  EXPECT_EQ(share.images, 1);
}

TEST_P(DealTest, AFileThatEndsEarlyEndsTheRun) {
  auto file = ReadFile(path_);
  ASSERT_TRUE(file.ok());
  if (GetParam()) {
    ASSERT_TRUE(
        WriteFileAtomically(path_, file->substr(0, file->size() - 9)).ok());
    const Dealt dealt = Run({-1, -1}, 1);
    EXPECT_EQ(dealt.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(dealt.status.message()), HasSubstr(path_));
  } else {
    ASSERT_TRUE(
        WriteFileAtomically(path_, file->substr(0, file->size() - 9)).ok());
    EXPECT_THAT(std::string(ImageFiles::Open({path_}).status().message()),
                HasSubstr("the data end after 0 of the 1 bytes of image 94"));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, DealTest, ::testing::Bool());

TEST(ImageFiles, SeveralFilesAreOneSequence) {
  const std::string folder = ::testing::TempDir();
  const auto write = [&](const std::string& name, const std::string& content) {
    EXPECT_TRUE(WriteFileAtomically(folder + "/" + name, content).ok());
    return folder + "/" + name;
  };
  write("part-0.idx", IdxFile({0x803, 2, 1, 2}, "abcd"));
  const std::string second =
      write("part-1.idx", IdxFile({0x803, 3, 1, 2}, "efghij"));
  for (const bool gzipped : {false, true}) {
    if (gzipped) write("part-1.idx", Gzip(*ReadFile(second)));
    const auto paths = MatchingFiles(folder + "/part-?.idx");
    ASSERT_TRUE(paths.ok());
    const auto images = ImageFiles::Open(*paths);
    ASSERT_TRUE(images.ok()) << images.status();
    EXPECT_EQ((*images)->random_access(), !gzipped);
    EXPECT_EQ((*images)->count(), 5);
    std::string pixels(6, ' ');
    auto* const bytes = reinterpret_cast<uint8_t*>(pixels.data());
    // What is skipped, over the end of a file too, is read and forgotten.
    ASSERT_TRUE((*images)->Read(1, 3, bytes).ok());
    EXPECT_EQ(pixels, "cdefgh");
    ASSERT_TRUE((*images)->Read(4, 1, bytes).ok());
    EXPECT_EQ(pixels.substr(0, 2), "ij");
    EXPECT_EQ((*images)->Read(0, 1, bytes).ok(), !gzipped);
    const auto last = ImageFiles::Open(*paths);
    ASSERT_TRUE((*last)->Read(4, 1, bytes).ok());
    EXPECT_EQ(pixels.substr(0, 2), "ij");
  }
  EXPECT_EQ(MatchingFiles(folder + "/none-*").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ImageFiles, ADigestKnowsTheContent) {
  const std::string path = ::testing::TempDir() + "/digest";
  std::string pixels(20000, 'x');
  const auto digest = [&] {
    const auto size = static_cast<uint32_t>(pixels.size());
    EXPECT_TRUE(
        WriteFileAtomically(path, IdxFile({0x803, size, 1, 1}, pixels)).ok());
    const auto images = ImageFiles::Open({path});
    EXPECT_TRUE(images.ok());
    return *(*images)->Digest();
  };
  const std::string first = digest();
  EXPECT_EQ(digest(), first);
  for (const size_t place : {size_t{0}, size_t{10000}, size_t{19999}}) {
    pixels[place] = 'y';
    EXPECT_NE(digest(), first) << place;
    pixels[place] = 'x';
  }
  pixels += 'x';
  EXPECT_NE(digest(), first);
}

TEST(ImageFiles, ImagesOfAnotherSizeAreRefused) {
  const std::string folder = ::testing::TempDir();
  for (const uint32_t size : {2, 3}) {
    ASSERT_TRUE(
        WriteFileAtomically(absl::StrCat(folder, "/size-", size),
                            IdxFile({0x803, 1, size, size},
                                    std::string(size_t{size} * size, 'x')))
            .ok());
  }
  const auto images =
      ImageFiles::Open({folder + "/size-2", folder + "/size-3"});
  EXPECT_THAT(std::string(images.status().message()),
              HasSubstr("size-3: the images are 3x3, expected 2x2 as in "));
}

}  // namespace
}  // namespace convlab
