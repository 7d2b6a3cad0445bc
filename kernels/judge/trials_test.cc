#include "kernels/judge/trials.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/convolution.h"
#include "kernels/judge/credible.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Trials, AreValidAndHoldEveryNetwork) {
  for (const Network& network : Networks()) {
    std::set<std::string> sizes;
    bool many_images = false;
    for (const JudgeTrial& trial : MakeTrials(network, false, true, 3)) {
      EXPECT_TRUE(CheckProblem(trial.problem).ok());
      EXPECT_LT(trial.problem.output_elements(), int64_t{1} << 31);
      many_images |= trial.problem.batch > 65535;
      Problem problem = trial.problem;
      problem.batch = 1;
      sizes.insert(ToString(problem));
    }
    EXPECT_TRUE(many_images);
    for (const Network& other : Networks()) {
      for (const Problem& layer : LayersOf(other, 1)) {
        EXPECT_EQ(sizes.count(ToString(layer)), 1u) << ToString(layer);
      }
    }
  }
}

TEST(Trials, QuickOnesAreTheNetworksOwn) {
  const std::vector<JudgeTrial> trials =
      MakeTrials(**FindNetwork("fa19"), true, true, 3);
  EXPECT_EQ(trials.size(), 6u);
  for (const JudgeTrial& trial : trials) EXPECT_TRUE(trial.own);
}

TEST(Trials, OrderAndSizesDependOnTheSeed) {
  const auto text = [](uint64_t seed) {
    std::string all;
    for (const JudgeTrial& trial :
         MakeTrials(**FindNetwork("fa19"), false, true, seed)) {
      all += ToString(trial.problem) + "\n";
    }
    return all;
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

TEST(HardWired, IsFoundFromRightAndWrongProblems) {
  const Problem small = {2, 3, 20, 20, 4, 5};
  const auto with = [&](auto change) {
    Problem problem = small;
    change(problem);
    return problem;
  };
  const Problem other_k = with([](Problem& p) { p.kernel_size = 7; });
  const Problem large_b = with([](Problem& p) { p.batch = 70000; });
  const Problem other_c = with([](Problem& p) { p.channels = 1; });
  EXPECT_EQ(FindHardWired({{small, true}, {other_k, true}}), "");
  EXPECT_EQ(FindHardWired({{small, false}}), "");
  EXPECT_EQ(FindHardWired({{small, true}, {other_k, false}, {other_c, true}}),
            "right for K = 5 only");
  EXPECT_EQ(FindHardWired({{small, true},
                           {other_k, true},
                           {other_c, true},
                           {with([](Problem& p) { p.batch = 9; }), true},
                           {large_b, false}}),
            "right up to B = 9, wrong from B = 70000 on");
  // The same sizes, once right and once wrong: nothing divides them.
  EXPECT_EQ(FindHardWired({{small, true}, {small, false}}), "");
}

TEST(HardWired, MultiplesAreFound) {
  std::vector<Tried> tried;
  for (int64_t size = 20; size < 60; ++size) {
    tried.push_back({{2, 1, size, 40, 4, 3}, size % 8 == 0});
  }
  EXPECT_EQ(FindHardWired(tried), "right where H is a multiple of 8");
}

TEST(HardWired, ANetworkIsRightIfAllItsLayersAre) {
  std::vector<Tried> tried;
  for (const Problem& layer : LayersOf(**FindNetwork("fa20"), 3)) {
    tried.push_back({layer, true});
  }
  EXPECT_THAT(RightNetworks(tried), ElementsAre("fa20"));
  tried.push_back({tried[0].problem, false});
  EXPECT_THAT(RightNetworks(tried), IsEmpty());
}

TEST(Credible, TheFloorRefusesOnlyWhatHasNoOtherPlace) {
  const Problem problem = {1000, 1, 70, 70, 12, 5};
  HardLimits limits;
  limits.memory_gbs = 4000;
  const auto check = [&](int64_t op_ns, int64_t whole_ns, bool has_prolog) {
    return CheckFloor(problem, AccuracyClass::kFp32, limits, op_ns, whole_ns,
                      has_prolog);
  };
  EXPECT_EQ(check(1'000'000, 2'000'000, false).worth, OpTimeWorth::kCounts);
  EXPECT_EQ(check(1000, 2'000'000, false).worth, OpTimeWorth::kIncredible);
  EXPECT_EQ(check(1000, 2'000'000, true).worth, OpTimeWorth::kNoResult);
  EXPECT_EQ(check(1000, 2000, true).worth, OpTimeWorth::kIncredible);
  EXPECT_THAT(check(1000, 2000, true).note, HasSubstr("is impossible"));
}

// A traced call whose op had kernels of this time in all, within this span.
CallResult Traced(int64_t kernel_ns, int64_t span_ns) {
  CallResult result;
  result.work.resize(3);
  result.work[kOp].kernels = 2;
  result.work[kOp].kernel_ns = kernel_ns;
  result.work[kOp].span_ns = span_ns;
  return result;
}

TEST(Credible, AnOpThatIsFasterUnobservedIsRefused) {
  const CallResult traced = Traced(2'000'000, 3'000'000);
  EXPECT_EQ(CheckUnobserved(traced, 2'000'000).worth, OpTimeWorth::kCounts);
  EXPECT_EQ(CheckUnobserved(traced, 1'000'000).worth, OpTimeWorth::kCounts);
  EXPECT_EQ(CheckUnobserved(traced, 999'999).worth, OpTimeWorth::kIncredible);
  // Kernels that overlap.
  EXPECT_EQ(CheckUnobserved(Traced(8'000'000, 2'000'000), 1'000'000).worth,
            OpTimeWorth::kCounts);
  EXPECT_EQ(CheckUnobserved({}, 1).worth, OpTimeWorth::kCounts);
}

TEST(Credible, EventsThatMissKernelsAreTold) {
  const CallResult traced = Traced(2'000'000, 2'000'000);
  EXPECT_FALSE(MissedByEvents(traced, 1'900'000));
  EXPECT_TRUE(MissedByEvents(traced, 10'000));
  EXPECT_FALSE(MissedByEvents({}, 10'000));
}

}  // namespace
}  // namespace convlab
