#include "kernels/compiled/cuda/convolve_pool_plan.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "common/network/network.h"
#include "gtest/gtest.h"

namespace convlab::cuda {
namespace {

constexpr MaxPool kHalve{2, 2, false};

DeviceLimits Limits(int multiprocessors) {
  DeviceLimits limits;
  limits.multiprocessors = multiprocessors;
  limits.shared_per_multiprocessor = 228 << 10;
  limits.shared_per_block = 227 << 10;
  return limits;
}

// Every column of a window is in one of its pairs, and the two pairs of a wide
// window stand side by side, in parts of their own.
void ExpectPairs(const ConvolvePoolLaunch& launch) {
  const ConvolvePoolShape& shape = launch.shape;
  const int pool = shape.problem.pool.size;
  std::vector<int> seen(launch.item_images * launch.bands * shape.convolved);
  for (int i = 0; i < launch.pairs(); ++i) {
    const ConvolvePoolPair pair = launch.PairAt(i);
    if (!pair.exists) continue;
    ASSERT_LT(pair.image, launch.item_images);
    ASSERT_LT(pair.band, launch.bands);
    ASSERT_LT(pair.window, shape.pooled);
    const int line = pair.image * launch.bands + pair.band;
    for (int x = pair.column; x < std::min(pair.column + 2, shape.convolved);
         ++x) {
      ASSERT_EQ(x / pool, pair.window);
      ++seen[line * shape.convolved + x];
    }
    if (i / 8 >= launch.wide_parts()) continue;
    const ConvolvePoolPair other = launch.PairAt(i ^ 1);
    ASSERT_TRUE(other.exists);
    ASSERT_EQ(other.image, pair.image);
    ASSERT_EQ(other.band, pair.band);
    ASSERT_EQ(other.window, pair.window);
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    const int x = static_cast<int>(i) % shape.convolved;
    // Without rounding up the last columns are in no window.
    ASSERT_EQ(seen[i], x / pool < shape.pooled ? 1 : 0) << i;
  }
}

// Every result is computed, from words that have room.
void ExpectComplete(const ConvolvePoolLaunch& launch,
                    const DeviceLimits& limits) {
  const ConvolvePoolShape& shape = launch.shape;
  const ConvolvePoolProblem& problem = shape.problem;
  EXPECT_GE(launch.item_images, 1);
  EXPECT_TRUE(launch.strips == 1 || launch.item_images == 1);
  EXPECT_LE(launch.bands, shape.pooled);
  EXPECT_GE(launch.bands * launch.strips, shape.pooled);
  EXPECT_LT(launch.bands * (launch.strips - 1), shape.pooled);
  const int64_t of_images =
      (launch.images + launch.item_images - 1) / launch.item_images;
  EXPECT_EQ(launch.items, of_images * launch.strips);
  EXPECT_GE(launch.blocks, 1);
  EXPECT_LE(launch.blocks, launch.items);
  ExpectPairs(launch);
  EXPECT_LE(launch.shared_bytes(), limits.shared_per_block);
  EXPECT_LE(shape.instance.blocks * (launch.shared_bytes() + (1 << 10)),
            limits.shared_per_multiprocessor);
  for (const int at :
       {launch.pairs_at(), launch.floats_at(), launch.words_at()}) {
    EXPECT_EQ(at % 16, 0);
  }
  // All rows under the last window are read, in words of 8.
  const ConvolvePoolInstance& instance = shape.instance;
  const int last_row = (shape.pooled - 1) * problem.pool.size + instance.pool -
                       1 + instance.kernel_size - 1;
  const int last_word = last_row * shape.row_words +
                        (shape.convolved - 1) * shape.pairs +
                        8 * instance.row_steps;
  EXPECT_LE(last_word, launch.image_words() + launch.padding());
}

TEST(ConvolvePoolPlan, TakesTheSecondConvolutionsWithPooling) {
  for (const char* const name : {"fa20", "lenet5"}) {
    const Network& network = **FindNetwork(name);
    const NetworkConvolution second = network.Convolutions()[1];
    const MaxPool pool = std::get<MaxPool>(network.layers[second.layer + 2]);
    const int filters = static_cast<int>(second.output.channels);
    ConvolvePoolShape shape;
    ASSERT_TRUE(
        MakeConvolvePoolShape({static_cast<int>(second.input.channels),
                               static_cast<int>(second.input.size), filters,
                               second.kernel_size, pool, Activation::kRelu},
                              &shape))
        << name;
    EXPECT_EQ(shape.pooled, pool.Output(second.output.size));
    for (const int multiprocessors : {1, 108, 132}) {
      const DeviceLimits limits = Limits(multiprocessors);
      for (const int64_t images : {1, 2, 7, 100, 1000, 2500, 10000}) {
        ConvolvePoolLaunch launch;
        ASSERT_TRUE(MakeConvolvePoolLaunch(shape, images, limits, &launch));
        ExpectComplete(launch, limits);
      }
    }
  }
}

TEST(ConvolvePoolPlan, TakesAnySizesThatFit) {
  int taken = 0;
  for (const int channels : {2, 3, 4, 6}) {
    for (int K = 1; K <= 7; ++K) {
      for (const int size : {K + 1, K + 4, 17, 40, 126}) {
        for (const MaxPool pool :
             {kHalve, MaxPool{2, 2, true}, MaxPool{4, 4, true}}) {
          ConvolvePoolShape shape;
          if (!MakeConvolvePoolShape(
                  {channels, size, 5 * K, K, pool, Activation::kTanh},
                  &shape)) {
            continue;
          }
          ++taken;
          EXPECT_GE(shape.padded_filters(), 5 * K);
          EXPECT_LE(K, shape.instance.kernel_size);
          const DeviceLimits limits = Limits(3);
          for (const int64_t images : {1, 5, 64}) {
            ConvolvePoolLaunch launch;
            if (MakeConvolvePoolLaunch(shape, images, limits, &launch)) {
              ExpectComplete(launch, limits);
            } else {
              EXPECT_GE(size, 40);  // does not fit into shared memory
            }
          }
        }
      }
    }
  }
  EXPECT_GT(taken, 50);
}

TEST(ConvolvePoolPlan, ManyImagesShareABlock) {
  ConvolvePoolShape shape;
  ASSERT_TRUE(
      MakeConvolvePoolShape({6, 14, 16, 5, kHalve, Activation::kRelu}, &shape));
  ConvolvePoolLaunch launch;
  ASSERT_TRUE(MakeConvolvePoolLaunch(shape, 4096, Limits(132), &launch));
  EXPECT_GT(launch.item_images, 1);
  // Few images are cut into strips.
  ASSERT_TRUE(MakeConvolvePoolLaunch(shape, 1, Limits(132), &launch));
  EXPECT_EQ(launch.bands, 1);
}

TEST(ConvolvePoolPlan, RefusesWhatTheKernelIsNotFor) {
  ConvolvePoolShape shape;
  const auto takes = [&](const ConvolvePoolProblem& problem) {
    return MakeConvolvePoolShape(problem, &shape);
  };
  constexpr Activation kRelu = Activation::kRelu;
  EXPECT_TRUE(takes({4, 40, 16, 7, {4, 4, true}, kRelu}));
  EXPECT_FALSE(takes({4, 40, 16, 8, {4, 4, true}, kRelu}));   // too many rows
  EXPECT_FALSE(takes({12, 40, 16, 5, {2, 2, true}, kRelu}));  // and channels
  EXPECT_FALSE(takes({4, 40, 16, 7, {}, kRelu}));             // no pooling
  EXPECT_FALSE(takes({4, 40, 16, 7, {4, 2, true}, kRelu}));   // windows overlap
  EXPECT_FALSE(takes({4, 40, 16, 7, {3, 3, true}, kRelu}));   // 3 rows
  // The last window has one row.
  EXPECT_FALSE(takes({4, 39, 16, 7, {4, 4, true}, kRelu}));
  EXPECT_TRUE(takes({4, 39, 16, 7, {4, 4, false}, kRelu}));
  EXPECT_FALSE(takes({4, 130, 16, 7, {4, 4, true}, kRelu}));
  EXPECT_FALSE(takes({1, 32, 6, 5, kHalve, kRelu}));  // one channel
  // An image that does not fit into shared memory.
  ASSERT_TRUE(takes({4, 128, 16, 7, {4, 4, true}, kRelu}));
  ConvolvePoolLaunch launch;
  EXPECT_FALSE(MakeConvolvePoolLaunch(shape, 10, Limits(132), &launch));
}

}  // namespace
}  // namespace convlab::cuda
