// Compares every variant with the float64 reference, on the course's layers and
// on the shapes where indexing goes wrong. The output is poisoned before each
// run.
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/host_run.h"
#include "kernels/convolution/checking/parity_problems.h"
#include "kernels/convolution/checking/parity_testing.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/variants.h"
#include "kernels/simd/cpu_target.h"

namespace convlab {
namespace {

using Case = std::tuple<const Variant*, Problem, CpuTarget>;

// All problems for all variants, with each instruction set if a variant has
// code for several. The variants of one problem are adjacent, so that its
// tensors are made once.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
    for (const Problem& problem : ParityProblems(backend)) {
      for (const Variant* variant : Variants()) {
        if (variant->backend != backend) continue;
        for (const CpuTarget target : SupportedCpuTargets()) {
          cases.emplace_back(variant, problem, target);
          if (!variant->by_cpu_target) break;
        }
      }
    }
  }
  return cases;
}

class Parity : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto& [variant, problem, target] = GetParam();
    SkipUnlessSupported(*variant, problem);
    ASSERT_TRUE(ForceCpuTarget(Name(target)).ok());
  }

  void TearDown() override { ASSERT_TRUE(ForceCpuTarget("auto").ok()); }

  // Returns y of the variant's second run, which must not depend on the first.
  std::vector<float> Run(const Tensors& tensors, bool deterministic) {
    const Variant* const variant = std::get<0>(GetParam());
    const Problem& problem = std::get<1>(GetParam());
    auto y = RunOnHostTensors(*variant, problem, TestResources(), tensors.x,
                              tensors.k, 2, deterministic);
    EXPECT_TRUE(y.ok()) << y.status();
    if (!y.ok()) {
      return std::vector<float>(problem.output_elements(),
                                std::numeric_limits<float>::quiet_NaN());
    }
    return *std::move(y);
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
    EXPECT_LE(RelativeError(y.data(), tensors.y), MaxError(*variant, problem));
    return;
  }
  for (size_t i = 0; i < y.size(); ++i) {
    if (y[i] != tensors.y[i]) {
      FAIL() << "output element " << i << " is " << y[i] << " instead of "
             << tensors.y[i];
    }
  }
}

TEST_P(Parity, RandomFloatsStayInTheAccuracyClass) {
  const Variant* const variant = std::get<0>(GetParam());
  const Problem& problem = std::get<1>(GetParam());
  const Tensors& tensors = TensorsOf(problem, 0);
  // Atomic additions may happen in another order and round differently.
  const std::vector<float> y = Run(tensors, false);
  EXPECT_LE(RelativeError(y.data(), tensors.y), MaxError(*variant, problem));
}

std::string CaseName(const ::testing::TestParamInfo<Parity::ParamType>& info) {
  const auto& [variant, problem, target] = info.param;
  return absl::StrCat(
      Name(variant->backend), "_", variant->name, "_",
      variant->by_cpu_target ? absl::StrCat(Name(target), "_") : "",
      absl::StrReplaceAll(ToString(problem), {{" ", "_"}, {"=", ""}}), "_",
      info.index);
}

INSTANTIATE_TEST_SUITE_P(AllVariants, Parity, ::testing::ValuesIn(Cases()),
                         CaseName);

}  // namespace
}  // namespace convlab
