// Compiles the files of testdata/, calls them through the interface of abi.h,
// and compares with the reference. Without nvcc only those for the CPU are
// compiled, and without a GPU only those are run.

#include <dlfcn.h>

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/problem.h"
#include "kernels/cuda/device.h"
#include "kernels/judge/source/abi.h"
#include "kernels/judge/source/compile.h"
#include "kernels/judge/source/test_files.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

const Problem kProblem = {3, 2, 19, 17, 4, 3};

// Tensors of small integers, for which all orders of summation agree.
std::vector<float> Integers(int64_t size, int seed) {
  std::vector<float> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = (i * 7 + seed) % 5 - 2;
  return values;
}

// The output for a stride: some of the elements of the output for 1.
std::vector<float> Expected(const std::vector<float>& x,
                            const std::vector<float>& k, int stride) {
  Workers workers(1);
  const Problem& p = kProblem;
  const std::vector<double> all =
      ReferenceConvolution(p, x.data(), k.data(), workers);
  std::vector<float> expected;
  for (int64_t map = 0; map < p.batch * p.filters; ++map) {
    for (int64_t h = 0; h < p.output_height(); h += stride) {
      for (int64_t w = 0; w < p.output_width(); w += stride) {
        expected.push_back(
            all[(map * p.output_height() + h) * p.output_width() + w]);
      }
    }
  }
  return expected;
}

// One call on the problem; the output.
std::vector<float> Call(const ConvlabKernel& kernel, int stride,
                        const std::vector<float>& x,
                        const std::vector<float>& k) {
  const Problem& p = kProblem;
  std::vector<float> y(Expected(x, k, stride).size(),
                       kernel.zeroed_output ? 0 : NAN);
  ConvlabCall call = {};
  call.batch = p.batch;
  call.channels = p.channels;
  call.height = p.height;
  call.width = p.width;
  call.filters = p.filters;
  call.kernel_size = p.kernel_size;
  call.stride = stride;
  call.host_x = x.data();
  call.host_k = k.data();
  call.host_y = y.data();
  cuda::DeviceBuffer device[3];
  if (kernel.tensors == CONVLAB_DEVICE_TENSORS) {
    const std::vector<float>* const host[3] = {&x, &k, &y};
    for (int i = 0; i < 3; ++i) {
      const int64_t bytes = host[i]->size() * sizeof(float);
      auto buffer = cuda::DeviceBuffer::Allocate(bytes);
      if (!buffer.ok()) return {};
      device[i] = std::move(*buffer);
      if (!cuda::CopyToDevice(device[i].data(), host[i]->data(), bytes).ok()) {
        return {};
      }
    }
    call.device_x = device[0].floats();
    call.device_k = device[1].floats();
    call.device_y = device[2].floats();
  }
  if (kernel.prolog != nullptr) kernel.prolog(&call);
  kernel.op(&call);
  if (kernel.epilog != nullptr) kernel.epilog(&call);
  if (kernel.tensors == CONVLAB_DEVICE_TENSORS) {
    if (!cuda::Synchronize().ok() ||
        !cuda::CopyToHost(y.data(), call.device_y, y.size() * sizeof(float))
             .ok()) {
      return {};
    }
  }
  return y;
}

const ConvlabKernel* Load(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  using Function = const ConvlabKernel* (*)();
  return reinterpret_cast<Function>(dlsym(handle, "convlab_kernel"))();
}

// Compiles a file for the GPU at hand.
absl::StatusOr<CompiledKernel> Compile(const std::string& path) {
  const auto source = ReadKernelSource(path);
  if (!source.ok()) return source.status();
  CompileOptions options;
  options.folder = NewTestFolder();
  const auto device = cuda::FindDevice();
  if (device.ok()) options.compute_capability = device->compute_capability;
  return CompileKernel(*source, options);
}

void ExpectRight(const CompiledKernel& compiled) {
  const ConvlabKernel* const kernel = Load(compiled.library);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->abi, CONVLAB_KERNEL_ABI);
  EXPECT_EQ(kernel->name, Name(compiled.source.kernel_interface));
  EXPECT_EQ(kernel->uses_gpu, UsesGpu(compiled.source.kernel_interface));
  for (int stride = 1; stride <= (compiled.source.stride ? 2 : 1); ++stride) {
    // Twice, since some files keep memory from call to call.
    for (int seed = 0; seed < 2; ++seed) {
      const std::vector<float> x = Integers(kProblem.input_elements(), seed);
      const std::vector<float> k =
          Integers(kProblem.kernel_elements(), 3 + seed);
      EXPECT_EQ(Call(*kernel, stride, x, k), Expected(x, k, stride))
          << compiled.source.path << ", stride " << stride;
    }
  }
  if (kernel->guard == nullptr) return;
  ConvlabGuardReport report;
  kernel->guard(&report);
  EXPECT_EQ(report.damaged_zones, 0) << compiled.source.path;
  EXPECT_EQ(report.leaked_bytes, 0) << compiled.source.path;
}

TEST(Adapter, FilesForTheCpuAreRight) {
  const std::string folder = WriteTestFiles();
  for (const char* const name :
       {"cpu_fa22.cc", "cpu_fa23_stride.cc", "mxnet_fa19_cpu.h", "folder"}) {
    const auto compiled = Compile(folder + "/" + name);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    ExpectRight(*compiled);
  }
}

class GpuFiles : public ::testing::TestWithParam<const char*> {
 protected:
  const std::string folder_ = WriteTestFiles();
};

TEST_P(GpuFiles, AreRight) {
  const auto compiled = Compile(folder_ + "/" + GetParam());
  if (absl::IsUnavailable(compiled.status())) {
    GTEST_SKIP() << compiled.status().message();
  }
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_FALSE(compiled->functions.empty());
  for (const DeviceFunction& function : compiled->functions) {
    EXPECT_GT(function.registers, 0) << function.name;
    // Of all files this one alone has constants: 10,000 floats.
    const bool constants = GetParam() == std::string("mini_dnn_fa21.cu");
    EXPECT_EQ(function.constant_bytes, constants ? 40000 : 0) << function.name;
  }
  if (!cuda::FindDevice().ok()) GTEST_SKIP() << "there is no GPU";
  ExpectRight(*compiled);
}

INSTANTIATE_TEST_SUITE_P(
    Files, GpuFiles,
    ::testing::Values("mxnet_fa17.cuh", "mxnet_fa19.cuh", "mini_dnn_fa20.cu",
                      "mini_dnn_fa21.cu", "mini_dnn_matmul.cu",
                      "mini_dnn_stride.cu", "plain.cu", "shuffle.cu"));

TEST(Adapter, TheGuardFindsWhatIsWrongWithMemory) {
  if (!cuda::FindDevice().ok()) GTEST_SKIP() << "there is no GPU";
  const auto compiled = Compile(WriteTestFiles() + "/gpu/damage.cu");
  if (absl::IsUnavailable(compiled.status())) {
    GTEST_SKIP() << compiled.status().message();
  }
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const ConvlabKernel* const kernel = Load(compiled->library);
  ASSERT_NE(kernel, nullptr);
  const std::vector<float> x = Integers(kProblem.input_elements(), 1);
  const std::vector<float> k = Integers(kProblem.kernel_elements(), 1);
  // What nobody wrote is NaN.
  const std::vector<float> y = Call(*kernel, 1, x, k);
  ASSERT_FALSE(y.empty());
  EXPECT_TRUE(std::isnan(y[0]));
  ConvlabGuardReport report;
  kernel->guard(&report);
  EXPECT_EQ(report.damaged_zones, 1);
  EXPECT_EQ(report.damaged_offset, 3 * sizeof(float));
  EXPECT_EQ(report.damaged_bytes, 100 * sizeof(float));
  EXPECT_EQ(report.leaked_bytes, 100 * sizeof(float));
  EXPECT_EQ(report.peak_bytes, 100 * sizeof(float));
}

TEST(Adapter, ErrorsOfNvccHaveTheFilesLine) {
  const std::string bad = WriteTestFiles() + "/bad/";
  const struct {
    const char* name;
    std::vector<const char*> pieces;
  } cases[] = {
      {"texture.cu", {"texture.cu:3: ", "cudaCreateTextureObject"}},
      {"shared_memory.cu", {"shared_memory.cu: ", "too much shared data"}},
  };
  for (const auto& c : cases) {
    const auto compiled = Compile(bad + c.name);
    if (absl::IsUnavailable(compiled.status())) {
      GTEST_SKIP() << compiled.status().message();
    }
    for (const char* const piece : c.pieces) {
      EXPECT_THAT(std::string(compiled.status().message()), HasSubstr(piece));
    }
  }
}

}  // namespace
}  // namespace convlab
