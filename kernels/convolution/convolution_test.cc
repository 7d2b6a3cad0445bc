// Tests the interface, the table and the reference; parity_test tests the
// variants.
#include "kernels/convolution/convolution.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/parallel/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/fastest.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

TEST(Problem, CountsElementsFlopsAndBytes) {
  // fa19's second convolution: 121.1 GFLOP in performance.md's table.
  const Problem problem{10000, 12, 33, 33, 24, 5};
  EXPECT_EQ(problem.output_height(), 29);
  EXPECT_EQ(problem.input_elements(), 130680000);
  EXPECT_EQ(problem.kernel_elements(), 7200);
  EXPECT_EQ(problem.output_elements(), 201840000);
  EXPECT_EQ(problem.flops(), 121104000000);
  EXPECT_EQ(problem.min_bytes(), 4 * (130680000 + 7200 + 201840000));
}

TEST(Problem, RefusesWhatIsNoConvolution) {
  EXPECT_TRUE(CheckProblem({1, 1, 1, 1, 1, 1}).ok());
  EXPECT_THAT(std::string(CheckProblem({0, 1, 5, 5, 1, 3}).message()),
              HasSubstr("B is 0"));
  EXPECT_THAT(std::string(CheckProblem({1, 1, 5, 5, -2, 3}).message()),
              HasSubstr("M is -2"));
  EXPECT_THAT(std::string(CheckProblem({1, 1, 5, 4, 1, 5}).message()),
              HasSubstr("larger than the image"));
  const int64_t huge = int64_t{1} << 40;
  EXPECT_THAT(std::string(CheckProblem({huge, 1, huge, 5, 1, 5}).message()),
              HasSubstr("64 bits"));
  EXPECT_FALSE(Variants()[0]->Create(Problem{0, 1, 1, 1, 1, 1}, {}).ok());
}

TEST(Epilogue, SaysWhatItIs) {
  const float bias = 0;
  EXPECT_EQ(ToString(Epilogue()), "nothing");
  EXPECT_EQ(ToString({&bias, {}, {}}), "bias");
  EXPECT_EQ(ToString({nullptr, Activation::kRelu, {}}), "ReLU");
  EXPECT_EQ(ToString({&bias, Activation::kTanh, {3, 2, true}}),
            "bias, tanh and max pooling of 3x3 with stride 2, rounded up");
  EXPECT_EQ((Epilogue{nullptr, Activation::kTanh, {2, 2, false}})
                .output_elements({10, 1, 70, 71, 12, 5}),
            10 * 12 * 33 * 33);
}

TEST(Epilogue, RefusesWindowsOutsideOfTheOutput) {
  const Problem problem = {1, 1, 9, 8, 1, 3};  // output 7x6
  const auto check = [&](int size, int stride, bool ceil) {
    return CheckEpilogue(problem, {nullptr, {}, {size, stride, ceil}});
  };
  EXPECT_TRUE(CheckEpilogue(problem, {}).ok());
  EXPECT_TRUE(check(6, 1, false).ok());
  EXPECT_TRUE(check(1, 6, false).ok());
  for (const absl::Status& status : {check(-1, 1, false), check(2, 0, false),
                                     check(7, 1, false), check(1, 6, true)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("expected windows within the output of 7x6"));
  }
  EXPECT_THAT(std::string(check(7, 1, false).message()),
              HasSubstr("max pooling of 7x7 with stride 1"));
}

TEST(Epilogue, IsComputedOrDeclinedWithTheReason) {
  const Problem problem = {1, 1, 9, 8, 1, 3};
  const Epilogue pooled = {nullptr, Activation::kTanh, {2, 2, false}};
  const absl::Status status = (*FindVariant(Backend::kCpu, "naive"))
                                  ->Create(problem, {}, pooled)
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("naive fuses no epilogue, and so not tanh and max"));
  const Variant& fusing = **FindVariant(Backend::kCpu, "dense_lanes");
  EXPECT_TRUE(fusing.Check(problem, {}, pooled).ok());
  EXPECT_EQ(fusing.Check(problem, {}, {nullptr, {}, {7, 1, false}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(fusing.Check({0, 1, 9, 8, 1, 3}, {}, pooled).ok());
}

TEST(Reference, FollowsTheDefinition) {
  // One 3x4 image of two channels, one 2x2 filter, worked out by hand.
  const std::vector<float> x = {1, 2,  3, 4,  5, 6, 7, 8, 9, 10, 11, 12,
                                0, -1, 0, -1, 1, 1, 1, 1, 2, 0,  2,  0};
  const std::vector<float> k = {1, 10, 100, 1000, 1, 0, 0, 2};
  Workers workers(2);
  const std::vector<double> y =
      ReferenceConvolution({1, 2, 3, 4, 1, 2}, x.data(), k.data(), workers);
  // The first: 1 + 20 + 500 + 6000 from channel 0, 0 + 2 * 1 from channel 1.
  EXPECT_EQ(y, (std::vector<double>{6521 + 2, 7632 + 1, 8743 + 2, 10965 + 1,
                                    12076 + 5, 13187 + 1}));
}

TEST(RelativeError, NanAndInfinityPassNoBound) {
  const std::vector<double> reference = {1, 2};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> right = {1, 2}, wrong = {1, nan}, off = {1, 2.5};
  EXPECT_EQ(RelativeError(right.data(), reference), 0);
  EXPECT_FALSE(RelativeError(wrong.data(), reference) <= 1e9);
  EXPECT_DOUBLE_EQ(RelativeError(off.data(), reference), 0.5 / std::sqrt(5));
  EXPECT_FALSE(RelativeError(off.data(), {0, 0}) <= 1e9);
}

TEST(Variants, NamesAreUniqueAndDescribed) {
  std::set<std::pair<Backend, std::string>> seen;
  for (const Variant* variant : Variants()) {
    EXPECT_TRUE(seen.emplace(variant->backend, variant->name).second);
    EXPECT_GT(std::string(variant->summary).size(), 20u) << variant->name;
    EXPECT_GT(std::string(variant->reason).size(), 20u) << variant->name;
    EXPECT_EQ(*FindVariant(variant->backend, variant->name), variant);
  }
}

TEST(Variants, RungsCountFromOneOnEachBackend) {
  EXPECT_EQ(Rung(**FindVariant(Backend::kCpu, "naive")), 1);
  std::map<Backend, int> last;
  for (const Variant* variant : Variants()) {
    EXPECT_EQ(Rung(*variant), ++last[variant->backend]) << variant->name;
  }
}

// Networks take a variant that pools for many images as it is, and an operation
// one that loads padding: nothing else asks whether it may.
TEST(Variants, WhatTheyDoForOthersTheyMayDo) {
  std::set<std::string> load_padding, pool;
  for (const Variant* variant : Variants()) {
    SCOPED_TRACE(variant->name);
    EXPECT_GE(variant->fewest_pooled_images, 0);
    if (variant->make_padded != nullptr) {
      EXPECT_EQ(variant->backend, Backend::kCuda);
      load_padding.insert(variant->name);
    }
    if (variant->fewest_pooled_images == 0) continue;
    EXPECT_EQ(variant->backend, Backend::kCuda);
    EXPECT_EQ(variant->accuracy, AccuracyClass::kFp32);
    EXPECT_TRUE(variant->recordable);
    EXPECT_NE(variant->fuses, nullptr);
    pool.insert(variant->name);
  }
  // A build without the toolkit has no variants on a GPU.
  if (!FindVariant(Backend::kCuda, "tensor_wgmma").ok()) return;
  EXPECT_EQ(load_padding, std::set<std::string>(
                              {"few_images", "tensor_split", "tensor_strips",
                               "tensor_wgmma", "wgmma_strips"}));
  EXPECT_EQ(pool, std::set<std::string>({"tensor_wgmma"}));
}

TEST(Variants, UnknownNamesListTheKnown) {
  const absl::Status status = FindVariant(Backend::kCpu, "opt2").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'opt2'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("im2col_eigen"));
}

TEST(FastestVariant, OnTheCpuIsTheLeastEstimate) {
  for (const Problem& problem :
       {Problem{1, 1, 28, 28, 50, 5}, Problem{7, 3, 9, 30, 2, 1}}) {
    const auto variant = FastestVariant(Backend::kCpu, problem);
    ASSERT_TRUE(variant.ok()) << variant.status();
    EXPECT_EQ((*variant)->backend, Backend::kCpu);
    EXPECT_EQ((*variant)->accuracy, AccuracyClass::kFp32);
    const absl::StatusOr<double> least =
        (*variant)->estimate_ns(problem, Resources());
    ASSERT_TRUE(least.ok()) << least.status();
    for (const Variant* other : Variants()) {
      if (other->backend != Backend::kCpu || other->estimate_ns == nullptr ||
          other->accuracy != AccuracyClass::kFp32) {
        continue;
      }
      EXPECT_LE(*least,
                other->estimate_ns(problem, Resources()).value_or(*least))
          << other->name;
    }
  }
}

TEST(FastestVariant, AsksWhatStandsAroundCandidates) {
  const Problem problem = {7, 3, 9, 30, 2, 1};
  const auto fastest = FastestVariant(Backend::kCpu, problem);
  ASSERT_TRUE(fastest.ok()) << fastest.status();
  std::set<const Variant*> asked;
  EXPECT_EQ(
      FastestVariant(Backend::kCpu, problem, Resources(), AccuracyClass::kFp32,
                     [&](const Variant& variant) {
                       asked.insert(&variant);
                       return 1e6;
                     })
          .value(),
      *fastest);
  EXPECT_EQ(asked.count(*fastest), 1u);
  for (const Variant* variant : asked) {
    EXPECT_EQ(variant->backend, Backend::kCpu);
    EXPECT_NE(variant->estimate_ns, nullptr) << variant->name;
  }
  EXPECT_EQ(
      FastestVariant(Backend::kCpu, problem, Resources(), AccuracyClass::kFp32,
                     [](const Variant&) -> absl::StatusOr<double> {
                       return absl::InternalError("no driver");
                     })
          .status()
          .code(),
      absl::StatusCode::kInternal);
}

TEST(FastestVariant, OnAGpuIsOfClassFp32AndTakesTheProblem) {
  if (!FindVariant(Backend::kCuda, "naive").ok()) {
    GTEST_SKIP() << "built without CUDA";
  }
  if (const auto device = cuda::FindDevice(); !device.ok()) {
    EXPECT_EQ(FastestVariant(Backend::kCuda, {1000, 1, 70, 70, 12, 5})
                  .status()
                  .code(),
              absl::StatusCode::kUnavailable);
    GTEST_SKIP() << device.status().message();
  }
  for (const Problem& problem :
       {Problem{1000, 1, 70, 70, 12, 5}, Problem{1000, 12, 33, 33, 24, 5},
        Problem{1, 1, 70, 70, 12, 5}, Problem{1, 12, 33, 33, 24, 5},
        Problem{7, 17, 9, 30, 2, 1}, Problem{1, 1, 3000, 3000, 2, 11}}) {
    const auto variant = FastestVariant(Backend::kCuda, problem);
    ASSERT_TRUE(variant.ok()) << variant.status();
    EXPECT_EQ((*variant)->backend, Backend::kCuda);
    EXPECT_EQ((*variant)->accuracy, AccuracyClass::kFp32);
    EXPECT_TRUE((*variant)->supports(problem, Resources()).ok());
  }
  // What stands around a variant counts as its own time does.
  const Problem problem = {1000, 1, 70, 70, 12, 5};
  const auto fastest = FastestVariant(Backend::kCuda, problem);
  ASSERT_TRUE(fastest.ok()) << fastest.status();
  const auto other = FastestVariant(
      Backend::kCuda, problem, Resources(), AccuracyClass::kFp32,
      [&](const Variant& one) { return &one == *fastest ? 1e12 : 0; });
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(*other, *fastest);
}

}  // namespace
}  // namespace convlab
