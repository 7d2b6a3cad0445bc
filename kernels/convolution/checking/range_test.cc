// Tests operands of any scale, infinities and NaN with the variants that scale
// their operands but are not of class fp32, for which contract_test.cc does;
// and tensors of any alignment with all that scale.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/checking/host_run.h"
#include "kernels/convolution/checking/parity_testing.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

// The variants keep their class for operands of any scale, and have infinities
// and NaN where the reference has them.
class Range : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto variant = FindVariant(Backend::kCuda, GetParam());
    if (!variant.ok()) GTEST_SKIP() << "built without CUDA";
    variant_ = *variant;
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    absl::Status supported;
    for (const Problem& problem : kProblems) {
      const absl::Status status = variant_->supports(problem, Resources());
      if (status.ok()) problems_.push_back(problem);
      supported.Update(status);
    }
    if (problems_.empty()) GTEST_SKIP() << supported.message();
  }

  // Runs the variant and compares each image on its own with the reference: NaN
  // and infinities must be in the same places, and the error of the rest within
  // the class.
  void ExpectReference(const Problem& problem, const std::vector<float>& x,
                       const std::vector<float>& k) {
    const auto y =
        RunOnHostTensors(*variant_, problem, TestResources(), x, k, 2);
    ASSERT_TRUE(y.ok()) << y.status();
    const std::vector<double> reference =
        ReferenceConvolution(problem, x.data(), k.data(), TestWorkers());
    const size_t image = reference.size() / problem.batch;
    for (int64_t b = 0; b < problem.batch; ++b) {
      std::vector<float> got;
      std::vector<double> expected;
      for (size_t i = b * image; i < (b + 1) * image; ++i) {
        if (std::isfinite(reference[i])) {
          got.push_back((*y)[i]);
          expected.push_back(reference[i]);
        } else if (std::isnan(reference[i])) {
          ASSERT_TRUE(std::isnan((*y)[i])) << "element " << i;
        } else {
          ASSERT_EQ((*y)[i], reference[i]) << "element " << i;
        }
      }
      EXPECT_LE(RelativeError(got.data(), expected),
                MaxError(*variant_, problem))
          << ToString(problem) << ", image " << b;
    }
  }

  // One and several channels, whole images and tiles, rows of even and odd
  // length, a few images and many.
  static constexpr Problem kProblems[] = {
      {5, 1, 20, 22, 6, 5},  {5, 1, 21, 23, 6, 7},    {5, 1, 30, 41, 6, 9},
      {5, 6, 22, 22, 16, 5}, {2, 3, 90, 131, 7, 4},   {2, 1, 90, 131, 7, 4},
      {5, 3, 21, 23, 6, 7},  {700, 4, 20, 23, 17, 7}, {150, 1, 41, 39, 7, 5},
      {5, 2, 2, 2, 3, 2},    {3, 1, 4, 2, 3, 2}};

  const Variant* variant_ = nullptr;
  std::vector<Problem> problems_;  // supported by the variant
};

TEST_P(Range, OneOperandMayHaveAnyScale) {
  for (const Problem& problem : problems_) {
    const Tensors& tensors = TensorsOf(problem, 0);
    for (const float scale : {1e-20f, 1e-12f, 1e-6f, 1e6f, 1e12f, 1e20f}) {
      SCOPED_TRACE(scale);
      const auto scaled = [&](std::vector<float> values) {
        for (float& value : values) value *= scale;
        return values;
      };
      ExpectReference(problem, scaled(tensors.x), tensors.k);
      ExpectReference(problem, tensors.x, scaled(tensors.k));
    }
  }
}

TEST_P(Range, OppositeScalesOfBothOperandsCancel) {
  for (const Problem& problem : problems_) {
    const Tensors& tensors = TensorsOf(problem, 0);
    for (const float scale : {1e-36f, 1e36f}) {
      SCOPED_TRACE(scale);
      std::vector<float> x = tensors.x, k = tensors.k;
      for (float& value : x) value *= scale;
      for (float& value : k) value /= scale;
      ExpectReference(problem, x, k);
    }
  }
}

TEST_P(Range, EveryImageHasItsOwnScale) {
  for (const Problem& problem : problems_) {
    const Tensors& tensors = TensorsOf(problem, 0);
    std::vector<float> x = tensors.x;
    const int64_t image = x.size() / problem.batch;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = std::ldexp(x[i], static_cast<int>(i / image) * 23 - 40);
    }
    ExpectReference(problem, x, tensors.k);
  }
}

TEST_P(Range, InfinitiesAndNanAreWhereTheReferenceHasThem) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Problem& problem : problems_) {
    const Tensors& tensors = TensorsOf(problem, 0);
    // A zero weight times an infinity is NaN.
    std::vector<float> k = tensors.k;
    k[1] = 0;
    std::vector<float> x = tensors.x;
    x[x.size() / 2] = kInfinity;
    ExpectReference(problem, x, k);
    x[x.size() / 3] = -kInfinity;
    x[x.size() - 1] = kNan;
    ExpectReference(problem, x, k);
    k[k.size() / 2] = -kInfinity;
    ExpectReference(problem, tensors.x, k);
    k[k.size() - 1] = kNan;
    ExpectReference(problem, tensors.x, k);
  }
}

class Alignment : public Range {};

TEST_P(Alignment, TensorsNeedNoMoreAlignmentThanAFloats) {
  for (const Problem& problem : problems_) {
    const Tensors& tensors = TensorsOf(problem, 8);
    const auto device = Upload(tensors, /*offset=*/1);
    ASSERT_TRUE(device.ok()) << device.status();
    auto convolution = variant_->Create(problem, TestResources());
    ASSERT_TRUE(convolution.ok()) << convolution.status();
    const absl::Status ran =
        (*convolution)
            ->Run(device->x.floats() + 1, device->k.floats() + 1,
                  device->y.floats() + 1, /*stream=*/nullptr);
    ASSERT_TRUE(ran.ok()) << ran;
    std::vector<float> got(tensors.y.size() + 1);
    ASSERT_TRUE(
        cuda::CopyToHost(got.data(), device->y.data(), device->y.bytes()).ok());
    EXPECT_TRUE(std::isnan(got[0])) << "written before the output";
    EXPECT_LE(RelativeError(got.data() + 1, tensors.y),
              MaxError(*variant_, problem))
        << ToString(problem);
  }
}

std::string RangeName(const ::testing::TestParamInfo<const char*>& info) {
  return info.param;
}

INSTANTIATE_TEST_SUITE_P(ScaledVariants, Range, ::testing::Values("wgmma_fp16"),
                         RangeName);
INSTANTIATE_TEST_SUITE_P(ScaledVariants, Alignment,
                         ::testing::Values("few_images", "tensor_split",
                                           "tensor_strips", "tensor_wgmma",
                                           "wgmma_fp16", "wgmma_strips"),
                         RangeName);

}  // namespace
}  // namespace convlab
