// Every variant of class fp32 keeps the contract of the class: each output, on
// each family of data, and on the data that the search for the worst has found.
#include "kernels/convolution/checking/contract.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/families.h"
#include "kernels/convolution/checking/finds.h"
#include "kernels/convolution/checking/host_run.h"
#include "kernels/convolution/checking/parity_problems.h"
#include "kernels/convolution/checking/parity_testing.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/simd/cpu_target.h"

namespace convlab {
namespace {

// Data of one problem, and their name.
struct ContractCase {
  Backend backend;
  Problem problem;
  std::string name;
  Recipe recipe;
};

void PrintTo(const ContractCase& one, std::ostream* out) {
  *out << ToString(one.problem) << " with " << ToString(one.recipe);
}

// A wrong variant fails in hundreds of cases; so many are reported.
constexpr int kMostFailures = 10;

// Runs all variants of class fp32 that take the problem.
void ExpectContract(const ContractCase& one) {
  static auto* const failures = new std::map<const Variant*, int>;
  const ConvolutionData data = MakeData(one.problem, one.recipe);
  const ContractReference reference(one.problem, data.x.data(), data.k.data(),
                                    TestWorkers());
  for (const Variant* variant : Variants()) {
    if (variant->backend != one.backend ||
        variant->accuracy != AccuracyClass::kFp32 ||
        !variant->supports(one.problem, TestResources()).ok() ||
        (*failures)[variant] >= kMostFailures) {
      continue;
    }
    for (const CpuTarget target : SupportedCpuTargets()) {
      ASSERT_TRUE(ForceCpuTarget(Name(target)).ok());
      const auto y = RunOnHostTensors(*variant, one.problem, TestResources(),
                                      data.x, data.k);
      const absl::Status status =
          y.ok() ? reference.Check(
                       y->data(), variant->name,
                       absl::StrCat(one.name, ": ", ToString(one.recipe)),
                       TestWorkers())
                 : y.status();
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) ++(*failures)[variant];
      if (!variant->by_cpu_target) break;
    }
  }
  ASSERT_TRUE(ForceCpuTarget("auto").ok());
}

// All families, the mixed one with several seeds, and infinities and NaN.
std::vector<ContractCase> CasesOf(Backend backend, const Problem& problem) {
  constexpr uint64_t kSeed = 1;
  std::vector<ContractCase> cases;
  for (const DataFamily& family : DataFamilies()) {
    if (family.recipe == nullptr) continue;
    cases.push_back({backend, problem, family.name, RecipeOf(family, kSeed)});
  }
  for (const char* recipe :
       {"not-finite(1)", "not-finite(9) zeros(5)", "filters-not-finite(1)",
        "filters-not-finite(3)#1 not-finite(2)"}) {
    cases.push_back({backend, problem, "not-finite", *ParseRecipe(recipe)});
  }
  const uint64_t seeds = backend == Backend::kCuda ? 6 : 4;
  // Other mixtures for each problem.
  const uint64_t first = problem.input_elements() + problem.kernel_elements();
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    cases.push_back({backend, problem, "mixed", RandomRecipe(seed)});
  }
  return cases;
}

// Every case of the small problems. The large ones, of which there are for one
// output after the other, share the cases.
std::vector<ContractCase> ContractCases(Backend backend) {
  const int64_t small = backend == Backend::kCuda ? 200'000'000 : 20'000'000;
  constexpr int kShare = 6;
  std::vector<ContractCase> cases;
  int turn = 0;
  for (const Problem& problem : ParityProblems(backend)) {
    const std::vector<ContractCase> all = CasesOf(backend, problem);
    const bool large = problem.flops() > small;
    for (size_t i = large ? turn++ % kShare : 0; i < all.size();
         i += large ? kShare : 1) {
      cases.push_back(all[i]);
    }
  }
  return cases;
}

std::string CaseName(const ::testing::TestParamInfo<ContractCase>& info) {
  return absl::StrCat(absl::StrReplaceAll(info.param.name, {{"-", "_"}}), "_",
                      absl::StrReplaceAll(ToString(info.param.problem),
                                          {{" ", "_"}, {"=", ""}}),
                      "_", info.index);
}

class Contract : public ::testing::TestWithParam<ContractCase> {
 protected:
  void SetUp() override {
    if (GetParam().backend != Backend::kCuda) return;
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }
};

TEST_P(Contract, EachOutputKeepsIt) { ExpectContract(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Cpu, Contract,
                         ::testing::ValuesIn(ContractCases(Backend::kCpu)),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Gpu, Contract,
                         ::testing::ValuesIn(ContractCases(Backend::kCuda)),
                         CaseName);

// On both backends, whichever the find is from.
std::vector<ContractCase> FindCases() {
  std::vector<ContractCase> cases;
  for (const Find& find : CommittedFinds().value_or(std::vector<Find>())) {
    for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
      cases.push_back({backend, find.problem, "find", find.recipe});
    }
  }
  return cases;
}

TEST(Finds, AreRight) {
  const auto finds = CommittedFinds();
  EXPECT_TRUE(finds.ok()) << finds.status();
}

INSTANTIATE_TEST_SUITE_P(Finds, Contract, ::testing::ValuesIn(FindCases()),
                         CaseName);

}  // namespace
}  // namespace convlab
