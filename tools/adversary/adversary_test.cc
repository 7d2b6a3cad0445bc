// The adversary as a user runs it.
#include <cstdlib>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/finds.h"
#include "tools/run_program.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

ProgramOutcome Adversary(const std::string& arguments) {
  return RunProgram("tools/adversary/adversary " + arguments);
}

TEST(Adversary, Helps) {
  const ProgramOutcome outcome = Adversary("--help");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("usage: adversary VARIANT LAYER"));
  EXPECT_THAT(outcome.output, HasSubstr("filter-scales"));
  EXPECT_THAT(outcome.output, HasSubstr("--seconds"));
}

TEST(Adversary, RefusesWrongArguments) {
  for (const char* arguments :
       {"", "naive", "naive fa21", "quick fa19-L2 --device cpu",
        "naive fa19-L2 --device tpu", "naive fa19-L2 --seconds 0",
        "naive fa19-L2 --finds 0", "naive fa19-L2 --replay finds.txt",
        "naive --replay /no/file --device cpu",
        "naive 1,1,5,5,1,3 --device cpu --out /no/folder/finds.txt"}) {
    const ProgramOutcome outcome = Adversary(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments << ": " << outcome.output;
    EXPECT_EQ(outcome.output.rfind("adversary: ", 0), 0u) << outcome.output;
  }
}

TEST(Adversary, SearchesAndReplays) {
  const std::string file =
      absl::StrCat(std::getenv("TEST_TMPDIR"), "/finds.txt");
  const ProgramOutcome outcome = Adversary(absl::StrCat(
      "dense_lanes 2,2,9,8,3,3 --device cpu --seconds 0.3 --out ", file));
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("worst: c = "));
  const auto text = ReadFile(file);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("// dense_lanes: c = "));
  const auto finds = ParseFinds(*text);
  ASSERT_TRUE(finds.ok()) << finds.status();
  EXPECT_THAT(*finds, SizeIs(3));
  const ProgramOutcome again =
      Adversary(absl::StrCat("dense_lanes --device cpu --replay ", file));
  EXPECT_EQ(again.exit_status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr(ToString((*finds)[0])));
}

TEST(Adversary, NeedsAGpuForItsVariants) {
  const ProgramOutcome outcome = Adversary("naive 1,1,5,5,1,3 --seconds 0.1");
  // Without CUDA there is no such variant; without a GPU it does not run.
  EXPECT_THAT((std::set<int>{0, 2, 3}),
              ::testing::Contains(outcome.exit_status))
      << outcome.output;
}

TEST(Finds, ParsesLinesAndSaysWhichIsWrong) {
  EXPECT_THAT(*ParseFinds("// none\n\n1,1,5,5,1,3 seed=2 half(3) // bad\n"),
              SizeIs(1));
  const auto error = [](const char* text) {
    return std::string(ParseFinds(text).status().message());
  };
  EXPECT_THAT(error("\n1,2,3 seed=1"), HasSubstr("line 2: '1,2,3': expected"));
  EXPECT_THAT(error("1,1,2,2,1,3 seed=1"), HasSubstr("line 1: "));
  EXPECT_THAT(error("1,1,5,5,1,3 shrink"), HasSubstr("no operation 'shrink'"));
}

}  // namespace
}  // namespace convlab
