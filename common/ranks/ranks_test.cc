#include "common/ranks/ranks.h"

#include <sys/wait.h>
#include <unistd.h>

#include "common/ranks/quiet_ranks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The number of a process that has ended.
pid_t EndedProcess() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return child;
}

class RanksTest : public ::testing::Test {
 protected:
  const RankPlace here_ = Ranks::ThisPlace();
  RankPlace ended_ = {here_.host, EndedProcess(), here_.process_space};
};

TEST_F(RanksTest, AProcessOfThisHostThatHasEndedIsFound) {
  ASSERT_NE(here_.process_space, 0);
  EXPECT_THAT(QuietRanks(0, {here_, ended_, here_}).FindEnded(),
              ElementsAre(1));
  ended_.host += "-2";
  EXPECT_THAT(QuietRanks(0, {here_, ended_}).FindEnded(), IsEmpty());
}

// Its number there is that of another process here, or of none.
TEST_F(RanksTest, AProcessOfAnotherContainerIsNotTakenForEnded) {
  ++ended_.process_space;
  EXPECT_THAT(QuietRanks(0, {here_, ended_}).FindEnded(), IsEmpty());
}

// Nothing can be said of processes where the system does not tell the space.
TEST_F(RanksTest, AnUnknownContainerIsNotTakenForThisOne) {
  RankPlace here = here_;
  here.process_space = ended_.process_space = 0;
  EXPECT_THAT(QuietRanks(0, {here, ended_}).FindEnded(), IsEmpty());
}

TEST_F(RanksTest, ARankOfAnotherRevisionIsNamed) {
  EXPECT_NE(here_.program, "");
  RankPlace other = here_;
  EXPECT_TRUE(QuietRanks(1, {here_, other}).CheckSamePrograms().ok());
  other.host = "node7";
  other.program = "0123456789ab";
  for (const int rank : {0, 1, 2}) {
    const absl::Status status =
        QuietRanks(rank, {here_, here_, other}).CheckSamePrograms();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "rank 2 on node7 runs revision 0123456789ab, expected " +
                  here_.program + " as on rank 0");
  }
}

}  // namespace
}  // namespace convlab
