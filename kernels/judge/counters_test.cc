#include "kernels/judge/counters.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ncu 2025.3.1 on an H200, of the columns that are read.
constexpr char kMessages[] =
    R"csv(==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling results may be inconsistent.
==PROF== Connected to process 961 (/tmp/convlab/bin/convlab)
==PROF== Disconnected from process 961
)csv";
constexpr char kHead[] =
    R"csv("ID","Kernel Name","gpu__time_duration.sum","dram__throughput.avg.pct_of_peak_sustained_elapsed","lts__throughput.avg.pct_of_peak_sustained_elapsed","l1tex__throughput.avg.pct_of_peak_sustained_active","sm__inst_issued.avg.pct_of_peak_sustained_active","sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active","sm__warps_active.avg.pct_of_peak_sustained_active","l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum","l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
"","","ns","%","%","%","%","%","%","",""
)csv";
constexpr char kTiled[] =
    R"csv("0","Tiled(const float *, const float *, float *, int, int, int, int, int)","1,684,288","0.31","1.24","90.56","80.51","0.00","92.48","118,569,776","255,560,010"
)csv";

TEST(Counters, ReadsWhatNcuWrites) {
  const auto counters = ParseCounters(absl::StrCat(kMessages, kHead, kTiled));
  ASSERT_TRUE(counters.ok()) << counters.status();
  EXPECT_EQ(counters->kernel, "Tiled");
  // Commas divide its thousands.
  EXPECT_EQ(counters->values.at("gpu__time_duration.sum"), 1684288);
  EXPECT_THAT(DescribeCounters(*counters),
              ElementsAre(AllOf(HasSubstr("Tiled: memory 0 %"),
                                HasSubstr("L1 and shared memory 91 %"),
                                HasSubstr("warps resident 92 %")),
                          HasSubstr("46 % of its accesses to shared memory are "
                                    "bank conflicts")));
}

TEST(Counters, TheLongestKernelCounts) {
  std::string longer = kTiled;
  longer.replace(longer.find("Tiled"), 5, "Longer");
  longer.replace(longer.find("1,684,288"), 9, "11,684,288");
  const auto counters =
      ParseCounters(absl::StrCat(kMessages, kHead, kTiled, longer, kTiled));
  ASSERT_TRUE(counters.ok()) << counters.status();
  EXPECT_EQ(counters->kernel, "Longer");
}

TEST(Counters, AnOutputWithoutKernelsSaysSo) {
  for (const std::string& text : {std::string(kMessages), std::string(),
                                  absl::StrCat(kMessages, kHead)}) {
    EXPECT_THAT(std::string(ParseCounters(text).status().message()),
                HasSubstr("holds no kernel"));
  }
}

}  // namespace
}  // namespace convlab
