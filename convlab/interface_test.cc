// Tests the C interface, on the CPU and, where there is one, on a GPU: results,
// errors, threads, streams and graphs. What is computed, the tests of
// kernels/operation compare with the definition in float64.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "convlab/include/convlab/convlab.h"
#include "convlab/include/convlab/convlab.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#ifdef CONVLAB_TEST_GRAPHS
#include <cuda_runtime_api.h>

#include "kernels/cuda/graph.h"
#endif

// Counts what this program takes from the heap by C++'s means.
static std::atomic<int64_t> allocations{0};

void* operator new(std::size_t bytes) {
  ++allocations;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using ::convlab::cuda::DeviceBuffer;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kImages = 3, kChannels = 2, kSize = 12, kFilters = 5;

convlab_problem SomeProblem() {
  convlab_problem problem = CONVLAB_PROBLEM_INIT;
  problem.batch = kImages, problem.channels = kChannels;
  problem.height = problem.width = kSize;
  problem.filters = kFilters;
  problem.kernel_height = problem.kernel_width = 3;
  problem.padding_top = problem.padding_bottom = 1;
  problem.padding_left = problem.padding_right = 1;
  problem.has_bias = 1;
  problem.activation = CONVLAB_RELU;
  problem.pool_size = problem.pool_stride = 2;
  return problem;
}

// Ones: an output counts the pixels that its sums see, plus the bias.
std::vector<float> ExpectedOnes(float bias) {
  // Of a 2x2 window the largest is a pixel of the inside.
  return std::vector<float>(kImages * kFilters * 36, 9 * kChannels + bias);
}

convlab::Options OnDevice(int device) {
  convlab::Options options;
  options.device = device;
  return options;
}

struct HostTensors {
  std::vector<float> x =
      std::vector<float>(kImages * kChannels * kSize * kSize, 1);
  std::vector<float> weights = std::vector<float>(kFilters * kChannels * 9, 1);
  std::vector<float> bias = std::vector<float>(kFilters, 0.5f);
  std::vector<float> y = std::vector<float>(kImages * kFilters * 36, -1);
};

TEST(CInterface, Version) {
  EXPECT_STREQ(convlab_version(), CONVLAB_VERSION);
  EXPECT_STREQ(convlab_status_name(CONVLAB_NO_DEVICE), "no device");
  EXPECT_STREQ(convlab_status_name(99), "unknown status");
}

TEST(CInterface, PlansAreQueried) {
  const convlab::Plan plan(SomeProblem());
  EXPECT_EQ(plan.info().output_height, 6);
  EXPECT_EQ(plan.info().output_width, 6);
  EXPECT_EQ(plan.info().workspace_bytes, 0);
  EXPECT_EQ(plan.info().input_bytes, 4 * kImages * kChannels * kSize * kSize);
  EXPECT_EQ(plan.info().weight_bytes, 4 * kFilters * kChannels * 9);
  EXPECT_EQ(plan.info().output_bytes, 4 * kImages * kFilters * 36);
  EXPECT_EQ(plan.info().accuracy, CONVLAB_FP32);
  EXPECT_STREQ(plan.info().kernel, "general");
}

TEST(CInterface, RunsOnTheCpu) {
  for (const int threads : {1, 2}) {
    convlab::Options options;
    options.threads = threads;
    const convlab::Plan plan(SomeProblem(), options);
    HostTensors t;
    plan.Run(t.x.data(), t.weights.data(), t.bias.data(), t.y.data());
    EXPECT_EQ(t.y, ExpectedOnes(0.5f));
    // Another bias, in another place.
    const std::vector<float> bias(kFilters, 2);
    plan.Run(t.x.data(), t.weights.data(), bias.data(), t.y.data());
    EXPECT_EQ(t.y, ExpectedOnes(2));
  }
}

// A variant, which was created with an epilogue, takes the run's bias.
TEST(CInterface, RunsVariantsOnTheCpu) {
  convlab_problem problem = SomeProblem();
  problem.padding_top = problem.padding_bottom = 0;
  problem.padding_left = problem.padding_right = 0;
  const convlab::Plan plan(problem);
  EXPECT_STREQ(plan.info().kernel, "dense_lanes");
  HostTensors t;
  t.y.resize(kImages * kFilters * 25);
  plan.Run(t.x.data(), t.weights.data(), t.bias.data(), t.y.data());
  EXPECT_EQ(t.y, std::vector<float>(t.y.size(), 9 * kChannels + 0.5f));
}

// By both kernels, with one thread and with several, also past the caches.
TEST(CInterface, RunsOnTheCpuAllocateNothing) {
  convlab_problem large = SomeProblem();
  large.batch = 64, large.height = large.width = 130;
  large.padding_top = large.padding_bottom = 0;
  large.padding_left = large.padding_right = 0;
  large.has_bias = large.activation = 0;
  large.pool_size = large.pool_stride = 0;
  convlab_problem fused = large;
  fused.activation = CONVLAB_TANH, fused.pool_size = fused.pool_stride = 2;
  for (const convlab_problem& problem : {SomeProblem(), large, fused}) {
    for (const int threads : {1, 3}) {
      convlab::Options options;
      options.threads = threads;
      const convlab::Plan plan(problem, options);
      const convlab_info& info = plan.info();
      const std::vector<float> x(info.input_bytes / 4, 1);
      const std::vector<float> weights(info.weight_bytes / 4, 1);
      const std::vector<float> bias(kFilters, 1);
      std::vector<float> y(info.output_bytes / 4);
      const float* const added = problem.has_bias ? bias.data() : nullptr;
      plan.Run(x.data(), weights.data(), added, y.data());
      const int64_t before = allocations;
      for (int i = 0; i < 3; ++i) {
        plan.Run(x.data(), weights.data(), added, y.data());
      }
      EXPECT_EQ(allocations, before) << info.kernel << " " << threads;
    }
  }
}

TEST(CInterface, ThreadsShareAPlan) {
  const convlab::Plan plan(SomeProblem());
  std::vector<HostTensors> tensors(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < tensors.size(); ++i) {
    threads.emplace_back([&plan, &t = tensors[i], i] {
      t.bias.assign(kFilters, static_cast<float>(i));
      for (int turn = 0; turn < 20; ++turn) {
        plan.Run(t.x.data(), t.weights.data(), t.bias.data(), t.y.data());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(tensors[i].y, ExpectedOnes(static_cast<float>(i)));
  }
}

// The message of an error, of the code that is expected.
std::string MessageOf(convlab_status status, convlab_status expected) {
  EXPECT_EQ(status, expected);
  return status == CONVLAB_OK ? "" : convlab_last_error();
}

TEST(CInterface, RefusesWrongPlans) {
  const convlab_problem right = SomeProblem();
  const convlab_options on_cpu = CONVLAB_OPTIONS_INIT;
  convlab_plan* plan = nullptr;
  const auto create = [&plan](const convlab_problem* problem,
                              const convlab_options* options,
                              convlab_status expected) {
    int mark = 0;
    plan = reinterpret_cast<convlab_plan*>(&mark);
    const std::string message =
        MessageOf(convlab_plan_create(problem, options, &plan), expected);
    EXPECT_EQ(plan, nullptr);
    return message;
  };
  constexpr convlab_status kInvalid = CONVLAB_INVALID_ARGUMENT;
  EXPECT_EQ(MessageOf(convlab_plan_create(&right, &on_cpu, nullptr), kInvalid),
            "convlab_plan_create: plan is null");
  EXPECT_THAT(create(nullptr, &on_cpu, kInvalid), HasSubstr("problem is null"));
  EXPECT_THAT(create(&right, nullptr, kInvalid), HasSubstr("options is null"));
  convlab_problem problem = right;
  problem.struct_size = 8;
  EXPECT_THAT(create(&problem, &on_cpu, kInvalid),
              HasSubstr("problem->struct_size is 8, expected 136"));
  problem = right, problem.stride_width = 5;
  EXPECT_THAT(create(&problem, &on_cpu, kInvalid),
              HasSubstr("stride is 5, expected 1 to 4"));
  problem = right, problem.activation = 3;
  EXPECT_THAT(create(&problem, &on_cpu, kInvalid),
              HasSubstr("activation is 3"));
  problem = right, problem.batch = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(create(&problem, &on_cpu, kInvalid), HasSubstr("the batch is -"));
  convlab_options options = on_cpu;
  options.accuracy = 4;
  EXPECT_THAT(create(&right, &options, kInvalid), HasSubstr("accuracy is 4"));
  options = on_cpu, options.kernel = "no_such_kernel";
  EXPECT_THAT(create(&right, &options, kInvalid), HasSubstr("no_such_kernel"));
  options = on_cpu, options.kernel = "naive";
  EXPECT_THAT(create(&right, &options, CONVLAB_UNSUPPORTED),
              HasSubstr("take no padding"));
  options = on_cpu, options.device = 1000;
  EXPECT_THAT(create(&right, &options, CONVLAB_NO_DEVICE), HasSubstr("GPU"));
}

TEST(CInterface, RefusesWrongRunsAndWritesNothing) {
  const convlab_problem problem = SomeProblem();
  const convlab_options options = CONVLAB_OPTIONS_INIT;
  convlab_plan* plan = nullptr;
  ASSERT_EQ(convlab_plan_create(&problem, &options, &plan), CONVLAB_OK);
  HostTensors t;
  const std::vector<float> before = t.y;
  const auto run = [&](convlab_plan* by, const float* x, const float* weights,
                       const float* bias, float* y) {
    const std::string message =
        MessageOf(convlab_run(by, x, weights, bias, y, nullptr, 0, nullptr),
                  CONVLAB_INVALID_ARGUMENT);
    EXPECT_EQ(t.y, before);
    return message;
  };
  const float *x = t.x.data(), *w = t.weights.data(), *b = t.bias.data();
  float* const y = t.y.data();
  const auto misaligned =
      reinterpret_cast<const float*>(reinterpret_cast<const char*>(x) + 1);
  EXPECT_THAT(run(nullptr, x, w, b, y), HasSubstr("plan is null"));
  EXPECT_THAT(run(plan, nullptr, w, b, y), HasSubstr("x is null"));
  EXPECT_THAT(run(plan, x, nullptr, b, y), HasSubstr("weights is null"));
  EXPECT_THAT(run(plan, x, w, nullptr, y), HasSubstr("bias is null"));
  EXPECT_THAT(run(plan, x, w, b, nullptr), HasSubstr("y is null"));
  EXPECT_THAT(run(plan, misaligned, w, b, y),
              AllOf(HasSubstr("x is at"), HasSubstr("multiple of 4")));
  EXPECT_THAT(run(plan, y + 1, w, b, y), HasSubstr("overlaps x"));
  EXPECT_THAT(run(plan, x, w, y + t.y.size() - 1, y),
              HasSubstr("overlaps bias"));
  EXPECT_THAT(run(plan, reinterpret_cast<const float*>(~uintptr_t{3}), w, b, y),
              HasSubstr("beyond the last address"));
  convlab_plan_destroy(plan);
  convlab_plan_destroy(nullptr);

  convlab_problem plain = problem;
  plain.has_bias = 0;
  ASSERT_EQ(convlab_plan_create(&plain, &options, &plan), CONVLAB_OK);
  EXPECT_THAT(run(plan, x, w, b, y), HasSubstr("bias is given"));
  convlab_plan_destroy(plan);
}

TEST(CInterface, InfoOfAnotherSize) {
  convlab_info info = CONVLAB_INFO_INIT;
  EXPECT_EQ(convlab_plan_query(nullptr, &info), CONVLAB_INVALID_ARGUMENT);
  const convlab_problem problem = SomeProblem();
  const convlab_options options = CONVLAB_OPTIONS_INIT;
  convlab_plan* plan = nullptr;
  ASSERT_EQ(convlab_plan_create(&problem, &options, &plan), CONVLAB_OK);
  EXPECT_EQ(convlab_plan_query(plan, nullptr), CONVLAB_INVALID_ARGUMENT);
  info.struct_size = 72;
  EXPECT_EQ(convlab_plan_query(plan, &info), CONVLAB_INVALID_ARGUMENT);
  EXPECT_THAT(convlab_last_error(), HasSubstr("info->struct_size is 72"));
  convlab_plan_destroy(plan);
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
    EXPECT_TRUE(
        convlab::cuda::CopyToDevice(buffer->data(), values.data(), bytes).ok());
    return *std::move(buffer);
  }
  static std::vector<float> Download(const DeviceBuffer& buffer) {
    std::vector<float> values(buffer.bytes() / sizeof(float));
    EXPECT_TRUE(
        convlab::cuda::CopyToHost(values.data(), buffer.data(), buffer.bytes())
            .ok());
    return values;
  }

  struct Tensors {
    explicit Tensors(const convlab::Plan& plan, const HostTensors& host = {})
        : x(Upload(host.x)),
          weights(Upload(host.weights)),
          bias(Upload(host.bias)),
          y(Upload(host.y)),
          workspace(
              *DeviceBuffer::Allocate(plan.info().workspace_bytes + 256)) {}
    void Run(const convlab::Plan& plan, CUstream_st* stream) {
      plan.Run(x.floats(), weights.floats(), bias.floats(), y.floats(),
               workspace.data(), stream);
    }
    DeviceBuffer x, weights, bias, y, workspace;
  };
};

TEST_F(OnGpu, RunsInStreams) {
  const convlab::Plan plan(SomeProblem(), OnDevice(0));
  std::vector<Tensors> tensors;
  std::vector<convlab::cuda::DeviceStream> streams;
  for (int i = 0; i < 3; ++i) {
    HostTensors host;
    host.bias.assign(kFilters, static_cast<float>(i));
    tensors.emplace_back(plan, host);
    streams.push_back(*convlab::cuda::DeviceStream::Create());
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
  ASSERT_TRUE(convlab::cuda::Synchronize().ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Download(tensors[i].y), ExpectedOnes(static_cast<float>(i)));
  }
}

TEST_F(OnGpu, RunAllocatesNoDeviceMemory) {
  const convlab::Plan plan(SomeProblem(), OnDevice(0));
  Tensors tensors(plan);
  tensors.Run(plan, nullptr);  // loads the kernels' code
  ASSERT_TRUE(convlab::cuda::Synchronize().ok());
  const auto before = convlab::cuda::FreeMemory();
  for (int turn = 0; turn < 100; ++turn) tensors.Run(plan, nullptr);
  EXPECT_EQ(*convlab::cuda::FreeMemory(), *before);
  ASSERT_TRUE(convlab::cuda::Synchronize().ok());
}

#ifdef CONVLAB_TEST_GRAPHS
// A plan, unless the kernel that is named does not take the problem there.
std::optional<convlab::Plan> MakeIfTaken(const convlab::Options& options) {
  try {
    return std::optional<convlab::Plan>(std::in_place, SomeProblem(), options);
  } catch (const convlab::Error& error) {
    EXPECT_EQ(error.status(), CONVLAB_UNSUPPORTED) << error.what();
    return std::nullopt;
  }
}

TEST_F(OnGpu, IsRecordedInAGraph) {
  for (const char* const kernel :
       {"", "general", "few_images", "tensor_split", "tensor_strips"}) {
    SCOPED_TRACE(kernel);
    convlab::Options options = OnDevice(0);
    options.flags = CONVLAB_CAPTURABLE;
    if (*kernel != '\0') options.kernel = kernel;
    const std::optional<convlab::Plan> made = MakeIfTaken(options);
    if (!made.has_value()) continue;
    const convlab::Plan& plan = *made;
    EXPECT_EQ(plan.info().capturable, 1);
    Tensors tensors(plan);
    const auto stream = convlab::cuda::DeviceStream::Create();
    ASSERT_TRUE(stream.ok());
    const auto graph =
        convlab::cuda::Graph::Record(*stream, [&]() -> absl::Status {
          tensors.Run(plan, stream->get());
          return absl::OkStatus();
        });
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(Download(tensors.y), HostTensors().y) << "ran while recorded";
    ASSERT_TRUE(graph->Launch(*stream).ok());
    ASSERT_TRUE(graph->Launch(*stream).ok());
    ASSERT_TRUE(convlab::cuda::Synchronize().ok());
    EXPECT_EQ(Download(tensors.y), ExpectedOnes(0.5f));
  }
}
#endif

TEST_F(OnGpu, RefusesWrongMemory) {
  const convlab::Plan plan(SomeProblem(), OnDevice(0));
  Tensors t(plan);
  HostTensors host;
  const auto run = [&](const float* x, void* workspace) {
    try {
      plan.Run(x, t.weights.floats(), t.bias.floats(), t.y.floats(), workspace);
    } catch (const convlab::Error& error) {
      EXPECT_EQ(error.status(), CONVLAB_INVALID_ARGUMENT);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(run(host.x.data(), t.workspace.data()),
              HasSubstr("x is in the host's memory"));
  if (plan.info().workspace_bytes > 0) {
    EXPECT_THAT(run(t.x.floats(), nullptr), HasSubstr("workspace is null"));
    EXPECT_THAT(run(t.x.floats(), static_cast<char*>(t.workspace.data()) + 4),
                HasSubstr("multiple of 256"));
  }
  ASSERT_TRUE(convlab::cuda::Synchronize().ok());
  EXPECT_EQ(Download(t.y), host.y);
}

#ifdef CONVLAB_TEST_GRAPHS
TEST_F(OnGpu, RefusesAnotherDevicesStream) {
  if (convlab_count_gpus() < 2) GTEST_SKIP() << "there is one GPU";
  const convlab::Plan plan(SomeProblem(), OnDevice(1));
  const auto stream = convlab::cuda::DeviceStream::Create();  // of GPU 0
  ASSERT_TRUE(stream.ok());
  const convlab::cuda::CurrentDevice current(1);
  Tensors t(plan);
  try {
    t.Run(plan, stream->get());
    ADD_FAILURE() << "ran";
  } catch (const convlab::Error& error) {
    EXPECT_EQ(error.status(), CONVLAB_INVALID_ARGUMENT);
    EXPECT_THAT(error.what(), HasSubstr("stream is one of GPU 0"));
  }
  ASSERT_TRUE(convlab::cuda::Synchronize().ok());
  EXPECT_EQ(Download(t.y), HostTensors().y);
}

// In a process of its own, because others' memory and streams go, too.
TEST_F(OnGpu, RefusesAPlanThatWasMadeBeforeAReset) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use_after_reset = [] {
    const convlab::Plan plan(SomeProblem(), OnDevice(0));
    { Tensors(plan).Run(plan, nullptr); }
    if (cudaDeviceReset() != cudaSuccess) std::_Exit(2);
    Tensors t(plan);
    try {
      t.Run(plan, nullptr);
    } catch (const convlab::Error& error) {
      const bool right =
          error.status() == CONVLAB_INVALID_ARGUMENT &&
          std::strstr(error.what(), "has been reset") != nullptr &&
          convlab::cuda::Synchronize().ok() && Download(t.y) == HostTensors().y;
      const convlab::Plan later(SomeProblem(), OnDevice(0));
      t.Run(later, nullptr);
      std::_Exit(right && convlab::cuda::Synchronize().ok() &&
                         Download(t.y) == ExpectedOnes(0.5f)
                     ? 0
                     : 3);
    }
    std::_Exit(4);
  };
  EXPECT_EXIT(use_after_reset(), testing::ExitedWithCode(0), "");
}
#endif

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
  const convlab::Plan other(problem, OnDevice(0));
  Tensors t(other);
  const auto workspace = DeviceBuffer::Allocate(info.workspace_bytes);
  ASSERT_TRUE(workspace.ok());
  EXPECT_THAT(
      MessageOf(convlab_run(plan, t.x.floats(), t.weights.floats(),
                            t.bias.floats(), t.y.floats(), workspace->data(),
                            info.workspace_bytes - 1, nullptr),
                CONVLAB_INVALID_ARGUMENT),
      HasSubstr("or more"));
  ASSERT_TRUE(convlab::cuda::Synchronize().ok());
  EXPECT_EQ(Download(t.y), HostTensors().y);
  convlab_plan_destroy(plan);
}

}  // namespace
