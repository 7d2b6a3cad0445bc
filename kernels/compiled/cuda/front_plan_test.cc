#include "kernels/compiled/cuda/front_plan.h"

#include <algorithm>
#include <variant>

#include "common/network/network.h"
#include "gtest/gtest.h"

namespace convlab::cuda {
namespace {

constexpr int kMultiprocessors = 132;
constexpr MaxPool kHalve{2, 2, false};

FrontProblem ProblemOf(const Network& network) {
  const auto& layer = std::get<ConvolutionLayer>(network.layers[0]);
  return {28,     network.image_size, layer.filters, layer.kernel_size,
          kHalve, Activation::kTanh};
}

template <typename List>
bool IsAmong(int value, const List& list) {
  return std::count(std::begin(list), std::end(list), value) == 1;
}

bool IsForWarpgroups(int filters) {
  return filters <= 4 || (filters >= 9 && filters <= 12);
}

// Of every launch: each result is computed once, from pixels that are there.
void ExpectComplete(const FrontLaunch& launch) {
  const FrontShape& shape = launch.shape;
  const FrontProblem& problem = shape.problem;
  EXPECT_TRUE(IsAmong(shape.steps, kFrontSteps));
  EXPECT_TRUE(shape.warpgroups ? IsAmong(shape.tiles, kFrontGroupTiles)
                               : IsAmong(shape.tiles, kFrontTiles));
  EXPECT_GE(2 * shape.steps, problem.kernel_size + 1);
  EXPECT_GE(shape.groups * shape.tiles * 2, problem.filters);
  EXPECT_LT((shape.groups - 1) * shape.tiles * 2, problem.filters);
  // A window reads 8 pixels in 2 `steps` rows, the last one too.
  EXPECT_GE(shape.columns, 2 * (shape.pooled - 1) + 8);
  EXPECT_GE(shape.columns, problem.enlarged);
  EXPECT_LE(shape.columns, launch.pitch());
  EXPECT_EQ(shape.columns % 2, 0);
  EXPECT_EQ(launch.pixel_rows(), 2 * (launch.rows - 1) + 2 * shape.steps);
  EXPECT_GE(launch.rows * launch.strips, shape.pooled);
  EXPECT_LT(launch.rows * (launch.strips - 1), shape.pooled);
  // What the last strip repeats is less than a row for each strip.
  EXPECT_LT(launch.rows * launch.strips, shape.pooled + launch.strips);
  constexpr int kShared = 228 << 10, kOwn = 1 << 10;
  if (shape.warpgroups) {
    EXPECT_EQ(launch.strips, 1);
    EXPECT_EQ(launch.rows, shape.pooled);
    EXPECT_EQ(launch.threads % kFrontThreads, 0);
    EXPECT_GE(launch.threads, kFrontThreads);
    EXPECT_LE(launch.threads, FrontBlockGroups(shape.tiles) * kFrontThreads);
    // What the copy engine writes at a time.
    const int all = problem.filters * shape.plane();
    EXPECT_EQ((shape.by_planes() ? shape.plane() : all) % 4, 0);
    EXPECT_EQ(launch.result_at() % 16, 0);
    EXPECT_GE(shape.result_plane(), shape.plane());
    EXPECT_TRUE(!shape.by_planes() || shape.result_plane() % 32 == 8);
    EXPECT_LE(launch.shared_bytes() + kOwn, kShared);
  } else {
    EXPECT_EQ(launch.threads, kFrontThreads);
    EXPECT_LE(launch.shared_bytes(), 48 << 10);
  }
  EXPECT_EQ(launch.padded_runs() % (shape.warpgroups ? 64 : 16), 0);
  EXPECT_GE(launch.padded_runs(), launch.runs());
  EXPECT_GE(launch.blocks, 1);
  EXPECT_LE(launch.blocks, launch.images * launch.strips);
  EXPECT_GE(launch.rows, 2);
  EXPECT_LE(launch.rows, shape.pooled);
  EXPECT_GE(2 * launch.runs(), launch.rows * shape.pooled);
  const int bordered = problem.size + 2;
  for (int i = 0; i < bordered * bordered; ++i) {
    ASSERT_EQ(Divide(i, shape.source_magic), i / bordered);
  }
  // Only whole words are loaded as words.
  EXPECT_TRUE(shape.words_magic == 0 || problem.size % 4 == 0);
  for (int i = 0; shape.words_magic != 0 && i < bordered * bordered; ++i) {
    ASSERT_EQ(Divide(i, shape.words_magic), i / (problem.size / 4));
  }
  EXPECT_EQ(shape.groups % launch.wide, 0);
  EXPECT_TRUE(!shape.warpgroups || shape.groups == 1);
  EXPECT_EQ(launch.taps_at() % 8, 0);
  EXPECT_EQ(launch.runs_at() % 8, 0);
  // Pixels of a strip are mixed from rows that have room.
  for (int strip = 0; strip < launch.strips; ++strip) {
    const int row = std::min(strip * launch.rows, shape.pooled - launch.rows);
    const auto tap = [&](int i) {
      return ((2 * i + 1) * problem.size + problem.enlarged) /
             (2 * problem.enlarged);
    };
    const int end = std::min(2 * row + launch.pixel_rows(), problem.enlarged);
    EXPECT_LE(tap(end - 1) + 2 - tap(2 * row), launch.source_rows());
    EXPECT_LE(tap(end - 1) + 2, bordered);
  }
  EXPECT_EQ(launch.source_at() % 8, 0);
  // The threads' parts cover the rows of pixels.
  EXPECT_GE(launch.threads / (shape.columns / 2) * launch.part_rows,
            launch.pixel_rows());
  for (int i = 0; i < launch.threads; ++i) {
    ASSERT_EQ(Divide(i, shape.pairs_magic), i / (shape.columns / 2));
  }
  EXPECT_EQ(launch.pixels_at() % 4, 0);
}

TEST(FrontPlan, TakesEveryNetworkOfTheTable) {
  for (const Network& network : Networks()) {
    for (const bool warpgroups : {false, true}) {
      FrontShape shape;
      ASSERT_TRUE(MakeFrontShape(ProblemOf(network), warpgroups, &shape))
          << network.name;
      const int filters = shape.problem.filters;
      EXPECT_EQ(shape.warpgroups, warpgroups && IsForWarpgroups(filters))
          << network.name;
      EXPECT_EQ(shape.pooled, network.Shapes()[3].size);
      for (const int64_t images : {1, 2, 100, 10000}) {
        SCOPED_TRACE(::testing::Message() << network.name << ", " << images);
        ExpectComplete(MakeFrontLaunch(shape, images, kMultiprocessors));
      }
    }
  }
}

TEST(FrontPlan, TakesOtherSizes) {
  for (int kernel_size = 1; kernel_size <= 7; ++kernel_size) {
    for (const int enlarged : {10, 11, 33, 128}) {
      for (const int filters : {1, 4, 7, 10, 12, 64}) {
        const int size = kernel_size % 2 == 0 ? 28 : enlarged;
        const int convolved = enlarged - kernel_size + 1;
        for (const bool warpgroups : {false, true}) {
          FrontShape shape;
          ASSERT_TRUE(MakeFrontShape({size,
                                      enlarged,
                                      filters,
                                      kernel_size,
                                      {2, 2, convolved % 2 == 0},
                                      Activation::kNone},
                                     warpgroups, &shape));
          // Large images and other numbers of filters are left to warps, and
          // results that are not whole units of the copy engine.
          const int results = filters * shape.pooled * shape.pooled;
          EXPECT_EQ(shape.warpgroups, warpgroups && enlarged < 128 &&
                                          IsForWarpgroups(filters) &&
                                          results % 4 == 0);
          for (const int64_t images : {1, 1000}) {
            ExpectComplete(MakeFrontLaunch(shape, images, kMultiprocessors));
          }
        }
      }
    }
  }
}

// Large sources, which are made smaller.
TEST(FrontPlan, WarpgroupsHaveRoomForWholeImages) {
  for (const int enlarged : {93, 94, 95}) {
    for (const int filters : {4, 12}) {
      FrontShape shape;
      ASSERT_TRUE(
          MakeFrontShape({128, enlarged, filters, 5, kHalve, Activation::kTanh},
                         true, &shape));
      EXPECT_TRUE(shape.warpgroups);
      ExpectComplete(MakeFrontLaunch(shape, 10000, kMultiprocessors));
    }
  }
}

TEST(FrontPlan, RefusesWhatItCannotDo) {
  FrontShape shape;
  const FrontProblem fa19 = {28, 70, 12, 5, kHalve, Activation::kTanh};
  ASSERT_TRUE(MakeFrontShape(fa19, false, &shape));
  EXPECT_EQ(shape.steps, 3);
  EXPECT_EQ(shape.tiles, 3);
  EXPECT_EQ(shape.groups, 2);
  // Two groups share an image where there are enough of them.
  EXPECT_EQ(MakeFrontLaunch(shape, 1, kMultiprocessors).wide, 1);
  EXPECT_EQ(MakeFrontLaunch(shape, 1000, kMultiprocessors).wide, 2);
  // Warpgroups compute all filters.
  ASSERT_TRUE(MakeFrontShape(fa19, true, &shape));
  EXPECT_EQ(shape.tiles, 6);
  EXPECT_EQ(shape.groups, 1);
  // Few of them have a smaller product, and any number between is for warps.
  for (const int filters : {3, 4}) {
    FrontProblem few = fa19;
    few.filters = filters;
    few.enlarged = 68;  // an even number of positions
    ASSERT_TRUE(MakeFrontShape(few, true, &shape));
    EXPECT_TRUE(shape.warpgroups);
    EXPECT_EQ(shape.tiles, 2);
  }
  for (const int filters : {5, 8, 13}) {
    FrontProblem other = fa19;
    other.filters = filters;
    ASSERT_TRUE(MakeFrontShape(other, true, &shape));
    EXPECT_FALSE(shape.warpgroups);
  }
  const auto refused = [&](auto change) {
    FrontProblem problem = fa19;
    change(problem);
    return !MakeFrontShape(problem, true, &shape);
  };
  EXPECT_TRUE(refused([](FrontProblem& p) { p.kernel_size = 8; }));
  EXPECT_TRUE(refused([](FrontProblem& p) { p.enlarged = 129; }));
  EXPECT_TRUE(refused([](FrontProblem& p) { p.enlarged = 7; }));
  EXPECT_TRUE(refused([](FrontProblem& p) { p.size = 129; }));
  EXPECT_TRUE(refused([](FrontProblem& p) { p.pool = {}; }));
  EXPECT_TRUE(refused([](FrontProblem& p) { p.pool = {2, 1, false}; }));
  EXPECT_TRUE(refused([](FrontProblem& p) { p.pool = {4, 4, true}; }));
  // The last window is not whole.
  EXPECT_TRUE(refused([](FrontProblem& p) {
    p.enlarged = 71;
    p.pool.ceil = true;
  }));
}

// Four columns of a filter at the places of a window, each a shift of it: in
// the rows and columns of pixels that a product covers, every weight stands
// once, and the sum is that of the output at that place.
TEST(FrontPlan, ShiftedFiltersCoverTheWindow) {
  for (int K = 1; K <= 7; ++K) {
    FrontShape shape;
    ASSERT_TRUE(MakeFrontShape({28, 70, 1, K, kHalve, Activation::kNone}, true,
                               &shape));
    for (int dy = 0; dy < 2; ++dy) {
      for (int dx = 0; dx < 2; ++dx) {
        int weights = 0;
        for (int p = 0; p < 2 * shape.steps; ++p) {
          for (int q = 0; q < 8; ++q) {
            weights += p >= dy && p - dy < K && q >= dx && q - dx < K;
          }
        }
        EXPECT_EQ(weights, K * K);
      }
    }
  }
}

}  // namespace
}  // namespace convlab::cuda
