#include "kernels/cuda/device.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab::cuda {
namespace {

using ::testing::HasSubstr;

TEST(DeviceWithoutGpu, SaysWhyThereIsNone) {
  const auto facts = FindDevice();
  if (facts.ok()) GTEST_SKIP() << "there is a GPU: " << facts->name;
  EXPECT_EQ(facts.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(facts.status().message()),
              HasSubstr("no NVIDIA GPU"));
}

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto facts = FindDevice();
    if (!facts.ok()) GTEST_SKIP() << facts.status().message();
  }
};

TEST_F(DeviceTest, FactsAreThere) {
  const auto facts = FindDevice();
  EXPECT_GE(facts->compute_capability, 75);
  EXPECT_GT(facts->multiprocessors, 0);
  EXPECT_GT(facts->multiprocessor_clock_khz, 100000);
  EXPECT_GT(facts->memory_clock_khz, 100000);
  EXPECT_GE(facts->memory_bus_bits, 32);
  EXPECT_THAT(facts->pci_bus_id, HasSubstr(":"));
  EXPECT_GT(facts->memory_bytes, int64_t{1} << 30);
  EXPECT_GE(facts->driver_version, facts->runtime_version / 1000 * 1000);
  EXPECT_LE(*FreeMemory(), facts->memory_bytes);
}

TEST_F(DeviceTest, BytesGoThereAndBack) {
  const std::vector<int> values = {1, 2, 3, -4};
  auto buffer = DeviceBuffer::Allocate(16);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  ASSERT_TRUE(CopyToDevice(buffer->data(), values.data(), 16).ok());
  std::vector<int> back(4);
  ASSERT_TRUE(CopyToHost(back.data(), buffer->data(), 16).ok());
  EXPECT_EQ(back, values);
  ASSERT_TRUE(FillBytes(buffer->data(), 0xff, 16).ok());
  ASSERT_TRUE(CopyToHost(back.data(), buffer->data(), 16).ok());
  EXPECT_EQ(back, std::vector<int>(4, -1));
}

TEST_F(DeviceTest, TooMuchMemoryIsRefusedAndForgotten) {
  const auto buffer = DeviceBuffer::Allocate(int64_t{1} << 50);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(buffer.status().message()), HasSubstr("cudaMalloc"));
  EXPECT_TRUE(Synchronize().ok());
}

TEST_F(DeviceTest, EventsMeasureTime) {
  auto buffer = *DeviceBuffer::Allocate(1 << 28);
  Event start = *Event::Create();
  Event stop = *Event::Create();
  ASSERT_TRUE(start.Record().ok());
  ASSERT_TRUE(FillBytes(buffer.data(), 1, buffer.bytes()).ok());
  ASSERT_TRUE(stop.Record().ok());
  const auto elapsed = stop.Since(start);
  ASSERT_TRUE(elapsed.ok()) << elapsed.status();
  EXPECT_GT(*elapsed, 1000);
  EXPECT_LT(*elapsed, 1000000000);
}

}  // namespace
}  // namespace convlab::cuda
