#include "kernels/judge/source/diagnostics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kFiles = {"/home/a/new-forward.cu",
                                         "/home/a/tile.h"};

std::vector<std::string> Errors(const std::string& output) {
  return ReadDiagnostics(output, kFiles).errors;
}

std::string Error(const std::string& output) {
  const std::vector<std::string> errors = Errors(output);
  return errors.empty() ? "" : errors[0];
}

TEST(ReadDiagnostics, FirstErrorWithTheOwnersLine) {
  EXPECT_EQ(Error("/home/a/new-forward.cu(3): warning #177-D: unused\n"
                  "/home/a/tile.h(12): error: identifier \"t\" is undefined\n"
                  "/home/a/tile.h(13): error: another\n"),
            "tile.h:12: identifier \"t\" is undefined");
  EXPECT_EQ(Error("/home/a/new-forward.cu:2:10: fatal error: x.h: No such file "
                  "or directory\n"),
            "new-forward.cu:2: x.h: No such file or directory");
}

TEST(ReadDiagnostics, EveryErrorOnce) {
  EXPECT_THAT(Errors("/home/a/new-forward.cu(3): error: one\n"
                     "/home/a/tile.h(12): error: two\n"
                     "/home/a/new-forward.cu(3): error: one\n"),
              ElementsAre("new-forward.cu:3: one", "tile.h:12: two"));
  EXPECT_THAT(
      Errors("/usr/bin/ld: /tmp/x.o: in function `f':\n"
             "/home/a/tile.h:5: undefined reference to `g()'\n"
             "/usr/bin/ld: /home/a/tile.h:6: undefined reference to `h()'\n"
             "collect2: error: ld returned 1 exit status\n"),
      ElementsAre("tile.h:5: undefined reference to `g()'",
                  "tile.h:6: undefined reference to `h()'"));
}

// As g++ 12 and nvcc 13 print it: the adapter stands behind the file.
TEST(ReadDiagnostics, ABracketThatIsNeverClosedIsTheFirstError) {
  EXPECT_THAT(
      Errors("In file included from /tmp/x/kernel.cc:4:\n"
             "/tmp/x/include/convlab/plain_cpu.h:3:58: error: a "
             "function-definition is not allowed here before '{' token\n"
             "/tmp/x/include/convlab/plain_cpu.h:22:2: error: expected '}' at "
             "end of input\n"
             "In file included from /tmp/x/kernel.cc:3:\n"
             "/home/a/new-forward.cu:8:47: note: to match this '{'\n"),
      ElementsAre("new-forward.cu:8: a bracket that is opened here is never "
                  "closed, or one inside it: expected '}' at end of input"));
  EXPECT_THAT(
      Errors("/home/a/new-forward.cu(6): error: linkage specification is not "
             "allowed\n"
             "At end of source: error: expected a \"}\"\n"
             "/home/a/new-forward.cu(3): note #3196-D: to match this \"{\"\n"),
      ElementsAre("new-forward.cu:3: a bracket that is opened here is never "
                  "closed, or one inside it: expected a \"}\"",
                  "new-forward.cu:6: linkage specification is not allowed"));
  EXPECT_THAT(Error("/tmp/x/include/convlab/plain_cpu.h:3:58: error: no "
                    "declaration\n"),
              ::testing::HasSubstr("perhaps a } is missing"));
}

TEST(ReadDiagnostics, ErrorsElsewhereAreTracedToTheOwnersLine) {
  EXPECT_EQ(Error("In file included from /usr/include/c++/12/algorithm:61,\n"
                  "                 from /home/a/new-forward.cu:1:\n"
                  "/usr/include/c++/12/bits/a.h: In instantiation of 'f()':\n"
                  "/home/a/new-forward.cu:7:12:   required from here\n"
                  "/usr/include/c++/12/bits/a.h:50:3: error: no match\n"),
            "new-forward.cu:7: no match");
  EXPECT_EQ(Error("/usr/include/c++/12/bits/a.h(50): error: no match\n"
                  "          detected during instantiation of \"void f()\" at "
                  "line 9 of /home/a/new-forward.cu\n"),
            "new-forward.cu:9: no match");
}

TEST(ReadDiagnostics, ToolsThatNameNoLine) {
  EXPECT_EQ(Error("/usr/bin/ld: /tmp/x.o: in function `f':\n"
                  "x.cudafe1.cpp:(.text+0x9): undefined reference to `g()'\n"),
            "new-forward.cu: undefined reference to `g()'");
  EXPECT_EQ(Error("ptxas error   : Entry function 'f' uses too much shared data"
                  " (0x50000 bytes, 0x38c00 max)\n"),
            "new-forward.cu: Entry function 'f' uses too much shared data "
            "(0x50000 bytes, 0x38c00 max) (declare it dynamic, as much as "
            "cudaFuncSetAttribute allows on this GPU)");
}

TEST(ReadDiagnostics, OldCudaSaysWhatToWrite) {
  EXPECT_EQ(Error("/home/a/new-forward.cu(5): error: class \"cudaDeviceProp\" "
                  "has no member \"computeMode\"\n"),
            "new-forward.cu:5: class \"cudaDeviceProp\" has no member "
            "\"computeMode\" (CUDA 13 removed it; ask cudaDeviceGetAttribute "
            "for cudaDevAttrComputeMode)");
}

TEST(ReadDiagnostics, WarningsOfTheOwnersFilesOnce) {
  const Diagnostics diagnostics = ReadDiagnostics(
      "/home/a/new-forward.cu(3): warning #177-D: variable \"x\" was declared\n"
      "\n"
      "/usr/include/y.h(3): warning #20-D: theirs\n"
      "/home/a/new-forward.cu(3): warning #177-D: variable \"x\" was "
      "declared\n",
      kFiles);
  EXPECT_THAT(diagnostics.warnings,
              ElementsAre("new-forward.cu:3: variable \"x\" was declared"));
  EXPECT_THAT(diagnostics.errors, IsEmpty());
  EXPECT_THAT(diagnostics.functions, IsEmpty());
}

// As nvcc 13 prints it.
TEST(ReadDiagnostics, FunctionsOfTheDevice) {
  const Diagnostics diagnostics = ReadDiagnostics(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z5naiveILi256EEvPKfPf' for "
      "'sm_90a'\n"
      "ptxas info    : Function properties for _Z5naiveILi256EEvPKfPf\n"
      "    24 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 31 registers, used 1 barriers, 24 bytes cumulative "
      "stack size, 2048 bytes smem\n"
      "ptxas info    : Compile time = 8.000 ms\n",
      kFiles);
  ASSERT_EQ(diagnostics.functions.size(), 1);
  const DeviceFunction& function = diagnostics.functions[0];
  EXPECT_EQ(function.name, "naive<256>");
  EXPECT_EQ(function.registers, 31);
  EXPECT_EQ(function.shared_bytes, 2048);
  EXPECT_EQ(function.stack_bytes, 24);
  EXPECT_EQ(function.spill_store_bytes, 16);
  EXPECT_EQ(function.spill_load_bytes, 8);
}

TEST(ShortFunctionName, LeavesOutTypeAndParameters) {
  EXPECT_EQ(ShortFunctionName("_Z6kernelPfi"), "kernel");
  EXPECT_EQ(ShortFunctionName("_ZN5mxnet2op1kIfEEvPT_"), "mxnet::op::k<float>");
  EXPECT_EQ(ShortFunctionName("kernel"), "kernel");
}

}  // namespace
}  // namespace convlab
