// What becomes of kernels that do as they should, or fail in their own process;
// misbehaviour_test.cc has those that reach for what is not theirs.
#include "kernels/judge/process/process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/judge/process/behaviour_trial.h"
#include "kernels/judge/process/process_trial.h"
#include "kernels/judge/process/shared_tensors.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(Process, RunsARightKernelOnManyProblems) {
  auto process = StartBehaviour("right");
  ASSERT_TRUE(process.ok()) << process.status();
  int seed = 0;
  for (const Problem& problem :
       {kProblem, Problem{1, 1, 1, 1, 1, 1}, Problem{3, 2, 40, 40, 5, 7},
        kProblem, kProblem}) {
    const Trial trial = RunOnce(**process, problem, ++seed);
    ExpectRight(trial, "right");
    ASSERT_THAT(trial.result.op_ns, SizeIs(1));
    ASSERT_THAT(trial.result.judge_ns, SizeIs(1));
    EXPECT_GT(trial.result.op_ns[0], 0);
    EXPECT_LE(trial.result.op_ns[0], trial.result.judge_ns[0]);
    EXPECT_EQ(trial.result.whole_ns, trial.result.judge_ns[0]);
    EXPECT_THAT(trial.result.event_ns, IsEmpty());
    EXPECT_THAT(trial.result.work, IsEmpty());
  }
  EXPECT_THAT((*process)->Protection(), ContainsRegex("seccomp.*, limits"));
}

// One problem's tensors are larger than those before, in turn x, k and y; small
// ones in between use the same room.
TEST(Process, ProcessesUseOneMemoryOneAfterAnother) {
  ProcessOptions options;
  options.memory = std::make_shared<SharedMemory>();
  const Problem small = {1, 1, 4, 4, 1, 3};
  ASSERT_TRUE(options.memory->Reserve({kProblem, small}).ok());
  int seed = 0;
  for (int i = 0; i < 3; ++i) {
    auto process = StartBehaviour("right", options);
    ASSERT_TRUE(process.ok()) << process.status();
    const int version = options.memory->version();
    for (const Problem& problem :
         {kProblem, small, Problem{1, 64, 130, 130, 1, 3}, small,
          Problem{1, 600, 45, 45, 1, 45}, small,
          Problem{1, 1, 1030, 1030, 1, 2}, kProblem}) {
      ExpectRight(RunOnce(**process, problem, ++seed), "right");
    }
    // Nothing is left to make room for, from the second process on.
    EXPECT_EQ(options.memory->version() > version, i == 0);
  }
}

// Landlock is not in every system.
constexpr char kWithoutBubblewrap[] = "^seccomp(, landlock)?, limits$";

TEST(Process, WorksWithoutBubblewrap) {
  ProcessOptions options;
  options.sandbox = false;
  const Trial trial = Try("right", options);
  ExpectRight(trial, "right");
  EXPECT_THAT(trial.protection, ContainsRegex(kWithoutBubblewrap));
}

// In a program of its own, which remembers that bubblewrap failed.
TEST(ProcessDeathTest, GoesOnWhereBubblewrapFails) {
  const auto run = [] {
    const std::string folder = absl::StrCat(testing::TempDir(), "/path");
    mkdir(folder.c_str(), 0755);
    const std::string program = folder + "/bwrap";
    std::ofstream(program) << "#!/bin/sh\necho no permission >&2\nexit 1\n";
    chmod(program.c_str(), 0755);
    setenv("PATH", absl::StrCat(folder, ":/usr/bin:/bin").c_str(), 1);
    for (int i = 0; i < 2; ++i) {
      const Trial trial = Try("right");
      if (!trial.status.ok() || trial.wrong != 0 ||
          !absl::EndsWith(trial.protection, ", limits") ||
          absl::StrContains(trial.protection, "bubblewrap") ||
          !trial.printed.empty()) {
        std::cerr << trial.status << trial.protection << trial.printed;
        _exit(1);
      }
    }
    _exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

// Another program starts the process.
TEST(Process, TakesAWrapper) {
  ProcessOptions options;
  options.wrapper = {"/usr/bin/env", "CONVLAB_TEST_WRAPPED=1"};
  const Trial trial = Try("right", options);
  ExpectRight(trial, "right");
  EXPECT_EQ(trial.protection, "limits");
}

TEST(Process, EveryOpFindsItsOutputAsPromised) {
  const Trial adds = Try("adds", {}, 2, 3);
  ExpectRight(adds, "adds");
  EXPECT_THAT(adds.result.op_ns, SizeIs(3));
  const Trial first = Try("only first", {}, 1, 1);
  EXPECT_TRUE(first.status.ok()) << first.status;
  EXPECT_EQ(first.wrong, kProblem.output_elements());
}

TEST(Process, TimesAreThoseOfTheWork) {
  for (const int64_t ns : Try("sleeps", {}, 1, 4).result.op_ns) {
    EXPECT_GE(ns, 20'000'000);
    EXPECT_LE(ns, 200'000'000);
  }
}

TEST(Process, WhatReturnsTooEarlyIsFound) {
  for (const char* behaviour : {"nothing", "later"}) {
    const Trial trial = Try(behaviour);
    EXPECT_TRUE(trial.status.ok()) << trial.status;
    // Time in which a thread that still ran would have finished.
    usleep(200'000);
    EXPECT_EQ(trial.wrong, kProblem.output_elements()) << behaviour;
  }
  auto process = StartBehaviour("later");
  ASSERT_TRUE(process.ok()) << process.status();
  const auto tensors = (*process)->Map(kProblem);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  Fill(*tensors, 1);
  KernelCall call;
  call.problem = kProblem;
  ASSERT_TRUE((*process)->Run(call).ok());
  usleep(200'000);
  EXPECT_EQ(CountWrong(kProblem, *tensors), kProblem.output_elements())
      << "the process was not stopped";
  // Its thread takes 100 ms.
  call.linger_seconds = 2;
  Fill(*tensors, 2);
  ASSERT_TRUE((*process)->Run(call).ok());
  EXPECT_EQ(CountWrong(kProblem, *tensors), 0);
}

TEST(Process, MemoryThatIsNotFreedShows) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer's own memory counts as the process's";
#endif
  for (const auto& [behaviour, bytes] :
       {std::pair("right", 0), std::pair("leaks", 16 << 20)}) {
    auto process = StartBehaviour(behaviour);
    ASSERT_TRUE(process.ok()) << process.status();
    ExpectRight(RunOnce(**process, kProblem, 1), behaviour);
    int64_t before = 0;
    for (int i = 0; i < 3; ++i) {
      const Trial trial = RunOnce(**process, kProblem, i);
      ExpectRight(trial, behaviour);
      if (i > 0) {
        EXPECT_NEAR(trial.result.process_bytes - before, bytes, 1 << 20);
      }
      before = trial.result.process_bytes;
    }
  }
}

TEST(Process, AThreadThatIsLeftRunningDoesNoHarm) {
  auto process = StartBehaviour("leaves a thread");
  ASSERT_TRUE(process.ok()) << process.status();
  for (int i = 0; i < 3; ++i) ExpectRight(RunOnce(**process, kProblem, i), "");
}

TEST(Process, OutputIsKeptAndIsNoVerdict) {
  const Trial trial = Try("prints");
  ExpectRight(trial, "prints");
  EXPECT_THAT(trial.printed, HasSubstr("Correctness: 1.0\n"));
  EXPECT_THAT(trial.printed, HasSubstr("Op Time: 0.000001\n"));
  const Trial much = Try("prints much");
  ExpectRight(much, "prints much");
  EXPECT_THAT(much.printed, SizeIs(64 << 10));
  EXPECT_THAT(much.printed, StartsWith("line 0\nline 1\n"));
  EXPECT_EQ(Try("exit 1 printing").printed, "last words");
}

// Whoever waits for a kernel is told so, and when the wait is over.
TEST(Process, AWaitIsTold) {
  std::vector<double> told;
  ProcessOptions options;
  options.seconds = 1.5;
  options.patience = 0.1;
  options.waiting = [&](double seconds) { told.push_back(seconds); };
  Try("right", options);
  told.clear();
  EXPECT_FALSE(Try("endless", options).status.ok());
  ASSERT_GE(told.size(), 3);
  EXPECT_GT(told[0], 0.1);
  EXPECT_GT(told[1], told[0]);
  EXPECT_LT(told[1], 1.6);
  EXPECT_EQ(told.back(), 0);
  EXPECT_EQ(std::count(told.begin(), told.end(), 0), 1);
}

TEST(Process, ALibraryCannotReplaceTheClock) {
  const auto process = KernelProcess::Start(Library("clock"), {});
  ASSERT_TRUE(process.ok()) << process.status();
  const Trial trial = RunOnce(**process, {1, 1, 1, 1, 1, 1}, 1);
  ExpectRight(trial, "clock");
  EXPECT_GT(trial.result.op_ns[0], 1'000'000);
}

TEST(Process, SaysWhyALibraryCannotBeLoaded) {
  const auto missing = KernelProcess::Start("/nowhere/kernel.so", {});
  EXPECT_THAT(std::string(missing.status().message()),
              AllOf(HasSubstr("cannot be loaded"), HasSubstr("/nowhere")));
}

TEST(Process, ADeadProcessSaysSo) {
  auto process = StartBehaviour("exit 0");
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_FALSE(RunOnce(**process, kProblem, 1).status.ok());
  EXPECT_EQ(RunOnce(**process, kProblem, 1).status.message(),
            "its process has ended");
}

TEST(Process, RefusesTensorsThatNoMemoryHolds) {
  auto process = StartBehaviour("right");
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(
      (*process)->Map({1 << 20, 1 << 10, 1 << 7, 1 << 7, 1, 1}).status().code(),
      absl::StatusCode::kResourceExhausted);
  EXPECT_EQ((*process)->Map({1, 1, 3, 3, 1, 4}).status().code(),
            absl::StatusCode::kInvalidArgument);
  ExpectRight(RunOnce(**process, kProblem, 1), "afterwards");
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
