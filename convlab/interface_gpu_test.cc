// Tests the C interface on a GPU: results, errors, streams and graphs. What is
// computed, the tests of kernels/operation compare with the definition in
// float64. With the runtime of tools/faults, on machines without a GPU, results
// are not looked at.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "convlab/include/convlab/convlab.h"
#include "convlab/include/convlab/convlab.hpp"
#include "convlab/interface_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/graph.h"

namespace convlab {
namespace {

using ::convlab::cuda::DeviceBuffer;
using ::testing::HasSubstr;

#ifdef CONVLAB_FAKE_CUDA
constexpr bool kComputes = false;
#else
constexpr bool kComputes = true;
#endif

// A kernel, and the compute capabilities of GPUs on which it takes SomeProblem;
// "" is the fastest.
constexpr struct {
  const char* name;
  int least, most;
  bool runs_on(int capability) const {
    return capability >= least && capability <= most;
  }
} kKernels[] = {{"", 0, 999},
                {"general", 0, 999},
                {"few_images", 0, 999},
                {"tensor_split", 80, 999},
                {"tensor_strips", 80, 999},
                {"tensor_wgmma", 90, 90}};

int Capability() {
  const auto device = cuda::FindDevice();
  EXPECT_TRUE(device.ok()) << device.status();
  return device.ok() ? device->compute_capability : 0;
}

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (convlab_count_gpus() == 0) GTEST_SKIP() << "there is no GPU";
  }

  static DeviceBuffer Upload(const std::vector<float>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    auto buffer = DeviceBuffer::Allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_TRUE(cuda::CopyToDevice(buffer->data(), values.data(), bytes).ok());
    return *std::move(buffer);
  }
  static std::vector<float> Download(const DeviceBuffer& buffer) {
    std::vector<float> values(buffer.bytes() / sizeof(float));
    EXPECT_TRUE(
        cuda::CopyToHost(values.data(), buffer.data(), buffer.bytes()).ok());
    return values;
  }

  struct Tensors {
    explicit Tensors(const Plan& plan, const HostTensors& host = {})
        : x(Upload(host.x)),
          weights(Upload(host.weights)),
          bias(Upload(host.bias)),
          y(Upload(host.y)),
          workspace(
              *DeviceBuffer::Allocate(plan.info().workspace_bytes + 256)) {}
    void Run(const Plan& plan, CUstream_st* stream) {
      plan.Run(x.floats(), weights.floats(), bias.floats(), y.floats(),
               workspace.data(), stream);
    }
    DeviceBuffer x, weights, bias, y, workspace;
  };

  static void ExpectOutputs(const Tensors& tensors,
                            const std::vector<float>& expected) {
    ASSERT_TRUE(cuda::Synchronize().ok());
    if (kComputes) {
      EXPECT_EQ(Download(tensors.y), expected);
    }
  }
  static void ExpectNothingWritten(const Tensors& tensors) {
    ASSERT_TRUE(cuda::Synchronize().ok());
    EXPECT_EQ(Download(tensors.y), HostTensors().y);
  }
};

TEST_F(OnGpu, RunsInStreams) {
  const Plan plan(SomeProblem(), OnDevice(0));
  std::vector<Tensors> tensors;
  std::vector<cuda::DeviceStream> streams;
  for (int i = 0; i < 3; ++i) {
    HostTensors host;
    host.bias.assign(kFilters, static_cast<float>(i));
    tensors.emplace_back(plan, host);
    streams.push_back(*cuda::DeviceStream::Create());
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 50; ++turn) {
        tensors[i].Run(plan, streams[i].get());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 3; ++i) {
    ExpectOutputs(tensors[i], ExpectedOnes(static_cast<float>(i)));
  }
}

TEST_F(OnGpu, WeightsArePreparedOnce) {
  for (const auto& kernel : kKernels) {
    if (!kernel.runs_on(Capability())) continue;
    SCOPED_TRACE(kernel.name);
    Options options = OnDevice(0);
    if (*kernel.name != '\0') options.kernel = kernel.name;
    const Plan plan(SomeProblem(), options);
    ASSERT_GE(plan.info().prepared_bytes, plan.info().weight_bytes);
    const auto prepared = DeviceBuffer::Allocate(plan.info().prepared_bytes);
    ASSERT_TRUE(prepared.ok());
    Tensors t(plan);
    plan.PrepareWeights(t.weights.data(), prepared->data());
    // They are not needed any more.
    ASSERT_TRUE(
        cuda::FillBytes(t.weights.data(), 0, plan.info().weight_bytes).ok());
    for (int turn = 0; turn < 2; ++turn) {
      plan.RunPrepared(t.x.data(), prepared->data(), t.bias.data(), t.y.data(),
                       t.workspace.data());
      ExpectOutputs(t, ExpectedOnes(0.5f));
    }
  }
}

TEST_F(OnGpu, IsRecordedInAGraph) {
  for (const auto& kernel : kKernels) {
    if (!kernel.runs_on(Capability())) continue;
    SCOPED_TRACE(kernel.name);
    Options options = OnDevice(0);
    if (*kernel.name != '\0') options.kernel = kernel.name;
    options.flags = CONVLAB_CAPTURABLE;
    const Plan plan(SomeProblem(), options);
    EXPECT_EQ(plan.info().capturable, 1);
    Tensors tensors(plan);
    const auto stream = cuda::DeviceStream::Create();
    ASSERT_TRUE(stream.ok());
    const auto graph = cuda::Graph::Record(*stream, [&]() -> absl::Status {
      tensors.Run(plan, stream->get());
      return absl::OkStatus();
    });
    ASSERT_TRUE(graph.ok()) << graph.status();
    ExpectNothingWritten(tensors);  // while it was recorded
    ASSERT_TRUE(graph->Launch(*stream).ok());
    ASSERT_TRUE(graph->Launch(*stream).ok());
    ExpectOutputs(tensors, ExpectedOnes(0.5f));
  }
}

TEST_F(OnGpu, RefusesToBeRecordedIfTheKernelCannot) {
  Options options = OnDevice(0);
  options.kernel = "direct_tiled";
  const Plan plan(SomeProblem(), options);
  EXPECT_EQ(plan.info().capturable, 0);
  Tensors t(plan);
  const auto stream = cuda::DeviceStream::Create();
  ASSERT_TRUE(stream.ok());
  const auto graph = cuda::Graph::Record(*stream, [&]() -> absl::Status {
    EXPECT_THAT(Thrown([&] { t.Run(plan, stream->get()); }),
                HasSubstr("being captured into a graph"));
    return absl::OkStatus();
  });
  ExpectNothingWritten(t);
  options.flags = CONVLAB_CAPTURABLE;
  EXPECT_THROW(Plan(SomeProblem(), options), Error);
}

TEST_F(OnGpu, RefusesWrongMemory) {
  const Plan plan(SomeProblem(), OnDevice(0));
  Tensors t(plan);
  HostTensors host;
  const auto run = [&](const float* x, void* workspace) {
    return Thrown([&] {
      plan.Run(x, t.weights.floats(), t.bias.floats(), t.y.floats(), workspace);
    });
  };
  EXPECT_THAT(run(host.x.data(), t.workspace.data()),
              HasSubstr("x is in the host's memory"));
  if (plan.info().workspace_bytes > 0) {
    EXPECT_THAT(run(t.x.floats(), nullptr), HasSubstr("workspace is null"));
    EXPECT_THAT(run(t.x.floats(), static_cast<char*>(t.workspace.data()) + 4),
                HasSubstr("multiple of 256"));
  }
  ExpectNothingWritten(t);
}

// Of prepared weights, too.
TEST_F(OnGpu, RefusesWrongMemoryForWeights) {
  const Plan plan(SomeProblem(), OnDevice(0));
  Tensors t(plan);
  Aligned host(plan.info().prepared_bytes);
  const auto prepared = DeviceBuffer::Allocate(plan.info().prepared_bytes);
  ASSERT_TRUE(prepared.ok());
  const auto prepare = [&](const void* weights, void* to) {
    return Thrown([&] { plan.PrepareWeights(weights, to); });
  };
  EXPECT_THAT(prepare(host.data(), prepared->data()),
              HasSubstr("weights is in the host's memory"));
  EXPECT_THAT(prepare(t.weights.data(), host.data()),
              HasSubstr("prepared is in the host's memory"));
  EXPECT_THAT(Thrown([&] {
                plan.RunPrepared(t.x.data(), host.data(), t.bias.data(),
                                 t.y.data(), t.workspace.data());
              }),
              HasSubstr("prepared is in the host's memory"));
  ExpectNothingWritten(t);
}

TEST_F(OnGpu, RefusesAnotherDevicesMemory) {
  if (convlab_count_gpus() < 2) GTEST_SKIP() << "there is one GPU";
  const Plan plan(SomeProblem(), OnDevice(0));
  Tensors t(plan);
  std::optional<Tensors> other;
  {
    const cuda::CurrentDevice current(1);
    other.emplace(plan);
  }
  EXPECT_THAT(Thrown([&] {
                plan.Run(other->x.data(), t.weights.data(), t.bias.data(),
                         t.y.data(), t.workspace.data());
              }),
              HasSubstr("x is in the memory of GPU 1"));
  ExpectNothingWritten(t);
}

TEST_F(OnGpu, RefusesAnotherDevicesStream) {
  if (convlab_count_gpus() < 2) GTEST_SKIP() << "there is one GPU";
  const Plan plan(SomeProblem(), OnDevice(1));
  const auto stream = cuda::DeviceStream::Create();  // of GPU 0
  ASSERT_TRUE(stream.ok());
  const cuda::CurrentDevice current(1);
  Tensors t(plan);
  EXPECT_THAT(Thrown([&] { t.Run(plan, stream->get()); }),
              HasSubstr("stream is one of GPU 0"));
  ExpectNothingWritten(t);
}

// In a process of its own, because others' memory and streams go, too.
TEST_F(OnGpu, RefusesAPlanThatWasMadeBeforeAReset) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use_after_reset = [] {
    const Plan plan(SomeProblem(), OnDevice(0));
    { Tensors(plan).Run(plan, nullptr); }
    if (cudaDeviceReset() != cudaSuccess) std::_Exit(2);
    Tensors t(plan);
    try {
      t.Run(plan, nullptr);
    } catch (const Error& error) {
      const bool right =
          error.status() == CONVLAB_INVALID_ARGUMENT &&
          std::strstr(error.what(), "has been reset") != nullptr &&
          cuda::Synchronize().ok() && Download(t.y) == HostTensors().y;
      const Plan later(SomeProblem(), OnDevice(0));
      t.Run(later, nullptr);
      std::_Exit(right && cuda::Synchronize().ok() &&
                         (!kComputes || Download(t.y) == ExpectedOnes(0.5f))
                     ? 0
                     : 3);
    }
    std::_Exit(4);
  };
  EXPECT_EXIT(use_after_reset(), testing::ExitedWithCode(0), "");
}

TEST_F(OnGpu, RefusesASmallWorkspace) {
  const convlab_problem problem = SomeProblem();
  convlab_options options = CONVLAB_OPTIONS_INIT;
  options.device = 0;
  options.kernel = "tensor_split";
  convlab_plan* plan = nullptr;
  ASSERT_EQ(convlab_plan_create(&problem, &options, &plan), CONVLAB_OK)
      << convlab_last_error();
  convlab_info info = CONVLAB_INFO_INIT;
  ASSERT_EQ(convlab_plan_query(plan, &info), CONVLAB_OK);
  ASSERT_GT(info.workspace_bytes, 0);
  const Plan other(problem, OnDevice(0));
  Tensors t(other);
  const auto workspace = DeviceBuffer::Allocate(info.workspace_bytes);
  ASSERT_TRUE(workspace.ok());
  EXPECT_THAT(
      MessageOf(convlab_run(plan, t.x.floats(), t.weights.floats(),
                            t.bias.floats(), t.y.floats(), workspace->data(),
                            info.workspace_bytes - 1, nullptr),
                CONVLAB_INVALID_ARGUMENT),
      HasSubstr("or more"));
  ExpectNothingWritten(t);
  convlab_plan_destroy(plan);
}

}  // namespace
}  // namespace convlab
