#include "kernels/compiled/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;

constexpr MaxPool kHalve{2, 2, false};
constexpr Activation kTanh = Activation::kTanh;

std::string Name(StageKind kind) {
  switch (kind) {
    case StageKind::kConvolve:
      return "convolution";
    case StageKind::kConnect:
      return "matrix";
    case StageKind::kPool:
      break;
  }
  return "pooling";
}

std::vector<std::string> Texts(const Network& network) {
  std::vector<std::string> texts;
  const Plan plan = MakePlan(network);
  for (const Stage& stage : plan.stages) {
    texts.push_back(Name(stage.kind) + ": " + Describe(network, stage));
  }
  return texts;
}

TEST(Plan, FoldsTheSecondConvolutionOfFa19) {
  const Network& network = **FindNetwork("fa19");
  EXPECT_THAT(Texts(network),
              ElementsAre("convolution: fused tanh, pool 2x2",
                          "matrix: folded conv 2, fc 1; fused bias, tanh",
                          "matrix: fused bias"));
  const Plan plan = MakePlan(network);
  const Stage& matrix = plan.stages[1];
  EXPECT_EQ(matrix.input.values(), 13068);
  EXPECT_EQ(plan.Flops(matrix), int64_t{2} * 13068 * 160);
  EXPECT_EQ(plan.LayerFlops(matrix),
            int64_t{2} * 24 * 29 * 29 * (12 * 5 * 5 + 160));
  EXPECT_EQ(plan.ParameterBytes(network, matrix), 4 * (13068 * 160 + 160));
  EXPECT_EQ(plan.ParameterBytes(network, plan.stages[0]), 4 * 12 * 25);
}

TEST(Plan, FoldsNothingOverAnActivation) {
  EXPECT_THAT(Texts(**FindNetwork("fa20")),
              ElementsAre("convolution: fused relu, pool 2x2",
                          "convolution: fused relu, pool 4x4",
                          "matrix: fused bias, relu", "matrix: fused bias"));
}

TEST(Plan, EveryNetworksLayersAreInOneStageEach) {
  for (const Network& network : Networks()) {
    SCOPED_TRACE(network.name);
    size_t next = 0;
    const Plan plan = MakePlan(network);
    for (const Stage& stage : plan.stages) {
      EXPECT_EQ(stage.first, next);
      next = stage.end;
      EXPECT_LE(plan.Flops(stage), plan.LayerFlops(stage));
    }
    EXPECT_EQ(next, network.layers.size());
  }
}

// The same layers with a wider matrix have fewer operations unfolded.
TEST(Plan, ArithmeticDecidesAboutFolding) {
  Network network = {
      "few",
      {},
      1,
      20,
      {ConvolutionLayer{1, 3, false}, FullyConnectedLayer{60, true}}};
  EXPECT_THAT(Texts(network),
              ElementsAre("convolution: -", "matrix: fused bias"));
  network.layers[0] = ConvolutionLayer{40, 3, false};
  EXPECT_THAT(Texts(network),
              ElementsAre("matrix: folded conv 1, fc 1; fused bias"));
}

TEST(Plan, FoldsThePartOfAChainThatGains) {
  // 50 -> 5 -> 400 -> 7: only the last two gain.
  const Network network = {
      "chain",
      {},
      1,
      10,
      {FullyConnectedLayer{5, false}, FullyConnectedLayer{400, true},
       FullyConnectedLayer{7, false}}};
  EXPECT_THAT(
      Texts(network),
      ElementsAre("matrix: -", "matrix: folded fc 2, fc 3; fused bias"));
}

TEST(Plan, PoolingMayComeBeforeTheActivation) {
  const Network network = {"order",
                           {},
                           1,
                           12,
                           {kTanh, kHalve, ConvolutionLayer{2, 3, true}, kHalve,
                            kTanh, kTanh, FullyConnectedLayer{3, false}}};
  EXPECT_THAT(
      Texts(network),
      ElementsAre("pooling: -", "convolution: fused bias, pool 2x2, tanh",
                  "pooling: -", "matrix: -"));
  const Plan plan = MakePlan(network);
  EXPECT_EQ(plan.stages[0].pool.size, 2);
  EXPECT_EQ(plan.stages[2].pool.size, 0);
}

// A convolution over its whole input has one output per filter.
TEST(Plan, AMatrixTakesNoPooling) {
  const Network network = {
      "pooled",
      {},
      1,
      6,
      {ConvolutionLayer{60, 3, false}, ConvolutionLayer{2, 3, false}, kHalve}};
  EXPECT_THAT(Texts(network),
              ElementsAre("matrix: folded conv 1, conv 2", "pooling: -"));
}

}  // namespace
}  // namespace convlab
