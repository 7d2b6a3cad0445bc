#include "tools/judge/attacks/attacks.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "kernels/judge/process/process.h"

namespace convlab {

void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.file; }

namespace {

// Where there is no GPU, its honest kernels are compiled for this one: they
// have to compile before the attacks mean anything, and nvcc takes seconds.
constexpr int kCompiledFor = 90;

class EveryAttack : public testing::TestWithParam<Attack> {};

TEST_P(EveryAttack, GetsItsVerdict) {
  const Attack& attack = GetParam();
  const auto device = cuda::FindDevice();
  if (UsesGpu(attack) && !device.ok() &&
      !absl::StartsWith(attack.file, "gpu/honest_")) {
    GTEST_SKIP() << "neither compiled nor run: " << device.status().message();
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (absl::string_view(attack.phrase) == "clock disagrees") {
    GTEST_SKIP()
        << "a judge that a sanitizer slows down takes longer than what "
           "the attack saves";
  }
  if (absl::string_view(attack.phrase) == "bad_alloc") {
    GTEST_SKIP() << "a sanitizer ends a program that asks for so much";
  }
#endif
  const auto folder = WriteAttackFiles();
  ASSERT_TRUE(folder.ok()) << folder.status();
  const auto kernel = Compile(
      attack, *folder, device.ok() ? device->compute_capability : kCompiledFor);
  if (UsesGpu(attack) && absl::IsUnavailable(kernel.status())) {
    GTEST_SKIP() << kernel.status().message();
  }
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  if (UsesGpu(attack) && !device.ok()) {
    GTEST_SKIP() << "compiled, and not run: " << device.status().message();
  }
  Workers workers(Workers::Available());
  const auto result = Try(attack, *kernel, workers);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->as_expected) << "expected: " << Name(attack.expected)
                                   << ", with '" << attack.phrase << "'\n"
                                   << ToString(result->verdict);
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryAttack, testing::ValuesIn(Attacks()), [](const auto& row) {
      return absl::StrReplaceAll(NameOf(row.param), {{"/", "_"}});
    });

TEST(Table, HasARowForEachFile) {
  std::set<std::string> rows;
  for (const Attack& attack : Attacks()) rows.insert(attack.file);
  EXPECT_EQ(rows.size(), Attacks().size());
  for (const EmbeddedFile& file : AttackFiles()) {
    const absl::string_view name = file.name;
    if (name == "cpu/convolve.h" || name == "gpu/convolve.cuh") continue;
    EXPECT_EQ(rows.erase(std::string(name)), 1) << name;
  }
  EXPECT_TRUE(rows.empty()) << "no such file: " << *rows.begin();
}

TEST(Table, DescribesEachAttack) {
  for (const Attack& attack : Attacks()) {
    const AttackDescription description = Describe(attack);
    EXPECT_FALSE(description.trick.empty()) << attack.file;
    EXPECT_FALSE(description.caught.empty()) << attack.file;
  }
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
