#include "common/files/process_stat.h"

#include "gtest/gtest.h"

namespace convlab {
namespace {

TEST(ProcessStat, TheNameMayHoldAnything) {
  EXPECT_EQ(FieldsBehindName("17 (sh) S 1 17"), "S 1 17");
  EXPECT_EQ(FieldsBehindName("17 (a) R 9 (b) Z 1 17\n"), "Z 1 17\n");
  EXPECT_EQ(FieldsBehindName("17 (a b"), "");
  EXPECT_EQ(FieldsBehindName(""), "");
}

}  // namespace
}  // namespace convlab
