// Tracing on a GPU: what was started is what is seen, no more and no less, and
// its times are those that device events measure.
#include "kernels/cuda/trace.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/record/activities.h"
#include "common/weights/parameters.h"
#include "common/weights/tensor_file.h"
#include "common/weights/weights.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/adapt.h"
#include "kernels/cuda/device.h"
#include "kernels/inference/inference.h"

namespace convlab::cuda {

extern const KernelVariant kNaive;

namespace {

// Of the ladder's kernels this one alone: all of them would triple the test's
// size in the bundle.
const Variant kNaiveVariant = Adapt<kNaive>();

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

class TraceTest : public ::testing::Test {
 protected:
  // The first test's tracing starts before the process has used the GPU, as a
  // program's does.
  void SetUp() override {
    begin_ = Clock::now();
    const absl::Status started = StartTrace();
    const auto device = FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    if (!started.ok()) GTEST_SKIP() << started.message();
  }

  // Ends the tracing; what holds of every trace is checked here.
  void Stop() {
    absl::StatusOr<Activities> stopped = StopTrace();
    ASSERT_TRUE(stopped.ok()) << stopped.status();
    activities_ = *std::move(stopped);
    const int64_t elapsed_ns =
        std::chrono::nanoseconds(Clock::now() - begin_).count();
    EXPECT_EQ(activities_.tool, "CUPTI");
    EXPECT_NE(activities_.version, "");
    EXPECT_EQ(activities_.missing, "");
    std::multimap<int64_t, const ApiCall*> calls;
    for (const ApiCall& call : activities_.api) {
      EXPECT_THAT(call.name, Not(HasSubstr("_v")));
      EXPECT_EQ(call.thread, activities_.process);  // this thread, the first
      EXPECT_GE(call.start_ns, 0);
      EXPECT_LE(call.end_ns, elapsed_ns);
      calls.emplace(call.correlation, &call);
    }
    for (const GpuActivity& activity : activities_.gpu) {
      EXPECT_GT(activity.end_ns, activity.start_ns) << activity.name;
      const auto call = calls.find(activity.correlation);
      ASSERT_NE(call, calls.end()) << "nothing started " << activity.name;
      // CUPTI matches the clocks of GPU and host to some microseconds.
      EXPECT_LE(call->second->start_ns, activity.start_ns + 100000)
          << activity.name;
    }
    profile_ = MakeProfile(activities_);
    // Calls within calls would make the sum of one thread longer than its time.
    int64_t api_ns = 0;
    for (const ProfileEntry& entry : profile_.api_calls.entries) {
      api_ns += *entry.total_ns;
    }
    EXPECT_LE(api_ns, elapsed_ns);
    EXPECT_EQ(Calls(profile_.api_calls, "cudaLaunchKernel"),
              Kernels("").size());
  }

  // The one entry of a name.
  static ProfileEntry Entry(const ProfileSection& section,
                            const std::string& name) {
    for (const ProfileEntry& entry : section.entries) {
      if (entry.name == name) return entry;
    }
    ADD_FAILURE() << "no entry " << name;
    return {};
  }

  static size_t Calls(const ProfileSection& section, const std::string& name) {
    return Entry(section, name).calls.value_or(0);
  }

  // Launches of kernels whose name holds `part`, by their starts.
  std::vector<GpuActivity> Kernels(const std::string& part) const {
    std::vector<GpuActivity> kernels;
    for (const GpuActivity& activity : activities_.gpu) {
      if (activity.kind == GpuActivity::Kind::kKernel &&
          absl::StrContains(activity.name, part)) {
        kernels.push_back(activity);
      }
    }
    std::sort(kernels.begin(), kernels.end(),
              [](const GpuActivity& a, const GpuActivity& b) {
                return a.start_ns < b.start_ns;
              });
    return kernels;
  }

  static int64_t Nanoseconds(const GpuActivity& activity) {
    return activity.end_ns - activity.start_ns;
  }

  Clock::time_point begin_;
  Activities activities_;
  Profile profile_;
};

TEST_F(TraceTest, CopiesAndMemsetsHaveTheirBytes) {
  constexpr int64_t kBytes = 1 << 20;
  {
    auto host = PinnedBuffer::Allocate(kBytes);
    auto device = DeviceBuffer::Allocate(kBytes);
    ASSERT_TRUE(host.ok()) << host.status();
    ASSERT_TRUE(device.ok()) << device.status();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(CopyToDevice(device->data(), host->data(), kBytes).ok());
    }
    ASSERT_TRUE(FillBytes(device->data(), 1, kBytes).ok());
    ASSERT_TRUE(FillBytes(device->data(), 2, kBytes / 2).ok());
    ASSERT_TRUE(CopyToHost(host->data(), device->data(), kBytes / 4).ok());
  }
  absl::StatusOr<Activities> stopped = StopTrace();
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(stopped->missing, "");
  const Profile profile = MakeProfile(*stopped);
  const ProfileSection& gpu = profile.gpu_activities;
  const ProfileEntry to_device = Entry(gpu, "[CUDA memcpy HtoD]");
  EXPECT_EQ(to_device.calls, 3);
  EXPECT_EQ(to_device.bytes, 3 * kBytes);
  const ProfileEntry to_host = Entry(gpu, "[CUDA memcpy DtoH]");
  EXPECT_EQ(to_host.calls, 1);
  EXPECT_EQ(to_host.bytes, kBytes / 4);
  const ProfileEntry memset = Entry(gpu, "[CUDA memset]");
  EXPECT_EQ(memset.calls, 2);
  EXPECT_EQ(memset.bytes, kBytes + kBytes / 2);
  EXPECT_THAT(gpu.entries, SizeIs(3));
  EXPECT_EQ(Calls(profile.api_calls, "cudaMemcpy"), 4u);
  EXPECT_EQ(Calls(profile.api_calls, "cudaMemset"), 2u);
  EXPECT_EQ(Calls(profile.api_calls, "cudaMalloc"), 1u);
  EXPECT_EQ(Calls(profile.api_calls, "cudaMallocHost"), 1u);
}

TEST_F(TraceTest, EveryLaunchIsThereWithTheTimeThatEventsMeasure) {
  constexpr int kLaunches = 20;
  const Network& network = **FindNetwork("fa19");
  const Problem problem = ConvolutionProblem(network, 0, 1000);
  auto x = DeviceBuffer::Allocate(problem.input_elements() * 4);
  auto k = DeviceBuffer::Allocate(problem.kernel_elements() * 4);
  auto y = DeviceBuffer::Allocate(problem.output_elements() * 4);
  ASSERT_TRUE(x.ok() && k.ok() && y.ok());
  auto convolution = kNaiveVariant.Create(problem, {});
  ASSERT_TRUE(convolution.ok()) << convolution.status();
  const auto run = [&] {
    return (*convolution)->Run(x->floats(), k->floats(), y->floats(), nullptr);
  };
  // The first launch loads the kernel's code.
  ASSERT_TRUE(run().ok());
  ASSERT_TRUE(Synchronize().ok());
  Event start = *Event::Create(), stop = *Event::Create();
  ASSERT_TRUE(start.Record().ok());
  for (int i = 0; i < kLaunches; ++i) ASSERT_TRUE(run().ok());
  ASSERT_TRUE(stop.Record().ok());
  const auto event_ns = stop.Since(start);
  ASSERT_TRUE(event_ns.ok()) << event_ns.status();
  Stop();
  const std::vector<GpuActivity> kernels = Kernels("NaiveKernel(float const*");
  ASSERT_THAT(kernels, SizeIs(1 + kLaunches));
  EXPECT_THAT(Kernels(""), SizeIs(1 + kLaunches));
  int64_t sum_ns = 0;
  for (int i = 1; i <= kLaunches; ++i) {
    sum_ns += Nanoseconds(kernels[i]);
    EXPECT_EQ(kernels[i].stream, kernels[0].stream);
    EXPECT_EQ(kernels[i].block, (std::array<int64_t, 3>{256, 1, 1}));
    EXPECT_EQ(kernels[i].grid[0], 1000 * ((12 * 66 * 66 + 255) / 256));
    EXPECT_GT(kernels[i].registers_per_thread, 8);
    EXPECT_EQ(kernels[i].dynamic_shared_bytes, 0);
  }
  EXPECT_NEAR(sum_ns, *event_ns, 0.05 * *event_ns);
}

TEST_F(TraceTest, AnInferenceIsTracedWhole) {
  constexpr int64_t kImages = 2000;
  constexpr int kRepeat = 2;
  const Network& network = **FindNetwork("fa19");
  const ImageSet images{kImages, 28, 28,
                        std::vector<uint8_t>(kImages * 28 * 28, 100)};
  NetworkWeights weights;
  weights.layers.resize(network.layers.size());
  int64_t floats = 0;
  const auto fill = [&](const std::vector<int64_t>& shape,
                        std::vector<float>& values) {
    values.assign(*ElementCount(shape), 0.01f);
    floats += values.size();
  };
  for (const LayerParameters& parameters : ParametersOf(network)) {
    LayerWeights& layer = weights.layers[parameters.layer];
    fill(parameters.weight_shape, layer.weight);
    if (parameters.has_bias) fill(parameters.bias_shape(), layer.bias);
  }
  InferenceOptions options;
  options.backend = Backend::kCuda;
  options.variants.assign(network.Convolutions().size(), &kNaiveVariant);
  options.repeat = kRepeat;
  Workers workers(1);
  const auto result =
      RunInference(network, weights, images, kImages, options, workers);
  ASSERT_TRUE(result.ok()) << result.status();
  if (result->slice < kImages) GTEST_SKIP() << result->note;
  Stop();
  EXPECT_THAT(Kernels("EnlargeKernel("), SizeIs(kRepeat));
  EXPECT_THAT(Kernels("SoftmaxKernel("), SizeIs(kRepeat));
  EXPECT_THAT(Kernels("LabelKernel("), SizeIs(kRepeat));
  const std::vector<GpuActivity> convolutions = Kernels("NaiveKernel(");
  ASSERT_THAT(convolutions, SizeIs(2 * kRepeat));
  // Not of the first repetition, which loads the kernel's code between the
  // events.
  for (size_t i = 0; i < 2; ++i) {
    const double event_ns = result->kernel_time_ns[i][1];
    EXPECT_NEAR(Nanoseconds(convolutions[2 + i]), event_ns, 0.05 * event_ns);
  }
  const ProfileSection& gpu = profile_.gpu_activities;
  EXPECT_EQ(Entry(gpu, "[CUDA memcpy HtoD]").bytes,
            4 * floats + kRepeat * kImages * 28 * 28);
  EXPECT_EQ(Entry(gpu, "[CUDA memcpy DtoH]").bytes, kRepeat * kImages);
}

TEST(TraceWithoutGpu, SaysWhyThereIsNone) {
  if (FindDevice().ok()) GTEST_SKIP() << "there is a GPU";
  const absl::Status started = StartTrace();
  EXPECT_EQ(started.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(started.message(), "");
}

}  // namespace
}  // namespace convlab::cuda
