#include "kernels/judge/source/interface.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/judge/source/test_files.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  const char* name;
  KernelInterface kernel_interface;
  bool stride = false;
};

TEST(ReadKernelSource, TellsTheInterface) {
  const std::string folder = WriteTestFiles();
  for (const Case& c : std::vector<Case>{
           {"mxnet_fa17.cuh", KernelInterface::kMxnetGpu},
           {"mxnet_fa19.cuh", KernelInterface::kMxnetGpu},
           {"mxnet_fa19_cpu.h", KernelInterface::kMxnetCpu},
           {"mini_dnn_fa20.cu", KernelInterface::kMiniDnnHost},
           {"mini_dnn_fa21.cu", KernelInterface::kMiniDnnGpu},
           {"mini_dnn_matmul.cu", KernelInterface::kMiniDnnGpu},
           {"mini_dnn_stride.cu", KernelInterface::kMiniDnnGpu, true},
           {"cpu_fa22.cc", KernelInterface::kMiniDnnCpu},
           {"cpu_fa23_stride.cc", KernelInterface::kMiniDnnCpu, true},
           {"plain.cu", KernelInterface::kPlainGpu},
           {"folder", KernelInterface::kPlainCpu},
       }) {
    const auto source = ReadKernelSource(folder + "/" + c.name);
    ASSERT_TRUE(source.ok()) << c.name << ": " << source.status();
    EXPECT_EQ(source->kernel_interface, c.kernel_interface)
        << c.name << ": " << Name(source->kernel_interface);
    EXPECT_EQ(source->stride, c.stride) << c.name;
    EXPECT_EQ(source->name, std::filesystem::path(c.name).stem());
  }
}

std::string Error(const std::string& path) {
  const auto source = ReadKernelSource(path);
  if (source.ok()) return "no error";
  const std::string message(source.status().message());
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  return message;
}

TEST(ReadKernelSource, ErrorsNameTheFileAndWhatWasFound) {
  const std::string folder = WriteTestFiles();
  const std::string bad = folder + "/bad/";
  EXPECT_THAT(Error(bad + "no_kernel.cu"),
              AllOf(HasSubstr("no_kernel.cu has no kernel's interface"),
                    HasSubstr("conv_forward_gpu")));
  EXPECT_THAT(Error(bad + "two_interfaces.cc"),
              HasSubstr("two_interfaces.cc has several interfaces: "
                        "conv_forward_cpu (line 1), convolution (line 5)"));
  EXPECT_THAT(Error(bad + "no_epilog.cu"),
              HasSubstr("no_epilog.cu defines "
                        "GPUInterface::conv_forward_gpu_prolog but not "
                        "conv_forward_gpu_epilog"));
  EXPECT_THAT(Error(bad + "parameters.cc"),
              HasSubstr("parameters.cc:1: conv_forward_cpu has 7 parameters; "
                        "expected 3 pointers, then B, M, C, H, W, K"));
  // Parameters in the order of another interface.
  const auto order = [&](const std::string& parameters) {
    return Error(WriteTestFile(
        folder, "order.cc",
        "extern \"C\" void convolution(" + parameters + ") {}\n"));
  };
  EXPECT_THAT(order("float* y, const float* x, const float* k, int B, int C, "
                    "int H, int W, int M, int K"),
              HasSubstr("order.cc:1: convolution takes y, x, k; expected x, k, "
                        "y, in this order"));
  EXPECT_THAT(order("const float* in, const float* w, float* out, const int B, "
                    "const int M, int C, int H, int W, int K"),
              HasSubstr("convolution takes B, M, C, H, W, K; expected B, C, H, "
                        "W, M, K, in this order"));
  EXPECT_THAT(order("float* out, const float* in, const float* w, int n, "
                    "int c, int h, int w_, int m, int k"),
              HasSubstr("convolution has a const third parameter; expected x, "
                        "k, y, of which y is written"));
  EXPECT_TRUE(ReadKernelSource(
                  WriteTestFile(folder, "names.cc",
                                "extern \"C\" void convolution(float* in, "
                                "float* w, float* out, int N, int C, int H, "
                                "int W, int K, int R) {}\n"))
                  .ok());
  EXPECT_THAT(Error(WriteTestFile(
                  folder, "sizes.cc",
                  "void conv_forward_cpu(float* y, const float* x, const "
                  "float* k, int B, int C, int M, int H, int W, int K) {}\n")),
              HasSubstr("conv_forward_cpu takes B, C, M, H, W, K; expected B, "
                        "M, C, H, W, K, in this order"));
  EXPECT_THAT(Error(bad), HasSubstr("bad has several kernels: "));
  EXPECT_THAT(Error(NewTestFolder()),
              HasSubstr("has a kernel's interface; expected"));
  EXPECT_THAT(Error(WriteTestFile(folder, "empty.cu", " \n")),
              HasSubstr("empty.cu is empty"));
  EXPECT_THAT(Error(WriteTestFile(folder, "binary.cu", std::string("a\0b", 3))),
              HasSubstr("binary.cu is not text"));
  EXPECT_EQ(ReadKernelSource(folder + "/nowhere.cu").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(Error("/dev/null"), HasSubstr("neither a file nor a folder"));
}

TEST(ReadKernelSource, DigestCoversTheHeadersBesideTheFile) {
  const std::string folder = NewTestFolder();
  const std::string content =
      "#include \"a.h\"\n"
      "extern \"C\" void convolution(const float* x, const float* k, float* y,"
      " int B, int C, int H, int W, int M, int K) {}\n";
  const std::string path = WriteTestFile(folder, "kernel.cc", content);
  const auto digest = [&] {
    const auto source = ReadKernelSource(path);
    return source.ok() ? source->digest : source.status().ToString();
  };
  // sha256sum of the file.
  EXPECT_EQ(digest(),
            "f905d7edd030a68ca4ba2e2d69b2ee09505c26786929e51569d28a3c01f5c146");
  WriteTestFile(folder, "a.h", "#include \"b/c.h\"\n");
  const std::string with_header = digest();
  WriteTestFile(folder, "b/c.h", "int a;\n");
  const std::string with_both = digest();
  WriteTestFile(folder, "b/c.h", "int b;\n");
  EXPECT_NE(with_header, with_both);
  EXPECT_NE(digest(), with_both);
  const std::string changed = digest();
  WriteTestFile(folder, "other.h", "int b;\n");
  EXPECT_EQ(digest(), changed);
}

TEST(ReadKernelSource, HeadersBringTheSourcesOfTheirFunctions) {
  const std::string folder = NewTestFolder();
  const std::string path = WriteTestFile(
      folder, "kernel.cc",
      "#include \"a.h\"\nextern \"C\" void convolution(const float* x,"
      " const float* k, float* y, int B, int C, int H, int W, int M, int K)"
      " { one(); }\n");
  WriteTestFile(folder, "a.h", "void one();\n");
  const auto before = ReadKernelSource(path);
  WriteTestFile(folder, "a.cc", "void one() {}\n");
  const auto after = ReadKernelSource(path);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_NE(before->digest, after->digest);
}

}  // namespace
}  // namespace convlab
