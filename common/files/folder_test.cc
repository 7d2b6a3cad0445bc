#include "common/files/folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create(::testing::TempDir());
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_.emplace(*std::move(folder));
    path_ = folder_->path();
  }
  std::string Path(const std::string& name) {
    return absl::StrCat(path_, "/", name);
  }
  void Make(const std::string& name) {
    ASSERT_TRUE(WriteFileAtomically(Path(name), name).ok());
  }

  std::optional<TemporaryFolder> folder_;
  std::string path_;
};

TEST_F(FolderTest, NamesAreSorted) {
  EXPECT_THAT(*NamesIn(path_), IsEmpty());
  Make("b");
  Make(".a");
  Make("a");
  ASSERT_EQ(mkdir(Path("c").c_str(), 0700), 0);
  EXPECT_THAT(*NamesIn(path_), ElementsAre(".a", "a", "b", "c"));
}

TEST_F(FolderTest, AFolderComesBeforeWhatItHolds) {
  for (const char* name : {"z", "z/y", "z/y/x", "empty"}) {
    ASSERT_EQ(mkdir(Path(name).c_str(), 0700), 0);
  }
  Make("a");
  Make("z/b");
  Make("z/y/c");
  // A link to a folder above has no end.
  ASSERT_EQ(symlink(path_.c_str(), Path("z/link").c_str()), 0);
  EXPECT_THAT(
      *PathsBelow(path_),
      ElementsAre(Path("a"), Path("empty"), Path("z"), Path("z/b"),
                  Path("z/link"), Path("z/y"), Path("z/y/c"), Path("z/y/x")));
  EXPECT_THAT(*PathsBelow(Path("z/y/")),
              ElementsAre(Path("z/y/c"), Path("z/y/x")));
}

TEST_F(FolderTest, WhatCannotBeReadIsNamed) {
  Make("file");
  for (const std::string& path : {Path("file"), Path("missing")}) {
    for (const absl::Status& status :
         {NamesIn(path).status(), PathsBelow(path).status()}) {
      EXPECT_FALSE(status.ok());
      EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    }
  }
}

}  // namespace
}  // namespace convlab
