// Compares every variant with the float64 reference, on the course's layers and
// on the shapes where indexing goes wrong. The output is poisoned before each
// run.
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/checking/host_run.h"
#include "kernels/convolution/checking/parity_testing.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

class Parity : public VariantTest {
 protected:
  void SetUp() override {
    VariantTest::SetUp();
    if (IsSkipped() || Failures() < kMostFailures) return;
    GTEST_SKIP() << kMostFailures << " cases of the variant have failed";
  }

  void TearDown() override {
    VariantTest::TearDown();
    if (HasFailure()) ++Failures();
  }

  // Returns y of the variant's second run, which must not depend on the first.
  std::vector<float> Run(const Tensors& tensors, bool deterministic) {
    const auto& [variant, problem, target] = GetParam();
    auto y = RunOnHostTensors(*variant, problem, TestResources(), tensors.x,
                              tensors.k, 2, deterministic);
    EXPECT_TRUE(y.ok()) << y.status();
    if (!y.ok()) {
      return std::vector<float>(problem.output_elements(),
                                std::numeric_limits<float>::quiet_NaN());
    }
    return *std::move(y);
  }

 private:
  // A wrong variant fails in hundreds of cases, and three say what is wrong:
  // the others would hide them.
  static constexpr int kMostFailures = 3;

  // The number of the variant's cases that have failed.
  static int& Failures() {
    static auto* const failures = new std::map<const Variant*, int>;
    return (*failures)[std::get<0>(GetParam())];
  }
};

// Sums of products of small integers are exact in float32 in any order; of very
// small ones also where products are summed in half precision.
TEST_P(Parity, IntegersAreExact) {
  const Variant* const variant = std::get<0>(GetParam());
  const Problem& problem = std::get<1>(GetParam());
  ASSERT_LT(
      problem.channels * problem.kernel_size * problem.kernel_size * 8 * 4,
      1 << 24);
  const bool half = variant->accuracy == AccuracyClass::kFp16 ||
                    variant->accuracy == AccuracyClass::kBf16;
  const Tensors& tensors = TensorsOf(problem, half ? 2 : 8);
  const std::vector<float> y = Run(tensors, true);
  if (!variant->exact_on_integers) {
    const double max_error = MaxError(*variant, problem);
    EXPECT_LE(RelativeError(y.data(), tensors.y), max_error)
        << Mismatches(problem, tensors, y, max_error);
    return;
  }
  const std::string mismatches =
      Mismatches(problem, tensors, y, /*max_error=*/0);
  EXPECT_TRUE(mismatches.empty()) << mismatches;
}

TEST_P(Parity, RandomFloatsStayInTheAccuracyClass) {
  const Variant* const variant = std::get<0>(GetParam());
  const Problem& problem = std::get<1>(GetParam());
  const Tensors& tensors = TensorsOf(problem, 0);
  // Atomic additions may happen in another order and round differently.
  const std::vector<float> y = Run(tensors, false);
  const double max_error = MaxError(*variant, problem);
  EXPECT_LE(RelativeError(y.data(), tensors.y), max_error)
      << Mismatches(problem, tensors, y, max_error);
}

INSTANTIATE_TEST_SUITE_P(AllVariants, Parity,
                         ::testing::ValuesIn(VariantCases([](const Variant&) {
                           return true;
                         })),
                         VariantCaseName);

}  // namespace
}  // namespace convlab
