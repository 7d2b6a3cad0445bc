// Whatever a kernel does, the judge learns what it was and goes on: after each
// misbehaving kernel, the same program runs a right one.
#include "kernels/judge/process/process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/judge/process/clock_check.h"
#include "kernels/judge/process/process_trial.h"
#include "kernels/judge/process/shared_tensors.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr Problem kProblem = {2, 3, 9, 11, 4, 3};

std::string Library(const std::string& name) {
  const char* const runfiles = std::getenv("TEST_SRCDIR");
  return absl::StrCat(runfiles == nullptr ? "." : runfiles,
                      "/convlab/kernels/judge/process/testdata/", name, ".so");
}

absl::StatusOr<std::unique_ptr<KernelProcess>> StartBehaviour(
    const std::string& behaviour, ProcessOptions options = {}) {
  setenv("CONVLAB_TEST_BEHAVIOUR", behaviour.c_str(), 1);
  return KernelProcess::Start(Library("behaviours"), options);
}

Trial Try(const std::string& behaviour, ProcessOptions options = {},
          int warm_ops = 0, int timed_ops = 1) {
  auto process = StartBehaviour(behaviour, options);
  if (!process.ok()) {
    Trial trial;
    trial.status = process.status();
    return trial;
  }
  return RunOnce(**process, kProblem, 1, warm_ops, timed_ops);
}

void ExpectRight(const Trial& trial, const std::string& what) {
  EXPECT_TRUE(trial.status.ok()) << what << ": " << trial.status;
  EXPECT_EQ(trial.wrong, 0) << what;
}

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

TEST(Process, FilesAreOutOfReach) {
  const std::string folder = testing::TempDir() + "/files";
  mkdir(folder.c_str(), 0700);
  std::ofstream(folder + "/old") << "content";
  setenv("CONVLAB_TEST_FOLDER", folder.c_str(), 1);
  bool tried = false;
  for (const bool sandbox : {true, false}) {
    ProcessOptions options;
    options.sandbox = sandbox;
    const Trial trial = Try("writes files", options);
    ExpectRight(trial, "writes files");
    if (!absl::StrContains(trial.protection, "bubblewrap") &&
        !absl::StrContains(trial.protection, "landlock")) {
      continue;
    }
    tried = true;
    EXPECT_EQ(trial.printed, "") << trial.protection;
  }
  if (!tried) GTEST_SKIP() << "neither bubblewrap nor Landlock works here";
}

TEST(Process, TheKeyOfSealsIsOutOfReach) {
  setenv("CONVLAB_SEAL_KEY", "/key", 1);
  const Trial trial = Try("looks for the key");
  unsetenv("CONVLAB_SEAL_KEY");
  ExpectRight(trial, "looks for the key");
  EXPECT_EQ(trial.printed, "");
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

struct Case {
  const char* behaviour;
  const char* told;  // by the judge; a regular expression
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.behaviour; }

class Misbehaviour : public ::testing::TestWithParam<Case> {};

TEST_P(Misbehaviour, IsTold) {
  const auto& [behaviour, told] = GetParam();
  const bool limited_by_time = absl::StrContains(told, "took more than");
  for (const bool sandbox : {true, false}) {
    ProcessOptions options;
    options.sandbox = sandbox;
    options.seconds = limited_by_time ? 0.5 : 60;
    options.host_bytes = int64_t{1} << 27;
    const auto start = std::chrono::steady_clock::now();
    const Trial trial = Try(behaviour, options);
    EXPECT_EQ(trial.status.code(), absl::StatusCode::kAborted) << trial.status;
    EXPECT_THAT(std::string(trial.status.message()), ContainsRegex(told));
    EXPECT_LT(std::chrono::steady_clock::now() - start,
              std::chrono::seconds(60));
  }
  ExpectRight(Try("right"), "afterwards");
}

INSTANTIATE_TEST_SUITE_P(
    Crash, Misbehaviour,
    ::testing::ValuesIn<Case>({
        {"segv", "^crashed .SIGSEGV."},
        {"fpe", "^crashed .SIGFPE."},
        {"abort", "^aborted .SIGABRT."},
        {"overflow", "^crashed .SIGSEGV."},
        {"trap", "^crashed .SIGILL."},
        {"thread segv", "^crashed .SIGSEGV."},
        {"segv ignored", "^crashed .SIGSEGV."},
        {"kill self", "^was killed .SIGKILL.$"},
        {"exit 0", "^called exit.0.$"},
        {"_exit", "^called _exit.0.$"},
        {"throws", "^threw std::runtime_error: no such kernel$"},
        {"thread throws", "^threw std::runtime_error: in a thread$"},
        {"constructor exits", "^called exit.0.$"},
        {"other abi", "^was made for version 99 of kernels/judge/source/abi.h"},
    }));

INSTANTIATE_TEST_SUITE_P(
    Limit, Misbehaviour,
    ::testing::ValuesIn<Case>({
        {"endless", "^took more than 0.5 s$"},
        {"stops itself", "^took more than 0.5 s$"},
        {"constructor sleeps", "^took more than 0.5 s$"},
        {"memory", "^(threw std::bad_alloc|used more than 0.1. GiB of memory)"},
        {"shared memory", "^used more than 0.1. GiB of memory$"},
        // Whichever limit it meets first.
        {"many threads",
         "^(started more than 2000 threads|took more than|used "
         "more than)"},
    }));

INSTANTIATE_TEST_SUITE_P(
    Escape, Misbehaviour,
    ::testing::ValuesIn<Case>({
        {"fork", "^started a process$"},
        {"clone", "^started a process$"},
        {"system", "^made a system call that a kernel may not make"},
        {"popen", "^made a system call that a kernel may not make"},
        {"constructor forks", "^started a process$"},
        {"catches refusals", "^started a process$"},
        {"exec", "^started a program$"},
        {"socket", "^opened a network connection$"},
        {"kill parent", "^sent a signal to another process$"},
        {"kill group", "^sent a signal to another process$"},
        {"kill all", "^sent a signal to another process$"},
        {"ptrace", "^reached for another process$"},
        {"read other", "^reached for another process$"},
        {"close all", "^closed its connection to the judge$"},
        {"close all and return", "^closed its connection to the judge$"},
        {"write to all", "^wrote to the judge's socket$"},
        {"forge", "^wrote to the judge's socket$"},
    }));

INSTANTIATE_TEST_SUITE_P(
    Memory, Misbehaviour,
    ::testing::ValuesIn<Case>({
        {"write behind y", "^wrote up to 4 bytes behind y$"},
        {"write far behind y",
         "^crashed .SIGSEGV.*: wrote 20001 bytes behind y$"},
        {"write before y", "^wrote up to 4 bytes before y$"},
        {"read far behind x",
         "^crashed .SIGSEGV.*: read 100001 bytes behind x$"},
        {"write x", "^changed its input x$"},
        {"write k", "^changed its input k$"},
    }));

TEST(Process, TheJudgeAndItsProgramAreOutOfReach) {
  setenv("CONVLAB_TEST_JUDGE", absl::StrCat(getpid()).c_str(), 1);
  for (const bool sandbox : {true, false}) {
    ProcessOptions options;
    options.sandbox = sandbox;
    for (const char* behaviour :
         {"look at judge", "write to program", "shrink files"}) {
      const Trial trial = Try(behaviour, options);
      ExpectRight(trial, behaviour);
      // They print what they could do.
      EXPECT_EQ(trial.printed, "") << behaviour;
    }
  }
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

TEST(ClockCheck, TheJudgesClockIsTheLastWord) {
  ClockCheck clock;
  EXPECT_EQ(*clock.Accept(1'000'000, 1'100'000, 0), 1'000'000);
  // A message that was late is the machine's fault, if the system says so.
  EXPECT_EQ(*clock.Accept(1'000'000, 9'000'000, 8'000'000), 1'000'000);
  // Otherwise it may have happened once.
  EXPECT_EQ(*clock.Accept(1'000'000, 9'000'000, 0), 9'000'000);
  EXPECT_EQ(*clock.Accept(1'000'000, 9'000'000, 0), 9'000'000);
  EXPECT_EQ(*clock.Accept(8'900'000, 9'000'000, 0), 8'900'000);
  EXPECT_TRUE(clock.Accept(1'000'000, 9'000'000, 0).ok());
  EXPECT_TRUE(clock.Accept(1'000'000, 9'000'000, 0).ok());
  EXPECT_THAT(
      std::string(clock.Accept(1'000'000, 9'000'000, 0).status().message()),
      HasSubstr("1.000 ms instead of 9.000 ms"));
  // Three orders take longer than one.
  EXPECT_EQ(*ClockCheck().Accept(1'000'000, 1'500'000, 0, 3), 1'000'000);
  EXPECT_FALSE(ClockCheck().Accept(9'000'001, 9'000'000, 0).ok());
  EXPECT_FALSE(ClockCheck().Accept(-1, 9'000'000, 0).ok());
}

TEST(ClockCheck, ShortOpsProveNothing) {
  ClockCheck clock;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(*clock.Accept(1, 9'000'000, 0), 9'000'000);
    EXPECT_EQ(*clock.Accept(1, 100'000, 0), 1);
  }
  EXPECT_FALSE(clock.Accept(1, 9'000'000, 0).ok());
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
