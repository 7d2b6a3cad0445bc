#include "kernels/convolution/cuda/direct/plan.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/direct/instances.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

constexpr DeviceLimits kT4 = {75, 40, 64 << 10, 64 << 10, 1.59, 320};
constexpr DeviceLimits kAllDevices[] = {kH200, kA100, kRtx3060, kT4};

std::vector<Problem> Problems() {
  std::vector<Problem> problems = {
      {3, 1, 20, 23, 7, 5},    {2, 6, 13, 40, 50, 5},  {3, 1, 44, 44, 13, 7},
      {2, 5, 30, 19, 24, 7},   {2, 3, 12, 12, 5, 3},   {1, 1, 9, 2000, 3, 5},
      {600, 2, 9, 10, 20, 5},  {600, 1, 9, 9, 4, 7},   {2, 70, 40, 40, 9, 5},
      {1, 1, 1, 1, 1, 1},      {5, 3, 17, 31, 200, 1}, {2, 2, 11, 11, 3, 11},
      {4, 300, 16, 16, 33, 2}, {1, 1, 5000, 6, 2, 5},
  };
  for (const Layer& layer : CourseLayers()) {
    for (const int64_t batch : {1, 100, 10000}) {
      problems.push_back(layer.At(batch));
    }
  }
  return problems;
}

std::string Describe(const Problem& problem, const DirectTile& tile,
                     const DirectPlan& plan) {
  return DescribeProblem(problem) + "filters, rows, columns: " +
         Text({tile.filters, tile.rows, tile.columns}) +
         "threads: " + Text({plan.threads_x, plan.threads_y, plan.threads_m}) +
         "tiles, filter blocks: " +
         Text({plan.tiles_x, plan.tiles_y, plan.filter_blocks}) +
         "channels, pitch: " + Text({plan.channels, plan.pitch});
}

// How often each filter, row or column is computed, if `blocks` blocks of
// `threads` threads compute `each` of them: neighbouring ones, or ones that are
// `threads` apart.
void CheckCoveredOnce(int blocks, int threads, int each, bool neighbours,
                      int size) {
  std::vector<int> uses(size);
  for (int block = 0; block < blocks; ++block) {
    for (int thread = 0; thread < threads; ++thread) {
      for (int i = 0; i < each; ++i) {
        const int at = block * threads * each +
                       (neighbours ? thread * each + i : i * threads + thread);
        if (at < size) ++uses[at];
      }
    }
  }
  EXPECT_EQ(uses, std::vector<int>(size, 1));
}

// That every output is computed once, that the inputs it needs are in the
// block's buffer, and that the buffers fit.
void CheckPlan(const Problem& problem, const DirectTile& tile,
               const DeviceLimits& limits, const DirectPlan& plan) {
  SCOPED_TRACE(Describe(problem, tile, plan));
  EXPECT_GE(plan.threads(), 1);
  EXPECT_LE(plan.block_threads(), tile.threads);
  EXPECT_LE(plan.shared_bytes, limits.shared_per_block);

  if (tile.constant_filters) {
    EXPECT_EQ(plan.filter_blocks * plan.threads_m, 1);
  } else {
    CheckCoveredOnce(plan.filter_blocks, plan.threads_m, tile.filters,
                     /*neighbours=*/true, problem.filters);
  }
  CheckCoveredOnce(plan.tiles_x, plan.threads_x, tile.columns,
                   /*neighbours=*/true, problem.output_width());
  CheckCoveredOnce(plan.tiles_y, plan.threads_y, tile.rows,
                   /*neighbours=*/false, problem.output_height());

  EXPECT_GE(plan.channels * plan.chunks, plan.C);
  EXPECT_LT(plan.channels * (plan.chunks - 1), plan.C);
  EXPECT_GE(plan.pitch, plan.columns);
  EXPECT_EQ(plan.pitch % tile.vector, 0);
  EXPECT_GE(plan.rows, plan.threads_y * tile.rows + plan.K - 1);
  // The last tap of the last thread, in its last vector.
  const int last_row = plan.threads_y * tile.rows + plan.K - 2;
  const int last_column = plan.threads_x * tile.columns + plan.K - 2;
  EXPECT_LT((int64_t{plan.channels - 1} * plan.rows + last_row) * plan.pitch +
                last_column / tile.vector * tile.vector + tile.vector - 1,
            plan.input_elements);
  if (!tile.constant_filters) {
    EXPECT_GE(plan.filter_elements, int64_t{plan.channels} * plan.K * plan.K *
                                        plan.threads_m * tile.filters);
  }
  const int filter_buffers = plan.chunks > 1 ? tile.buffers : 1;
  EXPECT_LE(
      tile.element_bytes * (int64_t{tile.buffers} * plan.input_elements +
                            int64_t{filter_buffers} * plan.filter_elements),
      plan.shared_bytes);
  // The second buffer and the filters begin at an address of 16 bytes.
  EXPECT_EQ(plan.input_elements * tile.element_bytes % 16, 0);
}

TEST(DirectPlan, EveryPlanCoversTheOutputOnceAndFits) {
  for (const DeviceLimits& limits : kAllDevices) {
    SCOPED_TRACE(limits.compute_capability);
    for (const Problem& problem : Problems()) {
      int taken = 0;
      for (const DirectInstance& instance : kDirectTiledInstances) {
        DirectPlan plan = {};
        if (!MakeDirectTiledPlan(instance, problem, limits, &plan)) continue;
        CheckPlan(problem, instance.tile, limits, plan);
        EXPECT_GE(Padding(instance.tile, plan), 1);
        ++taken;
        if (HasFailure()) return;
      }
      EXPECT_GT(taken, 0) << DescribeProblem(problem);
      for (const DirectInstance& instance : kHalf2Instances) {
        DirectPlan plan = {};
        if (!MakeDirectPlan(instance.tile, problem, limits, &plan)) continue;
        CheckPlan(problem, instance.tile, limits, plan);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(DirectPlan, VectorsDivideRowsAndAddresses) {
  const DirectTile& tile = kDirectTiledInstances[0].tile;
  alignas(16) float tensor[8] = {};
  // Rows of 32 inputs and 28 outputs are whole vectors of four.
  DirectPlan plan = {};
  ASSERT_TRUE(MakeDirectPlan(tile, {1, 1, 32, 32, 4, 5}, kH200, &plan));
  SetVectors(tensor, tensor, tile, /*most_floats=*/4, &plan);
  EXPECT_EQ(plan.steps.floats, 4);
  EXPECT_EQ(plan.store_floats, 4);
  SetVectors(tensor + 2, tensor + 1, tile, /*most_floats=*/4, &plan);
  EXPECT_EQ(plan.steps.floats, 2);
  EXPECT_EQ(plan.store_floats, 1);
  SetVectors(tensor, tensor, tile, /*most_floats=*/1, &plan);
  EXPECT_EQ(plan.steps.floats, 1);
  // Of 31 inputs and 27 outputs they are not.
  ASSERT_TRUE(MakeDirectPlan(tile, {1, 1, 32, 31, 4, 5}, kH200, &plan));
  SetVectors(tensor, tensor, tile, /*most_floats=*/4, &plan);
  EXPECT_EQ(plan.steps.floats, 1);
  EXPECT_EQ(plan.store_floats, 1);
}

TEST(DirectTiled, InstancesTakeTheirOwnKernelSize) {
  DirectPlan plan = {};
  for (const DirectInstance& instance : kDirectTiledInstances) {
    for (const int64_t K : {3, 5, 7}) {
      const bool takes =
          MakeDirectTiledPlan(instance, {1, 1, 30, 30, 4, K}, kH200, &plan);
      EXPECT_EQ(takes, instance.kernel_size == 0 || instance.kernel_size == K);
    }
  }
}

TEST(DirectTiled, TheChoiceSuitsTheCoursesLayers) {
  for (const Layer& layer : CourseLayers()) {
    SCOPED_TRACE(layer.name);
    const Problem problem = layer.At(10000);
    DirectPlan plan = {};
    const int index = ChooseDirectTiled(problem, kH200, &plan);
    ASSERT_GE(index, 0);
    const DirectInstance& instance = kDirectTiledInstances[index];
    EXPECT_EQ(instance.kernel_size, layer.kernel_size);
    EXPECT_EQ(instance.tile.constant_filters, layer.channels == 1);
    CheckPlan(problem, instance.tile, kH200, plan);

    const int half = ChooseHalf2(problem, kH200, &plan);
    ASSERT_GE(half, 0);
    EXPECT_EQ(kHalf2Instances[half].kernel_size, layer.kernel_size);
    CheckPlan(problem, kHalf2Instances[half].tile, kH200, plan);
  }
}

TEST(DirectTiled, ConstantFiltersFitIntoConstantMemory) {
  // 13 filters of 7 x 7 do; 1,000 do not, so that shared memory holds them.
  DirectPlan plan = {};
  int index = ChooseDirectTiled({9, 1, 30, 30, 13, 7}, kH200, &plan);
  ASSERT_GE(index, 0);
  EXPECT_TRUE(kDirectTiledInstances[index].tile.constant_filters);
  index = ChooseDirectTiled({9, 1, 30, 30, 1000, 7}, kH200, &plan);
  ASSERT_GE(index, 0);
  EXPECT_FALSE(kDirectTiledInstances[index].tile.constant_filters);
}

TEST(DirectTiled, TheEstimateGrowsWithTheBatch) {
  for (const DeviceLimits& limits : kAllDevices) {
    SCOPED_TRACE(limits.compute_capability);
    for (Problem problem : Problems()) {
      problem.batch = 1;
      const double one = EstimateDirectTiledNs(problem, limits);
      EXPECT_GT(one, 0) << DescribeProblem(problem);
      problem.batch = 100000;
      const double many = EstimateDirectTiledNs(problem, limits);
      EXPECT_TRUE(std::isfinite(many)) << DescribeProblem(problem);
      EXPECT_GT(many, 10 * one) << DescribeProblem(problem);
    }
  }
}

// fa19's layers with 10,000 images took 0.82 and 3.53 ms on an H200; the
// estimate should be within a quarter of that.
TEST(DirectTiled, TheEstimateIsNearTheMeasuredTime) {
  const Layer first = {"fa19-L1", 1, 70, 12, 5};
  const Layer second = {"fa19-L2", 12, 33, 24, 5};
  EXPECT_NEAR(EstimateDirectTiledNs(first.At(10000), kH200), 8.2e5, 8.2e5 / 4);
  EXPECT_NEAR(EstimateDirectTiledNs(second.At(10000), kH200), 3.53e6,
              3.53e6 / 4);
}

// Where threads with many filters store pieces of rows that are not aligned,
// that is what takes the time: 83 us for two images of 572 x 572 and 0.64 ms
// for 10,000 of 28 x 28 on an H200. What the L2 cache keeps, and aligned rows,
// take what they took.
TEST(DirectTiled, TheEstimateKnowsWhatPiecesOfManyPlanesCost) {
  const struct {
    Problem problem;
    double ns;
  } measured[] = {{{2, 1, 572, 572, 64, 3}, 8.3e4},
                  {{10000, 1, 28, 28, 40, 3}, 6.4e5},
                  {{3800, 1, 48, 48, 40, 2}, 9.35e5}};
  for (const auto& [problem, ns] : measured) {
    EXPECT_NEAR(EstimateDirectTiledNs(problem, kH200), ns, 0.1 * ns)
        << DescribeProblem(problem);
  }
  // Of 510 and 512 outputs in a row, 133 and 134 MB.
  const double pieces = EstimateDirectTiledNs({2, 1, 512, 512, 64, 3}, kH200);
  const double whole = EstimateDirectTiledNs({2, 1, 514, 514, 64, 3}, kH200);
  EXPECT_GT(pieces, 1.2 * whole);
  // Of 32 filters, four threads share the positions.
  const double few = EstimateDirectTiledNs({2, 1, 512, 512, 32, 3}, kH200);
  EXPECT_GT(pieces, 2.2 * few);
}

// One channel of 8 filters of 100 x 100 takes more than a block may have.
TEST(DirectTiled, WhatDoesNotFitIsNotTaken) {
  const Problem problem = {1, 1, 120, 120, 8, 100};
  DirectPlan plan = {};
  EXPECT_LT(ChooseDirectTiled(problem, kT4, &plan), 0);
  EXPECT_LT(ChooseHalf2(problem, kT4, &plan), 0);
  EXPECT_LT(EstimateDirectTiledNs(problem, kT4), 0);
}

}  // namespace
}  // namespace convlab::cuda
