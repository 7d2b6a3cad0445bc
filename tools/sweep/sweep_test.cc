// The sweep as a user runs it.
#include <string>

#include "gtest/gtest.h"
#include "tools/run_program.h"

namespace convlab {
namespace {

ProgramOutcome Sweep(const std::string& arguments) {
  return RunProgram("tools/sweep/sweep " + arguments);
}

TEST(Sweep, Helps) {
  const ProgramOutcome outcome = Sweep("--help");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_NE(outcome.output.find("usage: sweep LAYER"), std::string::npos);
  EXPECT_NE(outcome.output.find("--samples"), std::string::npos);
}

TEST(Sweep, RefusesWrongArguments) {
  for (const char* arguments :
       {"", "fa19-L1 fa19-L2", "fa21", "1,2,3", "fa19-L2 --sample 3",
        "fa19-L2 --samples 2", "fa19-L2 --batch 0"}) {
    const ProgramOutcome outcome = Sweep(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments << ": " << outcome.output;
    EXPECT_EQ(outcome.output.rfind("sweep: ", 0), 0u) << outcome.output;
  }
}

TEST(Sweep, PrintsATableOrMissesTheGpu) {
  const ProgramOutcome outcome = Sweep("10,3,20,20,8,5 --samples 3");
  if (outcome.exit_status == 3) {
    EXPECT_NE(outcome.output.find("no NVIDIA GPU"), std::string::npos);
    return;
  }
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("\n*"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace convlab
