#include "common/files/files.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

// Each test has a new folder, so that remaining files can be counted.
class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/files.XXXXXX");
    folder_ = mkdtemp(pattern.data());
  }
  std::string Path(absl::string_view name) {
    return absl::StrCat(folder_, "/", name);
  }
  int Entries() {
    DIR* folder = opendir(folder_.c_str());
    int count = 0;
    while (const dirent* entry = readdir(folder))
      count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
  }
  std::string folder_;
};

TEST_F(FilesTest, WritesAndReadsBack) {
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(WriteFileAtomically(Path("x"), content).ok());
  ASSERT_TRUE(WriteFileAtomically(Path("x"), content + content).ok());
  EXPECT_EQ(*ReadFile(Path("x")), content + content);
  EXPECT_EQ(Entries(), 1);
}

TEST_F(FilesTest, ErrorsNameThePath) {
  EXPECT_THAT(std::string(ReadFile(Path("none")).status().message()),
              HasSubstr("files."));
  EXPECT_EQ(ReadFile(Path("none")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(folder_).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteFileAtomically(Path("no/x"), "").code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(WriteFileAtomically(folder_, "").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(FilesTest, ReadsPieceByPiece) {
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "abcdefg").ok());
  auto file = FileReader::Open(Path("x"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 7);
  char bytes[5];
  EXPECT_EQ(*file->Read(bytes, 5), 5u);
  EXPECT_EQ(std::string(bytes, 5), "abcde");
  EXPECT_EQ(*file->Read(bytes, 5), 2u);
  EXPECT_EQ(std::string(bytes, 2), "fg");
  EXPECT_EQ(*file->Read(bytes, 5), 0u);

  EXPECT_EQ(FileReader::Open("/dev/zero")->size(), 0);
  EXPECT_EQ(FileReader::Open(folder_)->Read(bytes, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FileReader::Open(Path("none")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(FilesTest, AnAtomicFileAppearsWhenItIsComplete) {
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "old").ok());
  {
    auto file = AtomicFile::Create(Path("x"));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->Write("ne").ok());
    AtomicFile moved = *std::move(file);
    EXPECT_TRUE(moved.Write("w").ok());
    EXPECT_EQ(*ReadFile(Path("x")), "old");
    EXPECT_EQ(Entries(), 2);
    EXPECT_TRUE(moved.Commit().ok());
  }
  EXPECT_EQ(*ReadFile(Path("x")), "new");
  { EXPECT_TRUE(AtomicFile::Create(Path("x"))->Write("lost").ok()); }
  EXPECT_EQ(*ReadFile(Path("x")), "new");
  EXPECT_EQ(Entries(), 1);
}

TEST_F(FilesTest, AProcessThatEndsWithoutDestructorsLeavesNoAtomicFile) {
  const auto end = [this](const char* name) {
    auto file = AtomicFile::Create(Path(name));
    EXPECT_EQ(WriteFileAtomically(Path("whole"), "new"), absl::OkStatus());
    std::quick_exit(file.ok() ? 0 : 1);
  };
  const auto others = AtomicFile::Create(Path("others"));
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EXIT(end("x"), ::testing::ExitedWithCode(0), "");
  // Not those of the process that made this one.
  EXPECT_EQ(Entries(), 2);
  EXPECT_TRUE(ReadFile(others->temporary_path()).ok());
  EXPECT_EQ(*ReadFile(Path("whole")), "new");
}

// With all that is in it, but not what a link in it points to.
TEST_F(FilesTest, ATemporaryFolderIsRemovedHoweverTheProcessEnds) {
  ASSERT_TRUE(WriteFileAtomically(Path("kept"), "old").ok());
  const auto make = [this] {
    auto folder = TemporaryFolder::Create(Path(""));
    const std::filesystem::path path = folder->path();
    std::filesystem::create_directories(path / "a/b");
    std::filesystem::create_directory_symlink(Path(""), path / "a/link");
    for (int i = 0; i < 300; ++i) {
      std::ofstream(path / "a" / std::to_string(i)) << i;
    }
    return folder;
  };
  {
    const auto folder = make();
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ(Entries(), 2);
  }
  EXPECT_EQ(Entries(), 1);
  const auto end = [&] {
    const auto folder = make();
    std::quick_exit(folder.ok() ? 0 : 1);
  };
  EXPECT_EXIT(end(), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(Entries(), 1);
  const auto interrupt = [&] {
    const auto folder = make();
    AbandonTemporaryFiles();
    std::_Exit(folder.ok() ? 0 : 1);
  };
  EXPECT_EXIT(interrupt(), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(Entries(), 1);
  EXPECT_EQ(*ReadFile(Path("kept")), "old");
}

TEST_F(FilesTest, AProcessThatIsInterruptedLeavesNoAtomicFile) {
  const auto end = [this](const char* name) {
    const auto file = AtomicFile::Create(Path(name));
    AbandonTemporaryFiles();
    std::_Exit(file.ok() ? 0 : 1);
  };
  const auto others = AtomicFile::Create(Path("others"));
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EXIT(end("x"), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(Entries(), 1);
  EXPECT_TRUE(ReadFile(others->temporary_path()).ok());
}

TEST_F(FilesTest, AnAtomicFileThatDoesNotFitIsNotLeftBehind) {
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status =
      WriteFileAtomically(Path("x"), std::string(100000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, ignored);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("x")));
  EXPECT_EQ(Entries(), 0);
}

TEST_F(FilesTest, CheckWritableLeavesNothing) {
  EXPECT_TRUE(CheckWritable(Path("x")).ok());
  EXPECT_EQ(Entries(), 0);
  EXPECT_FALSE(CheckWritable(Path("no/x")).ok());
  EXPECT_FALSE(CheckWritable(folder_).ok());
}

TEST_F(FilesTest, DevicesAreNotReplaced) {
  EXPECT_EQ(CheckWritable("/dev/null").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteFileAtomically("/dev/null", "x").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(FilesTest, AFileWithoutAnEndIsRefused) {
  EXPECT_THAT(std::string(ReadFile("/dev/zero", 100000).status().message()),
              HasSubstr("/dev/zero: it has more than 100000 bytes"));
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "abcdefg").ok());
  EXPECT_EQ(*ReadFile(Path("x"), 7), "abcdefg");
  EXPECT_EQ(ReadFile(Path("x"), 6).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(FilesTest, AFileKeepsItsPermissions) {
  const auto mode = [&](const std::string& path) {
    struct stat info;
    return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  };
  const mode_t mask = umask(027);
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "new").ok());
  EXPECT_EQ(mode(Path("x")), 0640u);
  ASSERT_EQ(chmod(Path("x").c_str(), 0604), 0);
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "newer").ok());
  EXPECT_EQ(mode(Path("x")), 0604u);
  umask(mask);
}

TEST_F(FilesTest, AProtectedFileIsNotReplaced) {
  if (geteuid() == 0) GTEST_SKIP() << "nothing is protected from root";
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "old").ok());
  ASSERT_EQ(chmod(Path("x").c_str(), 0444), 0);
  EXPECT_EQ(WriteFileAtomically(Path("x"), "new").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(CheckWritable(Path("x")).ok());
  EXPECT_EQ(*ReadFile(Path("x")), "old");
}

TEST_F(FilesTest, ALinkStaysALink) {
  ASSERT_EQ(mkdir(Path("other").c_str(), 0755), 0);
  ASSERT_TRUE(WriteFileAtomically(Path("other/x"), "old").ok());
  ASSERT_EQ(symlink("other/x", Path("link").c_str()), 0);
  EXPECT_TRUE(CheckWritable(Path("link")).ok());
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new").ok());
  struct stat info;
  ASSERT_EQ(lstat(Path("link").c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  EXPECT_EQ(*ReadFile(Path("other/x")), "new");
  EXPECT_EQ(Entries(), 2);

  ASSERT_EQ(symlink("nowhere", Path("broken").c_str()), 0);
  for (const absl::Status& status : {CheckWritable(Path("broken")),
                                     WriteFileAtomically(Path("broken"), "")}) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("broken: it is a symbolic link to nothing"));
  }
}

TEST_F(FilesTest, NoOutputReplacesAnotherFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("in"), "").ok());
  ASSERT_EQ(symlink("in", Path("link").c_str()), 0);
  ASSERT_EQ(link(Path("in").c_str(), Path("twin").c_str()), 0);
  const std::vector<NamedFile> inputs = {{"--in", Path("in")}, {"--more", ""}};
  EXPECT_TRUE(CheckSeparate({{"--out", Path("a")},
                             {"--record", Path("b")},
                             {"--profile", ""},
                             {"--svg", ""}},
                            inputs)
                  .ok());
  for (const char* const path : {"in", "link", "twin", "./no/../in"}) {
    EXPECT_EQ(
        CheckSeparate({{"--out", Path(path)}}, inputs),
        absl::InvalidArgumentError(absl::StrCat(
            "--out and --in are both ", Path(path), ", expected two files")));
  }
  EXPECT_EQ(CheckSeparate({{"--a", Path("x")}, {"--b", Path("./x")}}, {}),
            absl::InvalidArgumentError(absl::StrCat(
                "--a and --b are both ", Path("x"), ", expected two files")));
}

TEST_F(FilesTest, RelativePathsAreTheUsers) {
  ASSERT_EQ(unsetenv("BUILD_WORKING_DIRECTORY"), 0);
  EXPECT_EQ(UserPath("a/b"), "a/b");
  ASSERT_EQ(setenv("BUILD_WORKING_DIRECTORY", "/home/u", 1), 0);
  EXPECT_EQ(UserPath("a/b"), "/home/u/a/b");
  EXPECT_EQ(UserPath("/a/b"), "/a/b");
  EXPECT_EQ(UserPath(""), "");
}

}  // namespace
}  // namespace convlab
