#include "milestones/ladder_text.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

LadderRun Timed(const std::string& variant, std::vector<int64_t> ns) {
  LadderRun run;
  run.variant = variant;
  run.relative_error = 1.5e-7;
  run.correct = 10000;
  for (const int64_t one : ns) {
    run.convolutions.emplace_back().op_time_ns = {one};
  }
  return run;
}

TEST(LadderText, FitsAHundredColumns) {
  RunRecord record;
  const std::string longest = "restrict_unrolled";
  const std::string own = "the_kernel_of_a_participant_with_a_long_name";
  record.ladder = {Timed("naive", {99999123456, 12345678}),
                   Timed(longest, {2000000, 1}), Timed(own, {1000000, 500}),
                   Timed("odd", {})};
  record.ladder[3].failure =
      "rejected: takes few channels: at most 9, 6, 4, 2 and 1 for filters of "
      "up to 4, 6, 7, 9 and 11 rows";
  for (const LadderRun& run : record.ladder) {
    record.variants[run.variant] = {"cuda", 1, "fp32-normwise", "", "", "", ""};
  }
  record.peers.resize(2);
  for (PeerRecord& peer : record.peers) {
    peer.library = "cuDNN 9.19.0";
    peer.accuracy_class = "fp32-normwise";
    peer.kernel_time_ns = {3000000};
  }
  record.overlaps = {{1, 2000, 8, {12345678}, {6543210}}};
  const std::string text = LadderText(record);
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    EXPECT_LE(line.size(), 100) << line;
  }
  EXPECT_THAT(text,
              StartsWith("variant             op 1 ms   op 2 ms    sum ms "
                         "vs before  vs first  class           error "
                         "correct\nnaive             99999.123    12.346 "));
  EXPECT_THAT(text,
              HasSubstr("\nrestrict_unrolled     2.000     0.000     2.000"));
  EXPECT_THAT(text, HasSubstr("\n" + own + "\n                      1.000"));
  EXPECT_THAT(text,
              HasSubstr("\nodd               rejected: takes few channels"));
  EXPECT_THAT(text, HasSubstr("6.000         -"));
  EXPECT_THAT(text, HasSubstr("fp32-normwise kernel time\n"));
  EXPECT_THAT(text, HasSubstr("6.543 ms in streams, 1.89x"));
}

}  // namespace
}  // namespace convlab
