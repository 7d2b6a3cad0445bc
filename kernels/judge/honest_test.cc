// Honest kernels, which must never be accused, whatever they do that is
// unusual.
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/judge/judging_testing.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Notes(const Verdict& verdict) {
  return absl::StrJoin(verdict.notes, "\n");
}

void ExpectRight(const Verdict& verdict) {
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRight) << ToString(verdict);
  EXPECT_THAT(verdict.reason, IsEmpty());
  EXPECT_EQ(verdict.problems_right, verdict.problems_tried);
  for (const LayerTimes& times : verdict.layers) {
    EXPECT_EQ(times.op_ns.size(), 3u);
    EXPECT_EQ(times.whole_ns.size(), 3u);
  }
}

TEST(Honest, TheDefinitionOnEverything) {
  FunctionKernel kernel{Stateless(Right())};
  kernel.quick = false;
  const Verdict verdict = JudgeFunction(kernel);
  ExpectRight(verdict);
  EXPECT_EQ(verdict.accuracy, AccuracyClass::kFp32);
  EXPECT_GT(verdict.relative_error, 0);
  EXPECT_GE(verdict.problems_tried, 50);
  EXPECT_TRUE(verdict.op_time_counts);
  EXPECT_THAT(verdict.notes, IsEmpty());
}

TEST(Honest, Tf32) {
  FunctionKernel kernel{Stateless(
      Right({[](float value) { return Round(value, 10, 3e38f, 0); }, {}}))};
  kernel.quick = false;
  const Verdict verdict = JudgeFunction(kernel);
  ExpectRight(verdict);
  EXPECT_EQ(verdict.accuracy, AccuracyClass::kTf32);
  EXPECT_THAT(verdict.notes, IsEmpty());
}

TEST(Honest, OperandsInHalves) {
  FunctionKernel kernel{Stateless(Right({ToHalf, {}}))};
  kernel.quick = false;
  const Verdict verdict = JudgeFunction(kernel);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRight) << ToString(verdict);
  EXPECT_NE(verdict.accuracy, AccuracyClass::kFp32);
}

TEST(Honest, SumsInHalves) {
  FunctionKernel kernel{Stateless(Right({ToHalf, ToHalf}))};
  kernel.quick = false;
  const Verdict verdict = JudgeFunction(kernel);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRight) << ToString(verdict);
  EXPECT_EQ(verdict.accuracy, AccuracyClass::kBf16);
  // Their range is told, and is no offence.
  EXPECT_THAT(Notes(verdict), HasSubstr("a type of small range"));
}

TEST(Honest, OperandsInBf16) {
  FunctionKernel kernel{Stateless(
      Right({[](float value) { return Round(value, 7, 3e38f, 0); }, {}}))};
  const Verdict verdict = JudgeFunction(kernel);
  ExpectRight(verdict);
  EXPECT_EQ(verdict.accuracy, AccuracyClass::kBf16);
}

// Transforms round integers.
TEST(Honest, ATransform) {
  FunctionKernel kernel{Stateless(Changed([](const Problem& problem, float* y) {
    for (int64_t i = 0; i < problem.output_elements(); ++i) {
      y[i] += 2e-7f * static_cast<float>(i % 3 - 1);
    }
    return absl::OkStatus();
  }))};
  const Verdict verdict = JudgeFunction(kernel);
  ExpectRight(verdict);
  EXPECT_EQ(verdict.accuracy, AccuracyClass::kFp32);
  EXPECT_THAT(Notes(verdict), HasSubstr("integers are not exact"));
}

// Filters padded with zeros multiply pixels that do not belong to the output:
// NaN spreads there.
TEST(Honest, PaddedFilters) {
  FunctionKernel kernel{Stateless([](const Problem& n, const float* x,
                                     const float* k, float* y) {
    Convolve(n, x, k, y);
    for (int64_t i = 0; i < n.output_elements(); ++i) {
      const int64_t w = i % n.output_width();
      const int64_t h = i / n.output_width() % n.output_height();
      const int64_t b = i / n.output_width() / n.output_height() / n.filters;
      const int64_t next = w + n.kernel_size;
      if (next < n.width) {
        y[i] += 0 * x[(b * n.channels * n.height + h) * n.width + next];
      }
    }
    return absl::OkStatus();
  })};
  kernel.quick = false;
  const Verdict verdict = JudgeFunction(kernel);
  EXPECT_EQ(verdict.outcome, VerdictOutcome::kRight) << ToString(verdict);
  EXPECT_EQ(verdict.accuracy, AccuracyClass::kFp32);
  EXPECT_THAT(Notes(verdict), HasSubstr("NaN and infinities"));
}

// A phase of a traced call.
PhaseWork Work(int64_t kernels, int64_t kernel_ns, int64_t copies) {
  return {kernels, kernel_ns, copies, 1000 * copies, kernel_ns};
}

// Constant memory is filled and the input converted in the prolog.
TEST(Honest, PreparationInTheProlog) {
  FunctionKernel kernel{Stateless(Right())};
  kernel.gpu = kernel.has_prolog = true;
  kernel.tell = [](const KernelCall&, CallResult& result) {
    result.work = {Work(1, 200'000, 3), Work(1, 900'000, 0), Work(0, 0, 1)};
  };
  const Verdict verdict = JudgeFunction(kernel);
  ExpectRight(verdict);
  EXPECT_TRUE(verdict.op_time_counts);
  EXPECT_THAT(verdict.op_time_note,
              HasSubstr("18 % of the kernels' time is outside the op, in the "
                        "prolog"));
}

// The course's own solution with streams works in the prolog.
TEST(Honest, AllWorkInTheProlog) {
  FunctionKernel kernel{Stateless(Right())};
  kernel.gpu = kernel.has_prolog = true;
  kernel.limits.memory_gbs = 4000;
  kernel.tell = [](const KernelCall&, CallResult& result) {
    result.op_ns.assign(result.op_ns.size(), 3000);
    result.whole_ns = 50'000'000;
    result.work = {Work(20, 900'000, 40), Work(0, 0, 0), Work(0, 0, 0)};
  };
  const Verdict verdict = JudgeFunction(kernel);
  ExpectRight(verdict);
  EXPECT_FALSE(verdict.op_time_counts);
  EXPECT_EQ(verdict.op_time_note,
            "the op gives the GPU nothing to do: all kernels run in the "
            "prolog");
  EXPECT_THAT(ToString(verdict),
              HasSubstr("op time is no result, the whole operation counts"));
}

// It accumulates across calls of its op, which the course calls once.
TEST(Honest, AnOpThatNeedsItsProlog) {
  FunctionKernel kernel{Stateless(Right())};
  int calls = 0;
  kernel.load = [&]() -> Op {
    return
        [&calls](const Problem& n, const float* x, const float* k, float* y) {
          ++calls;
          Convolve(n, x, k, y);
          for (int64_t i = 0; calls > 1 && i < n.output_elements(); ++i) {
            y[i] *= static_cast<float>(calls);
          }
          return absl::OkStatus();
        };
  };
  // The epilog.
  kernel.tell = [&](const KernelCall&, CallResult&) { calls = 0; };
  const Verdict verdict = JudgeFunction(kernel);
  ExpectRight(verdict);
  EXPECT_THAT(Notes(verdict), HasSubstr("the op cannot be repeated"));
  EXPECT_THAT(Notes(verdict), HasSubstr("3 times the expected value"));
}

TEST(Honest, LeaksAreTold) {
  FunctionKernel kernel{Stateless(Right())};
  kernel.tell = [](const KernelCall&, CallResult& result) {
    result.leaked_bytes = 1 << 20;
    result.device_bytes = 3 << 20;
  };
  const Verdict verdict = JudgeFunction(kernel);
  ExpectRight(verdict);
  EXPECT_EQ(verdict.layers[0].device_bytes, 3 << 20);
  EXPECT_THAT(Notes(verdict), HasSubstr("not freed"));
}

TEST(Honest, ALeakDoesNotFillTheDevice) {
  int processes = 0;
  FunctionKernel kernel{[&] {
    ++processes;
    return Right();
  }};
  kernel.tell = [](const KernelCall&, CallResult& result) {
    result.leaked_bytes = int64_t{5} << 30;
  };
  ExpectRight(JudgeFunction(kernel));
  EXPECT_GT(processes, 4);
}

// The CPU's part of the op hides the GPU's clock.
TEST(Honest, AnOpOnTheCpuOfAGpuFile) {
  FunctionKernel kernel{Stateless(Right())};
  kernel.gpu = kernel.has_prolog = true;
  kernel.tell = [](const KernelCall&, CallResult& result) {
    result.work = {Work(0, 0, 3), Work(0, 0, 0), Work(0, 0, 1)};
  };
  const Verdict verdict = JudgeFunction(kernel);
  ExpectRight(verdict);
  EXPECT_TRUE(verdict.op_time_counts);
}

}  // namespace
}  // namespace convlab
