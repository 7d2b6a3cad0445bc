// Tests what the milestones refuse: wrong arguments, and what the system does
// not give.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "milestones/program_testing.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(ProgramsTest, WrongArgumentsAreRefused) {
  ExpectRefused("m2", "fa21", {"unknown model 'fa21'", "sp19-baseline"});
  ExpectRefused("m2", "--variant=opt2 10",
                {"unknown variant 'opt2'", "im2col_eigen"});
  ExpectRefused("m2", "--cpu_target=mmx 10",
                {"unknown CPU target 'mmx'", "auto, ", "baseline"});
  ExpectRefused("m2", "0", {"size is 0"});
  ExpectRefused("m2", "-- -3", {"size is -3"});
  ExpectRefused("m2", "-3", {"size is -3"});
  ExpectRefused("m2", "12a", {"size is '12a'"});
  ExpectRefused("final", "10001", {"size is 10001", "1 to 10000"});
  ExpectRefused("final", "60001 --split=train", {"1 to 60000", "train"});
  ExpectRefused("m2", "--thread=2", {"unknown flag --thread=2"});
  ExpectRefused("m2", "--size=10 --size 20",
                {"both --size=10 and --size=20 are given"});
  ExpectRefused("m2", "10 --record=", {"--record is empty"});
  // A build without CUDA knows no variants of the GPU and reports the missing
  // GPU.
  const std::string known = absl::StrJoin(Run("final", "--list").out, "\n");
  if (absl::StrContains(known, "Variants on the cuda")) {
    ExpectRefused("final", "--device=gpu --variant=bogus",
                  {"unknown variant 'bogus'", "naive"});
  }
  ExpectRefused("m2", "sp19 --model fa19", {"both 'sp19' and --model=fa19"});
  ExpectRefused("m2", "--device=gpu", {"--device is gpu"});
  ExpectRefused("m1", "--variant=naive", {"--variant is given"});
  ExpectRefused("final", "--profile=p --device=cpu", {"--profile"});
}

TEST_F(ProgramsTest, AnErrorIsOneLineWhateverThePathHolds) {
  ExpectRefused("final", "--data='a\nb\x1b'", {"folder a\\nb\\x1b;"});
}

TEST_F(ProgramsTest, OutputThatCannotBeWrittenIsAFailure) {
  for (const char* arguments : {"10", "--list", "--help"}) {
    const Outcome outcome = Shell(
        absl::StrCat(Runfile("milestones/m2 "), arguments, " >/dev/full"));
    EXPECT_EQ(outcome.exit_status, 1);
    EXPECT_EQ(outcome.err.back(), "m2: cannot write standard output");
  }
}

TEST_F(ProgramsTest, RefusalsOfTheSystemAreFailures) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes address space of its own";
  // Each thread takes 8 MB of address space for its stack.
  const std::string program = Runfile("milestones/m2");
  const Outcome threads =
      Shell(absl::StrCat("ulimit -s 8192; ulimit -v 1000000; ", program,
                         " 10 --threads 1000 >out"));
  EXPECT_EQ(threads.exit_status, 1);
  EXPECT_THAT(threads.err,
              ElementsAre(HasSubstr("m2: cannot start the threads: ")));
  const Outcome memory = Shell(
      absl::StrCat("ulimit -v 60000; ", program, " 10000 --threads 1 >out"));
  EXPECT_EQ(memory.exit_status, 1);
  EXPECT_EQ(memory.err.back(), "m2: there is not enough memory");
}

TEST_F(ProgramsTest, ABadRecordPathIsFoundBeforeTheWorkStarts) {
  ExpectRefused("m2", "10 --record no/r.json", {"cannot write", "no/r.json"});
  EXPECT_THAT(Run("m2", "10 --record no/r.json").out, SizeIs(0));
  ExpectRefused("m2", "10 --record .", {"cannot write"});
  ExpectRefused("m2", "10 --record /dev/null", {"cannot write /dev/null"});
  ExpectRefused("final", "10 --profile no/t.json", {"cannot write no/t.json"});
}

}  // namespace
}  // namespace convlab
