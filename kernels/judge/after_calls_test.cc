// Kernels that leave something behind when a call has returned: threads that
// still compute, or memory.
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/judge/judging.h"
#include "kernels/judge/judging_testing.h"
#include "kernels/judge/process/fault.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(AfterCalls, ThreadsThatStillRunAreTold) {
  FunctionKernel kernel{Stateless([](const Problem&, const float*, const float*,
                                     float*) { return absl::OkStatus(); })};
  kernel.late = Right();
  Verdict verdict = JudgeFunction(kernel);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
  EXPECT_THAT(verdict.reason.at(0),
              HasSubstr("its threads still write the output"));
  // Right for other networks alone, by luck: no reason to run it with them.
  kernel.load = RightIf([](const Problem& p) { return p.channels > 6; });
  verdict = JudgeFunction(kernel);
  EXPECT_THAT(verdict.reason.at(0),
              HasSubstr("its threads still write the output"));
  // One that meets the tensors of the next call may crash.
  kernel.load = [] {
    auto calls = std::make_shared<int>(0);
    return [calls](const Problem&, const float*, const float*, float*) {
      return (*calls)++ == 0 ? absl::OkStatus()
                             : KernelFault(Fault::kEnded, "crashed (SIGSEGV)");
    };
  };
  verdict = JudgeFunction(kernel);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
  EXPECT_THAT(verdict.reason.at(0),
              HasSubstr("its threads still write the output"));
  // What is wrong all the same has another reason.
  kernel.load = Stateless([](const Problem&, const float*, const float*,
                             float*) { return absl::OkStatus(); });
  kernel.late = RightIf([](const Problem&) { return false; })();
  verdict = JudgeFunction(kernel);
  EXPECT_THAT(absl::StrJoin(verdict.reason, "\n"), Not(HasSubstr("threads")));
}

TEST(AfterCalls, MemoryThatGrowsWithEachCallIsANote) {
  for (const int64_t growth : {0, 300'000'000}) {
    FunctionKernel kernel{Stateless(Right())};
    int64_t bytes = 0;
    // What is kept of the first calls is no leak.
    int calls = 0;
    kernel.tell = [&](const KernelCall&, CallResult& result) {
      bytes += ++calls < 8 ? 50'000'000 : growth;
      result.process_bytes = bytes;
    };
    const Verdict verdict = JudgeFunction(kernel);
    EXPECT_EQ(verdict.outcome, VerdictOutcome::kRight);
    EXPECT_EQ(absl::StrContains(ToString(verdict), "about 300 MB"), growth > 0)
        << ToString(verdict);
    EXPECT_EQ(verdict.notes.size(), growth > 0 ? 1 : 0);
  }
}

TEST(AfterCalls, MemoryThatGrewIsTheReasonOfAnEnd) {
  FunctionKernel kernel{[]() -> Op {
    auto calls = std::make_shared<int>(0);
    return [calls](const Problem& n, const float* x, const float* k, float* y) {
      if (++*calls > 5) {
        return KernelFault(Fault::kEnded, "used more than 2 GiB of memory");
      }
      Convolve(n, x, k, y);
      return absl::OkStatus();
    };
  }};
  int64_t bytes = 0;
  kernel.tell = [&](const KernelCall&, CallResult& result) {
    result.process_bytes = bytes += 300'000'000;
  };
  const Verdict verdict = JudgeFunction(kernel);
  EXPECT_THAT(absl::StrJoin(verdict.reason, "\n"),
              HasSubstr("about 300 MB with each call"));
}

}  // namespace
}  // namespace convlab
