// Tests that bench finds out variants that cheat, and measures on.
#include "tools/bench/cheats.h"

#include <string>
#include <vector>

#include "common/parallel/parallel.h"
#include "common/record/bench_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "tools/bench/cpu_bench.h"
#include "tools/bench/gpu_bench.h"
#include "tools/bench/report.h"

namespace convlab {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// 20 images, compared completely.
const Problem kSmall = {20, 3, 20, 20, 8, 5};
// More work than is compared completely on the CPU.
const Problem kLarge = {600, 4, 28, 28, 16, 5};

struct Outcome {
  BenchRecord record;
  absl::Status status;      // why the bench ended early
  absl::Status of_program;  // what the program would end with
};

Outcome Bench(Backend backend, const Problem& problem,
              std::vector<const Variant*> variants,
              const char* data = "uniform") {
  Workers workers(2);
  BenchOptions options;
  options.backend = backend;
  options.layers = {{"layer", problem}};
  options.variants = std::move(variants);
  options.peers = false;
  options.classes = {AccuracyClass::kFp32};
  options.data = *FindDataFamily(data);
  options.rule.min_samples = 4;
  options.rule.max_samples = 4;
  options.rule.max_seconds = 3;
  Outcome outcome;
  outcome.record.check_seed = 1;
  Report report(options, outcome.record);
  outcome.status = backend == Backend::kCpu
                       ? BenchCpu(options, workers, outcome.record, report)
                       : BenchGpu(options, workers, outcome.record, report);
  outcome.of_program = report.Outcome();
  return outcome;
}

const Variant* Honest(Backend backend) {
  return *FindVariant(backend, backend == Backend::kCpu ? "blocked" : "naive");
}

// Runs all cheats and an honest variant after them: this one has the only row.
void ExpectFoundOut(Backend backend, const char* data) {
  SCOPED_TRACE(data);
  std::vector<const Variant*> variants;
  for (const Cheat& cheat : Cheats(backend)) variants.push_back(&cheat.variant);
  variants.push_back(Honest(backend));
  const Outcome outcome = Bench(backend, kSmall, variants, data);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.of_program.code(), absl::StatusCode::kInternal);
  ASSERT_EQ(outcome.record.rows.size(), 1u);
  EXPECT_EQ(outcome.record.rows[0].variant, Honest(backend)->name);
  EXPECT_GE(outcome.record.rows[0].samples, 4);
  for (const Cheat& cheat : Cheats(backend)) {
    SCOPED_TRACE(cheat.variant.name);
    const BenchOmission* found = nullptr;
    for (const BenchOmission& omission : outcome.record.omissions) {
      if (omission.variant == cheat.variant.name) found = &omission;
    }
    ASSERT_NE(found, nullptr);
    EXPECT_THAT(found->reason, ContainsRegex(cheat.reason));
  }
  EXPECT_EQ(outcome.record.omissions.size(), Cheats(backend).size());
}

TEST(CheatsOnTheCpu, AreFoundOutOnAllData) {
  ExpectFoundOut(Backend::kCpu, "uniform");
  ExpectFoundOut(Backend::kCpu, "filter-scales");
}

TEST(CheatsOnTheCpu, OneElementIsFoundInTheSampleThatWasDrawn) {
  const Outcome other = Bench(
      Backend::kCpu, kLarge, {&OneWrongElement(Backend::kCpu)}, "image-scales");
  ASSERT_EQ(other.record.omissions.size(), 1u);
  EXPECT_THAT(other.record.omissions[0].reason, HasSubstr("whole output"));
  for (const Problem& problem : {kSmall, kLarge}) {
    const Outcome outcome =
        Bench(Backend::kCpu, problem, {&OneWrongElement(Backend::kCpu)});
    EXPECT_FALSE(outcome.of_program.ok());
    ASSERT_EQ(outcome.record.omissions.size(), 1u);
    EXPECT_THAT(outcome.record.omissions[0].reason, HasSubstr("sample "));
    EXPECT_THAT(outcome.record.omissions[0].reason, HasSubstr("b=1"));
  }
}

TEST(CheatsOnTheCpu, WhoReturnsBeforeTheWorkIsDoneHasNoRow) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "it writes what is being checked, which is a race";
#endif
  // Either the output is not yet there, or the time is above the ceiling.
  const Outcome outcome = Bench(Backend::kCpu, kLarge, {&ComputesLater()});
  EXPECT_FALSE(outcome.of_program.ok());
  EXPECT_TRUE(outcome.record.rows.empty());
}

TEST(CheatsOnTheCpu, HonestVariantsKeepTheirRows) {
  std::vector<const Variant*> variants;
  for (const Variant* variant : Variants()) {
    if (variant->backend == Backend::kCpu) variants.push_back(variant);
  }
  for (const char* data : {"uniform", "image-scales"}) {
    SCOPED_TRACE(data);
    const Outcome outcome =
        Bench(Backend::kCpu, {12, 3, 14, 13, 5, 3}, variants, data);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_TRUE(outcome.of_program.ok()) << outcome.of_program;
  }
}

TEST(CheatsOnTheGpu, AreFoundOutOnAllData) {
  const auto device = cuda::FindDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  ExpectFoundOut(Backend::kCuda, "uniform");
  ExpectFoundOut(Backend::kCuda, "filter-scales");
}

TEST(CheatsOnTheGpu, OneElementIsFoundInTheSampleThatWasDrawn) {
  const auto device = cuda::FindDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const Outcome outcome =
      Bench(Backend::kCuda, kLarge, {&OneWrongElement(Backend::kCuda)});
  EXPECT_FALSE(outcome.of_program.ok());
  ASSERT_EQ(outcome.record.omissions.size(), 1u);
  EXPECT_THAT(outcome.record.omissions[0].reason, HasSubstr("whole output"));
}

TEST(CheatsOnTheGpu, HonestVariantsKeepTheirRows) {
  const auto device = cuda::FindDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  std::vector<const Variant*> variants;
  for (const Variant* variant : Variants()) {
    if (variant->backend == Backend::kCuda) variants.push_back(variant);
  }
  for (const Problem& problem : {kLarge, Problem{3, 2, 19, 18, 5, 3}}) {
    const Outcome outcome = Bench(Backend::kCuda, problem, variants);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_TRUE(outcome.of_program.ok()) << outcome.of_program;
    EXPECT_GT(outcome.record.rows.size(), 10u);
  }
}

}  // namespace
}  // namespace convlab
