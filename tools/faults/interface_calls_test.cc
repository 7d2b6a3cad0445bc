// What a call of the C interface costs the host besides its launch.
#include <cstdint>

#include "convlab/include/convlab/convlab.hpp"
#include "convlab/interface_testing.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "tools/faults/fake_devices.h"

namespace convlab {
namespace {

using ::convlab::cuda::DeviceBuffer;

TEST(OfARun, CallsTheRuntimeSeldomAndAllocatesNothing) {
  convlab_problem problem = SomeProblem();
  problem.pool_size = problem.pool_stride = 0;  // a kernel of its own
  for (const int flags : {0, CONVLAB_TRUST_POINTERS}) {
    Options options = OnDevice(0);
    options.flags = flags;
    options.kernel = "general";
    const Plan plan(problem, options);
    const auto x = DeviceBuffer::Allocate(plan.info().input_bytes);
    const auto weights = DeviceBuffer::Allocate(plan.info().weight_bytes);
    const auto bias = DeviceBuffer::Allocate(kFilters * sizeof(float));
    const auto y = DeviceBuffer::Allocate(plan.info().output_bytes);
    ASSERT_TRUE(x.ok() && weights.ok() && bias.ok() && y.ok());
    const auto run = [&] {
      plan.Run(x->data(), weights->data(), bias->data(), y->data());
    };
    run();
    const long calls = fake::CallCount(), launches = fake::LaunchCount();
    const int64_t allocated = allocations;
    run();
    EXPECT_EQ(allocations, allocated);
    EXPECT_EQ(fake::LaunchCount() - launches, 1);
    EXPECT_LE(fake::CallCount() - calls, flags == 0 ? 8 : 2);
  }
}

}  // namespace
}  // namespace convlab
