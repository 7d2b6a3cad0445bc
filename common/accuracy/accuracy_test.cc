#include "common/accuracy/accuracy.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

TEST(AccuracyTest, ClassesAreFoundByTheirNames) {
  for (const AccuracyClass accuracy : kAccuracyClasses) {
    EXPECT_EQ(FindAccuracyClass(Name(accuracy)), accuracy);
  }
  EXPECT_EQ(FindAccuracyClass("fp64"), std::nullopt);
  EXPECT_EQ(FindAccuracyClass(""), std::nullopt);
}

TEST(AccuracyTest, ClassesGoFromTheTightestOn) {
  double before = 0;
  for (const AccuracyClass accuracy : kAccuracyClasses) {
    EXPECT_GE(MaxRelativeError(accuracy), before) << Name(accuracy);
    before = MaxRelativeError(accuracy);
    EXPECT_EQ(MaxChangedAnswers(accuracy) == 0, IsFloat32(accuracy));
  }
}

TEST(AccuracyTest, ErrorsBeyondTheClassFail) {
  EXPECT_TRUE(CheckError(0, AccuracyClass::kFp32).ok());
  EXPECT_TRUE(CheckError(1e-6, AccuracyClass::kFp32).ok());
  const absl::Status status = CheckError(1.1e-6, AccuracyClass::kFp32);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("1.1e-06 against float64, expected at most 1e-06 in "
                        "class fp32"));
  EXPECT_TRUE(CheckError(1.1e-6, AccuracyClass::kTf32).ok());
}

TEST(AccuracyTest, LongSumsHaveALargerBound) {
  EXPECT_EQ(MaxRelativeError(AccuracyClass::kFp32, 2048),
            MaxRelativeError(AccuracyClass::kFp32));
  EXPECT_EQ(MaxRelativeError(AccuracyClass::kFp32, 25),
            MaxRelativeError(AccuracyClass::kFp32));
  EXPECT_DOUBLE_EQ(MaxRelativeError(AccuracyClass::kTf32, 4 * 2048),
                   2 * MaxRelativeError(AccuracyClass::kTf32));
}

TEST(AccuracyTest, NanFails) {
  EXPECT_FALSE(CheckError(std::nan(""), AccuracyClass::kBf16).ok());
  EXPECT_FALSE(CheckError(HUGE_VAL, AccuracyClass::kBf16).ok());
}

}  // namespace
}  // namespace convlab
