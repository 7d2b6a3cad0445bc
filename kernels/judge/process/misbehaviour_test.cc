// Whatever a kernel does, the judge learns what it was and goes on: after each
// misbehaving kernel, the same program runs a right one. And what a kernel must
// not reach, it does not.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <ostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/judge/process/behaviour_trial.h"
#include "kernels/judge/process/process.h"
#include "kernels/judge/process/process_trial.h"

namespace convlab {
namespace {

using ::testing::ContainsRegex;

struct Case {
  const char* behaviour;
  const char* told;  // by the judge; a regular expression
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.behaviour; }

class Misbehaviour : public ::testing::TestWithParam<Case> {};

TEST_P(Misbehaviour, IsTold) {
  const auto& [behaviour, told] = GetParam();
#ifdef __SANITIZE_THREAD__
  if (absl::string_view(behaviour) == "catches refusals") {
    GTEST_SKIP() << "the sanitizer notes a handler although it is refused";
  }
#endif
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

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
