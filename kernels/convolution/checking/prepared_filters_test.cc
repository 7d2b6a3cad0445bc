// Filters that are prepared once give the outputs, bit for bit, that filters
// give which come with each run, on all families of data.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/families.h"
#include "kernels/convolution/checking/parity_testing.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/convolution/checking/recipe.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

constexpr Problem kProblems[] = {  // batch, channels, height, width, filters, K
    {3, 1, 48, 48, 12, 5}, {2, 12, 21, 23, 24, 5}, {5, 3, 20, 33, 9, 3},
    {2, 2, 40, 17, 5, 7},  {1, 1, 30, 30, 70, 3},  {300, 4, 12, 12, 16, 3}};

// Memory of the backend, filled with the poison.
class Memory {
 public:
  static absl::StatusOr<Memory> Make(Backend backend, int64_t bytes) {
    Memory memory;
    memory.bytes_ = bytes;
    if (backend == Backend::kCpu) {
      memory.host_.resize(bytes + kAlignment);
      memory.data_ = memory.host_.data();
      size_t space = memory.host_.size();
      std::align(kAlignment, bytes, memory.data_, space);
    } else {
      ASSIGN_OR_RETURN(memory.device_, cuda::DeviceBuffer::Allocate(bytes));
      memory.data_ = memory.device_.data();
    }
    RETURN_IF_ERROR(memory.Poison());
    return memory;
  }
  static absl::StatusOr<Memory> Make(Backend backend,
                                     const std::vector<float>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    ASSIGN_OR_RETURN(Memory memory, Make(backend, bytes));
    if (backend == Backend::kCpu) {
      std::memcpy(memory.data_, values.data(), bytes);
      return memory;
    }
    RETURN_IF_ERROR(cuda::CopyToDevice(memory.data_, values.data(), bytes));
    return memory;
  }

  absl::Status Poison() {
    if (!host_.empty()) {
      std::memset(data_, kPoison, bytes_);
      return absl::OkStatus();
    }
    return cuda::FillBytes(data_, kPoison, bytes_);
  }
  absl::StatusOr<std::vector<char>> Read() const {
    std::vector<char> bytes(bytes_);
    if (!host_.empty()) {
      std::memcpy(bytes.data(), data_, bytes_);
      return bytes;
    }
    RETURN_IF_ERROR(cuda::Synchronize());
    RETURN_IF_ERROR(cuda::CopyToHost(bytes.data(), data_, bytes_));
    return bytes;
  }
  void* data() const { return data_; }
  float* floats() const { return static_cast<float*>(data_); }

 private:
  static constexpr int kAlignment = 256;

  std::vector<char> host_;
  cuda::DeviceBuffer device_;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

class PreparedFilters : public ::testing::TestWithParam<const Variant*> {
 protected:
  void SetUp() override {
    if (variant().backend == Backend::kCpu) return;
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }

  static const Variant& variant() { return *GetParam(); }

  // Null if the variant does not take the problem or prepares no filters for
  // it.
  static std::unique_ptr<Convolution> Create(const Problem& problem) {
    const Resources resources = TestResources();
    if (!variant().supports(problem, resources).ok()) return nullptr;
    auto convolution = variant().Create(problem, resources);
    EXPECT_TRUE(convolution.ok()) << convolution.status();
    if (!convolution.ok() || (*convolution)->filter_bytes() == 0) {
      return nullptr;
    }
    return *std::move(convolution);
  }

  static absl::Status Compare(const Problem& problem,
                              const ConvolutionData& data,
                              Convolution& convolution) {
    const Backend backend = variant().backend;
    ASSIGN_OR_RETURN(const Memory x, Memory::Make(backend, data.x));
    ASSIGN_OR_RETURN(Memory k, Memory::Make(backend, data.k));
    ASSIGN_OR_RETURN(const Memory filters,
                     Memory::Make(backend, convolution.filter_bytes()));
    ASSIGN_OR_RETURN(Memory y,
                     Memory::Make(backend, 4 * problem.output_elements()));
    std::vector<char> expected;
    for (int run = 0; run < 2; ++run) {
      RETURN_IF_ERROR(y.Poison());
      RETURN_IF_ERROR(
          convolution.Run(x.floats(), k.floats(), y.floats(), nullptr));
      ASSIGN_OR_RETURN(std::vector<char> got, y.Read());
      EXPECT_TRUE(run == 0 || got == expected) << "two runs differ";
      expected = std::move(got);
    }
    RETURN_IF_ERROR(
        convolution.PrepareFilters(k.floats(), filters.data(), nullptr));
    ASSIGN_OR_RETURN(const std::vector<char> prepared, filters.Read());
    RETURN_IF_ERROR(k.Poison());  // not needed any more
    for (int run = 0; run < 2; ++run) {
      RETURN_IF_ERROR(y.Poison());
      RETURN_IF_ERROR(convolution.RunPrepared(x.floats(), filters.data(),
                                              y.floats(), nullptr));
      ASSIGN_OR_RETURN(const std::vector<char> got, y.Read());
      EXPECT_TRUE(got == expected) << "in run " << run;
    }
    ASSIGN_OR_RETURN(const std::vector<char> after, filters.Read());
    EXPECT_TRUE(after == prepared) << "a run changed the prepared filters";
    return absl::OkStatus();
  }
};

TEST_P(PreparedFilters, GiveTheSameOutputs) {
  bool ran = false;
  for (const Problem& problem : kProblems) {
    const std::unique_ptr<Convolution> convolution = Create(problem);
    if (convolution == nullptr) continue;
    ran = true;
    std::vector<Recipe> recipes;
    for (const DataFamily& family : DataFamilies()) {
      recipes.push_back(RecipeOf(family, /*seed=*/7));
    }
    for (const Recipe& recipe : recipes) {
      SCOPED_TRACE(absl::StrCat(ToString(problem), ", ", ToString(recipe)));
      const absl::Status compared =
          Compare(problem, MakeData(problem, recipe), *convolution);
      ASSERT_TRUE(compared.ok()) << compared;
      if (HasFailure()) return;
    }
  }
  if (!ran) GTEST_SKIP() << "prepares no filters";
}

// What is skipped above would also be skipped by mistake.
TEST(PrepareFilters, IsDoneByTheKernelsThatArrangeThem) {
  constexpr const char* kArranging[] = {
      "dense_lanes",  "tensor_tf32",   "tensor_fp16",  "wgmma_fp16",
      "tensor_split", "tensor_strips", "wgmma_strips", "tensor_wgmma"};
  for (const char* const name : kArranging) {
    const Backend backend =
        name == kArranging[0] ? Backend::kCpu : Backend::kCuda;
    if (backend == Backend::kCuda && !cuda::FindDevice().ok()) continue;
    const auto variant = FindVariant(backend, name);
    ASSERT_TRUE(variant.ok()) << variant.status();
    const Problem problem = {2, 1, 30, 30, 6, 5};
    const Resources resources = TestResources();
    if (!(*variant)->supports(problem, resources).ok()) continue;
    const auto convolution = (*variant)->Create(problem, resources);
    ASSERT_TRUE(convolution.ok()) << convolution.status();
    EXPECT_GE((*convolution)->filter_bytes(), 4 * problem.kernel_elements())
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(AllVariants, PreparedFilters,
                         ::testing::ValuesIn(Variants().begin(),
                                             Variants().end()),
                         [](const auto& test) {
                           return absl::StrCat(Name(test.param->backend), "_",
                                               test.param->name);
                         });

}  // namespace
}  // namespace convlab
