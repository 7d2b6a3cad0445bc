#include "kernels/judge/process/packed_trace.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

class PackedTraceTest : public ::testing::Test {
 protected:
  PackedTraceTest() : file_(memfd_create("trace", 0)) {}
  ~PackedTraceTest() override { close(file_); }

  // The message of the reader's error.
  std::string Error() const {
    return std::string(ReadActivities(file_).status().message());
  }

  const int file_;
};

Activities Example() {
  Activities activities;
  activities.tool = "CUPTI";
  activities.version = "13.0";
  activities.process = 961;
  GpuActivity kernel;
  kernel.name = "Tiled";
  kernel.start_ns = 5;
  kernel.end_ns = 9;
  kernel.stream = 7;
  kernel.correlation = 3;
  kernel.grid = {1, 2, 3};
  kernel.block = {16, 16, 1};
  kernel.registers_per_thread = 32;
  kernel.static_shared_bytes = 1024;
  kernel.dynamic_shared_bytes = 2048;
  GpuActivity copy;
  copy.kind = GpuActivity::Kind::kCopy;
  copy.name = "CUDA memcpy HtoD";
  copy.bytes = 4096;
  activities.gpu = {kernel, copy};
  activities.api = {{"cudaLaunchKernel", 1, 4, 962, 3}};
  activities.missing = "2 records";
  return activities;
}

TEST_F(PackedTraceTest, ComesBackAsItWas) {
  ASSERT_TRUE(WriteActivities(Example(), file_).ok());
  const auto read = ReadActivities(file_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tool, "CUPTI");
  EXPECT_EQ(read->version, "13.0");
  EXPECT_EQ(read->process, 961);
  EXPECT_EQ(read->missing, "2 records");
  ASSERT_EQ(read->gpu.size(), 2u);
  const GpuActivity& kernel = read->gpu[0];
  EXPECT_EQ(kernel.kind, GpuActivity::Kind::kKernel);
  EXPECT_EQ(kernel.name, "Tiled");
  EXPECT_EQ(kernel.start_ns, 5);
  EXPECT_EQ(kernel.end_ns, 9);
  EXPECT_EQ(kernel.stream, 7);
  EXPECT_EQ(kernel.correlation, 3);
  EXPECT_EQ(kernel.grid[2], 3);
  EXPECT_EQ(kernel.block[0], 16);
  EXPECT_EQ(kernel.registers_per_thread, 32);
  EXPECT_EQ(kernel.static_shared_bytes, 1024);
  EXPECT_EQ(kernel.dynamic_shared_bytes, 2048);
  EXPECT_EQ(read->gpu[1].kind, GpuActivity::Kind::kCopy);
  EXPECT_EQ(read->gpu[1].bytes, 4096);
  ASSERT_EQ(read->api.size(), 1u);
  EXPECT_EQ(read->api[0].name, "cudaLaunchKernel");
  EXPECT_EQ(read->api[0].thread, 962);
}

TEST_F(PackedTraceTest, LongAndStrangeNamesDoNoHarm) {
  Activities activities = Example();
  activities.gpu[0].name = std::string(1000, 'a');
  activities.gpu[1].name = "a\033[2J\nb";
  ASSERT_TRUE(WriteActivities(activities, file_).ok());
  const auto read = ReadActivities(file_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->gpu[0].name, std::string(255, 'a'));
  EXPECT_EQ(read->gpu[1].name, "a?[2J?b");
}

TEST_F(PackedTraceTest, WhatNoTraceHasIsRefused) {
  EXPECT_THAT(Error(), HasSubstr("is not whole"));
  Activities activities = Example();
  activities.gpu[0].end_ns = activities.gpu[0].start_ns - 1;
  ASSERT_TRUE(WriteActivities(activities, file_).ok());
  EXPECT_THAT(Error(), HasSubstr("holds what no trace has"));
  ASSERT_EQ(ftruncate(file_, 1000), 0);
  EXPECT_THAT(Error(), HasSubstr("is not whole"));
  ASSERT_EQ(ftruncate(file_, int64_t{1} << 40), 0);
  EXPECT_NE(Error(), "");
}

}  // namespace
}  // namespace convlab
