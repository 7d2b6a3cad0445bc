#include "milestones/command_line.h"

#include <cstdlib>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gflags/gflags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/variants.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// False in a build without CUDA.
bool HasGpuVariants() {
  return absl::c_any_of(Variants(), [](const Variant* variant) {
    return variant->backend == Backend::kCuda;
  });
}

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLine Parse(const std::vector<std::string>& args) {
    const gflags::FlagSaver saver;
    const auto line = ParseCommandLine(FindMilestone("final"), args);
    EXPECT_TRUE(line.ok()) << line.status();
    return line.value_or(CommandLine());
  }
  std::string Error(const std::vector<std::string>& args,
                    const char* milestone = "final") {
    const gflags::FlagSaver saver;
    const absl::Status status =
        ParseCommandLine(FindMilestone(milestone), args).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
};

TEST_F(CommandLineTest, DefaultsAreTheCourses) {
  const CommandLine line = Parse({});
  EXPECT_EQ(line.model, "fa19");
  EXPECT_EQ(line.network->name, "fa19");
  EXPECT_FALSE(line.size.has_value());
  EXPECT_EQ(line.split, "t10k");
  EXPECT_EQ(line.device, Device::kAuto);
  EXPECT_FALSE(line.repeat.has_value());
  EXPECT_GE(line.threads, 1);
  EXPECT_TRUE(line.variants.empty());
  EXPECT_EQ(line.data, "/usr/share/datasets/fashion-mnist");
}

TEST_F(CommandLineTest, ModelAndSizeStandInEitherOrder) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"sp19", "100"},
        {"100", "sp19"},
        {"--model=sp19", "100"},
        {"--size", "100", "sp19"},
        {"--size=100", "--model", "sp19", "100", "sp19"}}) {
    const CommandLine line = Parse(args);
    EXPECT_EQ(line.network->name, "sp19");
    EXPECT_EQ(line.size, 100);
  }
  EXPECT_EQ(Parse({"1000"}).size, 1000);
  const CommandLine line = Parse({"ece408-low"});
  EXPECT_EQ(line.network->name, "fa17-low");
  EXPECT_EQ(line.model, "ece408-low");
}

TEST_F(CommandLineTest, PathsAreTheUsers) {
  setenv("BUILD_WORKING_DIRECTORY", "/home/u", 1);
  const CommandLine line = Parse({"--record=r.json", "--weights=/w"});
  EXPECT_EQ(line.record, "/home/u/r.json");
  EXPECT_EQ(line.weights, "/w");
  EXPECT_EQ(line.profile, "");
  unsetenv("BUILD_WORKING_DIRECTORY");
}

TEST_F(CommandLineTest, OneVariantOrOneForEachConvolution) {
  EXPECT_THAT(Parse({"--variant=naive"}).variants, ElementsAre("naive"));
  EXPECT_EQ(Parse({}).cpu_target, "auto");
  EXPECT_EQ(Parse({"--cpu_target", "avx2"}).cpu_target, "avx2");
  EXPECT_THAT(Parse({"--variant", "naive,im2col_eigen"}).variants,
              ElementsAre("naive", "im2col_eigen"));
  EXPECT_THAT(Error({"--variant=a,b,c"}),
              HasSubstr("names 3 variants, expected 1 or 2 for fa19"));
  EXPECT_THAT(Error({"fa17-high", "--variant=a,b"}),
              HasSubstr("names 2 variants, expected 1 for fa17-high"));
}

TEST_F(CommandLineTest, WrongArgumentsAreNamed) {
  EXPECT_THAT(Error({"fa21"}), HasSubstr("unknown model 'fa21'"));
  EXPECT_THAT(Error({"0"}), HasSubstr("size is 0, expected at least 1"));
  EXPECT_THAT(Error({"-5"}), HasSubstr("size is -5, expected at least 1"));
  EXPECT_THAT(Error({"10x"}), HasSubstr("size is '10x'"));
  EXPECT_THAT(Error({"--size="}), HasSubstr("--size is empty"));
  EXPECT_THAT(Error({"99999999999999999999"}), HasSubstr("size is '9999"));
  EXPECT_THAT(Error({"--size=1.5"}), HasSubstr("expected a whole number"));
  EXPECT_THAT(Error({"--split=test"}), HasSubstr("expected t10k or train"));
  EXPECT_THAT(Error({"--device=tpu"}), HasSubstr("expected auto, cpu or gpu"));
  EXPECT_THAT(Error({"--threads=0"}), HasSubstr("--threads is 0, expected 1"));
  EXPECT_THAT(Error({"--repeat=0"}), HasSubstr("--repeat is 0, expected 1"));
  EXPECT_THAT(Error({"--bogus"}), HasSubstr("unknown flag --bogus"));
  EXPECT_THAT(Error({"fa19", "100", "7"}),
              HasSubstr("unexpected argument '7'"));
}

TEST_F(CommandLineTest, ContradictionsAreRefused) {
  EXPECT_THAT(Error({"sp19", "--model=fa19"}),
              HasSubstr("both 'sp19' and --model=fa19"));
  EXPECT_THAT(Error({"100", "--size=200"}),
              HasSubstr("both '100' and --size=200"));
  EXPECT_THAT(Error({"--device=cpu", "--profile=p"}), HasSubstr("--profile"));
  EXPECT_THAT(Error({"--profile=p"}, "m2"), HasSubstr("--profile"));
  EXPECT_THAT(Error({"--profile=p", "--kernel=a", "--kernel=b"}, "m3"),
              HasSubstr("--profile traces one kernel, but --kernel names "
                        "several: expected one"));
  EXPECT_THAT(Error({"--profile=p", "--kernel=a"}, "m4"),
              HasSubstr("--profile traces one kernel, but m4 runs the ladder"));
  EXPECT_THAT(Error({"--profile=/p", "--record=/p"}, "m3"),
              HasSubstr("both /p"));
  EXPECT_THAT(Error({"--profile=p", "--record=q/.././p"}, "m3"),
              HasSubstr("both "));
  EXPECT_THAT(Error({"--device=gpu"}, "m2"),
              HasSubstr("--device is gpu, but m2 is the CPU convolution"));
  EXPECT_THAT(Error({"--variant=naive"}, "m1"),
              HasSubstr("m1 runs the framework's own convolution"));
}

TEST_F(CommandLineTest, VariantsAreKnownBeforeTheHardwareIs) {
  for (const char* device : {"auto", "cpu", "gpu"}) {
    if (device == std::string("gpu") && !HasGpuVariants()) continue;
    EXPECT_THAT(Error({"--variant=opt2", "--device", device}),
                HasSubstr("unknown variant 'opt2': expected one of naive"));
    EXPECT_THAT(Error({"--variant=naive,", "--device", device}),
                HasSubstr("unknown variant ''"));
  }
  EXPECT_THAT(Error({"--variant=opt2"}, "m2"), HasSubstr("im2col_eigen"));
  EXPECT_THAT(Parse({"--variant=naive", "--device=gpu"}).variants,
              ElementsAre("naive"));
  if (!HasGpuVariants()) GTEST_SKIP() << "built without CUDA";
  EXPECT_THAT(Error({"--variant=im2col_eigen"}, "m3"),
              HasSubstr("unknown variant 'im2col_eigen'"));
  EXPECT_THAT(Error({"--variant=opt2"}, "m3"), HasSubstr("tiled_shared"));
}

TEST_F(CommandLineTest, EmptyValuesAreRefused) {
  for (const char* flag :
       {"--record=", "--weights=", "--variant=", "--profile=", "--data="}) {
    EXPECT_EQ(Error({flag}),
              absl::StrCat(std::string(flag, strlen(flag) - 1),
                           " is empty, expected a value or no such flag"));
  }
  EXPECT_THAT(Error({"--data", ""}), HasSubstr("--data is empty"));
}

TEST_F(CommandLineTest, HelpAndListIgnoreOtherArguments) {
  EXPECT_TRUE(Parse({"--help", "fa21"}).help);
  EXPECT_TRUE(Parse({"--list"}).list);
  EXPECT_THAT(HelpText(FindMilestone("m2")), HasSubstr("--record TEXT"));
  EXPECT_THAT(HelpText(FindMilestone("m2")), HasSubstr("//milestones:m2"));
  EXPECT_THAT(ListText(FindMilestone("m2")), HasSubstr("fa18"));
  EXPECT_THAT(ListText(FindMilestone("m2")), HasSubstr("im2col_eigen"));
  EXPECT_THAT(ListText(FindMilestone("m2")), HasSubstr("  auto, "));
}

TEST_F(CommandLineTest, FusingIsOffAndNotForMeasuringConvolutions) {
  EXPECT_FALSE(Parse({}).fuse);
  EXPECT_TRUE(Parse({"--fuse"}).fuse);
  EXPECT_THAT(Error({"--fuse"}, "m1"), HasSubstr("--fuse is given, but m1"));
  EXPECT_THAT(Error({"--fuse"}, "m4"), HasSubstr("--fuse is given, but m4"));
}

TEST_F(CommandLineTest, HelpAndListNameTheMilestonesVariants) {
  EXPECT_THAT(HelpText(FindMilestone("final")), HasSubstr("--variant"));
  EXPECT_THAT(HelpText(FindMilestone("final")), HasSubstr("--profile"));
  EXPECT_THAT(HelpText(FindMilestone("final")), HasSubstr("--fuse"));
  EXPECT_THAT(HelpText(FindMilestone("m1")), Not(HasSubstr("--variant")));
  EXPECT_THAT(HelpText(FindMilestone("m4")), Not(HasSubstr("--fuse")));
  EXPECT_THAT(HelpText(FindMilestone("m2")), Not(HasSubstr("--profile")));
  EXPECT_THAT(ListText(FindMilestone("m1")), Not(HasSubstr("naive")));
  EXPECT_THAT(ListText(FindMilestone("m2")), Not(HasSubstr("on the cuda")));
  EXPECT_EQ(absl::StrContains(ListText(FindMilestone("m4")), "on the cuda"),
            HasGpuVariants());
}

TEST_F(CommandLineTest, HelpAndListFitIntoATerminal) {
  for (const char* name : {"m1", "m2", "m3", "m4", "final"}) {
    const std::string text = absl::StrCat(HelpText(FindMilestone(name)),
                                          ListText(FindMilestone(name)));
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      EXPECT_LE(line.size(), 80) << line;
    }
  }
}

}  // namespace
}  // namespace convlab
