// Tests the benchmark as a user runs it.
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/record/bench_record.h"
#include "common/record/network_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/baseline/onednn.h"
#include "kernels/convolution/checking/families.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "tools/bench/network_bench.h"
#include "tools/bench/network_calls.h"
#include "tools/run_program.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;
using ::testing::Not;
using Outcome = ProgramOutcome;

Outcome Bench(const std::string& arguments) {
  return RunProgram("tools/bench/bench " + arguments);
}

std::string Path(const char* name) {
  return absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name);
}

TEST(Bench, Helps) {
  const Outcome outcome = Bench("--help");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("usage: bench [--flags]"));
  EXPECT_THAT(outcome.output, HasSubstr("--layers"));
}

TEST(Bench, ListsVariants) {
  std::string gpu, fp16;
  for (const Variant* variant : Variants()) {
    if (variant->backend != Backend::kCuda) continue;
    const std::string line = absl::StrCat(variant->name, "\n");
    gpu += line;
    if (variant->accuracy == AccuracyClass::kFp16) fp16 += line;
  }
  const Outcome all = Bench("--list --device gpu");
  EXPECT_EQ(all.exit_status, 0);
  EXPECT_EQ(all.output, gpu);
  EXPECT_EQ(Bench("--list --device gpu --class fp16").output, fp16);
  EXPECT_THAT(Bench("--list --device cpu").output,
              HasSubstr("\ndense_lanes\n"));
}

TEST(Bench, MeasuresWholeNetworks) {
  const std::string json = Path("networks.json");
  const Outcome outcome = Bench(absl::StrCat(
      "--network sp19,lenet5 --batch 1,3 --device cpu --threads 2 --samples 4 "
      "--seconds 0.01 --json ",
      json));
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("\nsp19 "));
  EXPECT_THAT(outcome.output, HasSubstr("\nlenet5 "));
  const auto record = ReadNetworkRecord(json);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->device, "cpu");
  EXPECT_EQ(record->threads, 2);
  EXPECT_THAT(record->method, HasSubstr("host clock"));
  EXPECT_THAT(record->method, HasSubstr("random weights"));
  EXPECT_EQ(record->command[0], "bench");
  EXPECT_EQ(record->command[1], "--network");
  ASSERT_EQ(record->rows.size(), 4u);
  for (const NetworkRow& row : record->rows) {
    EXPECT_EQ(row.provider, "convlab");
    EXPECT_EQ(row.path, kHostPath);
    EXPECT_GE(row.samples, 4);
    EXPECT_GT(row.stages_us.size(), 2u);
  }
  EXPECT_EQ(record->rows[3].network, "lenet5");
  EXPECT_EQ(record->rows[3].images, 3);
  EXPECT_EQ(Bench("--network sp19 --batch 1,2,1").exit_status, 2);
  EXPECT_EQ(Bench("--network sp19 --json /nowhere/n.json").exit_status, 2);
  const Outcome unknown = Bench("--network fa91");
  EXPECT_EQ(unknown.exit_status, 2);
  EXPECT_THAT(unknown.output, HasSubstr("fa91"));
  EXPECT_EQ(Bench("--network sp19,sp19").exit_status, 2);
}

TEST(Bench, MeasuresNetworksWithWeightsOfFiles) {
  const std::string json = Path("weights.json");
  const Outcome outcome = Bench(absl::StrCat(
      "--network lenet5 --weights common/weights/models --batch 2 --device cpu "
      "--threads 1 --samples 4 --seconds 0.01 --json ",
      json));
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  const auto record = ReadNetworkRecord(json);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_THAT(record->method, HasSubstr("weights from files"));
  EXPECT_EQ(record->rows.size(), 1u);
  const Outcome missing = Bench("--network lenet5 --weights /nowhere");
  EXPECT_EQ(missing.exit_status, 2);
  EXPECT_THAT(missing.output, HasSubstr("/nowhere/lenet5.safetensors"));
}

TEST(Bench, AnswersOfNetworksAreCompared) {
  // Two images of three classes; float32 cannot tell the second one's.
  const std::vector<float> logits = {1, 8, -4, 5, -5, 5};
  const auto check = [&](CallAnswers answers) {
    return std::string(CheckAnswers(answers, logits, 3).message());
  };
  EXPECT_EQ(check({logits, {1, 0}}), "");
  EXPECT_EQ(check({{}, {1, 2}}), "");
  EXPECT_EQ(check({{1, 8, -4}, {1}}), "");  // of the first image alone
  EXPECT_EQ(check({{}, {1, 1}}),
            "image 1 has the label 1, and layer by layer 0");
  EXPECT_EQ(check({{}, {2, 0}}),
            "image 0 has the label 2, and layer by layer 1");
  EXPECT_EQ(check({{1, 8, -4, 5, -5.001f, 5}, {}}),
            "image 1 has the logit -5.001 for class 1, and layer by layer -5");
  EXPECT_THAT(check({{NAN, 8, -4, 5, -5, 5}, {}}), HasSubstr("logit nan"));
}

TEST(Bench, MeasuresWholeNetworksBesideTheLibrary) {
  const std::string json = Path("gpu_networks.json");
  const Outcome outcome = Bench(absl::StrCat(
      "--network lenet5 --batch 2,100 --device gpu --samples 10 --seconds 0.1 "
      "--json ",
      json));
  if (const auto device = cuda::FindDevice(); !device.ok()) {
    EXPECT_EQ(outcome.exit_status, 3) << outcome.output;
    GTEST_SKIP() << device.status().message();
  }
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  const auto record = ReadNetworkRecord(json);
  ASSERT_TRUE(record.ok()) << record.status();
  for (const int64_t images : {2, 100}) {
    for (const char* path : {kHostPath, kDevicePath, kFloatsPath}) {
      EXPECT_NE(FindRow(*record, "lenet5", images, "convlab", path), nullptr);
      // Without the library its rows are left out, with the reason.
      EXPECT_NE(FindRow(*record, "lenet5", images, "cudnn", path) != nullptr,
                !record->omissions.empty());
    }
  }
}

TEST(Bench, RunsOnceForAProfiler) {
  const Outcome outcome =
      Bench("--once --device gpu --variants naive --layers sp19 --batch 10");
  if (const auto device = cuda::FindDevice(); !device.ok()) {
    EXPECT_EQ(outcome.exit_status, 3) << outcome.output;
    GTEST_SKIP() << device.status().message();
  }
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "");
  // A variant that takes no layer is a failure, reported for each layer.
  const Outcome declined = Bench(
      "--once --device gpu --variants tensor_strips --layers 2,40,30,30,8,11");
  EXPECT_EQ(declined.exit_status, 1) << declined.output;
  EXPECT_THAT(declined.output,
              MatchesRegex("bench: left out: .*tensor_strips.*\n"
                           "bench: .*tensor_strips.*\n"));
}

TEST(Bench, ComparesAccuracyOnAllFamilies) {
  const std::string json = Path("accuracy.json");
  const Outcome outcome = Bench(absl::StrCat(
      "--device cpu --accuracy --variants naive,dense_lanes --layers "
      "'sp19-L2;2,3,13,12,6,5' --batch 2 --json ",
      json));
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(" 0 of "));
  const auto record = ReadBenchRecord(json);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_TRUE(record->rows.empty());
  ASSERT_EQ(record->accuracy.size(), 2u);
  for (const AccuracyRow& row : record->accuracy) {
    EXPECT_EQ(row.accuracy_class, "fp32");
    ASSERT_EQ(row.families.size(), DataFamilies().size());
    // An error of zero on all data would mean that nothing was computed.
    EXPECT_GT(row.families.front().c.value_or(0), 0);
    // Some mixtures are zero; they are not the only ones.
    EXPECT_GT(row.families.back().c.value_or(0), 0);
    for (const FamilyRow& family : row.families) {
      SCOPED_TRACE(family.family);
      EXPECT_LE(family.c.value_or(HUGE_VAL), family.allowed);
      EXPECT_GE(family.allowed, 16);
    }
  }
}

TEST(Bench, TimesAreOfTheDataThatWereAskedFor) {
  const std::string json = Path("data.json");
  const Outcome outcome = Bench(absl::StrCat(
      "--device cpu --variants dense_lanes --layers 2,3,13,12,6,5 --nopeers "
      "--class fp32 --samples 3 --seconds 0.1 --data filter-scales --json ",
      json));
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const auto record = ReadBenchRecord(json);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->data, "filter-scales");
  ASSERT_EQ(record->rows.size(), 1u);
  EXPECT_LE(record->rows[0].worst_c.value_or(HUGE_VAL), 16);
  EXPECT_THAT(record->rows[0].arguments, HasSubstr(" --data filter-scales"));
}

TEST(Bench, ProblemsLargerThanTheMemoryAreFailures) {
  const std::string json = Path("large.json");
  for (const char* layers : {"--layers 200000,64,100,100,64,3",
                             "--layers fa19-L2 --batch 9999999999"}) {
    const Outcome outcome =
        Bench(absl::StrCat("--device cpu --json ", json, " ", layers));
    EXPECT_EQ(outcome.exit_status, 1) << outcome.output;
    EXPECT_THAT(outcome.output,
                MatchesRegex("bench: there is not enough memory: .* takes at "
                             "least [0-9]+\\.[0-9]{3} TB, and the host has "
                             "[0-9]+\\.[0-9]{3} [GT]B\n"));
    EXPECT_FALSE(ReadFile(json).ok());
  }
}

TEST(Bench, RefusalsOfTheSystemAreFailures) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes address space of its own";
#endif
  // This is less than the arrays of the triad need.
  const Outcome outcome = RunProgram(
      "(ulimit -v 300000; tools/bench/bench --device cpu --threads 1 --layers "
      "2,1,9,9,3,3)");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_EQ(outcome.output, "bench: there is not enough memory\n");
}

TEST(Bench, MeasuresOnTheCpu) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the ceilings are measured by code that a sanitizer slows "
                  "down, and oneDNN, which it does not, exceeds them";
#endif
  const std::string json = Path("cpu.json");
  const Outcome outcome = Bench(absl::StrCat(
      "--device cpu --layers '4,3,20,20,8,5;sp19-L2' --batch 3 --samples 3 "
      "--seconds 0.2 --threads 2 --json ",
      json));
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const auto record = ReadBenchRecord(json);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->device, "cpu");
  EXPECT_EQ(record->threads, 2);
  EXPECT_GT(record->ceilings.fp32_tflops.value_or(0), 0);
  EXPECT_GT(record->ceilings.triad_gbs.value_or(0), 0);
  EXPECT_THAT(record->method, HasSubstr("at least 3 samples"));
  const bool onednn = OpenOneDnn().ok();
  std::set<std::string> names;
  for (const BenchRow& row : record->rows) {
    SCOPED_TRACE(absl::StrCat(row.layer, " ", row.provider, " ", row.variant));
    if (row.layer == "sp19-L2") {
      names.insert(absl::StrCat(row.provider, " ", row.variant));
      EXPECT_EQ(row.batch, 3);
      EXPECT_EQ(row.channels, 6);
    } else {
      EXPECT_EQ(row.layer, "4,3,20,20,8,5");
      EXPECT_EQ(row.batch, 4);
    }
    EXPECT_GE(row.samples, 3);
    EXPECT_GT(row.min_ms, 0);
    EXPECT_GE(row.median_ms, row.min_ms);
    EXPECT_GT(row.tflops, 0);
    EXPECT_GT(row.error, 0);
    EXPECT_LE(row.error, 1e-6);
    EXPECT_TRUE(row.floor_ms.has_value());
    EXPECT_TRUE(row.of_peak.has_value());
    EXPECT_EQ(row.sm_clock_mhz, std::nullopt);
    EXPECT_EQ(PeerRatio(*record, row).has_value(), onednn);
    EXPECT_THAT(outcome.output, HasSubstr(row.arguments + "\n"));
  }
  EXPECT_TRUE(names.count("convlab naive"));
  EXPECT_TRUE(names.count("convlab im2col_eigen"));
  EXPECT_EQ(names.count("onednn nchw"), onednn);
  EXPECT_EQ(names.count("onednn preferred"), onednn);
  // A missing library is reported with the reason.
  EXPECT_EQ(record->omissions.empty(), onednn);
}

TEST(Bench, ARowsArgumentsMeasureIt) {
  const Outcome outcome = Bench(
      "--device cpu --layers 4,3,20,20,8,5 --variants im2col_eigen "
      "--class fp32 --samples 3 --seconds 0.1 --threads 1 --nopeers");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const size_t arguments = outcome.output.find("--device");
  ASSERT_NE(arguments, std::string::npos);
  const std::string line = outcome.output.substr(
      arguments, outcome.output.find('\n', arguments) - arguments);
  const Outcome again = Bench(line);
  EXPECT_EQ(again.exit_status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr(line));
}

TEST(Bench, NeighboursAreComparedWithTheirLayer) {
  const std::string json = Path("neighbours.json");
  const Outcome outcome = Bench(absl::StrCat(
      "--device cpu --layers sp19-L2 --batch 2,3 --variants final --neighbours "
      "--nopeers --samples 3 --seconds 0.1 --threads 1 --json ",
      json));
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const auto record = ReadBenchRecord(json);
  ASSERT_TRUE(record.ok()) << record.status();
  // One row each for a layer and seven neighbours at two batches.
  EXPECT_EQ(record->rows.size(), 16u);
  const std::vector<Neighbour> neighbours = Neighbours(*record);
  ASSERT_EQ(neighbours.size(), 14u);
  EXPECT_EQ(neighbours[0].change, "H-1 W-1");
  EXPECT_EQ(neighbours[13].change, "K+2");
  EXPECT_EQ(neighbours[13].layer->batch, 3);
  EXPECT_THAT(outcome.output, HasSubstr("sp19-L2 at 2, 1 of 16\n"));
  EXPECT_THAT(outcome.output,
              HasSubstr(" of 14 neighbours reach at least half the share of "
                        "their floor that the layer reaches"));
}

TEST(Bench, ALibraryThatIsMissingCostsItsRowsOnly) {
  // The system's loader finds this file first and cannot open it.
  ASSERT_TRUE(WriteFileAtomically(Path("libdnnl.so.2"), "no library").ok());
  ASSERT_EQ(setenv("LD_LIBRARY_PATH", std::getenv("TEST_TMPDIR"), 1), 0);
  const Outcome outcome = Bench(
      "--device cpu --layers 2,1,9,9,3,3 --variants naive --samples 3 "
      "--seconds 0.1");
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(" convlab  naive "));
  EXPECT_THAT(outcome.output,
              HasSubstr("not measured: oneDNN cannot be opened"));
}

TEST(Bench, AGpuThatIsMissingIsStatusThree) {
  const auto device = cuda::FindDevice();
  if (device.ok()) GTEST_SKIP() << "there is a GPU: " << device->name;
  const std::string json = Path("none.json");
  const Outcome outcome = Bench(absl::StrCat("--device gpu --json ", json));
  EXPECT_EQ(outcome.exit_status, 3) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("no NVIDIA GPU"));
  // No partial record is left.
  EXPECT_FALSE(ReadFile(json).ok());
}

TEST(Bench, MeasuresOnTheGpu) {
  const auto device = cuda::FindDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const std::string json = Path("gpu.json");
  const Outcome outcome = Bench(absl::StrCat(
      "--device gpu --layers 'sp19-L2;40,3,20,20,8,5' --batch 100 --samples 5 "
      "--seconds 1 --json ",
      json));
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const auto record = ReadBenchRecord(json);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->gpu.name, device->name);
  EXPECT_GT(record->ceilings.fill_gbs.value_or(0), 0);
  EXPECT_GT(record->ceilings.copy_gbs.value_or(0), 0);
  std::set<std::string> classes;
  for (const BenchRow& row : record->rows) {
    SCOPED_TRACE(absl::StrCat(row.layer, " ", row.provider, " ", row.variant));
    if (row.provider == "cudnn") classes.insert(row.accuracy_class);
    EXPECT_GE(row.samples, 3);
    EXPECT_GT(row.min_ms, 0);
    EXPECT_GT(row.error, 0);
    EXPECT_TRUE(row.floor_ms.has_value());
  }
  for (const BenchOmission& omission : record->omissions) {
    classes.insert(omission.accuracy_class);
    EXPECT_THAT(omission.reason, Not(HasSubstr("relative error")));
  }
  EXPECT_THAT(classes, IsSupersetOf({"fp16", "fp32", "tf32"}));
}

}  // namespace
}  // namespace convlab
