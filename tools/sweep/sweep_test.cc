// The sweep as a user runs it.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace {

struct Outcome {
  int exit_status = -1;
  std::string output;  // of both streams
};

Outcome Sweep(const std::string& arguments) {
  Outcome outcome;
  FILE* const pipe =
      popen(("tools/sweep/sweep " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  size_t count;
  while ((count = fread(buffer, 1, sizeof(buffer), pipe)) > 0) {
    outcome.output.append(buffer, count);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_status = WEXITSTATUS(status);
  return outcome;
}

TEST(Sweep, Helps) {
  const Outcome outcome = Sweep("--help");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_NE(outcome.output.find("usage: sweep LAYER"), std::string::npos);
  EXPECT_NE(outcome.output.find("--samples"), std::string::npos);
}

TEST(Sweep, RefusesWrongArguments) {
  for (const char* arguments :
       {"", "fa19-L1 fa19-L2", "fa21", "1,2,3", "fa19-L2 --sample 3",
        "fa19-L2 --samples 0", "fa19-L2 --batch 0"}) {
    const Outcome outcome = Sweep(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments << ": " << outcome.output;
    EXPECT_EQ(outcome.output.rfind("sweep: ", 0), 0u) << outcome.output;
  }
}

TEST(Sweep, PrintsATableOrMissesTheGpu) {
  const Outcome outcome = Sweep("10,3,20,20,8,5 --samples 3");
  if (outcome.exit_status == 3) {
    EXPECT_NE(outcome.output.find("no NVIDIA GPU"), std::string::npos);
    return;
  }
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("\n*"), std::string::npos) << outcome.output;
}

}  // namespace
