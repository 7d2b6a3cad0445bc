#include "kernels/measure/op_time.h"

#include <chrono>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace convlab {
namespace {

TEST(HostNs, IsAtLeastWhatTheRunTakes) {
  const auto ns = HostNs([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return absl::OkStatus();
  });
  ASSERT_TRUE(ns.ok()) << ns.status();
  EXPECT_GE(*ns, 20000000);
}

TEST(HostNs, AFailedRunHasNoTime) {
  EXPECT_EQ(HostNs([] { return absl::InternalError("broken"); }).status(),
            absl::InternalError("broken"));
}

TEST(OpTimer, HoldsTheKernelTime) {
  if (!cuda::FindDevice().ok()) {
    EXPECT_EQ(OpTimer::Create().status().code(),
              absl::StatusCode::kUnavailable);
    GTEST_SKIP() << "there is no GPU";
  }
  auto timer = OpTimer::Create();
  ASSERT_TRUE(timer.ok()) << timer.status();
  const auto buffer = cuda::DeviceBuffer::Allocate(int64_t{64} << 20);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  const auto time = timer->Time(
      [&] { return cuda::FillBytes(buffer->data(), 1, buffer->bytes()); });
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_GT(time->kernel_ns, 0);
  EXPECT_GT(time->op_ns, time->kernel_ns);
}

}  // namespace
}  // namespace convlab
