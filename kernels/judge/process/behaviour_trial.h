// Runs the kernels of testdata/behaviours.cc, each of which does what its name
// says, in tests.
#ifndef KERNELS_JUDGE_PROCESS_BEHAVIOUR_TRIAL_H_
#define KERNELS_JUDGE_PROCESS_BEHAVIOUR_TRIAL_H_

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/convolution/problem.h"
#include "kernels/judge/process/process.h"
#include "kernels/judge/process/process_trial.h"

namespace convlab {

inline constexpr Problem kProblem = {2, 3, 9, 11, 4, 3};

inline std::string Library(const std::string& name) {
  const char* const runfiles = std::getenv("TEST_SRCDIR");
  return absl::StrCat(runfiles == nullptr ? "." : runfiles,
                      "/convlab/kernels/judge/process/testdata/", name, ".so");
}

inline absl::StatusOr<std::unique_ptr<KernelProcess>> StartBehaviour(
    const std::string& behaviour, ProcessOptions options = {}) {
  setenv("CONVLAB_TEST_BEHAVIOUR", behaviour.c_str(), 1);
  return KernelProcess::Start(Library("behaviours"), options);
}

inline Trial Try(const std::string& behaviour, ProcessOptions options = {},
                 int warm_ops = 0, int timed_ops = 1) {
  auto process = StartBehaviour(behaviour, options);
  if (!process.ok()) {
    Trial trial;
    trial.status = process.status();
    return trial;
  }
  return RunOnce(**process, kProblem, 1, warm_ops, timed_ops);
}

inline void ExpectRight(const Trial& trial, const std::string& what) {
  EXPECT_TRUE(trial.status.ok()) << what << ": " << trial.status;
  EXPECT_EQ(trial.wrong, 0) << what;
}

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_BEHAVIOUR_TRIAL_H_
