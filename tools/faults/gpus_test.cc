// Several GPUs at once, on a machine that has none: the runtime of fake_cuda.cc
// has two here, and ends a program that uses what belongs to one of them while
// the other is current.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/dataset/idx.h"
#include "common/dataset/test_files.h"
#include "common/files/files.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/record/classify_record.h"
#include "common/weights/weights.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/compiled/compiled.h"
#include "kernels/cuda/device.h"
#include "milestones/program_testing.h"
#include "tools/bench/gpus_bench.h"
#include "tools/bench/network_calls.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int64_t kImages = 600;

class GpusBenchTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuda::CountDevices(), 2);
    const auto weights = LoadWeights(Model(GetParam()), network_);
    ASSERT_TRUE(weights.ok()) << weights.status();
    weights_ = *weights;
    images_.pixels.resize(kImages * 28 * 28, 1);
  }

  NetworkCase Case() const {
    return {network_, weights_, images_, Backend::kCuda};
  }

  const Network& network_ = **FindNetwork(GetParam());
  NetworkWeights weights_;
  ImageSet images_ = {kImages, 28, 28, {}};
};

TEST_P(GpusBenchTest, BothGpusWorkAtTheSameTime) {
  const auto times = MeasureGpus(Case(), {2, kImages, 1, 0, 1});
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_THAT(times->answers, SizeIs(2));
}

// Those of a GPU's workers have no room for their stacks.
TEST_P(GpusBenchTest, ThreadsThatAreRefusedAreTold) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  std::ifstream pages("/proc/self/statm");
  rlim_t used = 0;
  ASSERT_TRUE(pages >> used);
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  struct rlimit limited = before;
  limited.rlim_cur = used * sysconf(_SC_PAGESIZE) + (size_t{256} << 20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  const auto times = MeasureGpus(Case(), {2, kImages, 1, 0, 500});
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(std::string(times.status().message()), StartsWith("GPU "));
}

// Every path; layers that a variant computes have memory of their own.
TEST_P(GpusBenchTest, AllCallsWorkOnTheSecondGpu) {
  const cuda::CurrentDevice second(1);
  ASSERT_TRUE(second.status().ok()) << second.status();
  Workers workers(1);
  const auto calls = OurCalls(Case(), kImages, workers);
  ASSERT_TRUE(calls.ok()) << calls.status();
  for (const NetworkCall& call : *calls) {
    for (int i = 0; i < 3; ++i) {
      const absl::Status status = call.run();
      EXPECT_TRUE(status.ok()) << call.path << ": " << status;
    }
    EXPECT_TRUE(call.answers().ok()) << call.path;
  }
}

// A last piece of few images tells nothing of the others.
TEST_P(GpusBenchTest, StagesAreTimedInThePiecesOfMostImages) {
  Workers workers(1);
  const auto compiled = CompileForGpu(network_, weights_, 28, workers);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ((*compiled)->StageImages(), 0);
  std::vector<float> logits(kImages * network_.Classes());
  const auto run = [&](int64_t count) {
    ASSERT_TRUE(
        (*compiled)->Run(images_.pixels.data(), count, logits.data()).ok());
    EXPECT_EQ((*compiled)->StageNs().size(),
              (*compiled)->plan().stages.size() + 1);
    EXPECT_FALSE((*compiled)->StageKernels().empty());
  };
  run(kImages);
  const int64_t piece = (*compiled)->StageImages();
  EXPECT_GT(piece, 10);
  run(10);
  EXPECT_EQ((*compiled)->StageImages(), piece);
}

INSTANTIATE_TEST_SUITE_P(Networks, GpusBenchTest,
                         ::testing::Values("sp19", "lenet5"),
                         [](const auto& one) { return one.param; });

// A call would load the driver, with its threads and its memory.
TEST_F(ProgramsTest, RunsOnTheCpuMakeNoCallOfCuda) {
  for (const char* run :
       {"convlab_without_gpu m2 sp19 2",
        "convlab_without_gpu m2 sp19 2 --record=run.json",
        "convlab_without_gpu m4 sp19 2 --device=cpu",
        "convlab_without_gpu final lenet5 2 --device=cpu",
        "classify_without_gpu sp19 2 --device=cpu --out=answers.idx"}) {
    SCOPED_TRACE(run);
    Shell("rm -f calls");
    const Outcome outcome =
        Shell(absl::StrCat("CONVLAB_FAULT=0 CONVLAB_FAULT_LOG=calls ",
                           Runfile("tools/faults/"), run, " >out"));
    EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
    const auto calls = ReadFile(Path("calls"));
    // The runtime writes none where it is not called at all.
    EXPECT_EQ(calls.value_or("0\n"), "0\n");
  }
}

// Pieces of 4,096 images on two GPUs.
class ClassifyGpusTest : public ProgramsTest {
 protected:
  static constexpr uint32_t kMany = 100000;

  void SetUp() override {
    ProgramsTest::SetUp();
    Write("images.idx", IdxFile({0x803, kMany, 28, 28}, ""));
    // Zeros that take no place on the disk.
    Shell(
        absl::StrCat("truncate -s ", 16 + int64_t{kMany} * 784, " images.idx"));
    ASSERT_EQ(Classify("", "whole.idx").exit_status, 0);
    whole_ = *ReadFile(Path("whole.idx"));
    ASSERT_EQ(whole_.size(), 8 + kMany);
  }

  Outcome Classify(const std::string& environment, const std::string& out) {
    return Shell(absl::StrCat(
        environment, " timeout 20 ",
        Runfile("tools/faults/classify_without_gpu"),
        " sp19 images.idx --device=gpu --gpus=2 --threads=2 --out=", out,
        " >out"));
  }

  std::string whole_;
};

TEST_F(ClassifyGpusTest, EachGpuHasItsShare) {
  const Outcome outcome = Classify("", "answers.idx --record=run.json");
  EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
  const auto record = ParseClassifyRecord(*ReadFile(Path("run.json")));
  ASSERT_TRUE(record.ok()) << record.status();
  ASSERT_THAT(record->shares, SizeIs(2));
  EXPECT_EQ(record->shares[0].images + record->shares[1].images, kMany);
  EXPECT_NE(record->shares[0].pci_bus_id, record->shares[1].pci_bus_id);
  EXPECT_THAT(record->links, SizeIs(2));
}

// How many images a GPU computes at once depends on its free memory.
TEST_F(ClassifyGpusTest, AResumedRunComputesAsManyImagesAtOnce) {
  const Outcome lost =
      Classify("CONVLAB_FAULT_GPU=1 CONVLAB_FAULT=72+", "answers.idx --resume");
  ASSERT_EQ(lost.exit_status, 1);
  const std::string state = *ReadFile(Path("answers.idx.run"));
  const size_t at = state.find("\"gpu_piece\": ");
  ASSERT_NE(at, std::string::npos) << state;
  const std::string piece = state.substr(at, state.find(',', at) - at);
  const Outcome rest =
      Classify("CONVLAB_FAKE_FREE_MB=16", "answers.idx --resume");
  EXPECT_EQ(rest.exit_status, 0) << absl::StrJoin(rest.err, "\n");
  EXPECT_TRUE(*ReadFile(Path("answers.idx")) == whole_);
  EXPECT_THAT(*ReadFile(Path("answers.idx.run")), HasSubstr(piece));
  // A run of its own has fewer.
  EXPECT_EQ(
      Classify("CONVLAB_FAKE_FREE_MB=16", "other.idx --resume").exit_status, 0);
  EXPECT_THAT(*ReadFile(Path("other.idx.run")),
              ::testing::Not(HasSubstr(piece)));
}

TEST_F(ClassifyGpusTest, FlagsThatNothingReadsAreRefused) {
  const auto refused = [&](const std::string& arguments, const char* words) {
    const Outcome outcome =
        Shell(absl::StrCat(Runfile("tools/faults/classify_without_gpu"),
                           " sp19 ", arguments, " >out"));
    EXPECT_EQ(outcome.exit_status, 2);
    ASSERT_THAT(outcome.err, SizeIs(1));
    EXPECT_THAT(outcome.err[0], HasSubstr(words));
  };
  refused("images.idx --workers=4",
          "--workers is of the CPU, and this runs on a GPU");
  Write("few.idx.gz", Gzip(IdxFile({0x803, 1, 28, 28}, std::string(784, 'x'))));
  refused("few.idx.gz --readers=2", "--readers is of plain files");
}

// A GPU falls out at one of its calls: while it is chosen, while the network is
// compiled, and in the middle.
TEST_F(ClassifyGpusTest, AGpuThatFallsOutIsTold) {
  for (const int gpu : {0, 1}) {
    bool failed = true;
    // Without the first GPU there is none for the program.
    for (int call = gpu == 0 ? 32 : 2; failed; call *= 6) {
      const std::string fault =
          absl::StrCat("CONVLAB_FAULT_GPU=", gpu, " CONVLAB_FAULT=", call, "+");
      SCOPED_TRACE(fault);
      Shell("rm -f answers.idx*");
      const Outcome lost = Classify(fault, "answers.idx --resume");
      failed = lost.exit_status != 0;
      if (!failed) break;
      EXPECT_EQ(lost.exit_status, 1);
      std::vector<std::string> lines;
      for (const std::string& line : lost.err) {
        if (!absl::StartsWith(line, "fake_cuda: ")) lines.push_back(line);
      }
      ASSERT_FALSE(lines.empty());
      EXPECT_THAT(lines.back(), AllOf(StartsWith("classify: "),
                                      HasSubstr(absl::StrCat("GPU ", gpu)),
                                      HasSubstr("an illegal memory access")));
      // What was answered is gone on with.
      EXPECT_EQ(Classify("", "answers.idx --resume").exit_status, 0);
      EXPECT_TRUE(*ReadFile(Path("answers.idx")) == whole_);

      const Outcome tolerated =
          Classify(fault, "answers.idx --tolerate=1 --record=run.json");
      if (tolerated.exit_status != 0) {
        // It could not even be asked for its name.
        EXPECT_EQ(call, 2) << absl::StrJoin(tolerated.err, "\n");
        continue;
      }
      EXPECT_TRUE(*ReadFile(Path("answers.idx")) == whole_);
      const auto record = ParseClassifyRecord(*ReadFile(Path("run.json")));
      ASSERT_TRUE(record.ok()) << record.status();
      const std::string& why = record->shares[gpu].lost;
      if (why.empty()) continue;  // it had no piece when its calls failed
      EXPECT_THAT(why, HasSubstr("an illegal memory access"));
      EXPECT_THAT(tolerated.err, Contains(HasSubstr("the others go on")));
    }
  }
}

}  // namespace
}  // namespace convlab
