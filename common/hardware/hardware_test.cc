#include "common/hardware/floor.h"
#include "common/hardware/rates.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

TEST(Rates, GpusAreKnownByWholeWords) {
  EXPECT_EQ(DataSheetRates("NVIDIA H200")->memory_gbs, 4800);
  EXPECT_EQ(DataSheetRates("NVIDIA L40S")->memory_gbs, 864);
  EXPECT_EQ(DataSheetRates("NVIDIA L4")->memory_gbs, 300);
  EXPECT_EQ(DataSheetRates("NVIDIA A100-SXM4-40GB")->memory_gbs, 1555);
  EXPECT_EQ(DataSheetRates("NVIDIA A100-SXM4-80GB")->memory_gbs, 2039);
  EXPECT_FALSE(DataSheetRates("NVIDIA L400").has_value());
  EXPECT_FALSE(DataSheetRates("NVIDIA").has_value());
  EXPECT_FALSE(DataSheetRates("").has_value());
}

TEST(Rates, MemoryTransfersTwicePerClock) {
  EXPECT_NEAR(*MemoryGbs(1215000, 5120), 1555, 1);
  EXPECT_EQ(MemoryGbs(0, 5120), std::nullopt);
  EXPECT_EQ(MemoryGbs(1215000, 0), std::nullopt);
}

// fa19's second layer, 10,000 images: 121.1 GFLOP and 1.33 GB.
constexpr int64_t kFlops = 121104000000, kBytes = 1330147200;

TEST(Floor, IsTheLargerOfMemoryAndArithmetic) {
  const Rates rates = {4300, 60, 300, 600};
  // A third of 600 TFLOP/s; memory takes half of that.
  EXPECT_NEAR(*FloorNs(kFlops, kBytes, AccuracyClass::kFp32, rates), 605.5e3,
              1e2);
  // One product: bound by memory.
  EXPECT_NEAR(*FloorNs(kFlops, kBytes, AccuracyClass::kFp16, rates),
              kBytes / 4300.0, 1);
  EXPECT_NEAR(*FloorNs(kFlops, kBytes / 2, AccuracyClass::kFp16, rates),
              201.8e3, 1e2);
}

TEST(Floor, TakesTheFastestUnitsThatKeepTheClass) {
  EXPECT_EQ(ClassTflops(AccuracyClass::kFp32, {1, 60, 300, 600}), 200);
  EXPECT_EQ(ClassTflops(AccuracyClass::kFp32, {1, 60, {}, 150}), 60);
  EXPECT_EQ(ClassTflops(AccuracyClass::kTf32, {1, 60, 300, 600}), 600);
  EXPECT_EQ(ClassTflops(AccuracyClass::kTf32, {1, 60, 300, {}}), 300);
  EXPECT_EQ(ClassTflops(AccuracyClass::kFp16, {1, 60, {}, {}}), 60);
}

TEST(Floor, NeedsBothKindsOfRate) {
  Rates rates;
  const auto floor = [&] {
    return FloorNs(kFlops, 1, AccuracyClass::kFp32, rates);
  };
  EXPECT_EQ(floor(), std::nullopt);
  rates.memory_gbs = 30;
  EXPECT_EQ(floor(), std::nullopt);
  rates.fp32_tflops = 0.2;
  EXPECT_NEAR(*floor(), 605.5e6, 0.1e6);
}

}  // namespace
}  // namespace convlab
