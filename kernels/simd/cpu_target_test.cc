#include "kernels/simd/cpu_target.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

struct Kernel {
  CpuTarget target;
  int lanes;
};

// The lanes of Highway's code for these targets.
const KernelTable<Kernel> kTable = {
    [] {
      return Kernel{CpuTarget::kBaseline, 1};
    },
    [] {
      return Kernel{CpuTarget::kNeon, 4};
    },
    [] {
      return Kernel{CpuTarget::kSse4, 4};
    },
    [] {
      return Kernel{CpuTarget::kAvx2, 8};
    },
    [] {
      return Kernel{CpuTarget::kAvx512, 16};
    },
};

class CpuTargetTest : public ::testing::Test {
 protected:
  ~CpuTargetTest() override { EXPECT_TRUE(ForceCpuTarget("auto").ok()); }
};

TEST_F(CpuTargetTest, SupportedBestFirstAndTheBaselineAlways) {
  const std::vector<CpuTarget>& targets = SupportedCpuTargets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(targets.back(), CpuTarget::kBaseline);
  for (size_t i = 1; i < targets.size(); ++i) {
    EXPECT_LT(targets[i], targets[i - 1]);
  }
  EXPECT_EQ(ChosenCpuTarget(), targets.front());
}

TEST_F(CpuTargetTest, EverySupportedOneCanBeForced) {
  for (const CpuTarget target : SupportedCpuTargets()) {
    ASSERT_TRUE(ForceCpuTarget(Name(target)).ok());
    EXPECT_EQ(ChosenCpuTarget(), target);
    EXPECT_EQ(ChosenKernel(kTable).target, target);
  }
  ASSERT_TRUE(ForceCpuTarget("auto").ok());
  EXPECT_EQ(ChosenCpuTarget(), SupportedCpuTargets().front());
}

TEST_F(CpuTargetTest, NarrowRowsGetNarrowerVectors) {
  for (const CpuTarget target : SupportedCpuTargets()) {
    ASSERT_TRUE(ForceCpuTarget(Name(target)).ok());
    const int most = ChosenKernel(kTable).lanes;
    for (const int64_t width : {1, 2, 3, 4, 7, 8, 15, 16, 1000}) {
      const Kernel kernel = ChosenKernel(kTable, width);
      EXPECT_LE(kernel.lanes, width);
      EXPECT_LE(kernel.target, target);
      // The next wider vectors would not fit.
      const int wider = kernel.lanes == 1 ? 4 : 2 * kernel.lanes;
      EXPECT_GT(wider, std::min<int64_t>(width, most));
    }
    EXPECT_EQ(ChosenKernel(kTable, most).target, target);
  }
}

TEST_F(CpuTargetTest, OtherNamesListWhatThereIs) {
  const absl::Status unknown = ForceCpuTarget("mmx");
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("'mmx'"));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("baseline"));
  // No processor supports both.
  const bool on_arm = SupportedCpuTargets().front() == CpuTarget::kNeon;
  const absl::Status missing = ForceCpuTarget(on_arm ? "avx2" : "neon");
  EXPECT_EQ(missing.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("baseline"));
  EXPECT_EQ(ChosenCpuTarget(), SupportedCpuTargets().front());
}

}  // namespace
}  // namespace convlab
