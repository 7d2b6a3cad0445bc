// Runs every variant on tensors that begin, and on tensors that end, where no
// memory is mapped. What is read or written outside of them, used or not, ends
// the program for a CPU's variant, and is an error of the device for a GPU's.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/math/rounding.h"
#include "common/status/status.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/parity_testing.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/guarded_memory.h"
#include "kernels/simd/cpu_target.h"

namespace convlab {
namespace {

using cuda::GuardedMemory;

constexpr int64_t kMostBytes = 6 << 20;
constexpr Problem kProblems[] = {
    {1, 1, 1, 1, 1, 1},     {2, 3, 9, 9, 4, 1},     {2, 17, 12, 12, 8, 3},
    {1, 2, 30, 30, 3, 11},  {3, 3, 37, 43, 7, 7},   {3, 8, 21, 23, 8, 2},
    {7, 6, 22, 22, 16, 5},  {7, 1, 48, 48, 6, 5},   {3, 12, 33, 33, 24, 7},
    {2, 12, 33, 33, 24, 5}, {150, 1, 41, 39, 7, 5},
};

absl::StatusOr<GuardedMemory> MapOnHost(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t mapped = RoundUp(bytes, page);
  void* const reserved = mmap(nullptr, mapped + 2 * page, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED) return absl::InternalError("mmap failed");
  char* const begin = static_cast<char*>(reserved) + page;
  if (mprotect(begin, mapped, PROT_READ | PROT_WRITE) != 0) {
    return absl::InternalError("mprotect failed");
  }
  return GuardedMemory{begin, mapped};
}

// Memory for each of the three tensors, which all cases use.
absl::StatusOr<std::vector<GuardedMemory>> MapThree(Backend backend) {
  std::vector<GuardedMemory> three;
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(three.emplace_back(),
                     backend == Backend::kCpu
                         ? MapOnHost(kMostBytes)
                         : cuda::MapGuardedMemory(kMostBytes));
  }
  return three;
}

class Guarded : public ::testing::TestWithParam<const Variant*> {
 protected:
  void SetUp() override {
    static const auto* const host =
        new absl::StatusOr<std::vector<GuardedMemory>>(MapThree(Backend::kCpu));
    static const auto* const device =
        new absl::StatusOr<std::vector<GuardedMemory>>(
            MapThree(Backend::kCuda));
    memory_ = on_device() ? device : host;
    if (on_device() && !memory_->ok()) GTEST_SKIP() << memory_->status();
    ASSERT_TRUE(memory_->ok()) << memory_->status();
  }
  void TearDown() override { ASSERT_TRUE(ForceCpuTarget("auto").ok()); }

  static const Variant& variant() { return *GetParam(); }
  static bool on_device() { return variant().backend == Backend::kCuda; }

  // Where tensor i has so many floats.
  float* Place(int i, int64_t count, bool at_end) const {
    const GuardedMemory& memory = (**memory_)[i];
    const int64_t bytes = count * sizeof(float);
    EXPECT_LE(bytes, kMostBytes);
    return reinterpret_cast<float*>(memory.begin +
                                    (at_end ? memory.bytes - bytes : 0));
  }

  float* Load(int i, const std::vector<float>& values, bool at_end) const {
    float* const place = Place(i, values.size(), at_end);
    const int64_t bytes = values.size() * sizeof(float);
    if (!on_device()) {
      std::memcpy(place, values.data(), bytes);
    } else {
      EXPECT_TRUE(cuda::CopyToDevice(place, values.data(), bytes).ok());
    }
    return place;
  }

  void Run(const Problem& problem, bool at_end) const {
    SCOPED_TRACE(ToString(problem) +
                 (at_end ? ", tensors end there" : ", tensors begin there"));
    const Tensors& tensors = TensorsOf(problem, 0);
    std::vector<float> y(tensors.y.size());
    const int64_t bytes = y.size() * sizeof(float);
    std::memset(y.data(), kPoison, bytes);
    const float* const x = Load(0, tensors.x, at_end);
    const float* const k = Load(1, tensors.k, at_end);
    float* const out = Load(2, y, at_end);
    const auto convolution = variant().Create(problem, TestResources());
    ASSERT_TRUE(convolution.ok()) << convolution.status();
    const absl::Status ran = (*convolution)->Run(x, k, out, /*stream=*/nullptr);
    ASSERT_TRUE(ran.ok()) << ran;
    if (!on_device()) {
      std::memcpy(y.data(), out, bytes);
    } else {
      const absl::Status finished = cuda::Synchronize();
      ASSERT_TRUE(finished.ok()) << finished;
      ASSERT_TRUE(cuda::CopyToHost(y.data(), out, bytes).ok());
    }
    EXPECT_LE(RelativeError(y.data(), tensors.y), MaxError(variant(), problem));
  }

 private:
  const absl::StatusOr<std::vector<GuardedMemory>>* memory_ = nullptr;
};

TEST_P(Guarded, NothingBesideTheTensorsIsTouched) {
  for (const Problem& problem : kProblems) {
    if (!variant().supports(problem, TestResources()).ok()) continue;
    for (const CpuTarget target : SupportedCpuTargets()) {
      ASSERT_TRUE(ForceCpuTarget(Name(target)).ok());
      for (const bool at_end : {false, true}) Run(problem, at_end);
      if (HasFailure()) return;
      if (!variant().by_cpu_target) break;
    }
  }
}

std::string GuardedName(const ::testing::TestParamInfo<const Variant*>& info) {
  return std::string(Name(info.param->backend)) + "_" + info.param->name;
}

INSTANTIATE_TEST_SUITE_P(AllVariants, Guarded, ::testing::ValuesIn(Variants()),
                         GuardedName);

}  // namespace
}  // namespace convlab
