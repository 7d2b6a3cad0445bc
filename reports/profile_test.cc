// Tests the program //reports:profile as a user runs it.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

struct Outcome {
  int exit_status;
  std::string out, err;
};

Outcome RunProfile(const std::string& arguments) {
  const std::string folder = ::testing::TempDir();
  const int status =
      std::system(absl::StrCat("reports/profile ", arguments, " >", folder,
                               "/out 2>", folder, "/err")
                      .c_str());
  return {WEXITSTATUS(status), *ReadFile(folder + "/out"),
          *ReadFile(folder + "/err")};
}

constexpr char kData[] = "reports/importers/testdata/";

TEST(ProfileProgram, ListsEachFile) {
  const Outcome run = RunProfile(absl::StrCat(
      kData, "nvprof/fa19_naive_api.txt ", kData, "nsys/kern_sum.csv"));
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.out, AllOf(HasSubstr("naive_api.txt (nvprof)\n"),
                             HasSubstr("kern_sum.csv (nsys)\n"),
                             HasSubstr("4 of 4 together take more than 90 %")));
}

TEST(ProfileProgram, ThresholdAndFormat) {
  const Outcome run = RunProfile(
      absl::StrCat(kData, "nsys/kern_sum.csv --threshold 60 --format md"));
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_THAT(run.out, HasSubstr("2 of 4 together take more than 60 %"));
  EXPECT_THAT(run.out, HasSubstr("| `void down_kernel"));
}

TEST(ProfileProgram, PathsAreTheUsers) {
  const std::string folder = ::testing::TempDir();
  ASSERT_TRUE(WriteFileAtomically(
                  folder + "/mine.txt",
                  *ReadFile(absl::StrCat(kData, "nvprof/fa19_naive_api.txt")))
                  .ok());
  setenv("BUILD_WORKING_DIRECTORY", folder.c_str(), 1);
  const Outcome run = RunProfile("mine.txt");
  unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_THAT(run.out, StartsWith("mine.txt (nvprof)\n"));
}

TEST(ProfileProgram, BadUsageAndBadFilesAreOneLine) {
  const std::string good = absl::StrCat(kData, "nsys/kern_sum.csv ");
  const std::string bad = ::testing::TempDir() + "/bad";
  ASSERT_TRUE(WriteFileAtomically(bad, "hello\n").ok());
  for (const std::string& arguments :
       {std::string(), good + "--format xml", good + "--threshold 101",
        good + "--threshold nan", good + "--what", good + "/none/such",
        good + bad, good + "/"}) {
    const Outcome run = RunProfile(arguments);
    EXPECT_EQ(run.exit_status, 2) << arguments;
    EXPECT_THAT(run.err, MatchesRegex("profile: [^\n]+\n")) << arguments;
    EXPECT_THAT(run.out, IsEmpty()) << arguments;
  }
}

TEST(ProfileProgram, HelpNamesWhatIsRead) {
  const Outcome run = RunProfile("--help");
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.out,
              AllOf(StartsWith("Usage: bazel run //reports:profile -- FILE"),
                    HasSubstr("nvprof"), HasSubstr("nsys"), HasSubstr("ncu"),
                    HasSubstr("--threshold"), HasSubstr("--format")));
}

}  // namespace
}  // namespace convlab
