// Tests the milestones as a user runs them: what they print, record and reject.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/accuracy/accuracy.h"
#include "common/files/files.h"
#include "common/record/run_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/simd/cpu_target.h"
#include "milestones/program_testing.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

constexpr char kUsageLine[] =
    "[0-9.]+user [0-9.]+system [0-9:.]+elapsed [0-9]+%CPU "
    "\\(0avgtext\\+0avgdata [0-9]+maxresident\\)k";

TEST_F(ProgramsTest, M2PrintsTheCoursesLines) {
  const Outcome outcome = Run("m2", "ece408 20 --record r.json");
  EXPECT_EQ(ReadRunRecord(Path("r.json"))->convolutions.at(0).variant, "naive");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(
      outcome.out,
      ElementsAre("Loading fashion-mnist data... done", "Loading model... done",
                  "New Inference", MatchesRegex("Op Time: [0-9]+\\.[0-9]{6}"),
                  MatchesRegex("Op Time: [0-9]+\\.[0-9]{6}"),
                  MatchesRegex("Correctness: (0\\.[0-9]+|1\\.0) Model: ece408"),
                  MatchesRegex(kUsageLine)));
  EXPECT_THAT(
      outcome.err,
      ElementsAre(
          "m2: running on the CPU",
          MatchesRegex(
              "m2: convolutions by naive .1 thread. [0-9.]+ s; the other "
              "layers and enlarging [0-9.]+ s, reading [0-9.]+ s, "
              "preparing [0-9.]+ s")));
}

TEST_F(ProgramsTest, TheOldestTermAnnouncesFirstAndHasOneConvolution) {
  const Outcome outcome = Run("final", "20 fa17-high");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.out,
              ElementsAre("New Inference", "Loading fashion-mnist data... done",
                          "Loading model... done",
                          MatchesRegex("Op Time: [0-9]+\\.[0-9]{6}"),
                          MatchesRegex("Correctness: .* Model: fa17-high"),
                          MatchesRegex(kUsageLine)));
}

TEST_F(ProgramsTest, M1PrintsTheFrameworksAccuracy) {
  const Outcome outcome = Run("m1", "sp19-baseline 50");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(
      outcome.out,
      ElementsAre("Loading fashion-mnist data... done", "Loading model... done",
                  "New Inference",
                  MatchesRegex("EvalMetric: \\{'accuracy': 0\\.[0-9]+\\}"),
                  MatchesRegex(kUsageLine)));
}

TEST_F(ProgramsTest, VariantsAgreeAndTheRecordHoldsTheRun) {
  ASSERT_EQ(Run("m2", "fa19 30 --record a.json --variant naive").exit_status,
            0);
  ASSERT_EQ(Run("m2",
                "--repeat=3 fa19 30 --threads 2 --record b.json "
                "--variant naive_parallel,im2col_eigen")
                .exit_status,
            0);
  const auto a = ReadRunRecord(Path("a.json"));
  const auto b = ReadRunRecord(Path("b.json"));
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_GT(a->correct, 20);
  EXPECT_EQ(a->correct, b->correct);
  EXPECT_EQ(b->milestone, "m2");
  EXPECT_EQ(b->size, 30);
  EXPECT_EQ(b->threads, 2);
  EXPECT_EQ(b->device, "cpu");
  EXPECT_EQ(b->cpu_target, Name(ChosenCpuTarget()));
  ASSERT_THAT(b->convolutions, SizeIs(2));
  EXPECT_EQ(b->convolutions[0].variant, "naive_parallel");
  EXPECT_EQ(b->convolutions[1].variant, "im2col_eigen");
  EXPECT_THAT(b->convolutions[1].op_time_ns, SizeIs(3));
  EXPECT_EQ(a->convolutions[0].threads, 1);
  EXPECT_EQ(b->convolutions[0].threads, 2);
  EXPECT_EQ(CpuUse(*b), "2 threads");
  EXPECT_EQ(b->convolutions[1].flops, 30 * 12110400);
  EXPECT_THAT(b->variants, SizeIs(2));
  // Each was verified on the convolution that it computed, and might not take
  // the other.
  for (const auto& [name, variant] : b->variants) {
    ASSERT_TRUE(variant.verification.has_value()) << name;
    EXPECT_EQ(variant.verification->problems_tried, 1) << name;
  }
  EXPECT_EQ(b->weights, "fa19.safetensors");
  EXPECT_EQ(b->weights_metadata.at("network"), "fa19");
  EXPECT_THAT(b->output, SizeIs(7));
  EXPECT_THAT(b->output, ::testing::Contains(HasSubstr("Model: fa19")));
  EXPECT_GT(b->usage.elapsed_ns, b->inference_ns[0]);
}

TEST_F(ProgramsTest, FinalFusesWhereAsked) {
  Run("final", "sp19 50 --device cpu --fuse --record f.json");
  EXPECT_EQ(ReadRunRecord(Path("f.json"))->convolutions[0].fused,
            "tanh and max pooling of 2x2 with stride 2");
}

TEST_F(ProgramsTest, M4RunsTheWholeLadder) {
  const Outcome outcome = Run("m4", "fa19 20 --device=cpu --record r.json");
  EXPECT_EQ(outcome.exit_status, 0);
  const std::string out = absl::StrJoin(outcome.out, "\n");
  const auto record = ReadRunRecord(Path("r.json"));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->command[0].find('/'), std::string::npos);
  size_t rung = 0;
  for (const Variant* variant : Variants()) {
    if (variant->backend != Backend::kCpu) continue;
    ASSERT_LT(rung, record->ladder.size());
    const LadderRun& run = record->ladder[rung++];
    EXPECT_EQ(run.variant, variant->name);
    // A variant may decline a layer, but it may not fail.
    if (absl::StartsWith(run.failure, "rejected: ")) continue;
    EXPECT_EQ(run.failure, "");
    EXPECT_LE(std::abs(run.correct - record->ladder[0].correct),
              MaxChangedAnswers(variant->accuracy));
    EXPECT_THAT(run.convolutions, SizeIs(2));
    EXPECT_TRUE(CheckError(run.relative_error, variant->accuracy).ok());
    EXPECT_GT(run.relative_error, 0);
    EXPECT_THAT(out, ContainsRegex(absl::StrCat(
                         "== ", variant->name,
                         " ==\nNew Inference\nOp Time: .*\n"
                         "Op Time: .*\nCorrectness: .* Model: fa19\n")));
    // A row of the table has two op times and their sum, ratios, class and
    // error.
    EXPECT_THAT(out, ContainsRegex(absl::StrCat(
                         "\n", variant->name, " +[0-9.]+ +[0-9.]+ +[0-9.]+ .*",
                         Name(variant->accuracy))));
  }
  EXPECT_THAT(record->ladder, SizeIs(rung));
}

TEST_F(ProgramsTest, AnyCpuTargetGivesTheSameAnswers) {
  for (const char* target : {"auto", "baseline"}) {
    const Outcome outcome = Run(
        "final", absl::StrCat("fa19 100 --device cpu --cpu_target ", target));
    EXPECT_EQ(outcome.exit_status, 0);
    ASSERT_THAT(outcome.out, SizeIs(7));
    EXPECT_EQ(outcome.out[5], "Correctness: 0.9 Model: fa19");
  }
}

TEST_F(ProgramsTest, M4WithOneVariantPrintsTheCoursesLinesAlone) {
  const Outcome outcome =
      Run("m4", "fa19 20 --device=cpu --variant=im2col_eigen");
  EXPECT_EQ(outcome.exit_status, 0);
  ASSERT_THAT(outcome.out, SizeIs(7));
  EXPECT_EQ(outcome.out[2], "New Inference");
}

TEST_F(ProgramsTest, HelpAndListGoToStandardOutput) {
  for (const char* program : {"m1", "m2", "m3", "final"}) {
    const Outcome help = Run(program, "--help");
    EXPECT_EQ(help.exit_status, 0);
    EXPECT_THAT(absl::StrJoin(help.out, "\n"),
                AllOf(HasSubstr("Usage: bazel run //milestones:"),
                      HasSubstr("--weights TEXT"), HasSubstr("Exit status")));
    EXPECT_THAT(help.err, SizeIs(0));
  }
  const Outcome list = Run("m2", "--list");
  EXPECT_EQ(list.exit_status, 0);
  EXPECT_THAT(absl::StrJoin(list.out, "\n"),
              AllOf(HasSubstr("sp19-baseline"), HasSubstr("ece408-low"),
                    HasSubstr("naive_parallel")));
}

TEST_F(ProgramsTest, MissingHardwareHasItsOwnStatus) {
  if (cuda::FindDevice().ok()) GTEST_SKIP() << "there is a GPU";
  for (const char* command :
       {"m1 --device=gpu", "final --device=gpu", "m3 --device=gpu", "m3"}) {
    SCOPED_TRACE(command);
    const Outcome outcome = Run(command, "10");
    EXPECT_EQ(outcome.exit_status, 3);
    EXPECT_THAT(outcome.out, SizeIs(0));
    EXPECT_THAT(outcome.err, ElementsAre(AllOf(HasSubstr("--device cpu"),
                                               HasSubstr("//tools:bundle"))));
  }
  // Where the CPU may replace the GPU, the program uses it and says why.
  const Outcome outcome = Run("final", "10");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err,
              ElementsAre(AllOf(HasSubstr("final: running on the CPU"),
                                HasSubstr("no NVIDIA GPU can be used")),
                          HasSubstr("final: convolutions ")));
}

TEST_F(ProgramsTest, ARunOnTheCpuReportsThatItHasNoProfile) {
  if (cuda::FindDevice().ok()) GTEST_SKIP() << "there is a GPU";
  const Outcome outcome = Run("final", "10 --profile t.json --record r.json");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err,
              ElementsAre("final: no profile: the run is on the CPU",
                          HasSubstr("final: running on the CPU"),
                          HasSubstr("final: convolutions ")));
  EXPECT_FALSE(ReadFile(Path("t.json")).ok());
  EXPECT_FALSE(ReadRunRecord(Path("r.json"))->profile.has_value());
  // Where the CPU may not replace the GPU, the error names the GPU, not the
  // profile.
  const Outcome m3 = Run("m3", "10 --device gpu --profile t.json");
  EXPECT_EQ(m3.exit_status, 3);
  EXPECT_THAT(m3.err, ElementsAre(HasSubstr("no NVIDIA GPU")));
}

TEST_F(ProgramsTest, ATracedRunIsMarkedAndShowsItsProfile) {
  const auto gpu = cuda::FindDevice();
  if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
  const Outcome outcome =
      Run("m3", "fa20 500 --profile t.json --record r.json");
  EXPECT_EQ(outcome.exit_status, 0);
  const std::string err = absl::StrJoin(outcome.err, "\n");
  EXPECT_THAT(err, HasSubstr("m3: running on the GPU"));
  const auto record = ReadRunRecord(Path("r.json"));
  ASSERT_TRUE(record.ok()) << record.status();
  if (absl::StrContains(err, "no profile: ")) {
    EXPECT_FALSE(ReadFile(Path("t.json")).ok());
    EXPECT_FALSE(record->profile.has_value());
    GTEST_SKIP() << err;
  }
  EXPECT_THAT(
      err, AllOf(HasSubstr("m3: traced: "), HasSubstr("== Profiling result:\n"),
                 HasSubstr("GPU activities: "),
                 HasSubstr("NaiveKernel(float const*"),
                 HasSubstr("[CUDA memcpy HtoD]"), HasSubstr("API calls: "),
                 HasSubstr("cudaLaunchKernel")));
  ASSERT_TRUE(record->profile.has_value());
  EXPECT_EQ(record->profile->tool, "CUPTI");
  EXPECT_EQ(record->profile->version, record->gpu.libraries.at("CUPTI"));
  EXPECT_EQ(record->profile->gpu_activities.missing, "");
  EXPECT_FALSE(record->profile->gpu_activities.entries.empty());
  EXPECT_FALSE(record->profile->api_calls.entries.empty());
  EXPECT_THAT(*ReadFile(Path("t.json")),
              AllOf(HasSubstr("\"traceEvents\":["), HasSubstr(gpu->name)));
}

TEST_F(ProgramsTest, M3RunsOnTheCpuIfAsked) {
  const Outcome outcome = Run("m3", "10 --device=cpu");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err,
              ElementsAre(AllOf(HasSubstr("m3: running on the CPU"),
                                HasSubstr("naive_parallel for the GPU's")),
                          HasSubstr("m3: convolutions ")));
}

TEST_F(ProgramsTest, TheGpuGivesTheCpusAnswers) {
  const auto gpu = cuda::FindDevice();
  if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
  ASSERT_EQ(Run("m2", "fa20 500 --record cpu.json").exit_status, 0);
  const Outcome outcome = Run("m3", "fa20 500 --repeat 2 --record gpu.json");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err, ElementsAre("m3: running on the GPU, " + gpu->name,
                                       "m3: convolutions by naive"));
  const auto on_cpu = ReadRunRecord(Path("cpu.json"));
  const auto on_gpu = ReadRunRecord(Path("gpu.json"));
  ASSERT_TRUE(on_cpu.ok()) << on_cpu.status();
  ASSERT_TRUE(on_gpu.ok()) << on_gpu.status();
  EXPECT_EQ(on_gpu->correct, on_cpu->correct);
  EXPECT_EQ(on_gpu->device, "gpu");
  EXPECT_EQ(on_gpu->gpu.name, gpu->name);
  EXPECT_EQ(on_gpu->slice, 500);
  EXPECT_GT(on_gpu->device_memory_peak_bytes, 0);
  EXPECT_EQ(on_gpu->variants.at("naive").backend, "cuda");
  for (const ConvolutionRecord& convolution : on_gpu->convolutions) {
    ASSERT_THAT(convolution.op_time_ns, SizeIs(2));
    ASSERT_THAT(convolution.kernel_time_ns, SizeIs(2));
    EXPECT_GT(convolution.kernel_time_ns[1], 0);
    EXPECT_LT(convolution.kernel_time_ns[1], convolution.op_time_ns[1]);
  }
  EXPECT_EQ(on_cpu->gpu.name, "");
  EXPECT_THAT(on_cpu->convolutions[0].kernel_time_ns, SizeIs(0));
}

TEST_F(ProgramsTest, MemoryDoesNotGrowWithTheThreads) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  const Outcome outcome = Run(
      "m2", "fa19 3000 --variant=dense_lanes --threads=1000 --record=r.json");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_LT(ReadRunRecord(Path("r.json"))->usage.max_resident_bytes,
            int64_t{600} << 20);
}

// The weights are found beside the program, by whatever path it was started.
TEST_F(ProgramsTest, StartedByAnotherName) {
  const std::string models = Runfile("common/weights/models");
  ASSERT_EQ(
      Shell(absl::StrCat("mkdir -p bin/m2.runfiles/convlab/common/weights && "
                         "cp -rL ",
                         models,
                         " bin/m2.runfiles/convlab/common/weights && cp -L ",
                         Runfile("milestones/m2"), " bin && ln -s bin/m2 link"))
          .exit_status,
      0);
  for (const char* command : {"bin/m2", "./link", "PATH=bin m2"}) {
    SCOPED_TRACE(command);
    const Outcome outcome = Shell(
        absl::StrCat("unset RUNFILES_DIR RUNFILES_MANIFEST_FILE TEST_SRCDIR; ",
                     command, " 10 >out"));
    EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
    EXPECT_THAT(CorrectnessOf(outcome), HasSubstr("Model: fa19"));
  }
}

TEST_F(ProgramsTest, RelativePathsAreTheUsers) {
  const Outcome outcome = Shell(absl::StrCat(
      "mkdir user && cd / && BUILD_WORKING_DIRECTORY=", Path("user"), " ",
      Runfile("milestones/m2"), " 10 --record=r.json >", Path("out")));
  EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
  EXPECT_TRUE(ReadRunRecord(Path("user/r.json")).ok());
}

TEST_F(ProgramsTest, ATerminalShowsTheProgress) {
  const Outcome outcome =
      Shell(absl::StrCat("script -qec '", Runfile("milestones/m2"),
                         " 10 >out' terminal >/dev/null"));
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(*ReadFile(Path("terminal")),
              AllOf(HasSubstr("m2: running on"),
                    HasSubstr("[##############################] 100 %")));
  EXPECT_THAT(outcome.out, SizeIs(7));
}

}  // namespace
}  // namespace convlab
