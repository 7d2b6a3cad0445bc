// Compares the variants that fuse an epilogue with the float64 reference
// followed by bias, activation and pooling, on the problems of parity_test.
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "common/math/rounding.h"
#include "common/network/layer.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/host_run.h"
#include "kernels/convolution/checking/parity_testing.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

// Windows of the networks and others: on outputs of odd size the last row or
// column is left out, or has a window of its own.
constexpr MaxPool kPools[] = {
    {}, {2, 2, false}, {2, 2, true}, {3, 2, false}, {4, 4, true}};

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

class FusedEpilogue : public VariantTest {
 protected:
  const Variant& variant() const { return *std::get<0>(GetParam()); }
  const Problem& problem() const { return std::get<1>(GetParam()); }

  // Whether the epilogue is valid and the variant fuses it. If not, it says
  // why.
  bool Fuses(const Epilogue& epilogue) {
    const absl::Status status =
        variant().Check(problem(), TestResources(), epilogue);
    if (status.ok()) return true;
    EXPECT_EQ(absl::IsInvalidArgument(status),
              !CheckEpilogue(problem(), epilogue).ok());
    EXPECT_GT(status.message().size(), 10u);
    reason_ = std::string(status.message());
    return false;
  }

  // y of two runs, which must be equal.
  std::vector<float> Run(const Epilogue& epilogue, const std::vector<float>& x,
                         const std::vector<float>& k) {
    ++runs_;
    auto y = RunOnHostTensors(variant(), problem(), TestResources(), x, k, 2,
                              /*deterministic=*/true, epilogue);
    EXPECT_TRUE(y.ok()) << y.status();
    if (y.ok()) return *std::move(y);
    return std::vector<float>(epilogue.output_elements(problem()),
                              std::numeric_limits<float>::quiet_NaN());
  }

  void SkipIfNothingRan() {
    if (runs_ == 0) GTEST_SKIP() << reason_;
  }

  int runs_ = 0;
  std::string reason_;
};

// Integers, without an activation or with ReLU, and an integer bias for each
// second pool.
TEST_P(FusedEpilogue, IntegersAreExact) {
  ASSERT_TRUE(variant().exact_on_integers) << "expected an error bound here";
  const Tensors& tensors = TensorsOf(problem(), 8);
  std::vector<float> bias(problem().filters);
  for (size_t m = 0; m < bias.size(); ++m) bias[m] = 5.f * (m % 7) - 14;
  bool biased = false;
  for (const MaxPool& pool : kPools) {
    for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
      const Epilogue epilogue = {biased ? bias.data() : nullptr, activation,
                                 pool};
      if (epilogue.empty() || !Fuses(epilogue)) continue;
      SCOPED_TRACE(ToString(epilogue));
      const std::vector<float> y = Run(epilogue, tensors.x, tensors.k);
      const std::vector<double> expected =
          ReferenceEpilogue(problem(), epilogue, tensors.y, TestWorkers());
      ASSERT_EQ(y.size(), expected.size());
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i], expected[i]) << "output element " << i;
      }
    }
    biased = !biased;
  }
  SkipIfNothingRan();
}

// Neither tanh nor the maximum enlarges a difference, so the error is at most
// that of the convolution. A window's maximum has the error of one of its
// elements, which may count in as many windows as overlap there; rounding of
// the bias and of tanh adds 4 ulp.
TEST_P(FusedEpilogue, TanhOfFloatsStaysInTheAccuracyClass) {
  const Tensors& tensors = TensorsOf(problem(), 0);
  // The power of two that brings sums into the range where tanh is not 1.
  const double terms =
      static_cast<double>(problem().kernel_elements()) / problem().filters;
  const int exponent = -static_cast<int>(std::log2(terms) / 2);
  std::vector<float> k = tensors.k;
  for (float& value : k) value = std::ldexp(value, exponent);
  std::vector<double> sums = tensors.y;
  for (double& value : sums) value = std::ldexp(value, exponent);
  const double convolution_norm = Norm(sums);
  std::vector<float> bias(problem().filters);
  for (size_t m = 0; m < bias.size(); ++m) bias[m] = 0.1f * (m % 7) - 0.25f;
  bool biased = true;
  for (const MaxPool& pool : kPools) {
    const Epilogue epilogue = {biased ? bias.data() : nullptr,
                               Activation::kTanh, pool};
    biased = !biased;
    if (!Fuses(epilogue)) continue;
    SCOPED_TRACE(ToString(epilogue));
    const std::vector<float> y = Run(epilogue, tensors.x, k);
    const std::vector<double> expected =
        ReferenceEpilogue(problem(), epilogue, sums, TestWorkers());
    ASSERT_EQ(y.size(), expected.size());
    const double overlap =
        pool.size == 0 ? 1 : CeilDivide(pool.size, pool.stride);
    constexpr double kUlp = 0x1p-23;
    EXPECT_LE(RelativeError(y.data(), expected),
              MaxError(variant(), problem()) * convolution_norm * overlap /
                      Norm(expected) +
                  4 * kUlp);
  }
  SkipIfNothingRan();
}

// Infinities and NaN in an image, and operands of other scales, for which the
// kernels with tensor cores have a path of their own.
TEST_P(FusedEpilogue, InfinitiesAndNanAreWhereTheReferenceHasThem) {
  if (problem().output_elements() > 1000000) GTEST_SKIP() << "slow";
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensors& tensors = TensorsOf(problem(), 8);
  std::vector<float> x = tensors.x;
  x[x.size() / 3] = -kInfinity;
  x[x.size() / 2] = kInfinity;
  x[x.size() - 1] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<double> sums = ReferenceConvolution(
      problem(), x.data(), tensors.k.data(), TestWorkers());
  for (const MaxPool& pool : kPools) {
    const Epilogue epilogue = {nullptr, Activation::kRelu, pool};
    if (!Fuses(epilogue)) continue;
    SCOPED_TRACE(ToString(epilogue));
    const std::vector<float> y = Run(epilogue, x, tensors.k);
    const std::vector<double> expected =
        ReferenceEpilogue(problem(), epilogue, sums, TestWorkers());
    for (size_t i = 0; i < y.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(y[i])) << "output element " << i;
      } else {
        ASSERT_EQ(y[i], expected[i]) << "output element " << i;
      }
    }
  }
  SkipIfNothingRan();
}

INSTANTIATE_TEST_SUITE_P(
    AllVariants, FusedEpilogue,
    ::testing::ValuesIn(VariantCases([](const Variant& variant) {
      return variant.fuses != nullptr;
    })),
    VariantCaseName);

}  // namespace
}  // namespace convlab
