// Tests the C interface on the CPU: results, errors, threads. What is computed,
// the tests of kernels/operation compare with the definition in float64.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "convlab/include/convlab/convlab.h"
#include "convlab/include/convlab/convlab.hpp"
#include "convlab/interface_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CInterface, Version) {
  EXPECT_STREQ(convlab_version(), CONVLAB_VERSION);
  EXPECT_STREQ(convlab_status_name(CONVLAB_NO_DEVICE), "no device");
  EXPECT_STREQ(convlab_status_name(99), "unknown status");
}

TEST(CInterface, PlansAreQueried) {
  const Plan plan(SomeProblem());
  EXPECT_EQ(plan.info().output_height, 6);
  EXPECT_EQ(plan.info().output_width, 6);
  EXPECT_EQ(plan.info().workspace_bytes, 0);
  EXPECT_EQ(plan.info().input_bytes, 4 * kImages * kChannels * kSize * kSize);
  EXPECT_EQ(plan.info().weight_bytes, 4 * kFilters * kChannels * 9);
  EXPECT_EQ(plan.info().output_bytes, 4 * kImages * kFilters * 36);
  EXPECT_EQ(plan.info().accuracy, CONVLAB_FP32);
  EXPECT_STRNE(plan.info().kernel, "");
}

TEST(CInterface, TheKernelThatIsNamedRuns) {
  Options options;
  options.kernel = "general";
  EXPECT_STREQ(Plan(SomeProblem(), options).info().kernel, "general");
}

TEST(CInterface, RunsOnTheCpu) {
  for (const int threads : {1, 2}) {
    Options options;
    options.threads = threads;
    const Plan plan(SomeProblem(), options);
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
  Options options;
  options.kernel = "dense_lanes";
  const Plan plan(problem, options);
  EXPECT_STREQ(plan.info().kernel, "dense_lanes");
  HostTensors t;
  t.y.resize(kImages * kFilters * 25);
  plan.Run(t.x.data(), t.weights.data(), t.bias.data(), t.y.data());
  EXPECT_EQ(t.y, std::vector<float>(t.y.size(), 9 * kChannels + 0.5f));
}

// By a kernel of each kind, and by tensors that are converted.
TEST(CInterface, WeightsArePreparedOnce) {
  convlab_problem variant = SomeProblem();
  variant.padding_top = variant.padding_bottom = 0;
  variant.padding_left = variant.padding_right = 0;
  convlab_problem last = SomeProblem();
  last.format = CONVLAB_NHWC;
  const struct {
    convlab_problem problem;
    const char* kernel;
  } cases[] = {{SomeProblem(), "general"},
               {variant, "general"},
               {variant, "dense_lanes"},
               {last, "general"}};
  for (const auto& [problem, kernel] : cases) {
    SCOPED_TRACE(kernel);
    Options options;
    options.kernel = kernel;
    const Plan plan(problem, options);
    const convlab_info& info = plan.info();
    EXPECT_STREQ(info.kernel, kernel);
    HostTensors t;
    for (size_t i = 0; i < t.weights.size(); ++i) {
      t.weights[i] = static_cast<float>(i);
    }
    std::vector<float> expected(info.output_bytes / 4), y = expected;
    plan.Run(t.x.data(), t.weights.data(), t.bias.data(), expected.data());
    ASSERT_GE(info.prepared_bytes, info.weight_bytes);
    Aligned prepared(info.prepared_bytes);
    plan.PrepareWeights(t.weights.data(), prepared.data());
    t.weights.assign(t.weights.size(), -1);  // not needed any more
    for (int turn = 0; turn < 2; ++turn) {
      y.assign(y.size(), -1);
      plan.RunPrepared(t.x.data(), prepared.data(), t.bias.data(), y.data());
      EXPECT_EQ(y, expected);
    }
  }
}

// By a kernel of each kind, with one thread and with several, also past the
// caches.
TEST(CInterface, RunsOnTheCpuAllocateNothing) {
  convlab_problem large = SomeProblem();
  large.batch = 64, large.height = large.width = 130;
  large.padding_top = large.padding_bottom = 0;
  large.padding_left = large.padding_right = 0;
  large.has_bias = large.activation = 0;
  large.pool_size = large.pool_stride = 0;
  convlab_problem fused = large;
  fused.activation = CONVLAB_TANH, fused.pool_size = fused.pool_stride = 2;
  const struct {
    convlab_problem problem;
    const char* kernel;
  } cases[] = {{SomeProblem(), "general"},
               {large, "dense_lanes"},
               {fused, "dense_lanes"}};
  for (const auto& [problem, kernel] : cases) {
    for (const int threads : {1, 3}) {
      Options options;
      options.threads = threads;
      options.kernel = kernel;
      const Plan plan(problem, options);
      const convlab_info& info = plan.info();
      const std::vector<float> x(info.input_bytes / 4, 1);
      const std::vector<float> weights(info.weight_bytes / 4, 1);
      const std::vector<float> bias(kFilters, 1);
      std::vector<float> y(info.output_bytes / 4);
      const float* const added = problem.has_bias ? bias.data() : nullptr;
      Aligned prepared(info.prepared_bytes);
      plan.Run(x.data(), weights.data(), added, y.data());
      const int64_t before = allocations;
      for (int i = 0; i < 3; ++i) {
        plan.Run(x.data(), weights.data(), added, y.data());
        plan.PrepareWeights(weights.data(), prepared.data());
        plan.RunPrepared(x.data(), prepared.data(), added, y.data());
      }
      EXPECT_EQ(allocations, before) << info.kernel << " " << threads;
    }
  }
}

TEST(CInterface, ThreadsShareAPlan) {
  const Plan plan(SomeProblem());
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

// Whatever other threads are at when the process forks, the child has plans of
// its own and those of its parent.
TEST(CInterface, TheChildOfAForkGoesOn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer refuses threads after a fork";
#endif
  for (const int threads : {1, 2}) {
    Options options;
    options.threads = threads;
    const Plan plan(SomeProblem(), options);
    const auto is_right = [](const Plan& by) {
      HostTensors t;
      by.Run(t.x.data(), t.weights.data(), t.bias.data(), t.y.data());
      return t.y == ExpectedOnes(0.5f);
    };
    std::atomic<bool> ended{false};
    std::thread runs([&] {
      HostTensors t;
      while (!ended) {
        plan.Run(t.x.data(), t.weights.data(), t.bias.data(), t.y.data());
      }
    });
    std::thread makes([&] {
      while (!ended) Plan(SomeProblem(), options);
    });
    for (int i = 0; i < 50; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(20);  // instead of a child that hangs
        const bool right =
            is_right(plan) && is_right(Plan(SomeProblem(), options));
        _exit(right ? 0 : 1);
      }
      int status = -1;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0) << "fork " << i << ", " << threads << " threads";
      if (HasFailure()) break;
    }
    ended = true;
    runs.join();
    makes.join();
    EXPECT_TRUE(is_right(plan));
  }
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
  problem = right;
  problem.batch = problem.channels = problem.filters = INT32_MAX;
  EXPECT_THAT(create(&problem, &on_cpu, kInvalid),
              HasSubstr("too large to be counted in 64 bits"));
  problem = right, problem.channels = 1024;
  problem.height = problem.width = 1 << 20;
  EXPECT_THAT(create(&problem, &on_cpu, kInvalid),
              HasSubstr("more than a process can address"));
  problem = right, problem.padding_right = INT32_MAX;
  EXPECT_THAT(create(&problem, &on_cpu, kInvalid),
              HasSubstr("the padded image is"));
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

TEST(CInterface, RefusesWrongPreparedWeights) {
  const Plan plan(SomeProblem());
  const auto bytes = static_cast<size_t>(plan.info().prepared_bytes);
  HostTensors t;
  Aligned prepared(bytes);
  std::memset(prepared.data(), 0x5a, bytes);
  const std::string before(prepared.data(), bytes);
  const auto prepare = [&](const void* weights, void* to, size_t room) {
    const std::string message = Thrown([&] {
      Check(convlab_prepare_weights(plan.get(), weights, to, room, nullptr));
    });
    EXPECT_EQ(std::string(prepared.data(), bytes), before);
    return message;
  };
  const float* const w = t.weights.data();
  EXPECT_THAT(MessageOf(convlab_prepare_weights(nullptr, w, prepared.data(),
                                                bytes, nullptr),
                        CONVLAB_INVALID_ARGUMENT),
              HasSubstr("plan is null"));
  EXPECT_THAT(prepare(nullptr, prepared.data(), bytes),
              HasSubstr("weights is null"));
  EXPECT_THAT(prepare(w, nullptr, bytes), HasSubstr("prepared is null"));
  EXPECT_THAT(prepare(w, prepared.data() + 4, bytes),
              HasSubstr("multiple of 256"));
  EXPECT_THAT(prepare(w, prepared.data(), bytes - 1),
              AllOf(HasSubstr("prepared has"), HasSubstr("or more")));
  EXPECT_THAT(prepare(prepared.data() + bytes - 4, prepared.data(), bytes),
              HasSubstr("overlaps weights"));
  const std::vector<float> y = t.y;
  const auto run = [&](const void* from) {
    const std::string message = Thrown(
        [&] { plan.RunPrepared(t.x.data(), from, t.bias.data(), t.y.data()); });
    EXPECT_EQ(t.y, y);
    return message;
  };
  EXPECT_THAT(run(nullptr), HasSubstr("prepared is null"));
  EXPECT_THAT(run(prepared.data() + 8), HasSubstr("multiple of 256"));
}

// Of version 0.1, and of one to come.
TEST(CInterface, InfoOfAnotherVersion) {
  const Plan plan(SomeProblem());
  struct {
    convlab_info info = CONVLAB_INFO_INIT;
    int64_t more = 7;
  } asked;
  asked.info.struct_size = 80;
  asked.info.prepared_bytes = 7;
  ASSERT_EQ(convlab_plan_query(plan.get(), &asked.info), CONVLAB_OK);
  EXPECT_EQ(asked.info.struct_size, 80u);
  EXPECT_STREQ(asked.info.kernel, plan.info().kernel);
  EXPECT_EQ(asked.info.prepared_bytes, 7);
  asked.info.struct_size = sizeof(asked);
  ASSERT_EQ(convlab_plan_query(plan.get(), &asked.info), CONVLAB_OK);
  EXPECT_EQ(asked.info.prepared_bytes, plan.info().prepared_bytes);
  EXPECT_EQ(asked.more, 7);
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

}  // namespace
}  // namespace convlab
