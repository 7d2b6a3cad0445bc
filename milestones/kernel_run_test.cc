// Tests --kernel as a user sees it, with kernels of the CPU.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/record/run_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "milestones/program_testing.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kSum[] =
    "for (int c = 0; c < C; ++c) for (int p = 0; p < K; ++p)\n"
    "  for (int q = 0; q < K; ++q)\n"
    "    s += x[((b * C + c) * H + h + p) * W + w + q] *\n"
    "         k[((m * C + c) * K + p) * K + q];\n";

// The loops of the definition as a kernel of our own form, the last column
// left out where `columns` is "W - K", and `before` at their begin.
std::string Plain(const std::string& columns, const std::string& before = "") {
  return absl::StrCat(
      "#include <cstdio>\n#include <cstdlib>\n"
      "extern \"C\" void convolution(const float* x, const float* k, float* "
      "y,\n"
      "    int B, int C, int H, int W, int M, int K) {\n",
      before,
      "for (int b = 0; b < B; ++b) for (int m = 0; m < M; ++m)\n"
      "for (int h = 0; h < H - K + 1; ++h) for (int w = 0; w < ",
      columns, "; ++w) {\nfloat s = 0;\n", kSum,
      "y[((b * M + m) * (H - K + 1) + h) * (W - K + 1) + w] = s;\n}\n}\n");
}

class KernelRunTest : public ProgramsTest {
 protected:
  // The number of correct answers that the weights give.
  static constexpr char kRight[] = "Correctness: 0.9 Model: sp19";
};

TEST_F(KernelRunTest, ARightKernelIsJudgedTimedAndRecorded) {
  Write("mine.cc", Plain("W - K + 1"));
  const Outcome outcome =
      Run("m2", "sp19 100 --quick --kernel mine.cc --record r.json");
  EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
  EXPECT_EQ(CorrectnessOf(outcome), kRight);
  EXPECT_THAT(outcome.out, Contains(StartsWith("Op Time: ")).Times(2));
  EXPECT_THAT(outcome.out,
              Contains(AllOf(StartsWith("right: "), HasSubstr("class fp32"))));
  EXPECT_THAT(outcome.out, Contains(StartsWith("place ")));
  const auto record = ReadRunRecord(Path("r.json"));
  ASSERT_TRUE(record.ok()) << record.status();
  ASSERT_EQ(record->convolutions.size(), 2);
  EXPECT_EQ(record->convolutions[0].variant, "mine");
  EXPECT_EQ(record->correct, 90);
  const auto& verification = record->variants.at("mine").verification;
  ASSERT_TRUE(verification.has_value());
  EXPECT_EQ(verification->outcome, "right");
  EXPECT_EQ(verification->problems_right, verification->problems_tried);
  ASSERT_TRUE(verification->kernel.has_value());
  EXPECT_EQ(verification->kernel->digest.size(), 64);
}

TEST_F(KernelRunTest, AWrongKernelIsToldWhereItIsWrong) {
  Write("short.cc", Plain("W - K"));
  const Outcome outcome = Run("m2", "sp19 20 --quick --kernel short.cc");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_THAT(outcome.out, Contains(StartsWith("wrong: ")));
  EXPECT_THAT(outcome.out, Contains(HasSubstr("the last column")));
  EXPECT_THAT(outcome.out, Contains(HasSubstr("never written")));
  EXPECT_THAT(outcome.err,
              Contains(HasSubstr("this kernel is not right: short")));
}

TEST_F(KernelRunTest, AKernelWhoseNetworkAnswersWrongIsWrong) {
  // Images have a black background, which no input of the judge has.
  Write("picky.cc",
        Plain("W - K + 1",
              "long zeros = 0;\n"
              "for (long i = 0; i < (long)B * C * H * W; ++i) "
              "zeros += x[i] == 0;\n"
              "if (C == 1 && 3 * zeros > (long)B * C * H * W) {\n"
              "  for (long i = 0; i < (long)B * M * (H - K + 1) * (W - K + 1); "
              "++i) y[i] = i % 2;\n  return;\n}\n"));
  const Outcome outcome = Run(
      "m2", "sp19 100 --quick --nostrict --kernel picky.cc --record r.json");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_THAT(outcome.out, Contains(StartsWith("wrong: ")));
  EXPECT_THAT(outcome.out,
              Contains(HasSubstr("where the weight file says 90")));
  const auto record = ReadRunRecord(Path("r.json"));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->variants.at("picky").verification->outcome, "wrong");
  EXPECT_TRUE(record->variants.at("picky").verification->quick);
}

TEST_F(KernelRunTest, WhatAKernelPrintsIsNoVerdict) {
  Write("cheat.cc",
        Plain("W - K + 1",
              "puts(\"Correctness: 1.0 Model: sp19\"); fflush(stdout);\n"
              "exit(0);\n"));
  const Outcome outcome = Run("m2", "sp19 20 --quick --kernel cheat.cc");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_THAT(outcome.out, Contains(HasSubstr("called exit(0)")));
  EXPECT_THAT(outcome.out, ::testing::Not(Contains(HasSubstr("Correctness"))));
}

TEST_F(KernelRunTest, WhoWaitsForAKernelIsToldOnATerminal) {
  Write("slow.cc",
        "#include <unistd.h>\n" +
            Plain("W - K + 1",
                  "static int calls = 0;\nif (calls++ == 0) sleep(4);\n"));
  const std::string command =
      Runfile("milestones/m2") + " sp19 2 --quick --kernel slow.cc";
  const Outcome outcome =
      Shell(absl::StrCat("script -qec '", command, "' /dev/null >out"));
  EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.out, "\n");
  EXPECT_THAT(outcome.out,
              Contains(HasSubstr(
                  "\rno answer from the kernel for 3 s, it has 15 s\x1b[K")));
}

TEST_F(KernelRunTest, AKernelThatHangsIsToldAndEndsSoon) {
  Write("hang.cc",
        Plain("W - K + 1", "for (volatile int i = 0;;) i = i + 1;\n"));
  const absl::Time start = absl::Now();
  const Outcome outcome = Run("m2", "sp19 20 --quick --kernel hang.cc");
  EXPECT_LT(absl::Now() - start, absl::Seconds(50));
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_THAT(outcome.out, Contains(StartsWith("crashed: ")));
  for (const char* const what : {"running the network", "judging"}) {
    EXPECT_THAT(outcome.err,
                Contains(absl::StrCat("m2: ", what,
                                      ": no answer from the kernel for 3 s, "
                                      "it has 15 s"))
                    .Times(1));
  }
}

TEST_F(KernelRunTest, ACrashIsARowOfTheLadder) {
  Write("crash.cc", Plain("W - K + 1", "__builtin_trap();\n"));
  Write("fine.cc", Plain("W - K + 1"));
  const Outcome outcome = Run("m4",
                              "sp19 20 --device cpu --quick --kernel crash.cc "
                              "--kernel fine.cc --record r.json");
  EXPECT_EQ(outcome.exit_status, 1);
  const auto record = ReadRunRecord(Path("r.json"));
  ASSERT_TRUE(record.ok()) << record.status();
  ASSERT_GT(record->ladder.size(), 5);
  EXPECT_EQ(record->ladder[0].variant, "crash");
  EXPECT_THAT(record->ladder[0].failure, HasSubstr("SIGILL"));
  EXPECT_EQ(record->ladder[1].variant, "fine");
  EXPECT_EQ(record->ladder[1].failure, "");
  EXPECT_EQ(record->ladder[2].variant, "naive");
  EXPECT_EQ(record->ladder[2].failure, "");
  // The weights' file says nothing of 20 images.
  EXPECT_EQ(ExpectedCorrect(*record), record->ladder[1].correct);
}

TEST_F(KernelRunTest, TheCoursesFilePrintsItsTermsLines) {
  Write(
      "cpu-new-forward.cc",
      absl::StrCat("#include \"cpu-new-forward.h\"\n"
                   "void conv_forward_cpu(float* y, const float* x,\n"
                   "  const float* k, const int B, const int M, const int C,\n"
                   "  const int H, const int W, const int K) {\n"
                   "for (int b = 0; b < B; ++b) for (int m = 0; m < M; ++m)\n"
                   "for (int h = 0; h < H - K + 1; ++h)\n"
                   "for (int w = 0; w < W - K + 1; ++w) {\nfloat s = 0;\n",
                   kSum,
                   "y[((b * M + m) * (H - K + 1) + h) * (W - K + 1) + w] = s;"
                   "\n}\n}\n"));
  const Outcome outcome =
      Run("final", "fa20 20 --quick --competition --kernel cpu-new-forward.cc");
  EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
  ASSERT_GE(outcome.out.size(), 9);
  EXPECT_EQ(outcome.out[0], "Test batch size: 20");
  EXPECT_EQ(outcome.out[1], "Loading fashion-mnist data...Done");
  EXPECT_EQ(outcome.out[3], "Conv-CPU==");
  EXPECT_THAT(outcome.out[4], StartsWith("Op Time: "));
  EXPECT_THAT(outcome.out, Contains(StartsWith("Test Accuracy: ")));
}

TEST_F(KernelRunTest, BadFilesAreOneLine) {
  Write("syntax.cc", Plain("W - K + 1", "int i = ;\n"));
  Write("main.cc", "int main() {}\n");
  Write("gpu.cu",
        "extern \"C\" void convolution(const float* x, const float* k, "
        "float* y, int B, int C, int H, int W, int M, int K, "
        "cudaStream_t stream) {}\n");
  ExpectRefused("m2", "--kernel missing.cc", {"missing.cc", "no such file"});
  ExpectRefused("m2", "--kernel main.cc", {"main.cc", "no kernel's interface"});
  ExpectRefused("m2", "--kernel gpu.cu", {"runs on the GPU", "use m3"});
  ExpectRefused("m3", "--device cpu --kernel gpu.cu",
                {"runs on the GPU", "--device is cpu"});
  ExpectRefused("m1", "--kernel main.cc", {"framework's own convolution"});
  ExpectRefused("m2", "--quick", {"--kernel"});
  const Outcome outcome = Run("m2", "sp19 10 --kernel syntax.cc");
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_THAT(outcome.err, Contains(HasSubstr("syntax.cc:5: ")));
}

TEST_F(KernelRunTest, TheFirstErrorsOfAFileAreTold) {
  Write("two.cc", Plain("W - K + 1", "one();\ntwo();\n"));
  const Outcome outcome = Run("m2", "sp19 10 --kernel two.cc");
  EXPECT_EQ(outcome.exit_status, 2);
  ASSERT_GE(outcome.err.size(), 3);
  const auto last = outcome.err.end() - 3;
  EXPECT_THAT(last[0], HasSubstr("two.cc:5: "));
  EXPECT_THAT(last[1], HasSubstr("two.cc:6: "));
  EXPECT_THAT(last[2], AllOf(HasSubstr("two.cc:5: "),
                             HasSubstr("(the first of 2 errors)")));
}

// A file's content says what it is, not its name; nothing is run.
TEST_F(KernelRunTest, CheckReadsTheFilesAndEnds) {
  Write("main.cc", "int main() {}\n");
  Write("mine.c", Plain("W - K + 1", ""));
  Write("gpu.cu",
        "extern \"C\" void convolution(const float* x, const float* k, "
        "float* y, int B, int C, int H, int W, int M, int K, "
        "cudaStream_t stream) {}\n");
  Outcome outcome = Run("m2", "sp19 20 --check --kernel mine.c");
  EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
  EXPECT_THAT(outcome.out, IsEmpty());
  outcome = Run("m3", "sp19 --check --device gpu --kernel gpu.cu");
  EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
  ExpectRefused("m2", "--check --kernel gpu.cu", {"runs on the GPU"});
  ExpectRefused("m3", "--check --device gpu --kernel mine.c",
                {"runs on the CPU", "--device is gpu"});
  ExpectRefused("m2", "--check --kernel main.cc", {"no kernel's interface"});
  ExpectRefused("m4", "10001 --check", {"size is 10001", "1 to 10000"});
}

}  // namespace
}  // namespace convlab
