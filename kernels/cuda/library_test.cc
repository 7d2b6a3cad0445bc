// Tests the loader with two copies of a library that the test builds. Each copy
// opens a second file by a name that the system does not know.
#include "kernels/cuda/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab::cuda {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string Folder(const char* name) {
  return absl::StrCat(std::getenv("TEST_SRCDIR"), "/convlab/kernels/cuda/",
                      name);
}

LibraryVersion TestVersion(void* handle) {
  const auto version =
      reinterpret_cast<int (*)()>(dlsym(handle, "TestLibraryVersion"));
  const auto part =
      reinterpret_cast<int (*)()>(dlsym(handle, "TestLibraryPartVersion"));
  return {version(), part(), 0};
}

// Each test uses its own library name, because an opened library stays open.
LibraryRequest Request(const char* name) {
  return {name, "libconvlab_test.so", TestVersion, {"libconvlab_test_part.so"}};
}

class LibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("CONVLAB_LIBRARY_PATH");
    SetLibraryFolder("");
  }
};

TEST_F(LibraryTest, TheNewestCopyWinsAndBringsItsParts) {
  // The older one comes first in the search.
  SetLibraryFolder(Folder("test_old"));
  setenv("CONVLAB_LIBRARY_PATH",
         absl::StrCat("/nowhere:", Folder("test_new")).c_str(), 1);
  const auto library = OpenLibrary(Request("newest"));
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ((*library)->version, (LibraryVersion{2, 2, 0}));
  EXPECT_THAT((*library)->path, EndsWith("libconvlab_test.so"));
  // This process must not have opened the older copy.
  EXPECT_EQ(TestVersion((*library)->handle), (LibraryVersion{2, 2, 0}));

  SetLibraryFolder(Folder("test_old"));
  EXPECT_EQ(*OpenLibrary(Request("newest")), *library);
  bool listed = false;
  for (const Library* opened : OpenedLibraries()) {
    listed |= opened == *library;
  }
  EXPECT_TRUE(listed);
}

TEST_F(LibraryTest, AFunctionThatIsNotThereIsNamed) {
  SetLibraryFolder(Folder("test_new"));
  const auto library = OpenLibrary(Request("functions"));
  ASSERT_TRUE(library.ok()) << library.status();
  int (*function)() = nullptr;
  ASSERT_TRUE(LoadFunction(**library, "TestLibraryVersion", function).ok());
  EXPECT_EQ(function(), 2);
  const absl::Status status = LoadFunction(**library, "Missing", function);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("functions 2.2.0"), HasSubstr("Missing")));
}

TEST_F(LibraryTest, AMissingLibraryNamesTheFolders) {
  SetLibraryFolder("/from/a/flag");
  setenv("CONVLAB_LIBRARY_PATH", "/from/the:/environment", 1);
  setenv("CUDA_HOME", "/some/toolkit", 1);
  LibraryRequest request = Request("cuNothing");
  request.file = "libcunothing.so.7";
  const absl::Status status = OpenLibrary(request).status();
  unsetenv("CUDA_HOME");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("cuNothing (libcunothing.so.7)"),
                    HasSubstr("/from/a/flag, /from/the, /environment, "
                              "/some/toolkit/lib64"),
                    HasSubstr("/usr/local/cuda/extras/CUPTI/lib64"),
                    HasSubstr("system's"), HasSubstr("CONVLAB_LIBRARY_PATH")));
}

TEST_F(LibraryTest, ACopyThatCannotBeOpenedIsReported) {
  // A text file under the library's name.
  SetLibraryFolder(Folder("."));
  LibraryRequest request = Request("text");
  request.file = "library_test.cc";
  const absl::Status status = OpenLibrary(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("text cannot be opened"),
                    HasSubstr("library_test.cc"), HasSubstr("invalid")));
}

TEST_F(LibraryTest, ACopyThatCrashesCostsOnlyItself) {
  SetLibraryFolder(Folder("test_new"));
  LibraryRequest request = Request("crash");
  request.version = [](void*) -> LibraryVersion { std::abort(); };
  const absl::Status status = OpenLibrary(request).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("ended the process"));
}

}  // namespace
}  // namespace convlab::cuda
