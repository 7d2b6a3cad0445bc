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
#include "kernels/convolution/reference.h"
#include "kernels/convolution/variants.h"

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
  // Runs the variant on x and k; y was poisoned with NaN.
  std::vector<float> Run(const std::vector<float>& x,
                         const std::vector<float>& k) {
    const auto& [variant, problem] = GetParam();
    std::vector<float> y(problem.output_elements(),
                         std::numeric_limits<float>::quiet_NaN());
    Resources resources;
    resources.workers = &TestWorkers();
    auto convolution = variant->Create(problem, resources);
    EXPECT_TRUE(convolution.ok()) << convolution.status();
    if (!convolution.ok()) return y;
    const absl::Status status =
        (*convolution)->Run(x.data(), k.data(), y.data());
    EXPECT_TRUE(status.ok()) << status;
    // Once more: nothing may be left over from the first run.
    const std::vector<float> first = y;
    std::fill(y.begin(), y.end(), std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE((*convolution)->Run(x.data(), k.data(), y.data()).ok());
    EXPECT_EQ(first, y);
    return y;
  }

  template <typename Distribution>
  std::vector<float> Random(int64_t count, Distribution distribution) {
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }

  std::mt19937 generator_{20261121};
};

// Sums of products of small integers are exact in float32 in any order.
TEST_P(Parity, IntegersAreExact) {
  const Problem& problem = std::get<1>(GetParam());
  ASSERT_LT(
      problem.channels * problem.kernel_size * problem.kernel_size * 8 * 4,
      1 << 24);
  std::uniform_int_distribution<int> inputs(-8, 8), weights(-4, 4);
  const std::vector<float> x = Random(problem.input_elements(), inputs);
  const std::vector<float> k = Random(problem.kernel_elements(), weights);
  const std::vector<float> y = Run(x, k);
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
  const std::vector<float> y = Run(x, k);
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
      absl::StrReplaceAll(problem.ToString(), {{" ", "_"}, {"=", ""}}), "_",
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
