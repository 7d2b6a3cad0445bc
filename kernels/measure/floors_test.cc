#include "kernels/measure/floors.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

const Problem kFa19Layer2 = {10000, 12, 33, 33, 24, 5};

Ceilings GpuCeilings() {
  Ceilings ceilings;
  ceilings.fill_gbs = 4300;
  ceilings.copy_gbs = 4000;
  ceilings.fp32_tflops = 60;
  ceilings.tf32_tflops = 300;
  ceilings.fp16_tflops = 600;
  return ceilings;
}

TEST(Floor, IsTheLargerOfMemoryAndArithmetic) {
  // 121.1 GFLOP at a third of 600 TFLOP/s; 1.33 GB take half of that.
  const Ceilings ceilings = GpuCeilings();
  EXPECT_NEAR(*FloorMs(kFa19Layer2, AccuracyClass::kFp32,
                       kFa19Layer2.min_bytes(), ceilings),
              0.6055, 1e-3);
  // One product: bound by memory.
  EXPECT_NEAR(*FloorMs(kFa19Layer2, AccuracyClass::kFp16,
                       kFa19Layer2.min_bytes(), ceilings),
              kFa19Layer2.min_bytes() / 4300e6, 1e-6);
  EXPECT_NEAR(*FloorMs(kFa19Layer2, AccuracyClass::kFp16,
                       kFa19Layer2.min_bytes() / 2, ceilings),
              121.1 / 600, 1e-3);
}

TEST(Floor, NeedsBothKindsOfCeiling) {
  Ceilings ceilings;
  const auto floor = [&] {
    return FloorMs(kFa19Layer2, AccuracyClass::kFp32, 1, ceilings);
  };
  EXPECT_EQ(floor(), std::nullopt);
  ceilings.triad_gbs = 30;
  EXPECT_EQ(floor(), std::nullopt);
  ceilings.fp32_tflops = 0.2;
  EXPECT_NEAR(*floor(), 605.5, 0.1);
}

cuda::DeviceFacts Gpu(const char* name) {
  cuda::DeviceFacts facts;
  facts.name = name;
  facts.l2_bytes = 60 << 20;
  facts.memory_clock_khz = 1215000;
  facts.memory_bus_bits = 5120;
  return facts;
}

TEST(Limits, AreTheDataSheetsForTheH200) {
  const HardLimits limits = FindLimits(Gpu("NVIDIA H200"));
  EXPECT_EQ(limits.memory_gbs, 4800);
  EXPECT_EQ(limits.tensor_tflops, 990);
  EXPECT_EQ(limits.note, "");
}

TEST(Limits, AreItsOwnForAnotherGpu) {
  HardLimits limits = FindLimits(Gpu("NVIDIA A100-SXM4-40GB"));
  EXPECT_NEAR(*limits.memory_gbs, 1555, 1);
  EXPECT_EQ(limits.tensor_tflops, std::nullopt);
  EXPECT_THAT(limits.note, HasSubstr("tensor cores' peak"));
  EXPECT_THAT(limits.note, HasSubstr("A100"));
  cuda::DeviceFacts unknown = Gpu("some GPU");
  unknown.memory_clock_khz = 0;
  limits = FindLimits(unknown);
  EXPECT_EQ(limits.memory_gbs, std::nullopt);
  EXPECT_THAT(limits.note, HasSubstr("the memory's or the tensor"));
}

TEST(Limits, ImpossibleTimesFail) {
  const HardLimits limits = FindLimits(Gpu("NVIDIA H200"));
  const int64_t bytes = kFa19Layer2.min_bytes();
  EXPECT_TRUE(CheckLimits(kFa19Layer2, 1, bytes, 0.3e6, limits).ok());
  // 1.33 GB less 63 MB at 4.8 TB/s are 0.263 ms.
  EXPECT_TRUE(CheckLimits(kFa19Layer2, 1, bytes, 0.2640e6, limits).ok());
  const absl::Status memory =
      CheckLimits(kFa19Layer2, 1, bytes, 0.2615e6, limits);
  EXPECT_EQ(memory.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(memory.message()), HasSubstr("GB/s"));
  // 121.1 GFLOP at 990 TFLOP/s are 0.122 ms.
  EXPECT_TRUE(CheckLimits(kFa19Layer2, 1, 0, 0.1225e6, limits).ok());
  const absl::Status arithmetic =
      CheckLimits(kFa19Layer2, 1, 0, 0.1220e6, limits);
  EXPECT_THAT(std::string(arithmetic.message()), HasSubstr("TFLOP/s"));
  // What fits into the cache need not come from memory.
  EXPECT_TRUE(CheckLimits({1, 1, 86, 86, 4, 7}, 1, 132188, 1, limits).code() ==
              absl::StatusCode::kDataLoss);
  EXPECT_TRUE(CheckLimits({1, 1, 86, 86, 4, 7}, 1, 132188, 2600, limits).ok());
}

TEST(Limits, ArithmeticCountsTheProductsThatAreIssued) {
  const HardLimits limits = FindLimits(Gpu("NVIDIA H200"));
  const int split = TensorProducts(AccuracyClass::kFp32);
  EXPECT_EQ(split, 3);
  EXPECT_EQ(TensorProducts(AccuracyClass::kTf32), 1);
  EXPECT_EQ(TensorProducts(AccuracyClass::kFp16), 1);
  // 3 x 121.1 GFLOP at 990 TFLOP/s are 0.367 ms, which memory would allow.
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
