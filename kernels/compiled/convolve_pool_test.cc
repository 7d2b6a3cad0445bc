// The kernel of a convolution with its pooling, by the definition.
#include "kernels/compiled/cuda/convolve_pool.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/compiled/pooled_testing.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"

namespace convlab::cuda {
namespace {

constexpr MaxPool kHalve{2, 2, false};

ConvolvePoolProblem ProblemOf(const Pooled& shape) {
  const PooledCase& one = shape.of;
  return {one.channels,    one.size, one.filters,
          one.kernel_size, one.pool, shape.activation};
}

// Runs the kernel on the first `images` images.
std::vector<float> Convolved(const Pooled& of, const PooledValues& values,
                             int64_t images, bool bias) {
  ConvolvePoolShape shape;
  EXPECT_TRUE(MakeConvolvePoolShape(ProblemOf(of), &shape));
  const auto upload = [](const std::vector<float>& from) {
    auto buffer = DeviceBuffer::Allocate(from.size() * sizeof(float));
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_TRUE(
        CopyToDevice(buffer->data(), from.data(), buffer->bytes()).ok());
    return *std::move(buffer);
  };
  const DeviceBuffer in = upload(values.in), filters = upload(values.filters);
  const DeviceBuffer bias_values = upload(values.bias);
  auto packed = DeviceBuffer::Allocate(PackedConvolvePoolBytes(shape));
  std::vector<float> result(images * shape.problem.filters * shape.pooled *
                            shape.pooled);
  auto out = DeviceBuffer::Allocate(result.size() * sizeof(float));
  EXPECT_TRUE(packed.ok() && out.ok());
  EXPECT_TRUE(
      ToStatus(LaunchPackConvolvePool(shape, filters.floats(),
                                      bias ? bias_values.floats() : nullptr,
                                      packed->data()))
          .ok());
  EXPECT_TRUE(FillBytes(out->data(), 0xff, out->bytes()).ok());
  EXPECT_TRUE(Synchronize().ok());
  DeviceLimits limits;
  EXPECT_FALSE(AskLimits(&limits).failed());
  ConvolvePoolLaunch launch;
  EXPECT_TRUE(MakeConvolvePoolLaunch(shape, images, limits, &launch));
  EXPECT_TRUE(ToStatus(LaunchConvolvePool(launch, in.floats(), packed->data(),
                                          out->floats(), nullptr))
                  .ok());
  EXPECT_TRUE(CopyToHost(result.data(), out->data(), out->bytes()).ok());
  return result;
}

class ConvolvePoolTest : public ::testing::TestWithParam<PooledCase> {
 protected:
  void SetUp() override {
    if (!FindDevice().ok()) GTEST_SKIP() << "for a GPU";
    ConvolvePoolShape shape;
    ASSERT_TRUE(MakeConvolvePoolShape(
        ProblemOf({GetParam(), Activation::kNone}), &shape));
    if (!RunsConvolvePool(shape)) GTEST_SKIP() << "for another GPU";
  }
};

TEST_P(ConvolvePoolTest, IsWhatTheDefinitionGives) {
  ExpectWhatTheDefinitionGives(GetParam(), Convolved);
}
TEST_P(ConvolvePoolTest, BitsAreTheSameInAnyBatch) {
  ExpectTheSameBitsInAnyBatch(GetParam(), Convolved);
}
TEST_P(ConvolvePoolTest, AnImagesBitsDoNotDependOnItsNeighbours) {
  ExpectBitsOfTheImageAlone(GetParam(), Convolved);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolvePoolTest,
    ::testing::Values(PooledCase{4, 40, 16, 7, {4, 4, true}},  // fa20
                      PooledCase{6, 14, 16, 5, kHalve},        // lenet5
                      PooledCase{3, 21, 17, 4, {2, 2, true}},
                      PooledCase{2, 17, 33, 5, kHalve},
                      PooledCase{5, 19, 16, 3, kHalve},
                      PooledCase{4, 15, 3, 6, {4, 4, true}},
                      PooledCase{2, 16, 20, 2, {4, 4, false}},
                      PooledCase{2, 12, 16, 2, {4, 4, true}},
                      PooledCase{3, 13, 8, 1, kHalve}),
    NameOf);

}  // namespace
}  // namespace convlab::cuda
