#include "kernels/compiled/gpu_upload.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/graph.h"

namespace convlab {
namespace {

class OverlappedUploadTest : public ::testing::Test {
 protected:
  static constexpr int64_t kMost = 4 << 20;

  void SetUp() override {
    if (!cuda::FindDevice().ok()) GTEST_SKIP() << "for a GPU";
    auto stream = cuda::DeviceStream::Create();
    auto upload = OverlappedUpload::Allocate();
    auto pinned = cuda::PinnedBuffer::Allocate(kMost);
    auto device = cuda::DeviceBuffer::Allocate(kMost + kBehind);
    ASSERT_TRUE(stream.ok() && upload.ok() && pinned.ok() && device.ok());
    stream_ = *std::move(stream);
    upload_ = *std::move(upload);
    pinned_ = *std::move(pinned);
    device_ = *std::move(device);
    ASSERT_TRUE(cuda::FillBytes(device_.data(), 77, kMost + kBehind).ok());
  }

  std::vector<uint8_t> RandomBytes(int64_t bytes) {
    std::vector<uint8_t> values(bytes);
    for (uint8_t& value : values) value = static_cast<uint8_t>(random_());
    return values;
  }

  absl::Status Queue(int64_t bytes) {
    return upload_.Queue(bytes, pinned_.data(), device_.data(), stream_->get());
  }
  uint8_t* pinned() { return static_cast<uint8_t*>(pinned_.data()); }

  // What the device has, and what stands behind it.
  std::vector<uint8_t> OnDevice(int64_t bytes) {
    std::vector<uint8_t> values(bytes + kBehind);
    EXPECT_TRUE(
        cuda::CopyToHost(values.data(), device_.data(), values.size()).ok());
    return values;
  }
  static constexpr int64_t kBehind = 32;

  Workers workers_{4};
  std::optional<cuda::DeviceStream> stream_;
  OverlappedUpload upload_;
  cuda::PinnedBuffer pinned_;
  cuda::DeviceBuffer device_;
  std::minstd_rand random_{1};
};

// All bytes are the call's own, none those that the one before left.
TEST_F(OverlappedUploadTest, BringsAllBytesAndNoMore) {
  for (const int64_t bytes :
       {int64_t{1}, int64_t{15}, int64_t{784}, int64_t{32767}, int64_t{32768},
        int64_t{32769}, int64_t{257 * 784}, int64_t{524288}, int64_t{524289},
        int64_t{2560 * 784}, kMost - 1, kMost}) {
    SCOPED_TRACE(::testing::Message() << bytes << " bytes");
    const std::vector<uint8_t> before = OnDevice(bytes);
    auto graph = cuda::Graph::Record(*stream_, [&] { return Queue(bytes); });
    ASSERT_TRUE(graph.ok()) << graph.status();
    for (int call = 0; call < 3; ++call) {
      std::vector<uint8_t> values = RandomBytes(bytes);
      upload_.Expect(bytes);
      ASSERT_TRUE(graph->Launch(*stream_).ok());
      upload_.Copy(values.data(), bytes, pinned(), workers_);
      ASSERT_TRUE(stream_->Synchronize().ok());
      // As where starting waits for the end.
      if (upload_.TakeMissed()) {
        ASSERT_TRUE(graph->Launch(*stream_).ok());
        ASSERT_TRUE(stream_->Synchronize().ok());
        ASSERT_FALSE(upload_.TakeMissed());
      }
      values.insert(values.end(), before.end() - kBehind, before.end());
      ASSERT_EQ(OnDevice(bytes), values) << "call " << call;
    }
  }
}

// Waiting for bytes is no reason to give them up. Now and then the host loses
// its core for longer than the GPU waits.
TEST_F(OverlappedUploadTest, WaitsForTheHost) {
  constexpr int64_t kBytes = 1000000;
  constexpr auto kLate = std::chrono::microseconds(500);
  upload_.Expect(0);
  auto graph = cuda::Graph::Record(*stream_, [&] { return Queue(kBytes); });
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(graph->Launch(*stream_).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  for (int call = 0; call < 20; ++call) {
    std::vector<uint8_t> values = RandomBytes(kBytes);
    upload_.Expect(kBytes);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(graph->Launch(*stream_).ok());
    if (std::chrono::steady_clock::now() - begin > 2 * kLate) {
      GTEST_SKIP() << "starting work waits for its end";
    }
    std::this_thread::sleep_for(kLate);
    upload_.Copy(values.data(), kBytes, pinned(), workers_);
    ASSERT_TRUE(stream_->Synchronize().ok());
    if (upload_.TakeMissed()) continue;
    std::vector<uint8_t> found = OnDevice(kBytes);
    found.resize(kBytes);
    ASSERT_EQ(found, values);
    return;
  }
  FAIL() << "each copy was given up";
}

// A copy that never comes is given up, and one that has come is found.
TEST_F(OverlappedUploadTest, DoesNotWaitForEver) {
  constexpr int64_t kBytes = 100000;
  std::vector<uint8_t> values = RandomBytes(kBytes);
  upload_.Expect(kBytes);
  EXPECT_FALSE(upload_.TakeMissed());
  ASSERT_TRUE(Queue(kBytes).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  EXPECT_TRUE(upload_.TakeMissed());

  upload_.Copy(values.data(), kBytes, pinned(), workers_);
  ASSERT_TRUE(Queue(kBytes).ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  EXPECT_FALSE(upload_.TakeMissed());
  std::vector<uint8_t> found = OnDevice(kBytes);
  found.resize(kBytes);
  EXPECT_EQ(found, values);
}

}  // namespace
}  // namespace convlab
