// Every variant against the float64 reference, on the course's layers and on
// the shapes where indexing goes wrong. The output is poisoned before each run.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "gtest/gtest.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/host_run.h"
#include "kernels/convolution/reference.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

std::vector<Problem> Problems() {
  std::vector<Problem> problems;
  for (const Network& network : Networks()) {
    const std::vector<StageShape> shapes = network.StageShapes();
    for (size_t i = 0; i < shapes.size(); ++i) {
      const ConvolutionStage& stage = network.stages[i];
      for (const int64_t batch : {1, 3}) {
        problems.push_back({batch, stage.input_channels, shapes[i].input_size,
                            shapes[i].input_size, stage.output_channels,
                            stage.kernel_size});
      }
    }
  }
  const Problem odd[] = {
      {1, 1, 1, 1, 1, 1},     // nothing but one product
      {2, 3, 9, 9, 4, 1},     // K = 1
      {3, 2, 7, 7, 5, 7},     // H = W = K: one output position
      {2, 4, 5, 31, 3, 5},    // one output row
      {2, 4, 31, 5, 3, 5},    // one output column
      {2, 3, 13, 40, 6, 3},   // non-square images
      {2, 3, 40, 13, 6, 4},   // and an even kernel
      {2, 17, 12, 12, 8, 3},  // C = 17
      {2, 6, 20, 20, 1, 5},   // M = 1
      {2, 3, 16, 16, 50, 5},  // M = 50
      {1, 64, 10, 10, 128, 3}, {1, 2, 30, 30, 3, 11},
      {1, 1, 300, 301, 2, 5},  // an image of many blocks
      {1, 1500, 8, 9, 2, 7},   // one unrolled column exceeds the workspace
      {257, 1, 6, 6, 2, 3},    // many small images
  };
  problems.insert(problems.end(), std::begin(odd), std::end(odd));
  return problems;
}

// More workers than cores, so that a race has a chance to show.
Workers& TestWorkers() {
  static Workers* const workers = new Workers(3);
  return *workers;
}

class Parity
    : public ::testing::TestWithParam<std::tuple<const Variant*, Problem>> {
 protected:
  void SetUp() override {
    if (std::get<0>(GetParam())->backend != Backend::kCuda) return;
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    const absl::Status supported =
        std::get<0>(GetParam())->supports(std::get<1>(GetParam()));
    // A variant may decline a problem, but it has to say why.
    if (!supported.ok()) {
      EXPECT_GT(supported.message().size(), 10u);
      GTEST_SKIP() << supported.message();
    }
  }

  // y of the variant, which ran twice; nothing may be left over from the first
  // run.
  std::vector<float> Run(const std::vector<float>& x,
                         const std::vector<float>& k, bool deterministic) {
    const auto& [variant, problem] = GetParam();
    Resources resources;
    resources.workers = &TestWorkers();
    auto y =
        RunOnHostTensors(*variant, problem, resources, x, k, 2, deterministic);
    EXPECT_TRUE(y.ok()) << y.status();
    if (!y.ok()) {
      return std::vector<float>(problem.output_elements(),
                                std::numeric_limits<float>::quiet_NaN());
    }
    return *std::move(y);
  }

  template <typename Distribution>
  std::vector<float> Random(int64_t count, Distribution distribution) {
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }

  std::mt19937 generator_{20261121};
};

// Sums of products of small integers are exact in float32 in any order; of very
// small ones also where products are summed in half precision.
TEST_P(Parity, IntegersAreExact) {
  const auto& [variant, problem] = GetParam();
  ASSERT_LT(
      problem.channels * problem.kernel_size * problem.kernel_size * 8 * 4,
      1 << 24);
  const bool half = variant->accuracy == AccuracyClass::kFp16 ||
                    variant->accuracy == AccuracyClass::kBf16;
  const int largest = half ? 2 : 8;
  std::uniform_int_distribution<int> inputs(-largest, largest);
  std::uniform_int_distribution<int> weights(-largest / 2, largest / 2);
  const std::vector<float> x = Random(problem.input_elements(), inputs);
  const std::vector<float> k = Random(problem.kernel_elements(), weights);
  const std::vector<float> y = Run(x, k, true);
  const std::vector<double> reference =
      ReferenceConvolution(problem, x.data(), k.data(), TestWorkers());
  for (size_t i = 0; i < reference.size(); ++i) {
    ASSERT_EQ(y[i], reference[i]) << "at output element " << i;
  }
}

TEST_P(Parity, RandomFloatsStayInTheAccuracyClass) {
  const auto& [variant, problem] = GetParam();
  std::uniform_real_distribution<float> distribution(-1, 1);
  const std::vector<float> x = Random(problem.input_elements(), distribution);
  const std::vector<float> k = Random(problem.kernel_elements(), distribution);
  // Atomic additions may come in another order and round differently.
  const std::vector<float> y = Run(x, k, false);
  // The classes are stated for sums like the course's. The rounding errors of a
  // longer float32 sum grow with the square root of its length.
  const double terms =
      problem.channels * problem.kernel_size * problem.kernel_size;
  const double length = std::max(1.0, std::sqrt(terms / 2048));
  EXPECT_LE(
      RelativeError(y.data(), ReferenceConvolution(problem, x.data(), k.data(),
                                                   TestWorkers())),
      MaxRelativeError(variant->accuracy) * length);
}

std::string CaseName(const ::testing::TestParamInfo<Parity::ParamType>& info) {
  const auto& [variant, problem] = info.param;
  return absl::StrCat(
      Name(variant->backend), "_", variant->name, "_",
      absl::StrReplaceAll(ToString(problem), {{" ", "_"}, {"=", ""}}), "_",
      info.index);
}

INSTANTIATE_TEST_SUITE_P(
    AllVariants, Parity,
    ::testing::Combine(::testing::ValuesIn(Variants().begin(),
                                           Variants().end()),
                       ::testing::ValuesIn(Problems())),
    CaseName);

}  // namespace
}  // namespace convlab
