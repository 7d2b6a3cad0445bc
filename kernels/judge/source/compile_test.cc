#include "kernels/judge/source/compile.h"

#include <stdlib.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/judge/source/test_files.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The error of compiling a file, which must leave nothing behind.
absl::Status Error(const std::string& path) {
  const auto source = ReadKernelSource(path);
  if (!source.ok()) return source.status();
  CompileOptions options;
  options.folder = NewTestFolder();
  const auto kernel = CompileKernel(*source, options);
  EXPECT_TRUE(kernel.ok() || std::filesystem::is_empty(options.folder));
  EXPECT_THAT(std::string(kernel.status().message()), Not(HasSubstr("\n")));
  return kernel.status();
}

TEST(CompileKernel, ErrorsAreTheCompilersFirstWithTheFilesLine) {
  const std::string bad = WriteTestFiles() + "/bad/";
  EXPECT_EQ(Error(bad + "missing_header.cc"),
            absl::InvalidArgumentError(
                "missing_header.cc:3: not_there.h: No such file or directory"));
  EXPECT_EQ(
      Error(bad + "syntax.cc"),
      absl::InvalidArgumentError("syntax.cc:4: expected ';' before '}' token"));
  EXPECT_THAT(std::string(Error(bad + "template.cc").message()),
              StartsWith("template.cc:7: no match for 'operator-'"));
  EXPECT_EQ(
      Error(bad + "undefined.cc"),
      absl::InvalidArgumentError(
          "undefined.cc:5: undefined reference to `OneImage(float const*, "
          "float*)'"));
  EXPECT_EQ(Error(bad + "open_bracket.cc"),
            absl::InvalidArgumentError(
                "open_bracket.cc:2: a bracket that is opened here is never "
                "closed, or one inside it: expected '}' at end of input"));
  EXPECT_THAT(std::string(Error(bad + "lab.cu").message()),
              HasSubstr("lab.cu:1: wb.h belongs to the course's labs"));
}

TEST(CompileKernel, OtherErrorsComeAlong) {
  std::string file =
      "extern \"C\" void convolution(const float* x, const float* k, float* y,"
      " int B, int C, int H, int W, int M, int K) {\n";
  for (int i = 0; i < 7; ++i) file += "  no" + std::to_string(i) + "();\n";
  const absl::Status status =
      Error(WriteTestFile(NewTestFolder(), "kernel.cc", file + "}\n"));
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("kernel.cc:2: 'no0' was not declared"),
                    HasSubstr(" (the first of 7 errors)")));
  const std::vector<std::string> errors = CompilerErrors(status);
  ASSERT_EQ(errors.size(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(errors[i], StartsWith("kernel.cc:" + std::to_string(2 + i)));
  }
  EXPECT_TRUE(CompilerErrors(absl::InvalidArgumentError("one")).empty());
}

TEST(CompileKernel, WarningsAreKept) {
  const std::string folder = NewTestFolder();
  const auto source = ReadKernelSource(WriteTestFile(
      folder, "kernel.cc",
      "extern \"C\" void convolution(const float* x, const float* k, float* y,"
      " int B, int C, int H, int W, int M, int K) {\n"
      "  y[0] = 1 / 0;\n}\n"));
  ASSERT_TRUE(source.ok()) << source.status();
  CompileOptions options;
  options.folder = folder;
  const auto kernel = CompileKernel(*source, options);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_THAT(kernel->warnings,
              ::testing::ElementsAre("kernel.cc:2: division by zero "
                                     "[-Wdiv-by-zero]"));
  EXPECT_GT(kernel->seconds, 0);
  // The library, whose name is the kernel's and its digest's, and no more.
  EXPECT_EQ(std::filesystem::path(kernel->library).filename(),
            "kernel-" + source->digest.substr(0, 12) + ".so");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files += entry.exists() ? 1 : 0;
  }
  EXPECT_EQ(files, 2);
}

TEST(CompileKernel, ALibraryIsAKernelItself) {
  const std::string folder = WriteTestFiles();
  const auto source = ReadKernelSource(folder + "/cpu_fa22.cc");
  ASSERT_TRUE(source.ok()) << source.status();
  CompileOptions options;
  options.folder = folder;
  const auto kernel = CompileKernel(*source, options);
  ASSERT_TRUE(kernel.ok()) << kernel.status();

  const auto library = ReadKernelSource(kernel->library);
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(library->kernel_interface, KernelInterface::kLibrary);
  const auto again = CompileKernel(*library, options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->library, kernel->library);

  const auto no_kernel = Error(WriteTestFile(folder, "no.so",
                                             "\x7F"
                                             "ELF..."));
  EXPECT_THAT(std::string(no_kernel.message()),
              AllOf(HasSubstr("no.so"), HasSubstr("no shared library")));
}

TEST(CompileKernel, SaysWhereItLookedForACompiler) {
  const std::string folder = WriteTestFiles();
  const std::string path = getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  setenv("CUDA_HOME", "none", 1);
  EXPECT_EQ(Error(folder + "/cpu_fa22.cc"),
            absl::UnavailableError("g++ not found; looked for /nowhere/g++"));
  EXPECT_EQ(Error(folder + "/plain.cu"),
            absl::UnavailableError("nvcc not found: CUDA_HOME is none"));
  unsetenv("CUDA_HOME");
  setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace convlab
