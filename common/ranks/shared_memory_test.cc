#include "common/ranks/shared_memory.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

constexpr int64_t kBytes = 3 << 20;

TEST(SharedSegment, AnotherProcessSeesWhatIsWritten) {
  const auto memory = SharedSegment::Create(kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_EQ((*memory)->bytes(), kBytes);
  EXPECT_EQ((*memory)->data()[kBytes - 1], 0);
  (*memory)->data()[kBytes - 1] = 7;
  const std::string handle = (*memory)->handle();
  const pid_t child = fork();
  if (child == 0) {
    // What it inherits would show the same bytes: it opens its own.
    const auto there = SharedSegment::Open(handle);
    if (!there.ok() || (*there)->bytes() != kBytes) _exit(1);
    if ((*there)->data() == (*memory)->data()) _exit(2);
    if ((*there)->data()[kBytes - 1] != 7) _exit(3);
    (*there)->data()[0] = 8;
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ((*memory)->data()[0], 8);
}

TEST(SharedSegment, OnlyWhatIsMeantIsOpened) {
  auto memory = SharedSegment::Create(kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const std::string handle = (*memory)->handle();
  const std::string place = handle.substr(0, handle.rfind(' ') + 1);
  EXPECT_TRUE(SharedSegment::Open(handle).ok());
  EXPECT_TRUE(absl::IsUnavailable(SharedSegment::Open(place + "1").status()));
  for (const char* wrong : {"", "1 2", "a b c", "1 2 3 4"}) {
    EXPECT_TRUE(absl::IsInternal(SharedSegment::Open(wrong).status())) << wrong;
  }
  // A descriptor that is something else: a pipe, and none.
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const std::string process = handle.substr(0, handle.find(' ') + 1);
  for (const int file : {pipe_ends[0], 1000000}) {
    EXPECT_TRUE(absl::IsUnavailable(
        SharedSegment::Open(process + std::to_string(file) + " 1").status()));
  }
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  memory->reset();
  EXPECT_TRUE(absl::IsUnavailable(SharedSegment::Open(handle).status()));
}

TEST(SharedSegment, ALimitOfFilesIsToldWithoutASignal) {
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit less = before;
  less.rlim_cur = kBytes;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &less), 0);
  EXPECT_TRUE(absl::IsUnavailable(SharedSegment::Create(kBytes).status()));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(SharedSegment::Create(kBytes).ok());
}

}  // namespace
}  // namespace convlab
