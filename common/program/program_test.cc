#include "common/program/program.h"

#include <chrono>

#include "gtest/gtest.h"

namespace convlab {
namespace {

TEST(RunProgram, ReturnsOutputAndStatus) {
  ProgramOptions options;
  options.folder = "/";
  options.environment = {{"CONVLAB_TEST", "a b"}};
  const auto result = RunProgram(
      {"sh", "-c", "pwd; echo \"$CONVLAB_TEST\" >&2; exit 3"}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "/\na b\n");
  EXPECT_EQ(result->exit_status, 3);
}

TEST(RunProgram, SaysWhichSignalEndedTheProgram) {
  const auto result = RunProgram({"sh", "-c", "kill -9 $$"}, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_status, 128 + 9);
}

TEST(RunProgram, KeepsTheBeginningOfMuchOutput) {
  const auto result =
      RunProgram({"sh", "-c", "head -c 20000000 /dev/zero; exit 3"}, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output.size(), kMostOutput);
  EXPECT_EQ(result->exit_status, 3);
}

TEST(RunProgram, NoSuchProgram) {
  const auto result = RunProgram({"/nowhere/program"}, {});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(result.status().message(),
            "cannot run /nowhere/program: No such file or directory");
}

TEST(RunProgram, KillsTheProgramAndItsChildren) {
  ProgramOptions options;
  options.seconds = 0.2;
  const auto begin = std::chrono::steady_clock::now();
  const auto result = RunProgram({"sh", "-c", "sleep 60 & sleep 60"}, options);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace convlab
