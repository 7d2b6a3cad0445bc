// Compares prepared operations, by what is the fastest and by the general
// kernel, on the CPU and on a GPU, with the definition in float64.
#include "kernels/operation/prepared.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "common/accuracy/contract.h"
#include "gtest/gtest.h"
#include "kernels/operation/prepared_testing.h"

namespace convlab {
namespace {

TEST_P(Prepared, IntegersAreExact) {
  int ran = 0;
  ForOperations([&](const Operation& o) {
    if (HasFailure() || !Takes(o)) return;
    SCOPED_TRACE(ToString(o));
    const auto x = Integers(o.input_elements(), 8, 1);
    const auto k = Integers(o.kernel_elements(), 8, 2);
    const auto bias = Integers(o.filters, 20, 3);
    const std::vector<double> expected =
        Finished(o, DefinitionOf(o, x, k), o.bias ? bias.data() : nullptr);
    const std::vector<float> y = Run(o, x, k, bias, ++ran % 4);
    ASSERT_EQ(y.size(), expected.size());
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], expected[i]) << "output element " << i;
    }
  });
  // Variants take stride 1 and square filters, wgmma_strips few channels.
  const bool takes_all =
      target_.kernel.empty() || target_.kernel == kGeneralKernel;
  EXPECT_GE(ran, takes_all ? 100 : 8);
}

TEST_P(Prepared, KeepsTheContractOfClassFp32) {
  ForOperations([&](Operation o) {
    if (HasFailure() || !Takes(o)) return;
    o.pool = {}, o.bias = false, o.activation = Activation::kNone;
    SCOPED_TRACE(ToString(o));
    auto x = Uniform(o.input_elements(), 4);
    // Images and filters of many scales.
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], i / 50 % 40);
    const auto k = Uniform(o.kernel_elements(), 5);
    const Sums sums = DefinitionOf(o, x, k);
    const std::vector<float> y = Run(o, x, k, {});
    double worst = 0, plain = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      worst = std::max(worst, ErrorFactor(y[i], sums.reference[i]));
      plain = std::max(plain, ErrorFactor(sums.plain[i], sums.reference[i]));
    }
    EXPECT_LE(worst, AllowedFactor(plain));
  });
}

TEST_P(Prepared, TanhOfFloats) {
  Operation o = MakeOperation(2, 3, 20, 21, 10, 3, 3);
  o.top = o.left = 1;
  o.activation = Activation::kTanh, o.bias = true;
  ASSERT_TRUE(Takes(o));
  for (const MaxPool& pool : {MaxPool{}, MaxPool{2, 2, false}}) {
    o.pool = pool;
    const auto x = Uniform(o.input_elements(), 6);
    const auto k = Uniform(o.kernel_elements(), 7);
    const auto bias = Uniform(o.filters, 8);
    const auto expected = Finished(o, DefinitionOf(o, x, k), bias.data());
    const auto y = Run(o, x, k, bias);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 3e-6);
  }
}

// With an infinite weight the zeros of the padding become NaN.
TEST_P(Prepared, InfinitiesAndNanAreWhereTheDefinitionHasThem) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t stride : {1, 2}) {
    Operation o = MakeOperation(2, 3, 14, 15, 9, 3, 3);
    o.stride_y = o.stride_x = stride;
    o.top = o.bottom = o.left = o.right = 1;
    if (!Takes(o)) continue;
    auto x = Integers(o.input_elements(), 8, 1);
    auto k = Integers(o.kernel_elements(), 8, 2);
    x[50] = kInfinity, x[700] = -kInfinity;
    x.back() = std::numeric_limits<float>::quiet_NaN();
    k[30] = kInfinity;
    const auto expected = Finished(o, DefinitionOf(o, x, k), nullptr);
    const auto y = Run(o, x, k, {});
    for (size_t i = 0; i < y.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(y[i])) << "output element " << i;
      } else {
        ASSERT_EQ(y[i], expected[i]) << "output element " << i;
      }
    }
  }
}

// Filters that do not fit into a GPU's shared memory: all channels, one
// channel, a row.
TEST_P(Prepared, LargeFilters) {
  Operation many = MakeOperation(2, 40, 12, 20, 70, 5, 5);
  many.stride_x = 2, many.left = 2;
  for (const Operation& o : {many, MakeOperation(1, 2, 205, 62, 20, 200, 60),
                             MakeOperation(1, 1, 2, 9010, 3, 1, 9000)}) {
    if (!Takes(o)) continue;
    SCOPED_TRACE(ToString(o));
    const auto x = Integers(o.input_elements(), 3, 1);
    const auto k = Integers(o.kernel_elements(), 3, 2);
    const auto expected = Finished(o, DefinitionOf(o, x, k), nullptr);
    const auto y = Run(o, x, k, {});
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], expected[i]) << i;
  }
}

// Enough for few_images' line of items, in rows that a warp copies and in
// narrower ones.
TEST_P(Prepared, ManyPaddedImagesOfOneChannel) {
  for (const int64_t width : {28, 70}) {
    Operation o = MakeOperation(100, 1, 30, width, 20, 3, 3);
    o.top = 2, o.left = 1, o.right = 3;
    ASSERT_TRUE(Takes(o));
    SCOPED_TRACE(ToString(o));
    const auto x = Integers(o.input_elements(), 8, 1);
    const auto k = Integers(o.kernel_elements(), 8, 2);
    const auto expected = Finished(o, DefinitionOf(o, x, k), nullptr);
    const auto y = Run(o, x, k, {});
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], expected[i]) << i;
  }
}

// Enough for each worker of the kernels on tensor cores to take several items,
// some of them with padding above or below: of images of scales of their own,
// so that outputs are mended, and of integers, where an infinite weight makes
// NaN of the padding.
TEST_P(Prepared, ManyItemsOfPaddedImages) {
  const std::string& kernel = target_.kernel;
  if (kernel.rfind("tensor_", 0) != 0 && kernel.rfind("wgmma_", 0) != 0) {
    GTEST_SKIP() << "is not a kernel on tensor cores";
  }
  // Kernels load words of two columns; some images begin amid one. Of some,
  // whole tiles have nothing but zeros.
  const auto padded = [](Operation o, int above, int below, int left) {
    o.top = above, o.bottom = below, o.left = left, o.right = 2;
    return o;
  };
  for (const Operation& o :
       {padded(MakeOperation(50, 2, 150, 40, 9, 5, 5), 2, 1, 2),
        padded(MakeOperation(80, 3, 32, 32, 24, 7, 7), 2, 1, 2),
        padded(MakeOperation(40, 8, 60, 36, 12, 3, 3), 2, 1, 2),
        padded(MakeOperation(100, 8, 90, 90, 16, 3, 3), 2, 1, 3),
        padded(MakeOperation(1200, 1, 60, 20, 5, 5, 5), 2, 1, 2),
        padded(MakeOperation(600, 1, 60, 22, 5, 5, 5), 40, 40, 3),
        padded(MakeOperation(1200, 1, 61, 21, 4, 7, 7), 2, 1, 3),
        padded(MakeOperation(300, 3, 31, 25, 6, 3, 3), 40, 40, 2)}) {
    if (!Takes(o)) continue;
    SCOPED_TRACE(ToString(o));
    auto x = Uniform(o.input_elements(), 4);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = std::ldexp(x[i], static_cast<int>(i / 50 * 37 % 40));
    }
    auto k = Uniform(o.kernel_elements(), 5);
    const Sums sums = DefinitionOf(o, x, k);
    std::vector<float> y = Run(o, x, k, {});
    double worst = 0, plain = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      worst = std::max(worst, ErrorFactor(y[i], sums.reference[i]));
      plain = std::max(plain, ErrorFactor(sums.plain[i], sums.reference[i]));
    }
    EXPECT_LE(worst, AllowedFactor(plain));

    x = Integers(o.input_elements(), 8, 1);
    k = Integers(o.kernel_elements(), 8, 2);
    k[30] = std::numeric_limits<float>::infinity();
    const auto expected = Finished(o, DefinitionOf(o, x, k), nullptr);
    y = Run(o, x, k, {});
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_TRUE(y[i] == expected[i] ||
                  (std::isnan(y[i]) && std::isnan(expected[i])))
          << "output element " << i << " is " << y[i] << ", expected "
          << expected[i];
    }
  }
}

TEST_P(Prepared, FirstLayerOfAKnownNetwork) {
  Operation o = MakeOperation(1, 3, 224, 224, 64, 7, 7);
  o.stride_y = o.stride_x = 2;
  o.top = o.bottom = o.left = o.right = 3;
  o.bias = true, o.activation = Activation::kRelu;
  o.pool = {3, 2, true};
  if (!Takes(o)) GTEST_SKIP() << "takes no strides";
  const auto x = Integers(o.input_elements(), 8, 1);
  const auto k = Integers(o.kernel_elements(), 8, 2);
  const auto bias = Integers(o.filters, 20, 3);
  const auto expected = Finished(o, DefinitionOf(o, x, k), bias.data());
  const auto y = Run(o, x, k, bias);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], expected[i]) << i;
}

// "" is the choice of the fastest; the others have their own ways with an
// epilogue and with memory.
INSTANTIATE_TEST_SUITE_P(
    Targets, Prepared,
    ::testing::Values(std::tuple(Backend::kCpu, ""),
                      std::tuple(Backend::kCpu, kGeneralKernel),
                      std::tuple(Backend::kCuda, ""),
                      std::tuple(Backend::kCuda, kGeneralKernel),
                      std::tuple(Backend::kCuda, "direct_tiled"),
                      std::tuple(Backend::kCuda, "few_images"),
                      std::tuple(Backend::kCuda, "im2col_shared"),
                      std::tuple(Backend::kCuda, "tensor_split"),
                      std::tuple(Backend::kCuda, "tensor_strips"),
                      std::tuple(Backend::kCuda, "tensor_wgmma"),
                      std::tuple(Backend::kCuda, "wgmma_strips")),
    NameOfTarget);

TEST(PrepareOperation, SaysWhyNot) {
  Target target;
  target.resources.workers = &TestWorkers();
  Operation o = MakeOperation(1, 1, 8, 8, 1, 3, 3);
  target.kernel = "no_such";
  EXPECT_EQ(PrepareOperation(o, target).status().code(),
            absl::StatusCode::kInvalidArgument);
  target.kernel = "naive";
  EXPECT_TRUE(PrepareOperation(o, target).ok());
  o.stride_x = 2;
  EXPECT_EQ(PrepareOperation(o, target).status().code(),
            absl::StatusCode::kUnimplemented);
  o.stride_x = 1, o.activation = Activation::kTanh;
  EXPECT_EQ(PrepareOperation(o, target).status().code(),
            absl::StatusCode::kUnimplemented);
  target.backend = Backend::kCuda;
  target.kernel = "";
  target.resources.device = 1000;
  EXPECT_EQ(PrepareOperation(o, target).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace convlab
