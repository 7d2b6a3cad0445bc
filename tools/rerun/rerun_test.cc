// Tests the program //tools:rerun as users run it, with a program in place of
// the milestones.
#include <sys/wait.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/record/run_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/rerun/handed_in.h"
#include "tools/run_program.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class RerunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        ::testing::TempDir(), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    Write("class/ada/mine.cu", "8");
    Write("class/bob/theirs.cu", "9");
  }
  void Write(const std::string& name, const std::string& content) {
    const fs::path path = folder_ + "/" + name;
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(WriteFileAtomically(path.string(), content).ok());
  }
  ProgramOutcome Rerun(const std::string& arguments) {
    return RunProgram(absl::StrCat(
        "tools/rerun/rerun --convlab $PWD/tools/rerun/fake_convlab --out ",
        folder_, "/out ", arguments, " ", folder_, "/class"));
  }
  HandedIn Found(const std::string& name) {
    const auto all = FindHandedIn(folder_ + "/class", "gpu");
    EXPECT_TRUE(all.ok()) << all.status();
    for (const HandedIn& one : *all) {
      if (one.name == name) return one;
    }
    return {};
  }

  std::string folder_;
};

TEST_F(RerunTest, AllTakeTurnsAndAreRanked) {
  const ProgramOutcome run =
      Rerun("--rounds 2 --size 700 --html " + folder_ + "/page.html");
  EXPECT_EQ(run.exit_status, 0) << run.output;
  EXPECT_THAT(run.output, ContainsRegex("round 1 of 2, ada(.|\n)*"
                                        "round 1 of 2, bob(.|\n)*"
                                        "round 2 of 2, bob(.|\n)*"
                                        "round 2 of 2, ada(.|\n)*"));
  // Two samples of each run.
  EXPECT_THAT(run.output,
              AllOf(ContainsRegex("1 \\| ada +\\| +16.001 \\| [^|]*\\| +4 \\|"),
                    ContainsRegex("2 \\| bob +\\| +18.001 \\|")));
  EXPECT_TRUE(fs::exists(folder_ + "/out/bob/round-2.json"));
  EXPECT_THAT(*ReadFile(folder_ + "/page.html"), HasSubstr(">bob</a>"));
  // The records of two reruns are not mixed.
  const ProgramOutcome again = Rerun("--size 700");
  EXPECT_EQ(again.exit_status, 2);
  EXPECT_THAT(again.output, HasSubstr("out/ada is not empty"));
}

TEST_F(RerunTest, WhoeverFailsIsARow) {
  Write("class/bob/theirs.cu", "broken");
  fs::create_directories(folder_ + "/class/carol");
  const ProgramOutcome run = Rerun("--rounds 1 --size 700");
  EXPECT_EQ(run.exit_status, 1) << run.output;
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("rerun: bob: exit status 1"),
                    HasSubstr("rerun: carol: no kernel: expected a .cu, .cuh "
                              "or .so file"),
                    ContainsRegex("1 \\| ada "), HasSubstr("| carol "),
                    HasSubstr("holds no run record")));
}

TEST_F(RerunTest, TheRecordNamesKernelAndNetwork) {
  Write("class/ada/other.cu", "7");
  EXPECT_THAT(Found("ada").failure,
              HasSubstr("no record names one: mine.cu, other.cu"));
  RunRecord record;
  record.network = "fa20";
  record.started = "2026-11-21T05:28:09+00:00";
  record.variants["other"].verification.emplace().kernel =
      KernelRecord{"other", "", "", {}};
  ASSERT_TRUE(WriteRunRecord(folder_ + "/class/ada/run.json", record).ok());
  EXPECT_THAT(Found("ada").kernel, HasSubstr("/ada/other.cu"));
  EXPECT_EQ(Found("ada").network, "fa20");
  EXPECT_EQ(Found("bob").network, "");
  record.network = "fa19";
  ASSERT_TRUE(WriteRunRecord(folder_ + "/class/bob/run.json", record).ok());
  const ProgramOutcome run = Rerun("");
  EXPECT_EQ(run.exit_status, 2);
  EXPECT_THAT(run.output, HasSubstr("several networks, fa19, fa20"));
}

TEST_F(RerunTest, BadUsageIsOneLine) {
  for (const char* arguments :
       {"--rounds 0", "--device tpu", "--bogus", "/none"}) {
    const ProgramOutcome run = Rerun(arguments);
    EXPECT_EQ(run.exit_status, 2) << arguments;
    EXPECT_THAT(run.output, ContainsRegex("^rerun: [^\n]+\n$")) << arguments;
  }
  EXPECT_EQ(RunProgram("tools/rerun/rerun --help").exit_status, 0);
}

}  // namespace
}  // namespace convlab
