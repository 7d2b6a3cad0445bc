// Tests the conversion of CUPTI's records with a CUPTI for tests
// (test_cupti.cc), without a GPU.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/trace.h"

namespace convlab::cuda {

// Replaces device.h's function: there is nothing to wait for.
absl::Status Synchronize() { return absl::OkStatus(); }

namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class TraceRecordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SetLibraryFolder(absl::StrCat(std::getenv("TEST_SRCDIR"),
                                  "/convlab/kernels/cuda/test_cupti"));
    unsetenv("CONVLAB_TEST_CUPTI");
  }
};

TEST_F(TraceRecordsTest, BecomeActivities) {
  // Each repetition gives the same activities.
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(StartTrace().ok());
    const auto stopped = StopTrace();
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    EXPECT_EQ(stopped->tool, "CUPTI");
    EXPECT_EQ(stopped->version, "99.2.3");
    EXPECT_EQ(stopped->process, getpid());
    EXPECT_EQ(stopped->missing, "");
    ASSERT_THAT(stopped->gpu, SizeIs(3));
    const GpuActivity& kernel = stopped->gpu[0];
    EXPECT_EQ(kernel.kind, GpuActivity::Kind::kKernel);
    EXPECT_EQ(kernel.name, "kernel(float const*, int)");
    EXPECT_EQ(kernel.start_ns, 50000);
    EXPECT_EQ(kernel.end_ns, 90000);
    EXPECT_EQ(kernel.stream, 7);
    EXPECT_EQ(kernel.correlation, 2);
    EXPECT_EQ(kernel.grid, (std::array<int64_t, 3>{1, 2, 3}));
    EXPECT_EQ(kernel.block, (std::array<int64_t, 3>{4, 5, 6}));
    EXPECT_EQ(kernel.registers_per_thread, 40);
    EXPECT_EQ(kernel.static_shared_bytes, 1024);
    EXPECT_EQ(kernel.dynamic_shared_bytes, 2048);
    const GpuActivity& copy = stopped->gpu[1];
    EXPECT_EQ(copy.kind, GpuActivity::Kind::kCopy);
    EXPECT_EQ(copy.name, "[CUDA memcpy HtoD]");
    EXPECT_EQ(copy.bytes, 4096);
    EXPECT_EQ(copy.stream, 8);
    EXPECT_EQ(copy.start_ns, 10000);
    const GpuActivity& memset = stopped->gpu[2];
    EXPECT_EQ(memset.kind, GpuActivity::Kind::kMemset);
    EXPECT_EQ(memset.name, "[CUDA memset]");
    EXPECT_EQ(memset.bytes, 512);
    EXPECT_EQ(memset.device, 1);
    ASSERT_THAT(stopped->api, SizeIs(2));
    EXPECT_EQ(stopped->api[0].name, "cu5");
    EXPECT_EQ(stopped->api[1].name, "cuda211");
    EXPECT_EQ(stopped->api[1].start_ns, 40000);
    EXPECT_EQ(stopped->api[1].end_ns, 45000);
    EXPECT_EQ(stopped->api[1].thread, 17);
    EXPECT_EQ(stopped->api[1].correlation, 2);
  }
}

TEST_F(TraceRecordsTest, LostRecordsAreReported) {
  setenv("CONVLAB_TEST_CUPTI", "lossy", 1);
  ASSERT_TRUE(StartTrace().ok());
  const auto stopped = StopTrace();
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_THAT(stopped->gpu, SizeIs(3));
  EXPECT_EQ(stopped->missing,
            "records that CUPTI dropped: 3; records without times: 1; buffers "
            "not read to their end: 1");
}

TEST_F(TraceRecordsTest, AnotherProfilerIsNamedAsTheReason) {
  setenv("CONVLAB_TEST_CUPTI", "attached", 1);
  const absl::Status started = StartTrace();
  EXPECT_EQ(started.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(started.message()),
              HasSubstr("another profiler is attached"));
  unsetenv("CONVLAB_TEST_CUPTI");
  EXPECT_TRUE(StartTrace().ok());
  EXPECT_TRUE(StopTrace().ok());
}

}  // namespace
}  // namespace convlab::cuda
