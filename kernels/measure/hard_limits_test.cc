#include "kernels/measure/hard_limits.h"

#include <string>

#include "common/hardware/floor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

const Problem kFa19Layer2 = {10000, 12, 33, 33, 24, 5};

cuda::DeviceFacts Gpu(const char* name) {
  cuda::DeviceFacts facts;
  facts.name = name;
  facts.l2_bytes = 60 << 20;
  facts.memory_clock_khz = 1215000;
  facts.memory_bus_bits = 5120;
  return facts;
}

TEST(Limits, AreTheDataSheetsForTheH200) {
  const HardLimits limits = LimitsOf(Gpu("NVIDIA H200"));
  EXPECT_EQ(limits.memory_gbs, 4800);
  EXPECT_EQ(limits.arithmetic_tflops, 989.5);
  EXPECT_EQ(limits.note, "");
}

TEST(Limits, AreTheMemorysForAGpuWithoutDataSheet) {
  HardLimits limits = LimitsOf(Gpu("NVIDIA X100"));
  EXPECT_NEAR(*limits.memory_gbs, 1555, 1);
  EXPECT_EQ(limits.arithmetic_tflops, std::nullopt);
  EXPECT_THAT(limits.note, HasSubstr("tensor cores' peak"));
  EXPECT_THAT(limits.note, HasSubstr("X100"));
  cuda::DeviceFacts unknown = Gpu("some GPU");
  unknown.memory_clock_khz = 0;
  limits = LimitsOf(unknown);
  EXPECT_EQ(limits.memory_gbs, std::nullopt);
  EXPECT_THAT(limits.note, HasSubstr("the memory's or the tensor"));
}

TEST(Limits, ImpossibleTimesFail) {
  const HardLimits limits = LimitsOf(Gpu("NVIDIA H200"));
  const int64_t bytes = kFa19Layer2.min_bytes();
  EXPECT_TRUE(CheckLimits(kFa19Layer2, 1, bytes, 0.3e6, limits).ok());
  // 1.33 GB less 63 MB at 4.8 TB/s are 0.263 ms.
  EXPECT_TRUE(CheckLimits(kFa19Layer2, 1, bytes, 0.2640e6, limits).ok());
  const absl::Status memory =
      CheckLimits(kFa19Layer2, 1, bytes, 0.2615e6, limits);
  EXPECT_EQ(memory.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(memory.message()), HasSubstr("GB/s"));
  // 121.1 GFLOP at 989.5 TFLOP/s are 0.122 ms.
  EXPECT_TRUE(CheckLimits(kFa19Layer2, 1, 0, 0.1225e6, limits).ok());
  const absl::Status arithmetic =
      CheckLimits(kFa19Layer2, 1, 0, 0.1220e6, limits);
  EXPECT_THAT(std::string(arithmetic.message()), HasSubstr("TFLOP/s"));
  // What fits into the cache need not come from memory.
  EXPECT_TRUE(CheckLimits({1, 1, 86, 86, 4, 7}, 1, 132188, 1, limits).code() ==
              absl::StatusCode::kDataLoss);
  EXPECT_TRUE(CheckLimits({1, 1, 86, 86, 4, 7}, 1, 132188, 2600, limits).ok());
}

TEST(Limits, OfACpuAreItsMultiplyAdds) {
  // 12.11 GFLOP at 0.4 TFLOP/s are 30.3 ms.
  const Problem problem = {1000, 12, 33, 33, 24, 5};
  const HardLimits limits = LimitsOfCpu(0.2);
  EXPECT_TRUE(CheckLimits(problem, 1, problem.min_bytes(), 31e6, limits).ok());
  EXPECT_THAT(
      std::string(
          CheckLimits(problem, 1, problem.min_bytes(), 30e6, limits).message()),
      HasSubstr("would need 0.404 TFLOP/s, and the processor's multiply-adds "
                "have 0.4 at most"));
}

TEST(Limits, ArithmeticCountsTheProductsThatAreIssued) {
  const HardLimits limits = LimitsOf(Gpu("NVIDIA H200"));
  const int split = TensorProducts(AccuracyClass::kFp32);
  EXPECT_EQ(split, 3);
  EXPECT_EQ(TensorProducts(AccuracyClass::kTf32), 1);
  EXPECT_EQ(TensorProducts(AccuracyClass::kFp16), 1);
  // 3 x 121.1 GFLOP at 989.5 TFLOP/s are 0.367 ms, which memory would allow.
  const int64_t bytes = kFa19Layer2.min_bytes();
  EXPECT_TRUE(CheckLimits(kFa19Layer2, split, bytes, 0.3672e6, limits).ok());
  const absl::Status status =
      CheckLimits(kFa19Layer2, split, bytes, 0.3666e6, limits);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("991 TFLOP/s"));
  EXPECT_TRUE(CheckLimits(kFa19Layer2, 1, bytes, 0.3666e6, limits).ok());
}

}  // namespace
}  // namespace convlab
