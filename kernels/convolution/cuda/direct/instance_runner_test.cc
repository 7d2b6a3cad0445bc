// Every compiled instance of direct_tiled, not only those that the variant
// takes, on shapes that cut its tiles unevenly.
#include "kernels/convolution/cuda/direct/instance_runner.h"

#include <cmath>
#include <random>
#include <vector>

#include "common/parallel/parallel.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/cuda/direct/instances.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {
namespace {

constexpr Problem kProblems[] = {
    {3, 1, 20, 23, 7, 5},   {2, 6, 13, 40, 50, 5}, {3, 1, 44, 44, 13, 7},
    {2, 5, 30, 19, 24, 7},  {2, 3, 12, 12, 5, 3},  {1, 1, 9, 2000, 3, 5},
    {600, 2, 9, 10, 20, 5}, {600, 1, 9, 9, 4, 7},  {2, 70, 40, 40, 9, 5},
};

class EveryInstance : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const auto device = FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }
};

std::vector<float> RandomIntegers(int64_t count) {
  static std::mt19937 generator(20261121);
  std::uniform_int_distribution<int> distribution(-4, 4);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

DeviceBuffer Upload(const std::vector<float>& values) {
  DeviceBuffer buffer = *DeviceBuffer::Allocate(4 * values.size());
  EXPECT_TRUE(CopyToDevice(buffer.data(), values.data(), buffer.bytes()).ok());
  return buffer;
}

TEST_P(EveryInstance, AreExactOnIntegers) {
  Workers workers(2);
  int taken = 0;
  for (const Problem& problem : kProblems) {
    const auto takes = DirectTiledInstanceTakes(GetParam(), problem);
    ASSERT_TRUE(takes.ok()) << takes.status();
    if (!*takes) continue;
    ++taken;
    const std::vector<float> x = RandomIntegers(problem.input_elements());
    const std::vector<float> k = RandomIntegers(problem.kernel_elements());
    const DeviceBuffer device_x = Upload(x);
    const DeviceBuffer device_k = Upload(k);
    // Poisoned: what is not written stays NaN.
    const DeviceBuffer device_y =
        Upload(std::vector<float>(problem.output_elements(), NAN));
    const auto convolution = MakeDirectTiledConvolution(GetParam(), problem);
    ASSERT_TRUE(convolution.ok()) << convolution.status();
    ASSERT_TRUE((*convolution)
                    ->Run(device_x.floats(), device_k.floats(),
                          device_y.floats(), nullptr)
                    .ok());
    ASSERT_TRUE(Synchronize().ok());
    std::vector<float> y(problem.output_elements());
    ASSERT_TRUE(CopyToHost(y.data(), device_y.data(), device_y.bytes()).ok());
    const std::vector<double> reference =
        ReferenceConvolution(problem, x.data(), k.data(), workers);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], reference[i])
          << ToString(problem) << " at output element " << i;
    }
  }
  EXPECT_GT(taken, 0);
}

TEST_P(EveryInstance, UseWhatTheDeviceHas) {
  for (const Problem& problem : kProblems) {
    const auto takes = DirectTiledInstanceTakes(GetParam(), problem);
    ASSERT_TRUE(takes.ok()) << takes.status();
    if (!*takes) continue;
    const auto usage = FindDirectTiledUsage(GetParam(), problem);
    ASSERT_TRUE(usage.ok()) << usage.status();
    EXPECT_GE(usage->blocks, 1);
    EXPECT_GT(usage->occupancy, 0);
    EXPECT_LE(usage->occupancy, 1);
    EXPECT_GE(usage->padding, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryInstance,
                         ::testing::Range(0, kDirectTiledInstanceCount));

}  // namespace
}  // namespace convlab::cuda
