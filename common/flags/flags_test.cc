#include "common/flags/flags.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gflags/gflags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

DEFINE_string(name, "", "a name");
DEFINE_int32(count, 3, "how many");
DEFINE_bool(list, false, "only list");

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class FlagsTest : public ::testing::Test {
 protected:
  absl::StatusOr<ParsedFlags> Parse(const std::vector<std::string>& args) {
    return ParseFlags(args, __FILE__);
  }
  std::string Error(const std::vector<std::string>& args) {
    return std::string(Parse(args).status().message());
  }
  gflags::FlagSaver saver_;  // restores the flags after each test
};

TEST_F(FlagsTest, TakesEveryForm) {
  const auto parsed =
      Parse({"fa19", "--name=a=b", "-count", "5", "--list", "100"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(parsed->positional, ElementsAre("fa19", "100"));
  EXPECT_THAT(parsed->given, ElementsAre("count", "list", "name"));
  EXPECT_EQ(FLAGS_name, "a=b");
  EXPECT_EQ(FLAGS_count, 5);
  EXPECT_TRUE(FLAGS_list);
  ASSERT_TRUE(Parse({"--nolist", "--count=-7"}).ok());
  EXPECT_FALSE(FLAGS_list);
  EXPECT_EQ(FLAGS_count, -7);
}

TEST_F(FlagsTest, NumbersAndWhatFollowsDashesArePositional) {
  EXPECT_THAT(Parse({"-5", "-", "--", "--name", "x"})->positional,
              ElementsAre("-5", "-", "--name", "x"));
}

TEST_F(FlagsTest, HelpIsAskedForNotPrinted) {
  EXPECT_TRUE(Parse({"--help"})->help);
  EXPECT_TRUE(Parse({"-h"})->help);
  EXPECT_FALSE(Parse({"x"})->help);
}

TEST_F(FlagsTest, ErrorsNameTheFlag) {
  EXPECT_THAT(Error({"--nme", "x"}), HasSubstr("unknown flag --nme"));
  EXPECT_THAT(Error({"--nothing"}), HasSubstr("unknown flag --nothing"));
  EXPECT_THAT(Error({"--noname"}), HasSubstr("unknown flag --noname"));
  EXPECT_THAT(Error({"--name"}), HasSubstr("--name needs a value, text"));
  EXPECT_THAT(Error({"--name", "--list"}), HasSubstr("--name needs a value"));
  EXPECT_EQ(Error({"--name="}),
            "--name is empty, expected a value or no such flag");
  EXPECT_THAT(Error({"--name", ""}), HasSubstr("--name is empty"));
  EXPECT_THAT(Error({"--count", "many"}),
              HasSubstr("--count is 'many', expected a whole number"));
  EXPECT_THAT(Error({"--count=99999999999"}), HasSubstr("--count is"));
  EXPECT_THAT(Error({"--list=maybe"}), HasSubstr("expected true or false"));
}

TEST_F(FlagsTest, TwoValuesForOneFlagAreRefused) {
  EXPECT_EQ(Error({"--name=a", "--name", "b"}),
            "both --name=a and --name=b are given, expected one");
  EXPECT_THAT(Error({"--list", "--nolist"}),
              HasSubstr("both --list=true and --list=false"));
  EXPECT_TRUE(Parse({"--name=a", "--count=3", "--name=a", "--count=03"}).ok());
}

TEST_F(FlagsTest, FlagsOfLibrariesAreNotOffered) {
  EXPECT_THAT(Error({"--flagfile=x"}), HasSubstr("unknown flag"));
  const std::string help = DescribeFlags(__FILE__);
  EXPECT_THAT(help, HasSubstr("--count N"));
  EXPECT_THAT(help, HasSubstr("how many (default 3)"));
  EXPECT_THAT(help, Not(HasSubstr("flagfile")));
}

TEST_F(FlagsTest, DescriptionsBeginInOneColumn) {
  const std::string help = DescribeFlags(__FILE__);
  size_t column = 0;
  for (const absl::string_view line : absl::StrSplit(help, '\n')) {
    if (!absl::StartsWith(line, "  --")) continue;
    const size_t here = line.find_first_not_of(' ', line.find("  ", 2));
    if (column == 0) column = here;
    EXPECT_EQ(here, column) << line;
  }
  EXPECT_GT(column, 0);
}

TEST_F(FlagsTest, FlagsCanBeLeftOutOfTheDescription) {
  EXPECT_THAT(DescribeFlags(__FILE__, {"count"}), Not(HasSubstr("--count")));
  EXPECT_THAT(DescribeFlags(__FILE__, {"count"}), HasSubstr("--name TEXT"));
}

TEST(WrapText, BreaksLinesAtEightyCharacters) {
  EXPECT_EQ(WrapText("one two", 10, 4), "one two");
  const std::string word(30, 'x');
  EXPECT_EQ(WrapText(word + " " + word + " " + word, 4, 4),
            word + " " + word + "\n    " + word);
  EXPECT_EQ(WrapText(word + " " + word, 45, 2), word + "\n  " + word);
  // A word longer than a line has a line of its own.
  EXPECT_EQ(WrapText("a " + std::string(90, 'y') + " b", 2, 2),
            "a\n  " + std::string(90, 'y') + "\n  b");
  EXPECT_EQ(WrapText("", 3, 3), "");
}

}  // namespace
}  // namespace convlab
