// Kernels of the GPU in a process of their own; skipped without a GPU. The
// library is part of this program, so that the bundle can carry the test as one
// file.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "kernels/judge/process/process.h"
#include "kernels/judge/process/process_trial.h"

// Of //kernels/judge:gpu_library, by the linker.
extern const char _binary_gpu_so_start[];
extern const char _binary_gpu_so_end[];

namespace convlab {
namespace {

using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr Problem kProblem = {200, 4, 40, 40, 16, 7};

class ProcessGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    library_ = absl::StrCat(testing::TempDir(), "/gpu-", getpid(), ".so");
    std::FILE* const file = std::fopen(library_.c_str(), "wb");
    ASSERT_NE(file, nullptr) << library_;
    const size_t size = _binary_gpu_so_end - _binary_gpu_so_start;
    EXPECT_EQ(std::fwrite(_binary_gpu_so_start, 1, size, file), size);
    std::fclose(file);
  }
  void TearDown() override { unlink(library_.c_str()); }

  Trial Try(const std::string& behaviour, ProcessOptions options = {},
            int warm_ops = 0, int timed_ops = 1) {
    setenv("CONVLAB_TEST_BEHAVIOUR", behaviour.c_str(), 1);
    options.gpu = true;
    const auto process = KernelProcess::Start(library_, options);
    Trial trial;
    trial.status = process.status();
    if (!process.ok()) return trial;
    return RunOnce(**process, kProblem, 1, warm_ops, timed_ops);
  }

  void ExpectRight(const Trial& trial) {
    EXPECT_TRUE(trial.status.ok()) << trial.status;
    EXPECT_EQ(trial.wrong, 0);
    EXPECT_EQ(trial.result.guard, "");
  }

  std::string library_;
};

TEST_F(ProcessGpu, RunsRightKernels) {
  for (const char* behaviour :
       {"right", "default stream", "own stream", "adds", "host right"}) {
    SCOPED_TRACE(behaviour);
    const Trial trial = Try(behaviour, {}, 2, 3);
    ExpectRight(trial);
    EXPECT_THAT(trial.result.op_ns, SizeIs(3));
    EXPECT_THAT(trial.result.event_ns, SizeIs(3));
    EXPECT_THAT(trial.result.event_ns, Each(Gt(0)));
    EXPECT_THAT(trial.result.work, IsEmpty());
    EXPECT_THAT(trial.protection, ContainsRegex("seccomp.*limits"));
    std::fprintf(stderr, "%s: %s\n", behaviour, trial.protection.c_str());
  }
}

TEST_F(ProcessGpu, AttributesWorkToItsPhase) {
  ProcessOptions options;
  options.trace = true;
  for (const char* behaviour : {"right", "host right", "host in prolog"}) {
    SCOPED_TRACE(behaviour);
    const Trial trial = Try(behaviour, options);
    ExpectRight(trial);
    if (trial.result.work.empty()) GTEST_SKIP() << trial.protection;
    const auto& work = trial.result.work;
    ASSERT_THAT(work, SizeIs(3));
    const bool in_prolog = behaviour == std::string("host in prolog");
    EXPECT_EQ(work[kProlog].kernels, in_prolog ? 1 : 0);
    EXPECT_EQ(work[kOp].kernels, in_prolog ? 0 : 1);
    EXPECT_EQ(work[kEpilog].kernels, 0);
    EXPECT_GE(work[kProlog].copies, 2);
    EXPECT_EQ(work[kProlog].copied_bytes,
              4 * (kProblem.input_elements() + kProblem.kernel_elements()));
    EXPECT_EQ(work[kOp].copies, 0);
    EXPECT_EQ(work[kEpilog].copied_bytes, 4 * kProblem.output_elements());
    EXPECT_GT(work[in_prolog ? kProlog : kOp].kernel_ns, 0);
    EXPECT_GE(trial.result.op_ns[0], work[kOp].kernel_ns);
  }
}

TEST_F(ProcessGpu, HandsOutItsTrace) {
  setenv("CONVLAB_TEST_BEHAVIOUR", "right", 1);
  ProcessOptions options;
  options.gpu = true;
  options.trace = true;
  const auto process = KernelProcess::Start(library_, options);
  ASSERT_TRUE(process.ok()) << process.status();
  for (int i = 0; i < 2; ++i) ExpectRight(RunOnce(**process, kProblem, i));
  const auto traced = (*process)->Traced();
  ASSERT_TRUE(traced.ok()) << traced.status();
  if (traced->tool.empty()) GTEST_SKIP() << (*process)->Protection();
  int64_t kernels = 0, last_end = 0;
  for (const GpuActivity& activity : traced->gpu) {
    if (activity.kind != GpuActivity::Kind::kKernel) continue;
    ++kernels;
    EXPECT_GT(activity.block[0], 0);
    EXPECT_GT(activity.end_ns, activity.start_ns);
    // The second call's come after the first one's.
    EXPECT_GT(activity.start_ns, last_end);
    last_end = activity.end_ns;
  }
  EXPECT_EQ(kernels, 2);
  EXPECT_THAT(traced->api, Not(IsEmpty()));
}

TEST_F(ProcessGpu, FindsWhatIsWrong) {
  for (const char* behaviour : {"nothing", "bad launch"}) {
    const Trial trial = Try(behaviour);
    EXPECT_TRUE(trial.status.ok()) << trial.status;
    EXPECT_EQ(trial.wrong, kProblem.output_elements()) << behaviour;
  }
  const Trial behind = Try("write behind y");
  EXPECT_EQ(behind.wrong, 0);
  EXPECT_EQ(behind.result.guard, "wrote 4 bytes behind y in device memory");
  EXPECT_EQ(Try("write before x").result.guard,
            "wrote 8 bytes before x in device memory");
}

TEST_F(ProcessGpu, SaysWhyAKernelDied) {
  ProcessOptions options;
  options.seconds = 20;
  for (const auto& [behaviour, told] :
       {std::pair("illegal address", "illegal memory access"),
        std::pair("change k", "changed its input k in device memory"),
        std::pair("fork", "started a process"),
        std::pair("forever", "took more than 20 s")}) {
    const Trial trial = Try(behaviour, options);
    EXPECT_EQ(trial.status.code(), absl::StatusCode::kAborted) << trial.status;
    EXPECT_THAT(std::string(trial.status.message()), HasSubstr(told));
    ExpectRight(Try("right"));
  }
}

// The library says so itself.
TEST_F(ProcessGpu, FindsOutThatALibraryUsesTheGpu) {
  setenv("CONVLAB_TEST_BEHAVIOUR", "right", 1);
  const auto process = KernelProcess::Start(library_, {});
  ASSERT_TRUE(process.ok()) << process.status();
  const Trial trial = RunOnce(**process, kProblem, 1);
  ExpectRight(trial);
  EXPECT_THAT(trial.result.event_ns, SizeIs(1));
  EXPECT_THAT(trial.result.device_bytes, Ge(kProblem.min_bytes()));
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
