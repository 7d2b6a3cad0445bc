#include "kernels/convolution/cuda/wgmma/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/output_tiles.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

std::string Describe(const Problem& p, const WgmmaPlan& plan) {
  return DescribeProblem(p) + "shape: " + Text({plan.shape}) +
         "slab: " + Text({plan.slab_bands});
}

// Checks that each sum in `height` rows and `width` columns of an image belongs
// to one slab's tile.
void CheckTiles(const WgmmaPlan& plan, int64_t height, int64_t width) {
  const OutputTiles tiles = SlabTiles(plan);
  std::vector<int> count(height * width);
  for (int slab = 0; slab < plan.slabs; ++slab) {
    const TileArea area = tiles.At(slab);
    for (int h = 0; h < area.rows; ++h) {
      for (int w = 0; w < area.columns; ++w) {
        const int row = area.row + h, column = area.column + w;
        if (row >= height || column >= width || !area.Has(h, w)) continue;
        ++count.at(row * width + column);
      }
    }
  }
  EXPECT_EQ(std::count(count.begin(), count.end(), 1), height * width);
}

// Checks that the kernel stays within its memory and computes every output.
void CheckPlan(const Problem& problem, const WgmmaPlan& plan) {
  SCOPED_TRACE(Describe(problem, plan));
  const WgmmaShape& shape = kWgmmaShapes[plan.shape];
  const int K = plan.K;
  EXPECT_EQ(shape.kernel_size, K);
  EXPECT_GE(plan.pixel_halves, plan.C);
  EXPECT_EQ(plan.pixel_halves % (shape.wide ? 4 : 2), 0);
  EXPECT_GE(plan.steps * 16, (K + shape.shifts - 1) * plan.pixel_halves);

  // Units cover the output, slabs cover the units, groups and phases cover the
  // filters, and none is empty.
  EXPECT_GE(plan.band_units * shape.shifts, plan.W_out);
  EXPECT_LT((plan.band_units - 1) * shape.shifts, plan.W_out);
  EXPECT_EQ(plan.units,
            (plan.H_out + shape.rows - 1) / shape.rows * plan.band_units);
  EXPECT_GE(int64_t{plan.slabs} * plan.slab_units, plan.units);
  EXPECT_LT(int64_t{plan.slabs - 1} * plan.slab_units, plan.units);
  CheckTiles(plan, plan.H_out, plan.W_out);
  const int slab_rows = plan.slab_bands * shape.rows;
  for (int slab = 0; slab < plan.slabs; ++slab) {
    const int first = slab * plan.slab_units;
    const int last = std::min(first + plan.slab_units, plan.units) - 1;
    EXPECT_LE(last / plan.band_units - first / plan.band_units,
              plan.slab_bands - 1);
  }
  // The writer stores whole rows, so with stages slabs have whole bands.
  EXPECT_TRUE(shape.direct || plan.slabs == 1 ||
              plan.slab_units == plan.slab_bands * plan.band_units);
  EXPECT_GE(plan.groups * 8 * shape.octets, plan.M);
  EXPECT_LT((plan.groups - 1) * 8 * shape.octets, plan.M);
  EXPECT_GE(plan.phase_groups, 1);

  // The last unit's last load, in the last row of the last step.
  const int64_t last =
      int64_t{slab_rows + K - 2} * plan.pitch +
      int64_t{plan.band_units - 1} * shape.shifts * plan.pixel_halves / 2 +
      int64_t{plan.steps + 1} * 8;
  EXPECT_LE(last, plan.slab_words);
  // The last filter's last output, wherever the target begins.
  const int64_t filters =
      std::min(plan.phase_groups * 8 * shape.octets, plan.M);
  const int64_t rows = std::min(slab_rows, plan.H_out);
  EXPECT_LE((filters - 1) * plan.stage_pitch + 31 + rows * plan.W_out,
            plan.stage_words);
  EXPECT_EQ(plan.stages == 0, shape.direct);
  EXPECT_TRUE(!shape.direct || plan.phase_groups == plan.groups);
  if (plan.merged) {
    EXPECT_EQ(plan.slabs, 1);
    EXPECT_EQ(plan.phase_groups, plan.groups);
    EXPECT_EQ(plan.stage_pitch, plan.H_out * plan.W_out);
  } else {
    EXPECT_GE(plan.stage_pitch, 31 + rows * plan.W_out);
  }
  if (plan.raw_words > 0) {
    EXPECT_EQ(plan.slabs, 1);
    const int image_words = plan.C * plan.inset.height * plan.inset.width;
    EXPECT_EQ(image_words % 4, 0);
    EXPECT_GE(plan.raw_words, image_words);
    // Each group of converters has two, of which one is read while the other
    // comes, or one.
    EXPECT_EQ(plan.raw_buffers % shape.converter_groups, 0);
    EXPECT_LE(plan.raw_buffers, 2 * shape.converter_groups);
  } else {
    EXPECT_EQ(plan.raw_buffers, 0);
  }
  EXPECT_GE(plan.slab_buffers, shape.converter_groups);
  if (shape.own_slabs) {
    EXPECT_GT(plan.slab_buffers, shape.multipliers);
    EXPECT_EQ(plan.phase_groups, plan.groups);
  }
  EXPECT_LE(plan.slab_buffers, kWgmmaMostBuffers);
  EXPECT_LE(plan.stages, kWgmmaMostBuffers);
  EXPECT_LE(plan.raw_buffers, kWgmmaMostBuffers);

  // Everything together fits, and vectors of 16 bytes are aligned.
  const int64_t words =
      plan.filter_bytes(shape.parts) / 4 + plan.exponent_words +
      int64_t{shape.parts} * plan.slab_buffers * plan.slab_words +
      int64_t{plan.raw_buffers} * plan.raw_words +
      int64_t{plan.stages} * plan.stage_words;
  EXPECT_EQ(words * 4, plan.shared_bytes);
  EXPECT_LE(plan.shared_bytes, kH200.shared_per_block);
  EXPECT_EQ(plan.group_bytes % 16, 0);
  EXPECT_GE(plan.exponent_words, plan.groups * 8 * shape.octets);
  EXPECT_EQ(plan.exponent_words % 32, 0);
  EXPECT_EQ(plan.slab_words % 4, 0);
  EXPECT_EQ(plan.raw_words % 4, 0);
  EXPECT_EQ(plan.stage_words % 32, 0);
  // wgmma's descriptors address 2^18 bytes.
  EXPECT_LT(plan.shared_bytes, 1 << 18);
}

// Two halves of a split operand, or one rounded one (WgmmaShape::parts).
constexpr int kParts[] = {2, 1};

WgmmaPlan PlanFor(const Problem& problem, int parts) {
  WgmmaPlan plan;
  EXPECT_TRUE(MakeWgmmaPlan(problem, parts, kH200, &plan));
  EXPECT_EQ(kWgmmaShapes[plan.shape].parts, parts);
  return plan;
}

TEST(Divide, IsExactUpToItsLimit) {
  for (const uint32_t d : {1u, 2u, 3u, 7u, 10u, 641u, 1000u, 65535u}) {
    const uint32_t magic = DivisionMagic(d);
    // The largest n, a multiple, and the number before it. They fit into an
    // int.
    const uint32_t most = std::min<uint64_t>(std::numeric_limits<int>::max(),
                                             ((uint64_t{1} << 32) - 1) / d);
    for (const uint32_t n : {most, most / d * d, most / d * d - 1}) {
      EXPECT_EQ(Divide(n, magic), static_cast<int>(n / d)) << n << " / " << d;
    }
  }
}

TEST(Divisor, IsExactUpToTheLargestInt) {
  constexpr int kMost = std::numeric_limits<int>::max();
  std::mt19937 random(1);
  std::vector<int> divisors = {kMost, kMost - 1, 1 << 30, (1 << 30) + 1};
  for (int d = 1; d <= 300; ++d) divisors.push_back(d);
  for (int i = 0; i < 300; ++i) {
    const int shift = random() % 31;
    divisors.push_back(1 + (random() % kMost >> shift));
  }
  for (const int d : divisors) {
    const Divisor divisor(d);
    EXPECT_EQ(divisor.Quotient(kMost), kMost / d) << d;
    for (int i = 0; i < 100; ++i) {
      // A multiple, and the number before it.
      const int n = random() % (kMost / d + 1u) * d;
      EXPECT_EQ(divisor.Quotient(n), n / d) << n << " / " << d;
      const int before = std::max(n - 1, 0);
      EXPECT_EQ(divisor.Quotient(before), before / d) << before << " / " << d;
    }
  }
}

TEST(WgmmaPlan, RegistersSuffice) {
  for (const WgmmaShape& shape : kWgmmaShapes) {
    EXPECT_EQ(shape.rows % shape.vector_rows, 0);
    const int warpgroups = shape.threads / 128;
    const int given = 65536 / shape.threads / 8 * 8;
    EXPECT_LE(
        shape.multipliers * shape.multiplier_registers() +
            (warpgroups - shape.multipliers) * shape.converter_registers(),
        given * warpgroups);
    EXPECT_GE(shape.converter_warps(), shape.converter_groups);
    EXPECT_LE(shape.most_buffers(), kWgmmaMostBuffers);
    EXPECT_LE(2 * shape.converter_groups, shape.most_barriers());
    EXPECT_LE(2 * shape.converter_groups, kWgmmaMostBuffers);
    // The sums of all rows, with two parts those of a step too, and two of
    // operands, or groups of them, beside the next two.
    EXPECT_LT(shape.parts * shape.rows * shape.octets * shape.shifts * 4 +
                  shape.parts * 4 * (2 + 2),
              shape.multiplier_registers());
    // Products that wgmma_ptx.cuh has, without those of wgmma_strips.
    const int columns = 8 * shape.octets * shape.vector_rows * shape.shifts;
    EXPECT_TRUE(columns == 24 || columns == 32 || columns == 48) << columns;
    if (shape.pool > 0) {
      EXPECT_EQ(shape.rows % shape.pool, 0);
      EXPECT_EQ(2 * shape.shifts, shape.pool);
    }
    EXPECT_TRUE(shape.shifts == 1 || shape.shifts == 2);
  }
}

TEST(WgmmaPlan, ServesTheSecondLayersOfTheCourse) {
  for (const Layer& layer : kSecondLayers) {
    for (const int parts : kParts) {
      CheckPlan(layer.At(10000), PlanFor(layer.At(10000), parts));
    }
  }
}

// Each thread loads 16 values in a round.
TEST(WgmmaPlan, CountsRounds) {
  // 12 channels as three of 4; 4 pixels of one, or 2 of two.
  EXPECT_EQ(WgmmaRounds(12, 900, 4, 1, 225), 3);
  EXPECT_EQ(WgmmaRounds(12, 901, 4, 1, 225), 6);
  EXPECT_EQ(WgmmaRounds(12, 900, 4, 2, 225), 4);
  // 7 channels as four of 2; 8 pixels of one, or 2 of four.
  EXPECT_EQ(WgmmaRounds(7, 450, 2, 1, 225), 4);
  EXPECT_EQ(WgmmaRounds(7, 450, 2, WgmmaManyUnits(2), 225), 1);
}

// Pixels that would leave most threads idle are loaded 16 channels at a time.
TEST(WgmmaPlan, LoadsTheLastPixelsByPixel) {
  EXPECT_EQ(WgmmaPixelsByUnit(12, 900, 4, 225), 900);
  // One round for 225 pixels instead of three.
  EXPECT_EQ(WgmmaPixelsByUnit(12, 901, 4, 225), 900);
  EXPECT_EQ(WgmmaPixelsByUnit(12, 1125, 4, 225), 900);
  EXPECT_EQ(WgmmaPixelsByUnit(12, 196, 4, 225), 0);
  // No fewer rounds.
  EXPECT_EQ(WgmmaPixelsByUnit(4, 901, 4, 225), 901);
  EXPECT_EQ(WgmmaPixelsByUnit(12, 900 + 3 * 225, 4, 225), 900 + 3 * 225);
}

// One image is divided, so that several multiprocessors work on it.
TEST(WgmmaPlan, DividesASingleImage) {
  for (const int parts : kParts) {
    EXPECT_GT(PlanFor({1, 12, 33, 33, 24, 5}, parts).slabs, 1);
  }
}

TEST(WgmmaPlan, EstimatesGrowWithTheBatch) {
  for (const Layer& layer : kSecondLayers) {
    for (const int parts : kParts) {
      double before = 0;
      for (const int64_t batch : {1, 100, 1000, 10000}) {
        const double ns = EstimateWgmmaNs(layer.At(batch), parts, kH200);
        EXPECT_TRUE(std::isfinite(ns));
        EXPECT_GT(ns, before) << layer.name << " " << batch;
        before = ns;
      }
    }
  }
}

TEST(WgmmaPlan, AnyPlanIsSound) {
  std::mt19937 random(5);
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random() % (most - least + 1));
  };
  std::map<int, int> made;  // by parts
  for (int i = 0; i < 2000; ++i) {
    const int K = 2 * pick(1, 4) + 1;
    const Problem problem = {pick(1, 200),     pick(1, 24), K + pick(0, 60),
                             K + pick(0, 150), pick(1, 70), K};
    for (const int parts : kParts) {
      WgmmaPlan plan;
      if (MakeWgmmaPlan(problem, parts, kH200, &plan)) {
        CheckPlan(problem, plan);
        ++made[parts];
      }
    }
  }
  for (const int parts : kParts) EXPECT_GT(made[parts], 1000);
}

// Checks a plan whose outputs are pooled.
void CheckPooled(const Problem& problem, const Epilogue& epilogue,
                 const WgmmaPlan& plan) {
  SCOPED_TRACE(Describe(problem, plan));
  const WgmmaShape& shape = kWgmmaShapes[plan.shape];
  ASSERT_EQ(shape.pool, epilogue.pool.size);
  EXPECT_TRUE(shape.direct);
  // Columns of windows cover the outputs, and none is empty.
  const int64_t height = epilogue.pool.Output(plan.H_out);
  const int64_t width = epilogue.pool.Output(plan.W_out);
  const int windows = shape.rows / shape.pool;
  EXPECT_EQ(plan.pooled_area, height * width);
  // Of the sums in windows.
  CheckTiles(plan, std::min<int64_t>(height * shape.pool, plan.H_out),
             std::min<int64_t>(width * shape.pool, plan.W_out));
  EXPECT_EQ(plan.band_units, width);
  EXPECT_EQ(plan.units, (height + windows - 1) / windows * width);
  EXPECT_EQ(plan.slabs, 1);
  EXPECT_EQ(plan.slab_units, plan.units);
  // Units that begin within a row read into the next one, the last ones beyond
  // the last row, where there are zeros.
  const int64_t last_column = plan.W_out - 1;
  const int64_t last =
      int64_t{plan.slab_bands * shape.rows + plan.K - 2} * plan.pitch +
      last_column * plan.pixel_halves / 2 + int64_t{plan.steps + 1} * 8;
  EXPECT_LE(last, plan.slab_words);
  // A tile's slabs are there while the next one is converted.
  EXPECT_GT(plan.slab_buffers, (kWgmmaColumns - 1) / plan.units + 1);
  EXPECT_LE(plan.slab_buffers, kWgmmaMostBuffers);
  EXPECT_LE(plan.raw_buffers, shape.most_barriers());
  EXPECT_EQ(plan.exponent_words, plan.bias_words);
  EXPECT_LE(plan.shared_bytes, kH200.shared_per_block);
  EXPECT_EQ(plan.stages, 0);
  for (int n = 0; n < plan.units + kWgmmaColumns; ++n) {
    ASSERT_EQ(Divide(n, plan.slab_magic), n / plan.units);
  }
}

TEST(WgmmaPlan, AnyPooledPlanIsSound) {
  std::mt19937 random(6);
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random() % (most - least + 1));
  };
  std::map<int, int> made;  // by windows
  for (int i = 0; i < 1000; ++i) {
    const int pool = 2 * pick(1, 2), K = pool == 2 ? 5 : 7;
    const Problem problem = {pick(1, 200),    pick(1, 12), K + pick(3, 40),
                             K + pick(3, 40), pick(1, 40), K};
    const Epilogue epilogue = {
        nullptr, Activation::kRelu, {pool, pool, pick(0, 1) == 1}};
    WgmmaPlan plan;
    if (!MakeWgmmaPlan(problem, /*parts=*/2, kH200, &plan, epilogue)) continue;
    CheckPooled(problem, epilogue, plan);
    ++made[pool];
  }
  EXPECT_GT(made[2], 20);
  EXPECT_GT(made[4], 20);
}

TEST(WgmmaPlan, PoolsWindowsSideBySideOnly) {
  const Problem problem = {100, 4, 40, 40, 16, 7};
  WgmmaPlan plan;
  for (const MaxPool& pool :
       {MaxPool{2, 2, false}, MaxPool{3, 3, false}, MaxPool{4, 2, false}}) {
    EXPECT_FALSE(MakeWgmmaPlan(problem, 2, kH200, &plan,
                               {nullptr, Activation::kNone, pool}));
  }
  // An activation alone is not fused, and one part pools nothing.
  EXPECT_FALSE(MakeWgmmaPlan(problem, 2, kH200, &plan,
                             {nullptr, Activation::kRelu, {}}));
  const Epilogue whole = {nullptr, Activation::kNone, {4, 4, true}};
  EXPECT_TRUE(MakeWgmmaPlan(problem, 2, kH200, &plan, whole));
  EXPECT_FALSE(MakeWgmmaPlan(problem, 1, kH200, &plan, whole));
  // A tile would go through more images than there are buffers.
  EXPECT_FALSE(MakeWgmmaPlan({100, 4, 10, 10, 16, 7}, 2, kH200, &plan, whole));
}

TEST(WgmmaPlan, RefusesWhatDoesNotFit) {
  WgmmaPlan plan;
  for (const int parts : kParts) {
    // A size that is not compiled; filters that need more than there is.
    EXPECT_FALSE(MakeWgmmaPlan({1, 4, 40, 40, 16, 11}, parts, kH200, &plan));
    EXPECT_LT(EstimateWgmmaNs({1, 4, 40, 40, 16, 11}, parts, kH200), 0);
    EXPECT_FALSE(MakeWgmmaPlan({1, 64, 40, 40, 128, 5}, parts, kH200, &plan));
    // Bytes of filters beyond 2^31.
    for (const Problem& problem :
         {Problem{1, 5000000, 3, 3, 1, 3}, Problem{1, 2000000, 5, 5, 1, 5}}) {
      EXPECT_FALSE(MakeWgmmaPlan(problem, parts, kH200, &plan));
    }
  }
}

// Images amid zeros, of a slab and of several, also of one column.
TEST(WgmmaPlan, PlacesTheRowsOfAnInset) {
  const struct {
    Problem problem;
    Inset inset;
    bool padded;
  } cases[] = {{{128, 3, 38, 38, 24, 7}, {3, 3, 32, 32}, true},
               {{4, 1, 264, 264, 64, 9}, {4, 4, 256, 256}, true},
               {{8, 8, 132, 133, 16, 5}, {0, 3, 131, 128}, true},
               {{8, 8, 132, 132, 16, 5}, {0, 0, 132, 132}, false},
               {{2, 2, 9, 5, 16, 5}, {4, 4, 5, 1}, true}};
  for (const auto& [problem, inset, padded] : cases) {
    WgmmaPlan plan;
    ASSERT_TRUE(MakeWgmmaPlan(problem, /*parts=*/2, kH200, &plan, {}, &inset));
    CheckPlan(problem, plan);
    EXPECT_EQ(plan.gap_bytes > 0, padded);
    const int pixel_bytes = 2 * plan.pixel_halves;
    for (int row = 0; row < inset.height; ++row) {
      for (int column = 0; column < inset.width; ++column) {
        const int pixel = row * inset.width + column;
        ASSERT_EQ(pixel * pixel_bytes +
                      Divide(pixel, plan.columns_magic) * plan.gap_bytes,
                  row * 4 * plan.pitch + column * pixel_bytes);
      }
    }
  }
  // An image that the copy engine does not take, as it is not as it is padded.
  const Inset odd = {1, 1, 33, 33};
  WgmmaPlan plan;
  ASSERT_TRUE(
      MakeWgmmaPlan({128, 1, 38, 38, 24, 5}, 2, kH200, &plan, {}, &odd));
  EXPECT_EQ(plan.raw_words, 0);
}

}  // namespace
}  // namespace convlab::cuda
