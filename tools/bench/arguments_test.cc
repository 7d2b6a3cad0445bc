// Tests how a run of the benchmark reads its flags, and how it ends.
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "convlab/include/convlab/convlab.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/bench/library_bench.h"
#include "tools/bench/modes.h"
#include "tools/run_program.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

ProgramOutcome Bench(const std::string& arguments) {
  return RunProgram("tools/bench/bench " + arguments);
}

TEST(Bench, RefusesWrongArguments) {
  for (const char* arguments : {"fa19-L1",
                                "--layers fa21",
                                "--layers 1,2,3",
                                "--layers ''",
                                "--device tpu",
                                "--device cpu --variants direct_tiled",
                                "--device cpu --variants cudnn",
                                "--device cpu --class fp64",
                                "--device cpu --class fp16 --nopeers",
                                "--device cpu --class fp16",
                                "--device cpu --class tf32 --variants onednn",
                                "--device cpu --class fp16 --variants naive",
                                "--samples 2",
                                "--seconds 0",
                                "--seconds nan",
                                "--batch -1",
                                "--batch 1,,2",
                                "--threads -1",
                                "--device cpu --class fp16 --variants final",
                                "--device cpu --json /nowhere/bench.json",
                                "--device cpu --once",
                                "--once --json once.json",
                                "--once --accuracy",
                                "--network sp19 --kernel my.cu",
                                "--network sp19 --library",
                                "--network sp19 --layers sp19",
                                "--network sp19 --device cpu --gpus 2",
                                "--network sp19 --weights /nowhere",
                                "--weights /nowhere",
                                "--library --network sp19 --accuracy",
                                "--library --batch 10",
                                "--gpus 2",
                                "--once --noverbose",
                                "--accuracy --samples 9",
                                "--accuracy --kernel my.cu",
                                "--list --json list.json",
                                "--device cpu --data dark",
                                "--list --class fp64",
                                "--layer fa17"}) {
    const ProgramOutcome outcome = Bench(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments << ": " << outcome.output;
    EXPECT_TRUE(absl::StartsWith(outcome.output, "bench: ")) << outcome.output;
    // One line.
    EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1)
        << outcome.output;
  }
}

TEST(Bench, SaysWhatAFlagIsFor) {
  EXPECT_EQ(Bench("--network sp19 --kernel my.cu").output,
            "bench: --kernel is for times of layers, but this run is for "
            "--network\n");
  EXPECT_EQ(Bench("--gpus 2 --device cpu").output,
            "bench: --gpus is for --network, but this run is for times of "
            "layers\n");
  EXPECT_EQ(Bench("--library --list").output,
            "bench: --library and --list: expected one of them\n");
  // A mode that is switched off is none.
  EXPECT_EQ(Bench("--list --noaccuracy --device cpu").exit_status, 0);
}

// --help names every flag at the beginning of its paragraph.
TEST(BenchModes, SomeModeReadsEachFlag) {
  const std::string help = Bench("--help").output;
  int flags = 0;
  for (size_t at = help.find("\n  --"); at != std::string::npos;
       at = help.find("\n  --", at + 1)) {
    std::string name = help.substr(at + 5);
    name = name.substr(0, name.find_first_of("= \n"));
    if (absl::StartsWith(name, "[no]")) name = name.substr(4);
    const absl::Status status = CheckFlagsOf(BenchMode::kOnce, {name});
    EXPECT_THAT(std::string(status.message()),
                ::testing::Not(HasSubstr(" is for , ")));
    ++flags;
  }
  EXPECT_GT(flags, 15);
}

// The process has memory for the first problems and not for the larger ones.
TEST(BenchLibrary, WritesWhatWasMeasuredIfAProblemFails) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes address space of its own";
#endif
  const std::string json =
      absl::StrCat(std::getenv("TEST_TMPDIR"), "/library.json");
  const ProgramOutcome outcome = RunProgram(absl::StrCat(
      "(ulimit -v 110000; tools/bench/bench --library --device cpu --threads 1 "
      "--samples 3 --seconds 0.01 --json ",
      json, ")"));
  EXPECT_EQ(outcome.exit_status, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("bench: "));
  const auto record = ReadFile(json);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_THAT(*record, HasSubstr("\"one product\""));
  EXPECT_THAT(*record, HasSubstr("\"lenet5-c1\""));
}

TEST(BenchLibrary, EndsAsTheLibrarysErrorSays) {
  EXPECT_TRUE(
      absl::IsUnavailable(ToStatus(Error(CONVLAB_NO_DEVICE, "no GPU"))));
  EXPECT_TRUE(absl::IsResourceExhausted(
      ToStatus(Error(CONVLAB_OUT_OF_MEMORY, "no memory"))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ToStatus(Error(CONVLAB_INVALID_ARGUMENT, "stride"))));
  EXPECT_TRUE(
      absl::IsUnimplemented(ToStatus(Error(CONVLAB_UNSUPPORTED, "stride"))));
  EXPECT_EQ(ToStatus(Error(CONVLAB_DEVICE_ERROR, "a launch")),
            absl::InternalError("a launch"));
}

}  // namespace
}  // namespace convlab
