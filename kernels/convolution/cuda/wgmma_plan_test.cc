#include "kernels/convolution/cuda/wgmma_plan.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

constexpr int kMultiprocessors = 132;
constexpr int kShared = 227 << 10;

std::string Describe(const Problem& p, const WgmmaPlan& plan) {
  const auto text = [](int64_t value) { return std::to_string(value) + " "; };
  return "B C H W M K: " + text(p.batch) + text(p.channels) + text(p.height) +
         text(p.width) + text(p.filters) + text(p.kernel_size) +
         "shape: " + text(plan.shape) + "slab: " + text(plan.slab_blocks);
}

// That the kernel stays in its memory and computes every output.
void CheckPlan(const Problem& problem, const WgmmaPlan& plan) {
  SCOPED_TRACE(Describe(problem, plan));
  const WgmmaShape& shape = kWgmmaShapes[plan.shape];
  const int K = plan.K;
  EXPECT_EQ(shape.kernel_size, K);
  EXPECT_GE(plan.pixel_halves, plan.C);
  EXPECT_EQ(plan.pixel_halves % (shape.wide ? 4 : 2), 0);
  EXPECT_GE(plan.steps * 16, K * plan.pixel_halves);
  EXPECT_GE(plan.passes * plan.pass_steps, plan.steps);
  EXPECT_LT((plan.passes - 1) * plan.pass_steps, plan.steps);
  EXPECT_LE(plan.pass_steps * K, 42);

  // Slabs, groups and phases cover the output, and none is empty.
  const int slab_rows = plan.slab_blocks * shape.rows;
  EXPECT_GE(int64_t{plan.slabs} * slab_rows, plan.H_out);
  EXPECT_LT(int64_t{plan.slabs - 1} * slab_rows, plan.H_out);
  EXPECT_GE(plan.groups * 8 * shape.octets, plan.M);
  EXPECT_LT((plan.groups - 1) * 8 * shape.octets, plan.M);
  EXPECT_GE(plan.phase_groups, 1);

  // The last unit's last load, in the last row of the last step.
  const int64_t last = int64_t{slab_rows + K - 2} * plan.pitch +
                       int64_t{plan.W_out - 1} * plan.pixel_halves / 2 +
                       int64_t{plan.steps} * 8;
  EXPECT_LE(last, plan.slab_words);
  // The last filter's last output, wherever the target begins.
  const int64_t filters =
      std::min(plan.phase_groups * 8 * shape.octets, plan.M);
  const int64_t rows = std::min(slab_rows, plan.H_out);
  EXPECT_LE((filters - 1) * plan.stage_pitch + 31 + rows * plan.W_out,
            plan.stage_words);
  if (plan.merged) {
    EXPECT_EQ(plan.slabs, 1);
    EXPECT_EQ(plan.phase_groups, plan.groups);
    EXPECT_EQ(plan.stage_pitch, plan.H_out * plan.W_out);
  } else {
    EXPECT_GE(plan.stage_pitch, 31 + rows * plan.W_out);
  }
  if (plan.raw_words > 0) {
    EXPECT_EQ(plan.slabs, 1);
    EXPECT_EQ(plan.C * plan.H * plan.W % 4, 0);
    EXPECT_GE(plan.raw_words, plan.C * plan.H * plan.W);
    // Each group of converters has one that is read and one that comes.
    EXPECT_EQ(plan.raw_buffers, 2 * shape.converter_groups);
  } else {
    EXPECT_EQ(plan.raw_buffers, 0);
  }
  EXPECT_GE(plan.slab_buffers, shape.converter_groups);
  if (shape.own_slabs) {
    EXPECT_GT(plan.slab_buffers, shape.consumers);
    EXPECT_EQ(plan.phase_groups, plan.groups);
  }
  EXPECT_LE(plan.slab_buffers, kWgmmaMostBuffers);
  EXPECT_LE(plan.stages, kWgmmaMostBuffers);
  EXPECT_LE(plan.raw_buffers, kWgmmaMostBuffers);

  // All of it, and that what begins on 16 bytes does.
  const int64_t words = plan.filter_bytes() / 4 +
                        int64_t{2} * plan.slab_buffers * plan.slab_words +
                        int64_t{plan.raw_buffers} * plan.raw_words +
                        int64_t{plan.stages} * plan.stage_words;
  EXPECT_EQ(words * 4, plan.shared_bytes);
  EXPECT_LE(plan.shared_bytes, kShared);
  EXPECT_EQ(plan.group_bytes % 16, 0);
  EXPECT_EQ(plan.slab_words % 4, 0);
  EXPECT_EQ(plan.raw_words % 4, 0);
  EXPECT_EQ(plan.stage_words % 32, 0);
  // wgmma's descriptors address 2^18 bytes.
  EXPECT_LT(plan.shared_bytes, 1 << 18);
}

WgmmaPlan PlanFor(const Problem& problem) {
  WgmmaPlan plan;
  EXPECT_TRUE(MakeWgmmaPlan(problem, kMultiprocessors, kShared, &plan));
  return plan;
}

TEST(WgmmaPlan, RegistersGoRound) {
  for (const WgmmaShape& shape : kWgmmaShapes) {
    EXPECT_EQ(shape.rows % shape.vector_rows, 0);
    const int warpgroups = shape.threads / 128;
    const int given = 65536 / shape.threads / 8 * 8;
    EXPECT_LE(shape.consumers * shape.consumer_registers() +
                  (warpgroups - shape.consumers) * shape.converter_registers(),
              given * warpgroups);
    EXPECT_GE(shape.converter_warps(), shape.converter_groups);
    // Sums of all rows, twice, and two rows of operands and the next.
    EXPECT_LT(2 * shape.rows * shape.octets * 4 + 24,
              shape.consumer_registers());
    // Columns of a product that the kernel has.
    const int columns = 8 * shape.octets * shape.vector_rows;
    EXPECT_TRUE(columns == 24 || columns == 32) << columns;
  }
}

TEST(WgmmaPlan, ServesTheSecondLayersOfTheCourse) {
  for (const Problem& problem :
       {Problem{10000, 12, 33, 33, 24, 7}, Problem{10000, 6, 22, 22, 16, 5},
        Problem{10000, 12, 33, 33, 24, 5}, Problem{10000, 4, 40, 40, 16, 7}}) {
    CheckPlan(problem, PlanFor(problem));
  }
}

// What a round loads: 16 values of each thread.
TEST(WgmmaPlan, CountsRounds) {
  // 12 channels as three of 4; 4 pixels of one, or 2 of two.
  EXPECT_EQ(WgmmaRounds(12, 900, 4, 1, 225), 3);
  EXPECT_EQ(WgmmaRounds(12, 901, 4, 1, 225), 6);
  EXPECT_EQ(WgmmaRounds(12, 900, 4, 2, 225), 4);
  // 7 channels as four of 2; 8 pixels of one, or 2 of four.
  EXPECT_EQ(WgmmaRounds(7, 450, 2, 1, 225), 4);
  EXPECT_EQ(WgmmaRounds(7, 450, 2, WgmmaManyUnits(2), 225), 1);
}

// One image is cut so that more than one multiprocessor works on it.
TEST(WgmmaPlan, CutsASingleImage) {
  const WgmmaPlan plan = PlanFor({1, 12, 33, 33, 24, 5});
  EXPECT_GT(plan.slabs, 1);
}

TEST(WgmmaPlan, AnyPlanIsSound) {
  std::mt19937 random(5);
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random() % (most - least + 1));
  };
  int made = 0;
  for (int i = 0; i < 2000; ++i) {
    const int K = 2 * pick(1, 4) + 1;
    const Problem problem = {pick(1, 200),     pick(1, 24), K + pick(0, 60),
                             K + pick(0, 150), pick(1, 70), K};
    WgmmaPlan plan;
    if (MakeWgmmaPlan(problem, kMultiprocessors, kShared, &plan)) {
      CheckPlan(problem, plan);
      ++made;
    }
  }
  EXPECT_GT(made, 1000);
}

TEST(WgmmaPlan, RefusesWhatDoesNotFit) {
  WgmmaPlan plan;
  // A size that is not compiled; filters that need more than there is.
  EXPECT_FALSE(
      MakeWgmmaPlan({1, 4, 40, 40, 16, 11}, kMultiprocessors, kShared, &plan));
  EXPECT_FALSE(
      MakeWgmmaPlan({1, 64, 40, 40, 128, 5}, kMultiprocessors, kShared, &plan));
  // Bytes of filters beyond 2^31.
  for (const Problem& problem :
       {Problem{1, 5000000, 3, 3, 1, 3}, Problem{1, 2000000, 5, 5, 1, 5}}) {
    EXPECT_FALSE(MakeWgmmaPlan(problem, kMultiprocessors, kShared, &plan));
  }
}

}  // namespace
}  // namespace convlab::cuda
