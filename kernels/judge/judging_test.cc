// Kernels with a bug, a limit or a trick, and the verdict that each must get.
#include "kernels/judge/judging.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/judge/judging_testing.h"
#include "kernels/judge/process/fault.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

std::string Reason(const Verdict& verdict) {
  EXPECT_LE(verdict.reason.size(), 8u);
  return absl::StrJoin(verdict.reason, "\n");
}

Verdict JudgeOnAll(const Load& load) {
  FunctionKernel kernel{load};
  kernel.quick = false;
  return JudgeFunction(kernel);
}
Verdict JudgeOnOwn(const Load& load) {
  FunctionKernel kernel{load};
  return JudgeFunction(kernel);
}

TEST(Judging, AWrongKernelIsDescribed) {
  const Verdict verdict =
      JudgeOnOwn(Stateless(Changed([](const Problem& problem, float* y) {
        const int64_t columns = problem.output_width();
        for (int64_t i = columns - 1; i < problem.output_elements();
             i += columns) {
          y[i] = 0;
        }
        return absl::OkStatus();
      })));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
  EXPECT_THAT(Reason(verdict), HasSubstr("they lie in the last column"));
  EXPECT_THAT(Reason(verdict), HasSubstr("zero where values are expected"));
  // Times of wrong outputs are none.
  for (const LayerTimes& times : verdict.layers) {
    EXPECT_EQ(times.op_ns.size(), 0u);
  }
}

TEST(Judging, AnEmptyKernelIsWrong) {
  const Verdict verdict =
      JudgeOnOwn(Stateless([](const Problem&, const float*, const float*,
                              float*) { return absl::OkStatus(); }));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
  EXPECT_THAT(Reason(verdict), HasSubstr("never written"));
  // It loses everything, not just what a narrow type loses.
  EXPECT_TRUE(verdict.notes.empty()) << ToString(verdict);
}

TEST(Judging, AllZerosAreWrongAndNotAnEarlierResult) {
  const Verdict verdict =
      JudgeOnOwn(RightIf([](const Problem&) { return false; }));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
}

TEST(Judging, NanNeverPasses) {
  const Verdict verdict =
      JudgeOnOwn(Stateless(Changed([](const Problem&, float* y) {
        y[0] = std::nanf("");
        return absl::OkStatus();
      })));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
}

TEST(Judging, LessThanTheLoosestClassIsWrong) {
  const Verdict verdict = JudgeOnOwn(Stateless(
      Right({[](float value) { return Round(value, 3, 3e38f, 0); }, {}})));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
}

// Precise on the usual inputs only.
TEST(Judging, FixedPointIsNotFp32) {
  const Verdict verdict = JudgeOnAll(Stateless(
      Right({[](float value) { return std::nearbyint(value * 65536) / 65536; },
             {}})));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRight) << Reason(verdict);
  EXPECT_NE(verdict.accuracy, AccuracyClass::kFp32);
}

TEST(Judging, HardWiredSizesAreTold) {
  using P = const Problem&;
  const auto hint = [](const std::function<bool(P)>& holds) {
    const Verdict verdict = JudgeOnAll(RightIf(holds));
    EXPECT_EQ(verdict.outcome, VerdictOutcome::kRestricted)
        << ToString(verdict);
    EXPECT_THAT(Reason(verdict), HasSubstr("zero where values are expected"));
    return verdict.reason.empty() ? "" : verdict.reason[0];
  };
  EXPECT_EQ(hint([](P p) { return p.kernel_size == 5; }),
            "right for K = 5 only");
  EXPECT_EQ(hint([](P p) { return p.batch == 12; }), "right for B = 12 only");
  EXPECT_THAT(hint([](P p) { return p.batch <= 65535; }),
              HasSubstr("wrong from B = 70000 on"));
  EXPECT_EQ(hint([](P p) { return p.height == p.width; }),
            "right for square images only");
  EXPECT_THAT(hint([](P p) { return p.filters <= 16; }),
              HasSubstr("right up to M = 16, wrong from M = "));
}

TEST(Judging, TheRightNetworkIsNamed) {
  // Both layers of fa19.
  for (const bool quick : {true, false}) {
    FunctionKernel kernel{RightIf([](const Problem& p) {
      return p.kernel_size == 5 && (p.filters == 12 || p.filters == 24);
    })};
    kernel.quick = quick;
    const Verdict verdict = JudgeFunction(kernel);
    EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
    EXPECT_EQ(verdict.reason.at(0),
              "right for the sizes of fa19, not for those of sp19: run it with "
              "fa19");
  }
}

TEST(Judging, ACrashOnOtherSizesIsARestriction) {
  const Verdict verdict =
      JudgeOnAll(Stateless(Changed([](const Problem& problem, float*) {
        return problem.kernel_size <= 5
                   ? absl::OkStatus()
                   : KernelFault(Fault::kEnded, "crashed (SIGSEGV) in op");
      })));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRestricted);
  EXPECT_THAT(Reason(verdict), HasSubstr("right up to K = 5, wrong from K = "));
  EXPECT_THAT(Reason(verdict), HasSubstr("crashed (SIGSEGV)"));
}

// Who has sizes hard-wired writes outside where the tensors are smaller.
TEST(Judging, WritingOutsideOnOtherSizesIsARestriction) {
  const auto outside_unless =
      [](const std::function<bool(const Problem&)>& in) {
        return Stateless(Changed([in](const Problem& problem, float*) {
          return in(problem)
                     ? absl::OkStatus()
                     : KernelFault(Fault::kWroteOutside, "too far behind y");
        }));
      };
  Verdict verdict = JudgeOnOwn(
      outside_unless([](const Problem& p) { return p.batch == 12; }));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRestricted);
  EXPECT_EQ(verdict.reason.at(0), "right for B = 12 only");
  verdict = JudgeOnOwn(outside_unless([](const Problem& p) {
    return p.kernel_size == 7 && (p.filters == 4 || p.filters == 16);
  }));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
  EXPECT_THAT(verdict.reason.at(0), HasSubstr("run it with fa20"));
}

TEST(Judging, ALargeBatchThatTakesTooLongIsTold) {
  const Verdict verdict =
      JudgeOnOwn(Stateless(Changed([](const Problem& problem, float*) {
        return problem.batch < 12
                   ? absl::OkStatus()
                   : KernelFault(Fault::kTookTooLong, "needed 61 s");
      })));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kCrashed);
  EXPECT_THAT(Reason(verdict), HasSubstr("ask for a smaller batch"));
}

TEST(Judging, AKernelThatOnlyHangsIsNotAskedForALargeBatch) {
  constexpr double kSeconds = 0.05;
  constexpr int64_t kBatch = 777;
  bool asked = false;
  int calls = 0;
  FunctionKernel kernel{Stateless(
      [&](const Problem& problem, const float*, const float*, float*) {
        asked |= problem.batch == kBatch;
        ++calls;
        absl::SleepFor(absl::Seconds(1.2 * kSeconds));
        return KernelFault(Fault::kTookTooLong, "took more than 0.05 s");
      })};
  kernel.batch = kBatch;
  kernel.seconds = kSeconds;
  for (const bool quick : {true, false}) {
    kernel.quick = quick;
    calls = 0;
    const Verdict verdict = JudgeFunction(kernel);
    EXPECT_EQ(verdict.outcome, VerdictOutcome::kCrashed);
    EXPECT_THAT(Reason(verdict), HasSubstr("took more than"));
    EXPECT_FALSE(asked);
    EXPECT_EQ(calls, quick ? 1 : 3);
  }
}

TEST(Judging, ACrashIsAVerdict) {
  const Verdict verdict = JudgeOnOwn(
      Stateless([](const Problem&, const float*, const float*, float*) {
        return absl::AbortedError("called exit(0)");
      }));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kCrashed);
  EXPECT_THAT(Reason(verdict), HasSubstr("called exit(0)"));
}

TEST(Judging, AKernelThatCannotBeLoadedHasCrashed) {
  Workers workers(1);
  JudgedKernel judged;
  judged.start = [](const ProcessOptions&) {
    return absl::AbortedError("called exit(0)");
  };
  JudgeOptions options;
  options.network = *FindNetwork("sp19");
  options.batch = 2;
  const auto verdict = JudgeKernel(judged, options, workers);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->outcome, VerdictOutcome::kCrashed);
  EXPECT_THAT(Reason(*verdict),
              HasSubstr("when it was loaded: called exit(0)"));
  judged.start = [](const ProcessOptions&) {
    return absl::UnavailableError("there is no GPU");
  };
  EXPECT_EQ(JudgeKernel(judged, options, workers).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(Judging, BrokenRulesAreRefused) {
  // By the fault, whatever the words are.
  const auto judge = [](Fault fault) {
    const Verdict verdict =
        JudgeOnOwn(Stateless(Changed([=](const Problem&, float*) {
          return KernelFault(fault, "in some words");
        })));
    EXPECT_THAT(Reason(verdict), HasSubstr("in some words"));
    return verdict.outcome;
  };
  EXPECT_EQ(judge(Fault::kBrokeRule), VerdictOutcome::kRefused);
  EXPECT_EQ(judge(Fault::kWroteOutside), VerdictOutcome::kRefused);
  EXPECT_EQ(judge(Fault::kEnded), VerdictOutcome::kCrashed);
  EXPECT_EQ(judge(Fault::kAborted), VerdictOutcome::kCrashed);
  EXPECT_EQ(judge(Fault::kTookTooLong), VerdictOutcome::kCrashed);
  FunctionKernel kernel{Stateless(Right())};
  kernel.tell = [](const KernelCall&, CallResult& result) {
    result.guard = "wrote up to 4 bytes behind 1024 bytes of device memory";
  };
  const Verdict verdict = JudgeFunction(kernel);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRefused);
  EXPECT_THAT(Reason(verdict), HasSubstr("behind 1024 bytes"));
}

// Outputs of earlier calls, keyed by the sizes.
TEST(Judging, ACacheIsRefused) {
  const Verdict verdict = JudgeOnOwn([]() -> Op {
    auto cache = std::make_shared<std::map<int64_t, std::vector<float>>>();
    return [cache](const Problem& problem, const float* x, const float* k,
                   float* y) {
      std::vector<float>& result = (*cache)[problem.flops()];
      if (result.empty()) {
        result.resize(problem.output_elements());
        Convolve(problem, x, k, result.data());
      }
      std::copy(result.begin(), result.end(), y);
      return absl::OkStatus();
    };
  });
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRefused);
  EXPECT_THAT(Reason(verdict), HasSubstr("returned the result of an earlier "
                                         "call with other inputs"));
}

TEST(Judging, AddingToWhatTheMemoryHeldIsRefused) {
  const Verdict verdict = JudgeOnOwn(
      Stateless([](const Problem& n, const float* x, const float* k, float* y) {
        std::vector<float> sums(n.output_elements());
        Convolve(n, x, k, sums.data());
        for (size_t i = 0; i < sums.size(); ++i) y[i] += sums[i];
        return absl::OkStatus();
      }));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRefused);
  EXPECT_THAT(Reason(verdict), HasSubstr("right only if the output's memory "
                                         "holds zeros before"));
}

// The kernel counts its calls to know the layer.
TEST(Judging, StateBetweenCallsIsTold) {
  const Verdict verdict = JudgeOnOwn([]() -> Op {
    auto calls = std::make_shared<int>(0);
    return [calls](const Problem& n, const float* x, const float* k, float* y) {
      Convolve(n, x, k, y);
      const bool first = (*calls)++ % 2 == 0;
      if (first != (n.channels == 1)) {
        std::fill_n(y, n.output_elements(), 0.0f);
      }
      return absl::OkStatus();
    };
  });
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRestricted) << ToString(verdict);
  EXPECT_THAT(Reason(verdict), HasSubstr("in the network's order"));
  for (const LayerTimes& times : verdict.layers) {
    EXPECT_EQ(times.op_ns.size(), 3u);
  }
}

TEST(Judging, BothLayersInTheSecondCallIsTold) {
  const Verdict verdict = JudgeOnOwn(
      Stateless([](const Problem& n, const float* x, const float* k, float* y) {
        if (n.channels > 1) Convolve(n, x, k, y);
        return absl::OkStatus();
      }));
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
  EXPECT_THAT(Reason(verdict), HasSubstr("computes both in its second call"));
}

// Wrong in one run of several, as races are.
TEST(Judging, EveryTimedRunIsChecked) {
  const Verdict verdict = JudgeOnOwn([]() -> Op {
    auto runs = std::make_shared<int>(0);
    return [runs](const Problem& n, const float* x, const float* k, float* y) {
      Convolve(n, x, k, y);
      if (n.batch == 12 && ++*runs == 6) y[n.output_elements() / 2] = 0;
      return absl::OkStatus();
    };
  });
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kWrong);
  EXPECT_THAT(verdict.reason.at(0), HasSubstr(": 1 of "));
  EXPECT_THAT(Reason(verdict), HasSubstr("runs before were right ("));
}

TEST(Judging, ImpossibleTimesAreRefused) {
  FunctionKernel kernel{Stateless(Right())};
  kernel.gpu = true;
  kernel.limits.memory_gbs = 4000;
  kernel.tell = [](const KernelCall&, CallResult& result) {
    result.op_ns.assign(result.op_ns.size(), 10);
  };
  Verdict verdict = JudgeFunction(kernel);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRefused);
  EXPECT_THAT(Reason(verdict), HasSubstr("its op time is impossible"));
  // With a prolog the work may be there.
  kernel.has_prolog = true;
  verdict = JudgeFunction(kernel);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRight);
  EXPECT_FALSE(verdict.op_time_counts);
}

TEST(Judging, WorkOutsideTheOpIsNoResult) {
  FunctionKernel kernel{Stateless(Right())};
  kernel.gpu = kernel.has_prolog = true;
  kernel.tell = [](const KernelCall&, CallResult& result) {
    result.work = {PhaseWork{3, 9'000'000, 2, 100, 9'000'000},
                   PhaseWork{1, 500'000, 0, 0, 500'000}, PhaseWork{}};
  };
  Verdict verdict = JudgeFunction(kernel);
  EXPECT_FALSE(verdict.op_time_counts);
  EXPECT_THAT(verdict.op_time_note,
              HasSubstr("95 % of the kernels' time is outside the op"));
  // A clock that lies is an offence.
  kernel.tell = [](const KernelCall&, CallResult& result) {
    result.work = {PhaseWork{}, PhaseWork{1, 9'000'000, 0, 0, 9'000'000},
                   PhaseWork{}};
  };
  verdict = JudgeFunction(kernel);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRefused);
  EXPECT_THAT(Reason(verdict), HasSubstr("the clocks disagree"));
}

TEST(Judging, TheVerdictFitsOnAScreen) {
  Verdict verdict =
      JudgeOnAll(RightIf([](const Problem& p) { return p.kernel_size == 5; }));
  verdict.op_time_note = std::string(30, 'a') + " " + std::string(60, 'b');
  verdict.notes.assign(3,
                       "a note that is longer than a line of the terminal, "
                       "so that it has to be wrapped somewhere");
  const std::vector<std::string> lines =
      absl::StrSplit(ToString(verdict), '\n');
  EXPECT_LE(lines.size(), 24u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(lines[0], HasSubstr("restricted: "));
  EXPECT_THAT(ToString(verdict), HasSubstr("seed 20261122; process: none"));
}

}  // namespace
}  // namespace convlab
