// The program as a user runs it.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tools/run_program.h"

namespace convlab {
namespace {

ProgramOutcome Lossy(const std::string& arguments) {
  return RunProgram("tools/lossy/lossy " + arguments);
}

TEST(Lossy, RefusesWrongArguments) {
  for (const char* arguments : {"", "nowhere", "one two"}) {
    const ProgramOutcome outcome = Lossy(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments << ": " << outcome.output;
    EXPECT_EQ(outcome.output.rfind("lossy: ", 0), 0u) << outcome.output;
  }
}

// What docs/numerics.md says of its table: bytes of images are never lossy, and
// no output of these data is uncertain.
TEST(Lossy, NoOutputOfOrdinaryDataIsUncertain) {
  const ProgramOutcome outcome = Lossy("common/weights/models");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const std::vector<std::string> lines =
      absl::StrSplit(outcome.output, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u + 9 + 9) << outcome.output;
  for (size_t i = 2; i < lines.size(); ++i) {
    EXPECT_TRUE(absl::EndsWith(lines[i], " | 0 |")) << lines[i];
    const std::vector<std::string> cells = absl::StrSplit(lines[i], " | ");
    ASSERT_EQ(cells.size(), 7u) << lines[i];
    const bool pixels =
        cells[0] == "| a network's" && absl::EndsWith(cells[1], "-L1");
    EXPECT_EQ(cells[3] == "0.00", pixels) << lines[i];
  }
}

}  // namespace
}  // namespace convlab
