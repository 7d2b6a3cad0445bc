#include "kernels/operation/cuda/cudnn_estimate.h"

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"

namespace convlab::cuda {
namespace {

Operation FilterBank(int64_t batch, int64_t channels, int64_t size,
                     int64_t filters, int64_t kernel, int64_t stride,
                     int64_t padding) {
  Operation o;
  o.batch = batch, o.channels = channels, o.height = o.width = size;
  o.filters = filters, o.kernel_height = o.kernel_width = kernel;
  o.stride_y = o.stride_x = stride;
  o.top = o.bottom = o.left = o.right = padding;
  return o;
}

// Of convlab/measure/h200/compare.json: the least and the greatest times, and
// one of each kind.
TEST(CudnnEstimate, IsNearWhatWasMeasured) {
  const struct {
    Operation operation;
    double us;
  } measured[] = {{FilterBank(16, 3, 224, 64, 7, 2, 3), 187.9},  // resnet-stem
                  {FilterBank(1, 3, 224, 64, 7, 2, 3), 18.0},   // resnet-stem-1
                  {FilterBank(4, 1, 256, 64, 9, 1, 4), 147.1},  // srcnn-1
                  {FilterBank(256, 6, 14, 16, 5, 1, 0), 16.7},  // lenet5-c3
                  {FilterBank(128, 16, 32, 32, 3, 2, 1), 16.4},  // cifar-down
                  {FilterBank(64, 32, 20, 64, 4, 2, 0), 34.5}};  // atari-2
  for (const auto& [operation, us] : measured) {
    const double estimated = EstimateCudnnNs(operation, kH200) * 1e-3;
    EXPECT_GT(estimated, us / 1.4) << ToString(operation);
    EXPECT_LT(estimated, us * 1.4) << ToString(operation);
  }
}

// Of convlab/measure/h200/surroundings.json.
TEST(CudnnEstimate, IsNearWhatWasMeasuredOfHalves) {
  const struct {
    Operation operation;
    double us;
  } measured[] = {{FilterBank(4, 1, 256, 64, 9, 1, 4), 111.5},    // srcnn-1
                  {FilterBank(256, 6, 14, 16, 5, 1, 0), 17.6},    // lenet5-c3
                  {FilterBank(16, 3, 224, 64, 3, 2, 0), 56.3},    // squeezenet
                  {FilterBank(128, 16, 32, 32, 3, 2, 1), 17.7}};  // cifar-down
  for (auto [operation, us] : measured) {
    operation.halves = true;
    const double estimated = EstimateCudnnNs(operation, kH200) * 1e-3;
    EXPECT_GT(estimated, us / 1.4) << ToString(operation);
    EXPECT_LT(estimated, us * 1.4) << ToString(operation);
  }
}

TEST(CudnnEstimate, FollowsTheGpu) {
  const Operation operation = FilterBank(16, 3, 224, 64, 7, 2, 3);
  DeviceLimits half = kH200;
  half.multiprocessors /= 2;
  half.memory_gbs /= 2;
  const double whole = EstimateCudnnNs(operation, kH200);
  EXPECT_GT(EstimateCudnnNs(operation, half), 1.8 * whole);
  EXPECT_LT(EstimateCudnnNs(operation, half), 2 * whole);
}

}  // namespace
}  // namespace convlab::cuda
