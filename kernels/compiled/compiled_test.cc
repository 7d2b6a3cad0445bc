#include "kernels/compiled/compiled.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/dataset/fashion_mnist.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/compiled/device_network.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/inference/inference.h"
#include "kernels/inference/inference_testing.h"
#include "kernels/layers/layers.h"
#include "kernels/simd/cpu_target.h"

namespace convlab {
namespace {

std::vector<float> LogitsOf(CompiledNetwork& compiled, const ImageSet& images,
                            int64_t count, int classes) {
  std::vector<float> logits(count * classes);
  EXPECT_TRUE(compiled.Run(images.pixels.data(), count, logits.data()).ok());
  return logits;
}

absl::StatusOr<std::unique_ptr<CompiledNetwork>> Compile(
    Backend backend, const Network& network, const NetworkWeights& weights,
    int image_size, Workers& workers) {
  return (backend == Backend::kCpu ? CompileForCpu : CompileForGpu)(
      network, weights, image_size, workers);
}

// Random weights, where the layers' values are known in double precision.
class CompiledTest : public InferenceTest {
 protected:
  auto Compile(Workers& workers) {
    return convlab::Compile(std::get<1>(GetParam()), network_, weights_, 28,
                            workers);
  }
  std::vector<CpuTarget> Targets() const {
    return on_gpu() ? std::vector<CpuTarget>{ChosenCpuTarget()}
                    : SupportedCpuTargets();
  }
};

TEST_P(CompiledTest, LogitsAreThoseOfTheLayers) {
  for (const CpuTarget target : Targets()) {
    SCOPED_TRACE(Name(target));
    ASSERT_TRUE(ForceCpuTarget(Name(target)).ok());
    auto compiled = Compile(workers_);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const int classes = network_.Classes();
    const std::vector<float> logits =
        LogitsOf(**compiled, images_, images_.count, classes);
    for (int64_t i = 0; i < images_.count; ++i) {
      const std::vector<double> expected = Logits(i);
      double largest = 0;
      for (const double value : expected) {
        largest = std::max(largest, std::fabs(value));
      }
      for (int c = 0; c < classes; ++c) {
        EXPECT_NEAR(logits[i * classes + c], expected[c], 1e-5 * largest)
            << "image " << i << ", class " << c;
      }
    }
  }
  ASSERT_TRUE(ForceCpuTarget("auto").ok());
}

// However they come, an image's logits are the same: bit for bit on the CPU,
// but for rounding on the GPU, which has other kernels for other numbers of
// images. In the second and third call, which may be recorded, they are those
// of the first.
TEST_P(CompiledTest, AnImagesLogitsDoNotDependOnTheOthers) {
  auto compiled = Compile(workers_);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const int classes = network_.Classes();
  const std::vector<float> all =
      LogitsOf(**compiled, images_, images_.count, classes);
  const auto expect_same = [&](const std::vector<float>& logits,
                               const std::vector<float>& expected) {
    if (!on_gpu()) {
      EXPECT_EQ(logits, expected);
      return;
    }
    float largest = 0;
    for (const float value : expected) {
      largest = std::max(largest, std::fabs(value));
    }
    EXPECT_THAT(logits, ::testing::Pointwise(
                            ::testing::FloatNear(1e-5f * largest), expected));
  };
  Workers alone(1);
  auto by_one = Compile(alone);
  ASSERT_TRUE(by_one.ok()) << by_one.status();
  for (const int64_t count : {1, 2, 5, 11}) {
    SCOPED_TRACE(::testing::Message() << count << " images");
    const std::vector<float> first =
        LogitsOf(**compiled, images_, count, classes);
    expect_same(first, {all.begin(), all.begin() + count * classes});
    for (int run = 0; run < 2; ++run) {
      EXPECT_EQ(LogitsOf(**compiled, images_, count, classes), first);
    }
    EXPECT_EQ(LogitsOf(**by_one, images_, count, classes), first);
  }
  // Among many others: as the last images of several pieces.
  if (on_gpu()) {
    ImageSet many = images_;
    many.count = 6000;
    many.pixels.assign(many.count * 28 * 28, 77);
    std::copy(images_.pixels.begin(), images_.pixels.end(),
              many.pixels.end() - images_.pixels.size());
    const std::vector<float> first =
        LogitsOf(**compiled, many, many.count, classes);
    expect_same({first.end() - all.size(), first.end()}, all);
    for (int run = 0; run < 2; ++run) {
      EXPECT_EQ(LogitsOf(**compiled, many, many.count, classes), first);
    }
  }
  const std::vector<int64_t> ns = (*compiled)->StageNs();
  EXPECT_EQ(ns.size(), (*compiled)->plan().stages.size() + 1);
  EXPECT_GT(*std::max_element(ns.begin(), ns.end()), 0);
}

// A call with few images returns when the host sees their logits, and one with
// more starts before its images are copied. All is this call's, not what the
// one before left in the same place.
TEST_P(CompiledTest, CallsInARowGiveTheirOwnLogits) {
  if (!on_gpu()) GTEST_SKIP() << "for the GPU";
  auto compiled = Compile(workers_);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const int classes = network_.Classes();
  for (const int64_t count : {1, 11, 300, 2000}) {
    SCOPED_TRACE(::testing::Message() << count << " images");
    ImageSet sets[] = {images_, images_};
    std::vector<float> expected[2];
    for (int i = 0; i < 2; ++i) {
      std::vector<uint8_t>& pixels = sets[i].pixels;
      if (i == 1) std::reverse(pixels.begin(), pixels.end());
      pixels.resize(count * 28 * 28);
      const int64_t known = images_.pixels.size();
      for (int64_t j = known; j < count * 28 * 28; ++j) {
        pixels[j] = pixels[j - known];
      }
      expected[i] = LogitsOf(**compiled, sets[i], count, classes);
    }
    ASSERT_NE(expected[0], expected[1]);
    for (int call = 0; call < (count < 100 ? 2000 : 200); ++call) {
      ASSERT_EQ(LogitsOf(**compiled, sets[call % 2], count, classes),
                expected[call % 2])
          << "call " << call;
    }
  }
}

// A host that is stopped while it copies images: memory whose first reader
// waits much longer than a GPU does.
class SlowMemory {
 public:
  static constexpr auto kPause = std::chrono::milliseconds(20);

  explicit SlowMemory(size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory_, MAP_FAILED);
    slow_ = this;
    struct sigaction action = {};
    action.sa_sigaction = Pause;
    action.sa_flags = SA_SIGINFO;
    EXPECT_EQ(sigaction(SIGSEGV, &action, &before_), 0);
  }
  ~SlowMemory() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(memory_, bytes_);
  }
  SlowMemory(const SlowMemory&) = delete;
  SlowMemory& operator=(const SlowMemory&) = delete;

  uint8_t* data() const { return static_cast<uint8_t*>(memory_); }
  void SlowDown() { EXPECT_EQ(mprotect(memory_, bytes_, PROT_NONE), 0); }
  // How often a reader has waited.
  int pauses() const { return pauses_; }

 private:
  static void Pause(int signal, siginfo_t* info, void*) {
    const auto* const at = static_cast<const uint8_t*>(info->si_addr);
    SlowMemory& slow = *slow_;
    if (at < slow.data() || at >= slow.data() + slow.bytes_) {
      sigaction(signal, &slow.before_, nullptr);  // it comes again
      return;
    }
    ++slow.pauses_;
    std::this_thread::sleep_for(kPause);
    mprotect(slow.memory_, slow.bytes_, PROT_READ | PROT_WRITE);
  }

  static inline SlowMemory* slow_ = nullptr;
  void* memory_;
  const size_t bytes_;
  std::atomic<int> pauses_{0};
  struct sigaction before_;
};

// Work that has started before its images are copied, and has given them up,
// starts again.
TEST_P(CompiledTest, AStoppedHostGetsItsOwnLogits) {
  if (!on_gpu()) GTEST_SKIP() << "for the GPU";
  auto compiled = Compile(workers_);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const int classes = network_.Classes();
  constexpr int64_t kCount = 300, kBytes = kCount * 28 * 28;
  SlowMemory memory(kBytes);
  for (int call = 0; call < 8; ++call) {
    SCOPED_TRACE(::testing::Message() << "call " << call);
    ImageSet set = images_;
    set.pixels.resize(kBytes);
    for (int64_t i = 0; i < kBytes; ++i) {
      set.pixels[i] = static_cast<uint8_t>(i * (2 * call + 3) >> 4);
    }
    std::copy(set.pixels.begin(), set.pixels.end(), memory.data());
    const bool slow = call == 3 || call == 5 || call == 6;
    const int pauses = memory.pauses();
    if (slow) memory.SlowDown();
    std::vector<float> logits(kCount * classes);
    ASSERT_TRUE((*compiled)->Run(memory.data(), kCount, logits.data()).ok());
    EXPECT_EQ(memory.pauses() > pauses, slow);
    auto other = Compile(workers_);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(LogitsOf(**other, set, kCount, classes), logits);
  }
}

// Images in page-locked memory are uploaded from there, those in ordinary
// memory from a copy; more than once, since the first pieces are not recorded.
TEST_P(CompiledTest, PageLockedImagesGiveTheSameBits) {
  if (!on_gpu()) GTEST_SKIP() << "for the GPU";
  auto compiled = Compile(workers_);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const int classes = network_.Classes();
  auto pinned = cuda::PinnedBuffer::Allocate(int64_t{3001} * 28 * 28);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  auto* const locked = static_cast<uint8_t*>(pinned->data());
  for (const int64_t count : {3001, 257, 256, 3001}) {
    SCOPED_TRACE(::testing::Message() << count << " images");
    std::vector<uint8_t> pixels(count * 28 * 28);
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = images_.pixels[i * 7 % images_.pixels.size()];
    }
    std::copy(pixels.begin(), pixels.end(), locked);
    ASSERT_TRUE(cuda::IsPinned(locked, pixels.size()));
    ASSERT_FALSE(cuda::IsPinned(pixels.data(), pixels.size()));
    std::vector<float> expected(count * classes), found(count * classes);
    for (int run = 0; run < 3; ++run) {
      ASSERT_TRUE((*compiled)->Run(pixels.data(), count, expected.data()).ok());
      std::fill(found.begin(), found.end(), -1.f);
      ASSERT_TRUE((*compiled)->Run(locked, count, found.data()).ok());
      EXPECT_EQ(found, expected);
    }
  }
}

// What is queued, and what is recorded, answers as Run does.
TEST_P(CompiledTest, InDeviceMemoryAnswersAreThoseFromTheHost) {
  if (!on_gpu()) GTEST_SKIP() << "for the GPU";
  auto compiled = Compile(workers_);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const int classes = network_.Classes();
  // More than one piece, the last images among them, and no whole number of
  // equal pieces: in device memory, pieces have up to 5,000 images.
  ImageSet many = images_;
  many.count = 10001;
  many.pixels.assign(many.count * 28 * 28, 77);
  std::copy(images_.pixels.begin(), images_.pixels.end(),
            many.pixels.end() - images_.pixels.size());
  const std::vector<float> expected =
      LogitsOf(**compiled, many, many.count, classes);
  const int size = network_.image_size;
  std::vector<float> floats(many.count * size * size);
  EnlargeToFloats(many.pixels.data(), many.count, 28, size, floats.data(),
                  workers_);
  for (const Pixels pixels : {Pixels::kBytes, Pixels::kFloats}) {
    const bool bytes = pixels == Pixels::kBytes;
    SCOPED_TRACE(bytes ? "bytes" : "floats");
    const auto network =
        CompileForDevice(network_, weights_, 28, pixels, workers_);
    ASSERT_TRUE(network.ok()) << network.status();
    const int64_t in_bytes = bytes ? many.pixels.size() : floats.size() * 4;
    auto images = cuda::DeviceBuffer::Allocate(in_bytes);
    auto logits = cuda::DeviceBuffer::Allocate(expected.size() * 4);
    auto labels = cuda::DeviceBuffer::Allocate(many.count);
    ASSERT_TRUE(images.ok() && logits.ok() && labels.ok());
    const void* const from =
        bytes ? static_cast<const void*>(many.pixels.data()) : floats.data();
    ASSERT_TRUE(cuda::CopyToDevice(images->data(), from, in_bytes).ok());
    const auto replay =
        Record(**network, {images->data(), many.count, logits->floats(),
                           static_cast<uint8_t*>(labels->data())});
    ASSERT_TRUE(replay.ok()) << replay.status();
    ASSERT_TRUE(cuda::FillBytes(logits->data(), 0xff, logits->bytes()).ok());
    ASSERT_TRUE(cuda::FillBytes(labels->data(), 0xff, labels->bytes()).ok());
    ASSERT_TRUE(cuda::Synchronize().ok());
    ASSERT_TRUE((*replay)(nullptr).ok());
    std::vector<float> found(expected.size());
    std::vector<uint8_t> found_labels(many.count);
    ASSERT_TRUE(
        cuda::CopyToHost(found.data(), logits->data(), logits->bytes()).ok());
    ASSERT_TRUE(
        cuda::CopyToHost(found_labels.data(), labels->data(), labels->bytes())
            .ok());
    double largest = 0;
    for (const float value : expected) {
      largest = std::max<double>(largest, std::fabs(value));
    }
    if (bytes) {
      EXPECT_EQ(found, expected);
    }
    for (int64_t i = 0; i < many.count; ++i) {
      EXPECT_EQ(found_labels[i], AnswerOf(&found[i * classes], classes).label);
      for (int c = 0; c < classes; ++c) {
        ASSERT_NEAR(found[i * classes + c], expected[i * classes + c],
                    1e-5 * largest)
            << "image " << i << ", class " << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, CompiledTest,
                         ::testing::ValuesIn(InferenceCases()),
                         InferenceCaseName);

// The trained models, on all test images.
class TrainedTest
    : public ::testing::TestWithParam<std::tuple<Network, Backend>> {};

TEST_P(TrainedTest, LabelsAreThoseOfTheLayers) {
  const auto& [network, backend] = GetParam();
  if (const auto gpu = cuda::FindDevice();
      backend == Backend::kCuda && !gpu.ok()) {
    GTEST_SKIP() << gpu.status().message();
  }
  const auto dataset = LoadFashionMnist(FashionMnistFolder(), "t10k");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const auto weights = LoadWeights(absl::StrCat(std::getenv("TEST_SRCDIR"),
                                                "/convlab/common/weights/"
                                                "models/",
                                                network.name, ".safetensors"),
                                   network);
  ASSERT_TRUE(weights.ok()) << weights.status();
  Workers workers(Workers::Available());
  InferenceOptions options;
  // The GPU computes in little time what the CPU's test has checked too.
  options.backend = backend;
  options.variants.assign(
      network.Convolutions().size(),
      *FindVariant(backend,
                   backend == Backend::kCpu ? "dense_lanes" : "direct_tiled"));
  options.logits = true;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const int64_t count = 300;  // all would take most of an hour
#else
  const int64_t count = dataset->images.count;
#endif
  const auto by_layer =
      RunInference(network, *weights, dataset->images, count, options, workers);
  ASSERT_TRUE(by_layer.ok()) << by_layer.status();
  auto compiled = Compile(backend, network, *weights, 28, workers);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const int classes = network.Classes();
  const std::vector<float> logits =
      LogitsOf(**compiled, dataset->images, count, classes);
  int64_t correct = 0;
  double error = 0, largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Answer answer = AnswerOf(&logits[i * classes], classes);
    // The models are chosen so that no answer is close.
    EXPECT_FALSE(answer.close) << "image " << i << ", " << answer.margin;
    EXPECT_EQ(answer.label, by_layer->labels[0][i]) << "image " << i;
    correct += answer.label == dataset->labels[i];
    for (int c = 0; c < classes; ++c) {
      const double expected = by_layer->logits[i * classes + c];
      largest = std::max(largest, std::fabs(expected));
      error = std::max(error, std::fabs(logits[i * classes + c] - expected));
    }
  }
  if (count == dataset->images.count) {
    EXPECT_EQ(absl::StrCat(correct), weights->metadata.at("correct_10000"));
  }
  // Well within what AnswerOf calls close.
  EXPECT_LT(error, 0x1p-17 * largest);
  RecordProperty("largest_difference", absl::StrCat(error));
}

INSTANTIATE_TEST_SUITE_P(Networks, TrainedTest,
                         ::testing::Combine(::testing::ValuesIn(Networks()),
                                            ::testing::Values(Backend::kCpu,
                                                              Backend::kCuda)),
                         [](const auto& one) {
                           std::string name = absl::StrCat(
                               std::get<0>(one.param).name, "_",
                               std::string(Name(std::get<1>(one.param))));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(CompileForCpu, RefusesWhatDoesNotFit) {
  const Network& network = **FindNetwork("sp19");
  Workers workers(1);
  EXPECT_TRUE(absl::IsInvalidArgument(
      CompileForCpu(network, NetworkWeights(), 28, workers).status()));
  NetworkWeights weights;
  weights.layers.resize(network.layers.size());
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const auto shapes = network.Shapes();
    const Layer& layer = network.layers[i];
    if (const auto* convolution = std::get_if<ConvolutionLayer>(&layer)) {
      weights.layers[i].weight.resize(convolution->filters *
                                      shapes[i].channels * 25);
    } else if (std::holds_alternative<FullyConnectedLayer>(layer)) {
      weights.layers[i].weight.resize(shapes[i].values() *
                                      shapes[i + 1].values());
      weights.layers[i].bias.resize(shapes[i + 1].values());
    }
  }
  EXPECT_TRUE(CompileForCpu(network, weights, 28, workers).ok());
  EXPECT_TRUE(CompileForCpu(network, weights, 48, workers).ok());
  const auto other = CompileForCpu(network, weights, 30, workers);
  EXPECT_TRUE(absl::IsInvalidArgument(other.status())) << other.status();
}

TEST(CompileForGpu, SaysThatThereIsNone) {
  if (cuda::FindDevice().ok()) GTEST_SKIP() << "there is a GPU";
  Workers workers(1);
  const Network network = {
      "small", {}, 1, 28, {FullyConnectedLayer{10, false}}};
  NetworkWeights weights;
  weights.layers.resize(1);
  weights.layers[0].weight.resize(int64_t{28} * 28 * 10);
  EXPECT_TRUE(absl::IsUnavailable(
      CompileForGpu(network, weights, 28, workers).status()));
  EXPECT_TRUE(absl::IsUnavailable(
      CompileForDevice(network, weights, 28, Pixels::kFloats, workers)
          .status()));
}

TEST(AnswerOf, FindsTheTwoLargest) {
  const float logits[] = {1, 7, -3, 6, 7.5};
  const Answer answer = AnswerOf(logits, 5);
  EXPECT_EQ(answer.label, 4);
  EXPECT_EQ(answer.second, 1);
  EXPECT_EQ(answer.margin, 0.5f);
  EXPECT_FALSE(answer.close);
  EXPECT_EQ(AnswerOf(logits, 2).label, 1);
  EXPECT_EQ(AnswerOf(logits, 2).second, 0);
  EXPECT_EQ(AnswerOf(logits, 1).label, 0);
  EXPECT_FALSE(AnswerOf(logits, 1).close);
}

// Of equal logits the first one is the larger.
TEST(AnswerOf, TakesTheFirstOfEqualLogits) {
  constexpr int kClasses = 5, kValues = 3;
  for (int all = 0; all < std::pow(kValues, kClasses); ++all) {
    std::array<float, kClasses> logits;
    for (int c = 0, rest = all; c < kClasses; ++c, rest /= kValues) {
      logits[c] = static_cast<float>(rest % kValues) - 1;
    }
    std::array<int, kClasses> order;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return logits[a] > logits[b]; });
    const Answer answer = AnswerOf(logits.data(), kClasses);
    EXPECT_EQ(answer.label, order[0]) << all;
    EXPECT_EQ(answer.second, order[1]) << all;
    EXPECT_EQ(answer.margin, logits[order[0]] - logits[order[1]]) << all;
  }
}

TEST(AnswerOf, KnowsWhatRoundingMayDecide) {
  const float close[] = {-2, 16, 16 + 0x1p-14f};
  EXPECT_EQ(AnswerOf(close, 3).label, 2);
  EXPECT_TRUE(AnswerOf(close, 3).close);
  const float apart[] = {-2, 16, 16 + 0x1p-12f};
  EXPECT_FALSE(AnswerOf(apart, 3).close);
  const float equal[] = {3, 3};
  EXPECT_EQ(AnswerOf(equal, 2).label, 0);
  EXPECT_TRUE(AnswerOf(equal, 2).close);
  for (size_t nan = 0; nan < 5; ++nan) {
    float logits[] = {1, 5, 2, 9, 7};
    EXPECT_FALSE(AnswerOf(logits, 5).close);
    logits[nan] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(AnswerOf(logits, 5).close) << nan;
    EXPECT_EQ(AnswerOf(logits, 2).close, nan < 2) << nan;
  }
}

}  // namespace
}  // namespace convlab
